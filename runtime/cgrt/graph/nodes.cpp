#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"

namespace cgrt::internal {

GraphState::~GraphState() = default;

absl::Status moved_from(const char* type) {
  return absl::FailedPreconditionError(
      absl::StrCat("This ", type, " was moved from: use the object that it was moved to."));
}

CUresult GraphState::note_scope() {
  if (is_scope_noted()) return CUDA_SUCCESS;
  std::size_t count = 0;
  const CUresult result = driver::api().GraphGetNodes(handle.get(), nullptr, &count);
  if (result != CUDA_SUCCESS) return result;
  std::vector<ScopeRun>& runs = scopes.runs;
  if (!runs.empty() && runs.back().first_node == count) runs.pop_back();
  runs.push_back({count, current_scope_path()});
  scope_id = current_scope_id();
  return CUDA_SUCCESS;
}

absl::Status set_kernel_params(CUDA_KERNEL_NODE_PARAMS& params, CUcontext context, const KernelLaunch& launch) {
  // A CUfunction is the cheaper way, but driver 580 crashes when it is given one on a thread that
  // has no current context; the CUkernel with its context is safe there.
  CUcontext current = nullptr;
  CUresult result = driver::api().CtxGetCurrent(&current);
  const driver::ResolvedFunction* resolved = nullptr;
  if (result == CUDA_SUCCESS) result = driver::resolve_function(*launch.kernel, context, &resolved);
  if (result == CUDA_SUCCESS && current != nullptr && !resolved->is_shared) {
    params.func = resolved->function;
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

void set_copy_params(CUgraphNodeParams& params, CUcontext context, const CopyParams& copy) {
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params.memcpy.copyParams = to_driver(copy);
  params.memcpy.copyCtx = context;
}

void set_fill_params(CUgraphNodeParams& params, CUcontext context, const FillParams& fill) {
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset.dst = reinterpret_cast<CUdeviceptr>(fill.destination);
  params.memset.pitch = fill.height == 1 ? 0 : fill.pitch;
  // The driver mixes up the bytes of small elements when the value has more than theirs (driver 580).
  params.memset.value = fill.element_bytes == 1   ? fill.value & 0xff
                        : fill.element_bytes == 2 ? fill.value & 0xffff
                                                  : fill.value;
  params.memset.elementSize = fill.element_bytes;
  params.memset.width = fill.count;
  params.memset.height = fill.height;
  params.memset.ctx = context;
}

void set_host_params(CUgraphNodeParams& params, const HostParams& host) {
  params.type = CU_GRAPH_NODE_TYPE_HOST;
  params.host.fn = host.function;
  params.host.userData = host.data;
}

void set_record_params(CUgraphNodeParams& params, EventRef event) {
  params.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  params.eventRecord.event = event.get();
}

void set_wait_params(CUgraphNodeParams& params, EventRef event) {
  params.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  params.eventWait.event = event.get();
}

namespace {

// Dependencies as the driver takes them. `edges` stays empty while all are full.
struct DriverDependencies {
  explicit DriverDependencies(Dependencies dependencies) {
    for (const Dependency& dependency : dependencies) nodes.push_back(dependency.node.get());
    for (std::size_t i = 0; i < dependencies.size(); ++i) {
      if (dependencies[i].kind == EdgeKind::kFull) continue;
      edges.resize(dependencies.size(), CUgraphEdgeData{});
      if (dependencies[i].kind == EdgeKind::kProgrammatic) {
        edges[i].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
        edges[i].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
      } else {
        edges[i].from_port = CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
      }
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

absl::StatusOr<std::size_t> count_nodes(CUgraph graph) {
  std::size_t count = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes"));
  return count;
}

bool has_attributes(const KernelLaunch& launch) {
  return launch.attributes != nullptr && !launch.attributes->is_default();
}

// All or nothing: a node that cannot have its attributes is taken out again.
absl::Status set_attributes(GraphState& state, CUgraphNode node, const KernelLaunch& launch) {
  CUlaunchAttribute attributes[kMaxLaunchAttributes];
  const unsigned count = to_driver(*launch.attributes, attributes);
  absl::Cleanup remove = [&] { driver::api().GraphDestroyNode(node); };
  for (unsigned i = 0; i < count; ++i) {
    const CUresult result = driver::api().GraphKernelNodeSetAttribute(node, attributes[i].id, &attributes[i].value);
    if (result != CUDA_SUCCESS) {
      return explain_launch(driver::to_status(result, "cuGraphKernelNodeSetAttribute"), launch);
    }
  }
  CGRT_ASSIGN_OR_RETURN(const std::size_t nodes, count_nodes(state.handle.get()));
  state.attributes.push_back({{nodes - 1}, node, *launch.attributes});
  std::move(remove).Cancel();
  return absl::OkStatus();
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
    if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
      return explain_launch(driver::to_status(result, "cuGraphAddKernelNode"), launch);
    }
    if (ABSL_PREDICT_FALSE(has_attributes(launch))) CGRT_RETURN_IF_ERROR(set_attributes(state, node, launch));
    return KernelNode(node);
  }
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  static_assert(sizeof(params.kernel) == sizeof(kernel));  // v3 and v2 differ in what they promise only
  std::memcpy(&params.kernel, &kernel, sizeof(kernel));
  absl::StatusOr<CUgraphNode> added = add_node(state, DriverDependencies(dependencies), params);
  if (ABSL_PREDICT_FALSE(!added.ok())) return explain_launch(added.status(), launch);
  if (has_attributes(launch)) CGRT_RETURN_IF_ERROR(set_attributes(state, *added, launch));
  return KernelNode(*added);
}

absl::StatusOr<MemcpyNode> add_copy(GraphState& state, Dependencies dependencies, const CopyParams& copy) {
  CUgraphNodeParams params{};
  set_copy_params(params, state.context, copy);
  absl::StatusOr<CUgraphNode> node = add_node(state, DriverDependencies(dependencies), params);
  if (ABSL_PREDICT_FALSE(!node.ok())) return explain(node.status(), copy);
  return MemcpyNode(*node);
}

absl::StatusOr<MemsetNode> add_fill(GraphState& state, Dependencies dependencies, const FillParams& fill) {
  CUgraphNodeParams params{};
  set_fill_params(params, state.context, fill);
  absl::StatusOr<CUgraphNode> node = add_node(state, DriverDependencies(dependencies), params);
  if (ABSL_PREDICT_FALSE(!node.ok())) return explain(node.status(), fill);
  return MemsetNode(*node);
}

absl::StatusOr<EmptyNode> add_empty(GraphState& state, Dependencies dependencies) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  CGRT_ASSIGN_OR_RETURN(CUgraphNode node, add_node(state, DriverDependencies(dependencies), params));
  return EmptyNode(node);
}

absl::StatusOr<HostNode> add_host(GraphState& state, Dependencies dependencies, const HostParams& host) {
  if (host.function == nullptr) return absl::InvalidArgumentError("Host node: the function is null.");
  CUgraphNodeParams params{};
  set_host_params(params, host);
  CGRT_ASSIGN_OR_RETURN(CUgraphNode node, add_node(state, DriverDependencies(dependencies), params));
  return HostNode(node);
}

absl::StatusOr<EventRecordNode> add_event_record(GraphState& state, Dependencies dependencies, EventRef event) {
  CUgraphNodeParams params{};
  set_record_params(params, event);
  CGRT_ASSIGN_OR_RETURN(CUgraphNode node, add_node(state, DriverDependencies(dependencies), params));
  return EventRecordNode(node);
}

absl::StatusOr<EventWaitNode> add_event_wait(GraphState& state, Dependencies dependencies, EventRef event) {
  CUgraphNodeParams params{};
  set_wait_params(params, event);
  CGRT_ASSIGN_OR_RETURN(CUgraphNode node, add_node(state, DriverDependencies(dependencies), params));
  return EventWaitNode(node);
}

absl::StatusOr<ChildGraphNode> add_child(GraphState& state, Dependencies dependencies, GraphState& child,
                                         ChildOwnership ownership) {
  // Driver 580 crashes on a copy of the graph into itself, and takes a move into itself.
  if (child.handle.get() == state.handle.get()) {
    return absl::InvalidArgumentError("A graph cannot be a child of itself. Clone it first: Graph::clone.");
  }
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = child.handle.get();
  params.graph.ownership =
      ownership == ChildOwnership::kMove ? CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE : CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
  std::size_t position = 0;
  if (!child.attributes.empty() || !child.scopes.empty()) {
    CGRT_ASSIGN_OR_RETURN(position, count_nodes(state.handle.get()));
  }
  CGRT_ASSIGN_OR_RETURN(CUgraphNode node, add_node(state, DriverDependencies(dependencies), params));
  if (!child.scopes.empty()) state.scopes.children.emplace_back(position, child.scopes);
  for (const NodeAttributes& inner : child.attributes) {
    NodeAttributes& outer = state.attributes.emplace_back(inner);
    outer.path.insert(outer.path.begin(), position);
    if (ownership == ChildOwnership::kCopy) outer.node = nullptr;
  }
  if (ownership == ChildOwnership::kMove) child.handle.release();
  return ChildGraphNode(node);
}

}  // namespace cgrt::internal
