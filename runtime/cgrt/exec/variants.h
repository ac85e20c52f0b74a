// The executables of one GraphExec whose graph of alternatives has kernels with clusters, which the device cannot
// switch (is_changed_by_host) and the host can for 4 us each (H200). There is one for each set of these that a step
// has, where all of the set run. Internal to exec/.
//
//   rebind ──> RebindState of the whole graph ──take()──> the one that has what runs ──> its RebindState, its patches
//
// What runs together in no step, as set_enabled may want it, is run by an executable of the whole graph, made then.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/exec/exec_state.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/exec/rebind_state.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/stream/event.h"
#include "cgrt/stream/stream.h"

namespace cgrt::internal {

class Variants {
 public:
  static absl::StatusOr<std::unique_ptr<Variants>> create(const GraphState& graph, InstantiateFlags flags);

  // Launches from now on are of the one that has all that runs in `whole`, and do what that says; or all is as it was.
  absl::Status take(const RebindState& whole);

  // Behind the last launch, of whichever it was: CUDA orders those of one executable alone.
  absl::StatusOr<CUgraphExec> before_launch(StreamRef stream);
  absl::Status after_launch(StreamRef stream);
  absl::Status upload(StreamRef stream);
  CUgraphExec current() const { return all_[current_]->exec.get(); }
  CUgraphExec release();

 private:
  struct Variant {
    Variant(RebindState&& state_, std::vector<std::uint32_t> nodes_)
        : state(std::move(state_)), nodes(std::move(nodes_)) {}
    ~Variant() { state.finish(); }

    std::shared_ptr<GraphState> graph;
    RebindState state;
    std::vector<std::uint32_t> nodes;    // of the whole graph, by its own
    std::vector<std::uint32_t> missing;  // of the whole graph
    UniqueHandle<CUgraphExec, destroy_exec> exec;
  };
  Variants() = default;
  absl::Status add(const std::shared_ptr<GraphState>& graph, std::vector<std::uint32_t> nodes);
  absl::StatusOr<std::size_t> find(const RebindState& whole);

  std::shared_ptr<GraphState> whole_;  // a copy: the graph itself may be changed
  InstantiateFlags flags_ = InstantiateFlags::kNone;
  std::size_t node_count_ = 0;  // of the whole graph
  std::vector<std::unique_ptr<Variant>> all_;
  std::size_t current_ = 0;
  // The last launch.
  struct Launched {
    std::size_t variant;
    std::uint64_t stream;  // its id
  };
  std::optional<Launched> last_;
  Event behind_last_;
};

}  // namespace cgrt::internal
