#include "cgrt/record/origin.h"

#include <ctime>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cgrt::record {

void describe_machine(Record& record, std::string device, int cuda_version, bool is_simulated) {
  record.date = utc_date();
  record.device = std::move(device);
  record.driver = is_simulated ? "simulated" : kernel_driver_version();
  record.cuda = absl::StrCat(cuda_version / 1000, ".", cuda_version % 1000 / 10);
  record.simulated = is_simulated;
}

std::string command_line(const char* program, int argc, const char* const* argv) {
  std::string line = program;
  for (int i = 1; i < argc; ++i) absl::StrAppend(&line, " ", argv[i]);
  return line;
}

std::string utc_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%d", &utc);
  return text;
}

std::string kernel_driver_version() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  return file >> version ? version : "unknown";
}

}  // namespace cgrt::record
