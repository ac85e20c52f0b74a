// What a record says of where and when it was made.
#pragma once

#include "absl/status/status.h"
#include "cgrt/device/device.h"
#include "cgrt/record/record.h"

// Fills date (UTC), device, driver, cuda and simulated.
absl::Status describe_machine(cgrt::record::Record& record, cgrt::DeviceRef device);
