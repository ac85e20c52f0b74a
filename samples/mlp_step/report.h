// The figures as text and as a record.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/device/device.h"
#include "cgrt/record/record.h"
#include "measure.h"

// One line per way, aligned, a line for each update that was refused, and what the columns are. On the
// simulator the word "simulated" stands for each time.
std::string to_table(const std::vector<WayResult>& results);

// The sentence on which had the shortest steps.
std::string best(const std::vector<WayResult>& results);

// The first of `results` is eager, the baseline of the others.
absl::StatusOr<cgrt::record::Record> to_record(cgrt::DeviceRef device, const Workload& workload,
                                               const std::vector<WayResult>& results, std::string command,
                                               std::string commit);
