#include "machine.h"

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"

absl::Status describe_machine(cgrt::inspect::Record& record, cgrt::DeviceRef device) {
  record.date = cgrt::inspect::utc_date();
  CGRT_ASSIGN_OR_RETURN(record.device, device.name());
  record.simulated = cgrt::is_simulated();
  record.driver = record.simulated ? "simulated" : cgrt::inspect::kernel_driver_version();
  CGRT_ASSIGN_OR_RETURN(const int version, cgrt::driver_version());
  record.cuda = absl::StrCat(version / 1000, ".", version % 1000 / 10);  // 13000 is 13.0
  return absl::OkStatus();
}
