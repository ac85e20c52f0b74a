// Rebindable executables, as a user of cgrt writes them. Those whose twin is raw have it in raw_rebound.h.
#pragma once

#include "absl/status/statusor.h"
#include "measure.h"
#include "setup.h"

namespace graphbench::own {

// A rebindable executable of the same chain: as it is; after a rebind of one pointer or of the grid of every node,
// which is not timed; and the rebind of the pointers alone.
absl::StatusOr<Side> rebindable_launch_sync(const Setup& setup, int nodes);
absl::StatusOr<Side> rebound_pointers(const Setup& setup, int nodes);
absl::StatusOr<Side> rebound_grids(const Setup& setup, int nodes);
// The same of a captured chain, and of a chain whose kernels have four pointers, all of them others.
absl::StatusOr<Side> rebound_captured_pointers(const Setup& setup, int nodes);
absl::StatusOr<Side> rebound_four_pointers(const Setup& setup, int nodes);
absl::StatusOr<Side> four_pointers_launch_sync(const Setup& setup, int nodes);  // as it is
// With the rebind in the time.
absl::StatusOr<Side> rebind_pointers_launch_sync(const Setup& setup, int nodes);
absl::StatusOr<Side> bound_pointers_launch_sync(const Setup& setup, int nodes);  // from bindings that were prepared
absl::StatusOr<Side> bound_grids_launch_sync(const Setup& setup, int nodes);
absl::StatusOr<Side> rebind(const Setup& setup, int nodes);

// 500 places with `variants` kernels each, of which one is enabled: another one at every launch, whose rebind is not
// timed; always the same; and a plain executable of 500 kernels.
absl::StatusOr<Side> switched_alternatives(const Setup& setup, int variants);
absl::StatusOr<Side> alternatives_launch_sync(const Setup& setup, int variants);
absl::StatusOr<Side> places_launch_sync(const Setup& setup, int nodes);

}  // namespace graphbench::own
