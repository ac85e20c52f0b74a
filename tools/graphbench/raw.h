// The raw twins: what somebody who knows the driver well writes without cgrt, in the fastest way that
// it offers. Each has its twin of the same name in own.h.
//
// The calls go through the pointers of cgrt's own driver table: one indirect call, as through the
// PLT of a program that links libcuda. Three entry points that cgrt does not use but that are the
// fastest for their job come from the driver itself.
#pragma once

#include "absl/status/statusor.h"
#include "measure.h"
#include "setup.h"

namespace graphbench::raw {

// The chain has `nodes` kernels; operations that need none ignore it. The setup must outlive the side.
absl::StatusOr<Side> graph_launch(const Setup& setup, int nodes);
absl::StatusOr<Side> graph_launch_sync(const Setup& setup, int nodes);
// The same chain with programmatic edges.
absl::StatusOr<Side> programmatic_launch_sync(const Setup& setup, int nodes);
absl::StatusOr<Side> capture_into(const Setup& setup, int nodes);
absl::StatusOr<Side> instantiate(const Setup& setup, int nodes);
absl::StatusOr<Side> update_unchanged(const Setup& setup, int nodes);
absl::StatusOr<Side> update_pointers(const Setup& setup, int nodes);
absl::StatusOr<Side> eager_launch(const Setup& setup, int nodes);
absl::StatusOr<Side> eager_chain(const Setup& setup, int nodes);
absl::StatusOr<Side> event_query(const Setup& setup, int nodes);
absl::StatusOr<Side> stream_query(const Setup& setup, int nodes);
absl::StatusOr<Side> event_query_after_eager(const Setup& setup, int nodes);
absl::StatusOr<Side> stream_query_after_eager(const Setup& setup, int nodes);
absl::StatusOr<Side> event_record(const Setup& setup, int nodes);
absl::StatusOr<Side> occupancy_suggest(const Setup& setup, int nodes);

// These need the three, so a driver: not on the simulator.
absl::StatusOr<Side> explicit_add(const Setup& setup, int nodes);
absl::StatusOr<Side> capture(const Setup& setup, int nodes);
absl::StatusOr<Side> recapture_and_update(const Setup& setup, int nodes);
absl::StatusOr<Side> set_params(const Setup& setup, int nodes);

}  // namespace graphbench::raw
