// What a GraphExec owns, and what it took from its definition when it was made. Internal to exec/.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/exec/address_guard.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/exec/launch_resources.h"
#include "cgrt/exec/rebind_state.h"
#include "cgrt/graph/graph_state.h"

namespace cgrt {

namespace internal {

absl::StatusOr<CUgraphExec> make_exec(const GraphState& graph, InstantiateFlags flags);
// In a relaxed capture mode: as a free does, this would end captures.
void destroy_exec(CUgraphExec exec);

// Of kernels that nodes were set to, where they were loaded at run time, and what launches in flight use of them.
class UsedLibraries {
 public:
  // Makes what set() needs for `library`; for none, too, as what other nodes use is then used anew.
  absl::Status prepare(CUcontext context, const std::shared_ptr<const void>& library) {
    Resources over;  // libraries, whose destructors call nothing of this executable's
    return uses_.prepare(context, {library}, over);
  }
  // Launches from now on use `library`, null for none, in `node`; those in flight keep what it was before.
  void set(CUgraphNode node, const std::shared_ptr<const void>& library);
  // After a launch into `stream`.
  absl::Status launched(StreamRef stream) { return uses_.launched(stream); }

 private:
  absl::flat_hash_map<CUgraphNode, std::shared_ptr<const void>> by_node_;
  Resources distinct_;
  LaunchResources uses_;
};

}  // namespace internal

// All but `mutex` and `flags`, which stay as they were made, under `mutex`.
struct GraphExec::State {
  ~State();

  // What a launch would be of.
  CUgraphExec current() const { return rebind != nullptr ? rebind->current(handle.get()) : handle.get(); }

  // To be called while nobody changes `graph`.
  absl::Status read_definition(const Graph& graph);

  // What `read_definition` put off: it asks the driver.
  absl::Status complete_table();

  // Whether no kernel node has launch attributes, for certain.
  bool is_plain() const { return is_complete && table.attributes.empty(); }

  // Parameters of a node of an executable can be set, its attributes cannot.
  absl::Status check_attributes(CUgraphNode node, const KernelLaunch& launch, const Dim3& compiled_cluster);

  absl::Status set(CUgraphNode node, CUgraphNodeParams& params);

  // For a rebindable one.
  absl::Status take(internal::RebindState::Change&& change);

  // For a kernel of a rebindable executable.
  absl::Status set_rebindable(CUgraphNode node, const KernelLaunch& launch);
  // kInvalidArgument when it is none of this executable's; kFailedPrecondition when that is not rebindable.
  absl::StatusOr<const internal::RebindState::Node*> find_kernel(KernelNode node) const;

  // The attributes inside of the child graph node are those of its new child: the driver takes them over there.
  void set_child_attributes(CUgraphNode node, std::vector<internal::NodeAttributes> inside);

  // One rung of the ladder; an error when the question could not be put. A refusal is left in `refusal`.
  absl::Status update(const Graph& other, std::optional<UpdateReport>& refusal);

  void swap(State& other);  // of the same flags

  std::shared_ptr<internal::GraphState> definition;          // node handles are valid as long as it lives
  std::unique_ptr<internal::UsedLibraries> libraries;        // null: none; outlives the executable
  UniqueHandle<CUgraphExec, internal::destroy_exec> handle;  // null: `rebind` has variants
  InstantiateFlags flags = InstantiateFlags::kNone;
  std::size_t node_count = 0;
  std::uint64_t edits = 0;  // of the definition's nodes, when this was made
  bool is_complete = true;  // the table
  internal::NodeTable table;
  UpdateCounts counts;
  std::unique_ptr<internal::RebindState> rebind;  // null: not rebindable
  std::unique_ptr<internal::AddressGuard> guard;  // null: addresses are not guarded
  std::mutex mutex;
};

}  // namespace cgrt
