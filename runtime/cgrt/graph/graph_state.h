// What a Graph owns, shared with its executables: their node handles are valid only while the
// definition lives. Internal to graph/ and exec/.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/graph/node.h"
#include "cgrt/graph/scope.h"
#include "cgrt/launch/launch.h"
#include "cgrt/memory/copy.h"

namespace cgrt::internal {

// Nodes from `first_node` on were made in `scope`, until the next run. Positions are those of
// cuGraphGetNodes, which lists nodes in the order of their creation.
struct ScopeRun {
  std::size_t first_node;
  std::string scope;
};

// Names of the nodes of a graph and of the child graphs inside it, by position: copies have them too.
struct ScopeTree {
  bool empty() const { return runs.empty() && children.empty(); }
  std::vector<ScopeRun> runs;
  std::vector<std::pair<std::size_t, ScopeTree>> children;
};

// A kernel node whose launch attributes are not the defaults. `path` is its position, after those of
// the child graph nodes that it is inside of; `node` is null inside a copied child.
struct NodeAttributes {
  std::vector<std::size_t> path;
  CUgraphNode node;
  LaunchAttributes attributes;
};

struct GraphState {
  GraphState(CUgraph graph, CUcontext context_) : handle(graph), context(context_) {}
  ~GraphState();

  // To be called before a node is made, unless is_scope_noted().
  CUresult note_scope();
  bool is_scope_noted() const { return current_scope_id() == scope_id; }

  UniqueHandle<CUgraph, driver::destroy_graph> handle;
  CUcontext context;
  std::uint64_t scope_id = 0;
  ScopeTree scopes;
  std::vector<NodeAttributes> attributes;  // ascending by path; what an update would lose without a word
};

// What an object that was moved from answers.
[[gnu::cold]] absl::Status moved_from(const char* type);

absl::StatusOr<std::vector<CUgraphNode>> nodes_of(CUgraph graph);
absl::StatusOr<LaunchAttributes> attributes_of(CUgraphNode kernel);

// The attributes of every kernel node, read back from a captured graph.
absl::Status read_attributes(GraphState& state);

// The driver's form of node parameters, for adding and for setting; `params` is zero before. Nothing
// is copied: `launch` and its arguments must outlive the call that takes the result.
absl::Status set_kernel_params(CUDA_KERNEL_NODE_PARAMS& params, CUcontext context, const KernelLaunch& launch);
void set_copy_params(CUgraphNodeParams& params, CUcontext context, const CopyParams& copy);
void set_fill_params(CUgraphNodeParams& params, CUcontext context, const FillParams& fill);
void set_host_params(CUgraphNodeParams& params, const HostParams& host);
void set_record_params(CUgraphNodeParams& params, EventRef event);
void set_wait_params(CUgraphNodeParams& params, EventRef event);

absl::StatusOr<KernelNode> add_kernel(GraphState& state, Dependencies dependencies, const KernelLaunch& launch);
absl::StatusOr<MemcpyNode> add_copy(GraphState& state, Dependencies dependencies, const CopyParams& copy);
absl::StatusOr<MemsetNode> add_fill(GraphState& state, Dependencies dependencies, const FillParams& fill);
absl::StatusOr<EmptyNode> add_empty(GraphState& state, Dependencies dependencies);
absl::StatusOr<HostNode> add_host(GraphState& state, Dependencies dependencies, const HostParams& host);
absl::StatusOr<EventRecordNode> add_event_record(GraphState& state, Dependencies dependencies, EventRef event);
absl::StatusOr<EventWaitNode> add_event_wait(GraphState& state, Dependencies dependencies, EventRef event);

enum class ChildOwnership { kCopy, kMove };
// On a move that succeeds, the child's graph is the driver's.
absl::StatusOr<ChildGraphNode> add_child(GraphState& state, Dependencies dependencies, GraphState& child,
                                         ChildOwnership ownership);

}  // namespace cgrt::internal
