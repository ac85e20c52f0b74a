// The figures of a sweep as text and as a record.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/device/device.h"
#include "cgrt/record/record.h"
#include "measure.h"

// One line per chain and mode, aligned; on the simulator, where no time is one, a line per chain with its modes.
std::string to_table(const std::vector<Point>& points);

// The sentence on the kernel size from which graph mode gains less than 10 %, taken from the longest
// chains of at most 1000 kernels.
std::string break_even(const std::vector<Point>& points);

// Rows chain_<mode>, launch_<mode> (the host's part of it) and, for graphs, cold_<mode>.
absl::StatusOr<cgrt::record::Record> to_record(const std::vector<Point>& points, cgrt::DeviceRef device,
                                               std::string command, std::string commit);
