// The figures as text and as a record.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/device/device.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt/record/record.h"

// One configuration, and its times in microseconds of one node, alternating with the suggested
// configuration's; a ratio is the suggested one's time over its own.
struct Run {
  std::string name;
  cgrt::LaunchConfig config;
  cgrt::Occupancy occupancy;
  std::vector<double> times = {}, baseline_times = {}, ratios = {};
};

// One line per configuration, aligned. On the simulator the word "simulated" stands for each time.
std::string to_table(const std::vector<Run>& runs);

// The sentence on which was fastest.
std::string best(const std::vector<Run>& runs);

// One row per configuration; the first of `runs` is the baseline of the others.
absl::StatusOr<cgrt::record::Record> to_record(cgrt::DeviceRef device, const std::vector<Run>& runs,
                                               std::string command, std::string commit);
