// What changes the kernels of a rebindable executable: the new values of words, and the kernels that stand first in its
// graph and take them over. Internal to exec/.
//
//   set() ──> pending ──before_launch()──> arguments of the patch kernels ──launch──> the nodes behind them
//
// The values are arguments of nodes, so that launches in flight keep theirs; and CUDA runs launches of one executable
// after each other, in whatever streams. A patch costs 2.5 us more than no launch of it (H200), half of what a kernel
// launched in front of the graph does; a patch kernel with nothing to do is disabled, at 0.3 us a launch.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/exec/patch.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/stream/event.h"
#include "cgrt/stream/stream.h"

namespace cgrt::internal {

class Patches {
 public:
  // Puts patch kernels for `words`, of which those of no device node never change, in front of all other nodes of
  // `graph`, where an executable before has left none. Waits for a copy.
  absl::Status add_to(GraphState& graph, const std::vector<driver::NodeWord>& words);

  // `word` has that value from the next launch on.
  void set(std::uint32_t word, std::uint64_t value);

  // Makes a launch of `exec` into `stream` take over what is pending. That stays pending until one has begun.
  absl::Status before_launch(CUgraphExec exec, StreamRef stream) {
    if (ABSL_PREDICT_TRUE(is_ready_)) return absl::OkStatus();
    if (ABSL_PREDICT_FALSE(!is_uploaded_ && pending_count_ != 0)) CGRT_RETURN_IF_ERROR(upload(exec, stream));
    return make_ready(exec);
  }
  absl::Status after_launch(StreamRef stream) {
    is_uploaded_ = true;
    return ABSL_PREDICT_TRUE(pending_count_ == 0) ? absl::OkStatus() : note_taken(stream);
  }

  // Of an executable that is new, or is left to the caller: its launches patch nothing.
  absl::Status disable(CUgraphExec exec);
  // Before the executable is destroyed. Blocks for nothing.
  void finish();

 private:
  struct Node {
    CUgraphNode handle;
    bool is_enabled = true;
  };
  absl::Status add_nodes(GraphState& graph, std::size_t count);
  absl::Status upload(CUgraphExec exec, StreamRef stream);
  absl::Status make_ready(CUgraphExec exec);
  absl::Status set_list(CUgraphExec exec, std::size_t i);
  absl::Status note_taken(StreamRef stream);

  using PendingList = PatchList<kMaxPatches>;
  Patch& pending(std::size_t i) { return pending_[i / kMaxPatches]->patches[i % kMaxPatches]; }

  CUcontext context_ = nullptr;
  std::vector<Node> nodes_;                            // patch kernels, in their order; each takes a list
  std::shared_ptr<DeviceBuffer> words_;                // as launches in flight read them; null: there are none
  std::vector<std::unique_ptr<PendingList>> pending_;  // as the patch kernels take them
  std::vector<std::uint32_t> places_;                  // by word: among those pending, if it is there
  std::size_t pending_count_ = 0;
  bool is_uploaded_ = false;  // the executable
  bool is_ready_ = false;     // the patch kernels, for the next launch
  bool is_sent_ = false;      // all that is pending, to them
  Event last_taken_;          // behind the last launch that took any
};

}  // namespace cgrt::internal
