// The operations as a user of cgrt writes them. Each has its twin of the same name in raw.h.
#pragma once

#include "absl/status/statusor.h"
#include "measure.h"
#include "setup.h"

namespace graphbench::own {

// The chain has `nodes` kernels; operations that need none ignore it. The setup must outlive the side.
absl::StatusOr<Side> graph_launch(const Setup& setup, int nodes);
absl::StatusOr<Side> graph_launch_sync(const Setup& setup, int nodes);
absl::StatusOr<Side> explicit_add(const Setup& setup, int nodes);
absl::StatusOr<Side> capture(const Setup& setup, int nodes);
absl::StatusOr<Side> instantiate(const Setup& setup, int nodes);
absl::StatusOr<Side> set_params(const Setup& setup, int nodes);
absl::StatusOr<Side> update_unchanged(const Setup& setup, int nodes);
absl::StatusOr<Side> update_pointers(const Setup& setup, int nodes);
absl::StatusOr<Side> eager_launch(const Setup& setup, int nodes);
absl::StatusOr<Side> eager_chain(const Setup& setup, int nodes);
absl::StatusOr<Side> event_query(const Setup& setup, int nodes);
absl::StatusOr<Side> stream_query(const Setup& setup, int nodes);
absl::StatusOr<Side> event_record(const Setup& setup, int nodes);
absl::StatusOr<Side> occupancy_suggest(const Setup& setup, int nodes);

}  // namespace graphbench::own
