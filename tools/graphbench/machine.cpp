#include "machine.h"

#include <cuda.h>

#include <cctype>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/device.h"

namespace graphbench {
namespace {

// 13000 is "13.0".
std::string cuda_text(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

bool is_version(const std::string& word) {
  const bool is_numeric = word.find_first_not_of("0123456789.") == std::string::npos;
  return is_numeric && std::isdigit(static_cast<unsigned char>(word.front())) && word.find('.') != std::string::npos;
}

// The release of the kernel module, which people know; the driver's own number is CUDA's.
absl::StatusOr<std::string> driver_text() {
  std::ostringstream text;
  text << std::ifstream("/proc/driver/nvidia/version").rdbuf();
  if (const std::string found = driver_in(text.str()); !found.empty()) return found;
  CGRT_ASSIGN_OR_RETURN(const int version, cgrt::driver_version());
  return absl::StrCat("of CUDA ", cuda_text(version));
}

}  // namespace

std::string driver_in(const std::string& version_text) {
  // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (...)"
  std::istringstream line(version_text.substr(0, version_text.find('\n')));
  for (std::string word; line >> word;) {
    if (is_version(word)) return word;
  }
  return "";
}

absl::Status describe_machine(cgrt::inspect::Record& record) {
  record.date = absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone());
  record.simulated = cgrt::is_simulated();
  CGRT_ASSIGN_OR_RETURN(record.device, cgrt::DeviceRef(0).name());
  if (record.simulated) {
    record.driver = "simulator";
  } else {
    CGRT_ASSIGN_OR_RETURN(record.driver, driver_text());
  }
  record.cuda = cuda_text(CUDA_VERSION);
  return absl::OkStatus();
}

}  // namespace graphbench
