#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"

namespace cgrt::internal {

absl::Status GraphState::note_changed_scope() {
  std::size_t count = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphGetNodes(handle.get(), nullptr, &count), "cuGraphGetNodes"));
  if (!scopes.empty() && scopes.back().first_node == count) scopes.pop_back();
  scopes.push_back({count, current_scope_path()});
  scope_id = current_scope_id();
  return absl::OkStatus();
}

absl::Status set_kernel_params(CUgraphNodeParams& params, CUcontext context, const KernelLaunch& launch) {
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  // A CUfunction is the cheaper way, but driver 580 crashes when it is given one on a thread that
  // has no current context; the CUkernel with its context is safe there.
  CUcontext current = nullptr;
  CUresult result = driver::api().CtxGetCurrent(&current);
  if (result == CUDA_SUCCESS && current != nullptr) {
    result = driver::resolve_function(*launch.kernel, context, &params.kernel.func);
  } else if (result == CUDA_SUCCESS) {
    result = driver::resolve(*launch.kernel, &params.kernel.kern);
    params.kernel.ctx = context;
  }
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuKernelGetFunction"), launch);
  }
  params.kernel.gridDimX = launch.grid.x;
  params.kernel.gridDimY = launch.grid.y;
  params.kernel.gridDimZ = launch.grid.z;
  params.kernel.blockDimX = launch.block.x;
  params.kernel.blockDimY = launch.block.y;
  params.kernel.blockDimZ = launch.block.z;
  params.kernel.sharedMemBytes = launch.shared_bytes;
  params.kernel.kernelParams = launch.arguments;
  return absl::OkStatus();
}

// Unified addresses, one row: the form in which the driver itself captures cuMemcpyAsync.
void set_copy_params(CUgraphNodeParams& params, CUcontext context, const CopyParams& copy) {
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  CUDA_MEMCPY3D& operation = params.memcpy.copyParams;
  operation.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  operation.dstDevice = reinterpret_cast<CUdeviceptr>(copy.destination);
  operation.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  operation.srcDevice = reinterpret_cast<CUdeviceptr>(copy.source);
  operation.WidthInBytes = copy.bytes;
  operation.Height = 1;
  operation.Depth = 1;
  params.memcpy.copyCtx = context;
}

void set_fill_params(CUgraphNodeParams& params, CUcontext context, const FillParams& fill) {
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset.dst = reinterpret_cast<CUdeviceptr>(fill.destination);
  params.memset.value = fill.value;
  params.memset.elementSize = fill.element_bytes;
  params.memset.width = fill.count;
  params.memset.height = 1;
  params.memset.ctx = context;
}

absl::Status explain_copy(const absl::Status& status, const CopyParams& copy) {
  return driver::annotate(status, absl::StrCat("Copy of ", copy.bytes, " bytes from 0x",
                                               absl::Hex(reinterpret_cast<std::uintptr_t>(copy.source)), " to 0x",
                                               absl::Hex(reinterpret_cast<std::uintptr_t>(copy.destination))));
}

absl::Status explain_fill(const absl::Status& status, const FillParams& fill) {
  return driver::annotate(status, absl::StrCat("Memset of ", fill.count, " elements of ", fill.element_bytes, " bytes at 0x",
                                               absl::Hex(reinterpret_cast<std::uintptr_t>(fill.destination))));
}

namespace {

absl::StatusOr<CUgraphNode> add_node_after(GraphState& state, const CUgraphNode* nodes, const CUgraphEdgeData* edges,
                                           std::size_t count, CUgraphNodeParams& params) {
  CUgraphNode node = nullptr;
  const CUresult result = driver::api().GraphAddNode(&node, state.handle.get(), nodes, edges, count, &params);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) return driver::to_status(result, "cuGraphAddNode");
  return node;
}

CUgraphEdgeData edge_data(EdgeKind kind) {
  CUgraphEdgeData edge{};
  if (kind == EdgeKind::kProgrammatic) {
    edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  }
  return edge;
}

absl::StatusOr<CUgraphNode> add_node(GraphState& state, Dependencies dependencies, CUgraphNodeParams& params) {
  CGRT_RETURN_IF_ERROR(state.note_scope());
  if (dependencies.size() == 1) {
    const CUgraphNode node = dependencies[0].node.get();
    const CUgraphEdgeData edge = edge_data(dependencies[0].kind);
    return add_node_after(state, &node, dependencies[0].kind == EdgeKind::kFull ? nullptr : &edge, 1, params);
  }
  absl::InlinedVector<CUgraphNode, 8> nodes;
  absl::InlinedVector<CUgraphEdgeData, 8> edges;
  for (const Dependency& dependency : dependencies) {
    nodes.push_back(dependency.node.get());
    edges.push_back(edge_data(dependency.kind));
  }
  return add_node_after(state, nodes.data(), edges.data(), nodes.size(), params);
}

}  // namespace

absl::StatusOr<KernelNode> add_kernel(GraphState& state, Dependencies dependencies, const KernelLaunch& launch) {
  CUgraphNodeParams params{};
  CGRT_RETURN_IF_ERROR(set_kernel_params(params, state.context, launch));
  absl::StatusOr<CUgraphNode> node = add_node(state, dependencies, params);
  if (ABSL_PREDICT_FALSE(!node.ok())) return explain_launch(node.status(), launch);
  return KernelNode(*node);
}

absl::StatusOr<MemcpyNode> add_copy(GraphState& state, Dependencies dependencies, const CopyParams& copy) {
  CUgraphNodeParams params{};
  set_copy_params(params, state.context, copy);
  absl::StatusOr<CUgraphNode> node = add_node(state, dependencies, params);
  if (ABSL_PREDICT_FALSE(!node.ok())) return explain_copy(node.status(), copy);
  return MemcpyNode(*node);
}

absl::StatusOr<MemsetNode> add_fill(GraphState& state, Dependencies dependencies, const FillParams& fill) {
  CUgraphNodeParams params{};
  set_fill_params(params, state.context, fill);
  absl::StatusOr<CUgraphNode> node = add_node(state, dependencies, params);
  if (ABSL_PREDICT_FALSE(!node.ok())) return explain_fill(node.status(), fill);
  return MemsetNode(*node);
}

absl::StatusOr<EmptyNode> add_empty(GraphState& state, Dependencies dependencies) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  CGRT_ASSIGN_OR_RETURN(CUgraphNode node, add_node(state, dependencies, params));
  return EmptyNode(node);
}

}  // namespace cgrt::internal
