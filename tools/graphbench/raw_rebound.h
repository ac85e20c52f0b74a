// The raw twins of rebound.h. They need a driver: not on the simulator.
#pragma once

#include "absl/status/statusor.h"
#include "measure.h"
#include "setup.h"

namespace graphbench::raw {

// Patched by a kernel that has the new values ready.
absl::StatusOr<Side> rebound_pointers(const Setup& setup, int nodes);
absl::StatusOr<Side> rebound_grids(const Setup& setup, int nodes);
// What there is instead of a rebind: the parameters of every node set by the host.
absl::StatusOr<Side> set_all_params(const Setup& setup, int nodes);
absl::StatusOr<Side> set_pointers_launch_sync(const Setup& setup, int nodes);
absl::StatusOr<Side> set_grids_launch_sync(const Setup& setup, int nodes);

}  // namespace graphbench::raw
