#include "machine.h"

#include <string>
#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt/record/origin.h"

absl::Status describe_machine(cgrt::record::Record& record, cgrt::DeviceRef device) {
  CGRT_ASSIGN_OR_RETURN(std::string name, device.name());
  CGRT_ASSIGN_OR_RETURN(const int cuda_version, cgrt::driver_version());
  cgrt::record::describe_machine(record, std::move(name), cuda_version, cgrt::is_simulated());
  return absl::OkStatus();
}
