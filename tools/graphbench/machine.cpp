#include "machine.h"

#include <cuda.h>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/device.h"

namespace graphbench {

absl::Status describe_machine(cgrt::inspect::Record& record) {
  record.date = cgrt::inspect::utc_date();
  record.simulated = cgrt::is_simulated();
  CGRT_ASSIGN_OR_RETURN(record.device, cgrt::DeviceRef(0).name());
  record.driver = record.simulated ? "simulator" : cgrt::inspect::kernel_driver_version();
  record.cuda = absl::StrCat(CUDA_VERSION / 1000, ".", CUDA_VERSION % 1000 / 10);  // 13000 is 13.0
  return absl::OkStatus();
}

}  // namespace graphbench
