// What a rebindable executable knows of its nodes, and what waits to be patched. Internal to exec/.
//
// An executable cannot be read back, so the value of every argument word that a kernel has, or will have from the next
// launch on, is kept here. Only words that change travel to the device: a patch kernel has them as parameters, and runs
// before the graph in the same stream.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/exec/patch.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/stream/event.h"
#include "cgrt/stream/stream.h"

namespace cgrt::internal {

class RebindState {
 public:
  // Up to 8 bytes of a kernel's argument, its grid, or whether it runs.
  struct Word {
    std::uint64_t value;
    std::uint32_t pending = 0;               // its place among those pending, if it is there
    std::uint16_t argument = 0, within = 0;  // which, and bytes from its begin
    std::uint8_t bytes = 0;
  };
  struct Node {
    CUgraphNode handle;
    CUgraphNodeType type;
    // Of a kernel.
    CUfunction function = nullptr;
    Dim3 block = {};
    std::uint32_t shared_bytes = 0;
    std::uint32_t first_word = 0, word_count = 0;  // the grid, whether it runs, the arguments
    LaunchAttributes attributes = {};              // in normal form
    // Of others: as they are set now.
    std::uint32_t params = 0;
  };
  static constexpr std::uint32_t kGridWord = 0, kEnabledWord = 1, kArgumentWords = 2;  // from first_word

  // New values of words and of nodes that are not kernels, checked, to be taken over together or not at all.
  struct Change {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> words;
    std::vector<std::pair<std::uint32_t, CUgraphNodeParams>> nodes;
  };

  // What patches in flight need when this is gone: to be kept by the executable. Null: nothing.
  absl::StatusOr<std::shared_ptr<DeviceBuffer>> allocate_places();

  // Makes the kernels of `graph` device-updatable. kFailedPrecondition names the node that cannot be. A failure may
  // leave some of them so.
  static absl::StatusOr<RebindState> create(GraphState& graph);

  const std::vector<Node>& nodes() const { return nodes_; }
  // In the order of the calls that made them, those inside child graphs where these stand. nullptr: no node of it.
  const Node* find(CUgraphNode handle) const;
  // Of a node that is no kernel, as it is set now.
  const CUgraphNodeParams& current_params(const Node& node) const { return params_[node.params]; }
  bool is_enabled(const Node& kernel) const { return words_[kernel.first_word + kEnabledWord].value != 0; }

  // Puts what `launch` changes of `kernel` into `change`. kFailedPrecondition with what cannot change: the function,
  // the block, shared memory, attributes; kInvalidArgument for a grid that no launch could have.
  absl::Status change_kernel(const Node& kernel, const KernelLaunch& launch, Change& change) const;
  // The same with what a captured node of the same type has.
  absl::Status change_as(const Node& node, CUgraphNode captured, CompiledClusters& clusters, Change& change) const;
  void change_enabled(const Node& kernel, bool is_enabled, Change& change) const;
  void change_params(const Node& node, const CUgraphNodeParams& params, Change& change) const;

  // Every address in [begin, begin + bytes) that a node has becomes the same distance from `replacement`: returns how
  // many are found in arguments (whole words of 8 bytes, also inside structs) and in operands of copies and memsets.
  std::size_t change_addresses(std::uintptr_t begin, std::size_t bytes, std::uintptr_t replacement,
                               Change& change) const;

  // All of it counts from the next launch on, or none and an error of setting a node that is no kernel.
  absl::Status take(Change&& change, CUgraphExec exec);

  // Before a launch of `exec` into `stream`, and after a launch or an upload.
  absl::Status before_launch(CUgraphExec exec, StreamRef stream);
  absl::Status after_launch(StreamRef stream);
  bool has_patched() const { return has_patched_; }  // since the last after_launch

 private:
  absl::Status add_kernel(CUgraphNode handle, const GraphState& graph);
  absl::Status add_other(CUgraphNode handle, CUgraphNodeType type);
  absl::StatusOr<CUgraphNodeParams> params_of(CUgraphNode node, CUgraphNodeType type) const;
  struct KernelShape {
    CUfunction function;
    Dim3 grid, block;
    std::uint32_t shared_bytes;
    const LaunchAttributes* attributes;  // in normal form; null: none
  };
  // `name()`: of the kernel that is to run. `argument(word)`: where its value is.
  template <class Name, class Argument>
  absl::Status change_words(const Node& kernel, const KernelShape& wanted, Name name, Argument argument,
                            Change& change) const;
  absl::Status add_nodes(CUgraph graph, const GraphState& root);
  absl::Status check_device(StreamRef stream) const;
  absl::Status prepare_device(CUgraphExec exec, StreamRef stream);
  absl::Status patch(StreamRef stream);
  using PendingList = PatchList<kMaxPatches>;
  Patch& pending(std::size_t i) { return pending_[i / kMaxPatches]->patches[i % kMaxPatches]; }

  struct Parameter {
    std::uint16_t offset, bytes;
  };
  absl::StatusOr<const std::vector<Parameter>*> parameters_of(CUfunction function);

  CUcontext context_ = nullptr;
  std::vector<Node> nodes_;
  absl::flat_hash_map<CUgraphNode, std::uint32_t> positions_;
  std::vector<Word> words_;
  std::vector<driver::NodeWord> places_;  // of words_, on the device
  void* places_on_device_ = nullptr;      // the executable's
  std::vector<CUgraphNodeParams> params_;
  absl::flat_hash_map<CUfunction, std::vector<Parameter>> parameters_;
  std::vector<std::unique_ptr<PendingList>> pending_;  // as the next launch takes them
  std::size_t pending_count_ = 0;
  Event launched_;                            // by the last launch, behind it
  std::optional<std::uint64_t> last_stream_;  // its stream's id
  bool is_uploaded_ = false;                  // the executable
  bool are_places_uploaded_ = false;
  bool has_patched_ = false;
};

// Whether CUDA lets all kernels of `graph` be device-updatable; else kFailedPrecondition.
absl::Status check_rebindable(const GraphState& graph);

}  // namespace cgrt::internal
