// What a record says of where and when it was made.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cgrt/inspect/record.h"

namespace graphbench {

// Fills date (UTC), device, driver, cuda and simulated.
absl::Status describe_machine(cgrt::inspect::Record& record);

// "580.159.04" in the text of /proc/driver/nvidia/version; empty if there is none.
std::string driver_in(const std::string& version_text);

}  // namespace graphbench
