// What a Graph owns, shared with its executables: their node handles are valid only while the
// definition lives. Internal to graph/ and exec/.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/graph/node.h"
#include "cgrt/graph/scope.h"
#include "cgrt/launch/launch.h"

namespace cgrt::internal {

// Nodes from `first_node` on were made in `scope`, until the next run. Positions are those of
// cuGraphGetNodes, which lists nodes in the order of their creation.
struct ScopeRun {
  std::size_t first_node;
  std::string scope;
};

struct GraphState {
  GraphState(CUgraph graph, CUcontext context_) : handle(graph), context(context_) {}

  // To be called before a node is made, unless is_scope_noted().
  CUresult note_scope();
  bool is_scope_noted() const { return current_scope_id() == scope_id; }

  UniqueHandle<CUgraph, driver::destroy_graph> handle;
  CUcontext context;
  std::uint64_t scope_id = 0;
  std::vector<ScopeRun> scopes;
};

// The driver's form of node parameters, for adding and for setting; `params` is zero before. Nothing
// is copied: `launch` and its arguments must outlive the call that takes the result.
absl::Status set_kernel_params(CUDA_KERNEL_NODE_PARAMS& params, CUcontext context, const KernelLaunch& launch);
void set_copy_params(CUgraphNodeParams& params, CUcontext context, const CopyParams& copy);
void set_fill_params(CUgraphNodeParams& params, CUcontext context, const FillParams& fill);

absl::Status explain_copy(const absl::Status& status, const CopyParams& copy);
absl::Status explain_fill(const absl::Status& status, const FillParams& fill);

absl::StatusOr<KernelNode> add_kernel(GraphState& state, Dependencies dependencies, const KernelLaunch& launch);
absl::StatusOr<MemcpyNode> add_copy(GraphState& state, Dependencies dependencies, const CopyParams& copy);
absl::StatusOr<MemsetNode> add_fill(GraphState& state, Dependencies dependencies, const FillParams& fill);
absl::StatusOr<EmptyNode> add_empty(GraphState& state, Dependencies dependencies);

}  // namespace cgrt::internal
