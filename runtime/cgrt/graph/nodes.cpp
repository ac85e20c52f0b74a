#include <cstring>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"

namespace cgrt::internal {

CUresult GraphState::note_scope() {
  if (is_scope_noted()) return CUDA_SUCCESS;
  std::size_t count = 0;
  const CUresult result = driver::api().GraphGetNodes(handle.get(), nullptr, &count);
  if (result != CUDA_SUCCESS) return result;
  if (!scopes.empty() && scopes.back().first_node == count) scopes.pop_back();
  scopes.push_back({count, current_scope_path()});
  scope_id = current_scope_id();
  return CUDA_SUCCESS;
}

absl::Status set_kernel_params(CUDA_KERNEL_NODE_PARAMS& params, CUcontext context, const KernelLaunch& launch) {
  // A CUfunction is the cheaper way, but driver 580 crashes when it is given one on a thread that
  // has no current context; the CUkernel with its context is safe there.
  CUcontext current = nullptr;
  CUresult result = driver::api().CtxGetCurrent(&current);
  if (result == CUDA_SUCCESS && current != nullptr) {
    result = driver::resolve_function(*launch.kernel, context, &params.func);
  } else if (result == CUDA_SUCCESS) {
    result = driver::resolve(*launch.kernel, &params.kern);
    params.ctx = context;
  }
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuKernelGetFunction"), launch);
  }
  params.gridDimX = launch.grid.x;
  params.gridDimY = launch.grid.y;
  params.gridDimZ = launch.grid.z;
  params.blockDimX = launch.block.x;
  params.blockDimY = launch.block.y;
  params.blockDimZ = launch.block.z;
  params.sharedMemBytes = launch.shared_bytes;
  params.kernelParams = launch.arguments;
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
  return driver::annotate(status,
                          absl::StrCat("Memset of ", fill.count, " elements of ", fill.element_bytes, " bytes at 0x",
                                       absl::Hex(reinterpret_cast<std::uintptr_t>(fill.destination))));
}

namespace {

// Dependencies as the driver takes them. `edges` stays empty while all are full.
struct DriverDependencies {
  explicit DriverDependencies(Dependencies dependencies) {
    for (const Dependency& dependency : dependencies) nodes.push_back(dependency.node.get());
    for (std::size_t i = 0; i < dependencies.size(); ++i) {
      if (dependencies[i].kind == EdgeKind::kFull) continue;
      edges.resize(dependencies.size(), CUgraphEdgeData{});
      edges[i].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
      edges[i].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
  }
  absl::InlinedVector<CUgraphNode, 8> nodes;
  absl::InlinedVector<CUgraphEdgeData, 8> edges;
};

absl::StatusOr<CUgraphNode> add_node(GraphState& state, const DriverDependencies& dependencies,
                                     CUgraphNodeParams& params) {
  CGRT_RETURN_IF_ERROR(driver::to_status(state.note_scope(), "cuGraphGetNodes"));
  CUgraphNode node = nullptr;
  const CUresult result = driver::api().GraphAddNode(&node, state.handle.get(), dependencies.nodes.data(),
                                                     dependencies.edges.empty() ? nullptr : dependencies.edges.data(),
                                                     dependencies.nodes.size(), &params);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) return driver::to_status(result, "cuGraphAddNode");
  return node;
}

}  // namespace

absl::StatusOr<KernelNode> add_kernel(GraphState& state, Dependencies dependencies, const KernelLaunch& launch) {
  CUDA_KERNEL_NODE_PARAMS kernel{};
  CGRT_RETURN_IF_ERROR(set_kernel_params(kernel, state.context, launch));
  if (!state.is_scope_noted()) CGRT_RETURN_IF_ERROR(driver::to_status(state.note_scope(), "cuGraphGetNodes"));
  // Most nodes wait for one other or none, and the kernel's own call is cheaper than cuGraphAddNode.
  CUgraphNode node = nullptr;
  if (dependencies.empty() || (dependencies.size() == 1 && dependencies.front().kind == EdgeKind::kFull)) {
    const CUgraphNode before = dependencies.empty() ? nullptr : dependencies.front().node.get();
    const CUresult result =
        driver::api().GraphAddKernelNode(&node, state.handle.get(), &before, dependencies.size(), &kernel);
    if (ABSL_PREDICT_TRUE(result == CUDA_SUCCESS)) return KernelNode(node);
    return explain_launch(driver::to_status(result, "cuGraphAddKernelNode"), launch);
  }
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  static_assert(sizeof(params.kernel) == sizeof(kernel));  // v3 and v2 differ in what they promise only
  std::memcpy(&params.kernel, &kernel, sizeof(kernel));
  absl::StatusOr<CUgraphNode> added = add_node(state, DriverDependencies(dependencies), params);
  if (ABSL_PREDICT_FALSE(!added.ok())) return explain_launch(added.status(), launch);
  return KernelNode(*added);
}

absl::StatusOr<MemcpyNode> add_copy(GraphState& state, Dependencies dependencies, const CopyParams& copy) {
  CUgraphNodeParams params{};
  set_copy_params(params, state.context, copy);
  absl::StatusOr<CUgraphNode> node = add_node(state, DriverDependencies(dependencies), params);
  if (ABSL_PREDICT_FALSE(!node.ok())) return explain_copy(node.status(), copy);
  return MemcpyNode(*node);
}

absl::StatusOr<MemsetNode> add_fill(GraphState& state, Dependencies dependencies, const FillParams& fill) {
  CUgraphNodeParams params{};
  set_fill_params(params, state.context, fill);
  absl::StatusOr<CUgraphNode> node = add_node(state, DriverDependencies(dependencies), params);
  if (ABSL_PREDICT_FALSE(!node.ok())) return explain_fill(node.status(), fill);
  return MemsetNode(*node);
}

absl::StatusOr<EmptyNode> add_empty(GraphState& state, Dependencies dependencies) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  CGRT_ASSIGN_OR_RETURN(CUgraphNode node, add_node(state, DriverDependencies(dependencies), params));
  return EmptyNode(node);
}

}  // namespace cgrt::internal
