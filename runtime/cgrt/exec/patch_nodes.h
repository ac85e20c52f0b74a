// The kernels at the head of a rebindable graph that change the nodes behind them: what they change next, and how an
// executable gets to know it. Internal to exec/.
//
//   set() ──> pending ──load()──> the lists of the executable's patch nodes ──a launch──> the nodes behind them
//
// A list is a parameter of its patch node, which the host sets: launches in flight keep theirs, and CUDA runs launches
// of one executable after each other, so that no patch overtakes one. With nothing to change patch nodes are disabled.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/exec/patch.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/memory/buffer.h"

namespace cgrt::internal {

class PatchNodes {
 public:
  // In front of all other nodes of `graph`: as many as it takes to change all of `words`. A graph that has some already
  // keeps them.
  absl::Status add_to(GraphState& graph, const std::vector<driver::NodeWord>& words);

  // The words in device memory, to be kept by the executable; null when there are none. Waits for a copy.
  absl::StatusOr<std::shared_ptr<DeviceBuffer>> upload_words(const std::vector<driver::NodeWord>& words);

  // `word` has that value from the next launch on.
  void set(std::uint32_t word, std::uint64_t value);
  bool is_pending() const { return pending_count_ != 0; }

  // Before a launch of `exec`: its patch nodes do what is pending, and nothing else. One call of the driver for each
  // that changes, none when nothing does.
  absl::Status load(CUgraphExec exec) { return is_loaded_ ? absl::OkStatus() : load_lists(exec); }
  // After a launch that succeeded.
  void launched() {
    pending_count_ = 0;
    is_loaded_ = enabled_ == 0;
  }

 private:
  absl::Status load_lists(CUgraphExec exec);
  absl::Status load_list(CUgraphExec exec, std::size_t i);
  absl::Status set_enabled(CUgraphExec exec, std::size_t i, bool is_enabled);

  using PendingList = PatchList<kMaxPatches>;
  Patch& pending(std::size_t i) { return pending_[i / kMaxPatches]->patches[i % kMaxPatches]; }

  CUcontext context_ = nullptr;
  std::vector<CUgraphNode> nodes_;
  const driver::NodeWord* words_on_device_ = nullptr;  // the executable's
  std::vector<std::unique_ptr<PendingList>> pending_;  // as the patch nodes take them
  std::vector<std::uint32_t> places_;                  // by word: among those pending, if it is there
  std::size_t pending_count_ = 0;
  std::size_t enabled_ = 0;  // of the executable's patch nodes: the first so many
  bool is_loaded_ = false;   // the executable's lists are those pending
};

}  // namespace cgrt::internal
