// The operations as a user of cgrt writes them. Each has its twin of the same name in raw.h.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/graph/graph.h"
#include "measure.h"
#include "setup.h"

namespace graphbench::own {

// An executable and the two graphs that its updates alternate with. Both sides of a case work on the
// same ones: with objects of their own they would compare where the allocator had put them.
struct Updated {
  int nodes;
  Setup::Arrays first;
  cgrt::GraphExec exec;
  std::vector<cgrt::Graph> graphs;
  unsigned next = 0;
};
absl::StatusOr<std::shared_ptr<Updated>> update_objects(const Setup& setup, int nodes, Setup::Arrays first);

// The chain has `nodes` kernels; operations that need none ignore it. The setup must outlive the side.
absl::StatusOr<Side> graph_launch(const Setup& setup, int nodes);
absl::StatusOr<Side> graph_launch_sync(const Setup& setup, int nodes);
// The same chain with programmatic edges. And both of 64 kernels that read and write 16 MiB each.
absl::StatusOr<Side> programmatic_launch_sync(const Setup& setup, int nodes);
absl::StatusOr<Side> large_launch_sync(const Setup& setup, int nodes);
absl::StatusOr<Side> programmatic_large_launch_sync(const Setup& setup, int nodes);
absl::StatusOr<Side> explicit_add(const Setup& setup, int nodes);
absl::StatusOr<Side> capture(const Setup& setup, int nodes);
absl::StatusOr<Side> capture_into(const Setup& setup, int nodes);
absl::StatusOr<Side> instantiate(const Setup& setup, int nodes);
absl::StatusOr<Side> set_params(const Setup& setup, int nodes);
absl::StatusOr<Side> update_unchanged(const Setup& setup, int nodes);
absl::StatusOr<Side> update_pointers(const Setup& setup, int nodes);
absl::StatusOr<Side> recapture_and_update(const Setup& setup, int nodes);
// Reading a graph back, comparing two snapshots that are equal, and two of which one node differs.
absl::StatusOr<Side> snapshot(const Setup& setup, int nodes);
absl::StatusOr<Side> compare_equal(const Setup& setup, int nodes);
absl::StatusOr<Side> diff(const Setup& setup, int nodes);
absl::StatusOr<Side> eager_launch(const Setup& setup, int nodes);
absl::StatusOr<Side> eager_chain(const Setup& setup, int nodes);
absl::StatusOr<Side> event_query(const Setup& setup, int nodes);
absl::StatusOr<Side> stream_query(const Setup& setup, int nodes);
absl::StatusOr<Side> event_query_after_eager(const Setup& setup, int nodes);
absl::StatusOr<Side> stream_query_after_eager(const Setup& setup, int nodes);
absl::StatusOr<Side> event_record(const Setup& setup, int nodes);
absl::StatusOr<Side> occupancy_suggest(const Setup& setup, int nodes);

}  // namespace graphbench::own
