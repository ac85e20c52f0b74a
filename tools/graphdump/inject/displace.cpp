#include "inject/displace.h"

#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "inject/environment.h"
#include "inject/session.h"

namespace graphdump::displace {
namespace {

namespace driver = cgrt::driver;

// Where the memory of pools, of graphs' own allocations and of cuMemMap begins in each process (driver 580).
constexpr CUdeviceptr kFirstReserved = 0x302000000;
constexpr std::size_t kReservedBytes = std::size_t{64} << 30;  // of addresses
// Allocations come from regions of this size, at random addresses but where randomization is off.
constexpr std::size_t kRegionBytes = std::size_t{32} << 20;

absl::Status take(CUcontext context) {
  const driver::Api& api = driver::api();
  CGRT_ASSIGN_OR_RETURN(const cgrt::ScopedContext current, cgrt::ScopedContext::enter(context));
  CUdeviceptr reserved = 0, allocated = 0;
  void* pinned = nullptr;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(api.MemAddressReserve(&reserved, kReservedBytes, 0, kFirstReserved, 0), "cuMemAddressReserve"));
  CGRT_RETURN_IF_ERROR(driver::to_status(api.MemAlloc(&allocated, kRegionBytes), "cuMemAlloc"));
  return driver::to_status(api.MemHostAlloc(&pinned, kRegionBytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
}

}  // namespace

void on_context(CUcontext context) {
  static std::once_flag& done = *new std::once_flag;
  if (std::getenv(kSaveDisplacedVariable) == nullptr) return;
  std::call_once(done, [context] {
    if (const absl::Status status = take(context); !status.ok()) {
      note(absl::StrCat("Memory could not be displaced: ", std::string(status.message())));
    }
  });
}

}  // namespace graphdump::displace
