// Runs the same steps in each way: checks that all give the same bits, and measures what they cost.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/device/device.h"
#include "mlp.h"
#include "runner.h"

// Microseconds of a step: the mean of a pass over all steps, so that no costly step is lost.
struct PassTimes {
  double host = 0;          // until the call returns
  double step = 0;          // until the host knows that the step is done, which it waits for
  double back_to_back = 0;  // on the device, when nobody waits before the last step
};

struct WayResult {
  Way way = Way::kEager;
  std::vector<PassTimes> passes = {};
  std::vector<PassTimes> eager_passes = {};     // beside these, in the order A B B A; none for eager itself
  std::vector<PassTimes> captured_passes = {};  // of `rebound`, in the order A B C C B A
  std::vector<double> new_batch = {};           // `step` of a number of tokens that is planned but was never run
  int executables = 0;                          // held at the end
  Counts counts = {};                           // of one pass, not the first
};

struct Workload {
  MlpShape shape = {};
  std::vector<std::uint64_t> tokens;  // of the steps, one after the other
  int steps = 64;                     // of a pass
};

// Times are 0 on the simulator. kDataLoss when a way differs from eager in a bit.
absl::StatusOr<std::vector<WayResult>> measure(cgrt::DeviceRef device, const Workload& workload);

// The largest difference from the same in double, on a small shape; kDataLoss when it is too large.
absl::StatusOr<double> check_small(cgrt::DeviceRef device);
