#include <algorithm>
#include <cstring>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/launch/library.h"
#include "cgrt/memory/external_semaphore.h"
#include "cgrt/memory/memory_op.h"
#include "cgrt/memory/stream_memory.h"
#include "cgrt/stream/keep.h"

namespace cgrt::internal {

absl::Status set_kernel_params(KernelNodeParams& out, CUcontext context, const KernelLaunch& launch) {
  // A CUfunction is the cheaper way, but driver 580 crashes when it is given one on a thread that
  // has no current context; the CUkernel with its context is safe there.
  CUDA_KERNEL_NODE_PARAMS& params = out.driver;
  CUcontext current = nullptr;
  CUresult result = driver::api().CtxGetCurrent(&current);
  if (result == CUDA_SUCCESS) result = driver::resolve_function(*launch.kernel, context, &out.function);
  if (result == CUDA_SUCCESS && current != nullptr && !out.function->is_shared) {
    params.func = out.function->function;
  } else if (result == CUDA_SUCCESS && launch.kernel->function_context != nullptr) {
    CGRT_ASSIGN_OR_RETURN(ScopedContext entered, ScopedContext::enter(context));
    out.current.emplace(std::move(entered));
    params.func = out.function->function;
  } else if (result == CUDA_SUCCESS) {
    result = driver::resolve(*launch.kernel, &params.kern);
    params.ctx = context;
  }
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuKernelGetFunction"), launch, context);
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

const void* argument_of(void** values, void** extra, std::size_t index, std::size_t offset) {
  if (values != nullptr) return values[index];
  // Libraries hand their arguments over as one buffer.
  for (void** entry = extra; entry != nullptr && *entry != CU_LAUNCH_PARAM_END; entry += 2) {
    if (*entry == CU_LAUNCH_PARAM_BUFFER_POINTER) return static_cast<const unsigned char*>(entry[1]) + offset;
  }
  return nullptr;
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

void set_memory_op_params(CUgraphNodeParams& params, CUcontext context,
                          std::vector<CUstreamBatchMemOpParams>& operations) {
  params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  params.memOp.ctx = context;
  params.memOp.count = static_cast<unsigned>(operations.size());
  params.memOp.paramArray = operations.data();
}

void set_semaphore_params(CUgraphNodeParams& params, SemaphoreAction action, SemaphoreArrays& arrays) {
  if (action == SemaphoreAction::kSignal) {
    params.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL;
    params.extSemSignal.extSemArray = arrays.handles.data();
    params.extSemSignal.paramsArray = arrays.signals.data();
    params.extSemSignal.numExtSems = arrays.count();
  } else {
    params.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
    params.extSemWait.extSemArray = arrays.handles.data();
    params.extSemWait.paramsArray = arrays.waits.data();
    params.extSemWait.numExtSems = arrays.count();
  }
}

std::string broken_dependency(const GraphState& state, Dependencies dependencies) {
  const absl::StatusOr<std::vector<CUgraphNode>> nodes = nodes_of(state.handle);
  if (!nodes.ok()) {
    if (driver::cuda_result(nodes.status()) != CUDA_ERROR_INVALID_VALUE) return "";
    return "The driver does not know the graph, as when it was destroyed. A cursor must not outlive its graph and the "
           "executables that were made from it";
  }
  for (std::size_t i = 0; i < dependencies.size(); ++i) {
    const CUgraphNode node = dependencies[i].node.get();
    if (std::find(nodes->begin(), nodes->end(), node) == nodes->end()) {
      return absl::StrCat(
          "Dependency ", i + 1, " of ", dependencies.size(),
          " is not a node of this graph: it is one of another graph, or was destroyed. A node waits for "
          "nodes of its own graph; another graph is put in with add_child");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (dependencies[j].node.get() != node) continue;
      return absl::StrCat("Dependencies ", j + 1, " and ", i + 1, " are the same node. Name each node once");
    }
  }
  return "";
}

namespace {

CUresult add_generic(const GraphState& state, Dependencies dependencies, CUgraphNodeParams& params, CUgraphNode* node) {
  const DriverDependencies before(dependencies);
  return driver::api().GraphAddNode(node, state.handle, before.nodes.data(), before.edge_data(), before.nodes.size(),
                                    &params);
}

absl::StatusOr<CUgraphNode> add_node(GraphState& state, Dependencies dependencies, CUgraphNodeParams& params) {
  CGRT_RETURN_IF_ERROR(state.prepare());
  CUgraphNode node = nullptr;
  const CUresult result = add_generic(state, dependencies, params, &node);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) return driver::to_status(result, "cuGraphAddNode");
  ++state.added;
  return node;
}

// `failure` to add a node, explained by its graph or its dependencies if they are the cause, else by `explain`.
template <class Explain>
[[gnu::cold]] absl::Status refused(const absl::Status& failure, const GraphState& state, Dependencies dependencies,
                                   const std::string& what, Explain explain) {
  const bool may_be_broken = !dependencies.empty() || driver::cuda_result(failure) == CUDA_ERROR_INVALID_VALUE;
  const std::string broken = may_be_broken ? broken_dependency(state, dependencies) : "";
  if (broken.empty()) return explain(failure);
  return driver::annotate(failure, absl::StrCat(what, broken));
}
[[gnu::cold]] absl::Status refused(const absl::Status& failure, const GraphState& state, Dependencies dependencies) {
  return refused(failure, state, dependencies, "", [](const absl::Status& status) { return status; });
}

bool has_attributes(const KernelLaunch& launch, const driver::ResolvedFunction& function) {
  return (launch.attributes != nullptr && !launch.attributes->is_default()) || function.cluster != Dim3();
}

// All or nothing: a node that cannot have its attributes is taken out again.
absl::Status set_attributes(GraphState& state, CUgraphNode node, const KernelLaunch& launch,
                            const Dim3& compiled_cluster) {
  const LaunchAttributes wanted = launch.attributes != nullptr ? *launch.attributes : LaunchAttributes{};
  CUlaunchAttribute attributes[kMaxLaunchAttributes];
  const unsigned count = to_driver(wanted, attributes);
  absl::Cleanup remove = [&] { driver::api().GraphDestroyNode(node); };
  for (unsigned i = 0; i < count; ++i) {
    const CUresult result = driver::api().GraphKernelNodeSetAttribute(node, attributes[i].id, &attributes[i].value);
    if (result != CUDA_SUCCESS) {
      return explain_launch(driver::to_status(result, "cuGraphKernelNodeSetAttribute"), launch, state.context);
    }
  }
  CGRT_ASSIGN_OR_RETURN(const std::size_t nodes, count_nodes(state.handle));
  state.knowledge.add(nodes - 1, node, normal_form(wanted, compiled_cluster));
  std::move(remove).Cancel();
  return absl::OkStatus();
}

}  // namespace

absl::Status keep_library(GraphState& state, std::shared_ptr<const void> library) {
  if (std::find(state.kept.begin(), state.kept.end(), library) != state.kept.end()) return absl::OkStatus();
  CGRT_RETURN_IF_ERROR(keep_in_graph(outermost(state), library));
  state.kept.push_back(std::move(library));
  return absl::OkStatus();
}

absl::StatusOr<KernelNode> add_kernel(GraphState& state, Dependencies dependencies, const KernelLaunch& launch) {
  KernelNodeParams node_params;
  CGRT_RETURN_IF_ERROR(set_kernel_params(node_params, state.context, launch));
  CGRT_RETURN_IF_ERROR(state.prepare());
  if (ABSL_PREDICT_FALSE(launch.kernel->library != nullptr)) {
    CGRT_RETURN_IF_ERROR(keep_library(state, library_of(*launch.kernel)));
  }
  const CUDA_KERNEL_NODE_PARAMS& kernel = node_params.driver;
  CUgraphNode node = nullptr;
  CUresult result = CUDA_SUCCESS;
  // Most nodes wait for one other or none, and the kernel's own call is cheaper than cuGraphAddNode.
  const bool is_simple =
      dependencies.empty() || (dependencies.size() == 1 && dependencies.front().kind == EdgeKind::kFull);
  if (ABSL_PREDICT_TRUE(is_simple)) {
    const CUgraphNode before = dependencies.empty() ? nullptr : dependencies.front().node.get();
    result = driver::api().GraphAddKernelNode(&node, state.handle, &before, dependencies.size(), &kernel);
  } else {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    static_assert(sizeof(params.kernel) == sizeof(kernel));  // v3 and v2 differ in what they promise only
    std::memcpy(&params.kernel, &kernel, sizeof(kernel));
    result = add_generic(state, dependencies, params, &node);
  }
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return refused(driver::to_status(result, is_simple ? "cuGraphAddKernelNode" : "cuGraphAddNode"), state,
                   dependencies, absl::StrCat("Kernel \"", launch.kernel->name, "\": "),
                   [&](const absl::Status& status) { return explain_launch(status, launch, state.context); });
  }
  if (ABSL_PREDICT_FALSE(has_attributes(launch, *node_params.function))) {
    CGRT_RETURN_IF_ERROR(set_attributes(state, node, launch, node_params.function->cluster));
  }
  ++state.added;
  return KernelNode(node);
}

absl::StatusOr<MemcpyNode> add_copy(GraphState& state, Dependencies dependencies, const CopyParams& copy) {
  CUgraphNodeParams params{};
  set_copy_params(params, state.context, copy);
  const absl::StatusOr<CUgraphNode> node = add_node(state, dependencies, params);
  if (ABSL_PREDICT_FALSE(!node.ok())) {
    return refused(node.status(), state, dependencies,
                   "Copy: ", [&](const absl::Status& status) { return explain(status, copy); });
  }
  return MemcpyNode(*node);
}

absl::StatusOr<MemsetNode> add_fill(GraphState& state, Dependencies dependencies, const FillParams& fill) {
  CUgraphNodeParams params{};
  set_fill_params(params, state.context, fill);
  const absl::StatusOr<CUgraphNode> node = add_node(state, dependencies, params);
  if (ABSL_PREDICT_FALSE(!node.ok())) {
    return refused(node.status(), state, dependencies,
                   "Memset: ", [&](const absl::Status& status) { return explain(status, fill); });
  }
  return MemsetNode(*node);
}

namespace {

absl::Status not_in_conditional(CUgraphNodeType type) {
  return absl::FailedPreconditionError(absl::StrCat(
      "The body of a conditional node cannot hold a node of the kind \"", to_string(static_cast<ir::NodeKind>(type)),
      "\": CUDA runs kernels, copies, memsets, empty and conditional nodes there, and child graphs of those."));
}

bool may_be_in_conditional(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return true;
    default: return false;
  }
}

}  // namespace

absl::Status check_in_conditional(CUgraph graph) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(graph));
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
    if (!may_be_in_conditional(type)) return not_in_conditional(type);
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    CGRT_ASSIGN_OR_RETURN(const CUgraph inside, graph_inside(node));
    CGRT_RETURN_IF_ERROR(check_in_conditional(inside));
  }
  return absl::OkStatus();
}

namespace {

void set_in_conditional(GraphState& state) {
  state.is_in_conditional = true;
  for (const GraphState::Child& child : state.children) set_in_conditional(*child.state);
}

template <class Node>
absl::StatusOr<Node> typed(GraphState& state, Dependencies dependencies, CUgraphNodeParams& params) {
  if (ABSL_PREDICT_FALSE(state.is_in_conditional && !may_be_in_conditional(params.type))) {
    return not_in_conditional(params.type);
  }
  const absl::StatusOr<CUgraphNode> node = add_node(state, dependencies, params);
  if (ABSL_PREDICT_FALSE(!node.ok())) return refused(node.status(), state, dependencies);
  return Node(*node);
}

}  // namespace

absl::StatusOr<EmptyNode> add_empty(GraphState& state, Dependencies dependencies) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  return typed<EmptyNode>(state, dependencies, params);
}

absl::StatusOr<HostNode> add_host(GraphState& state, Dependencies dependencies, const HostParams& host) {
  if (host.function == nullptr) return absl::InvalidArgumentError("Host node: the function is null.");
  CUgraphNodeParams params{};
  set_host_params(params, host);
  return typed<HostNode>(state, dependencies, params);
}

absl::StatusOr<EventRecordNode> add_event_record(GraphState& state, Dependencies dependencies, EventRef event) {
  if (event.get() == nullptr) return driver::empty_object("Event");
  CUgraphNodeParams params{};
  set_record_params(params, event);
  return typed<EventRecordNode>(state, dependencies, params);
}

absl::StatusOr<EventWaitNode> add_event_wait(GraphState& state, Dependencies dependencies, EventRef event) {
  if (event.get() == nullptr) return driver::empty_object("Event");
  CUgraphNodeParams params{};
  set_wait_params(params, event);
  return typed<EventWaitNode>(state, dependencies, params);
}

absl::StatusOr<GraphAllocation> add_alloc(GraphState& state, Dependencies dependencies, std::size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("Allocation node: 0 bytes are no allocation.");
  CGRT_ASSIGN_OR_RETURN(const DeviceRef device, ContextRef(state.context).device());
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal()};
  params.alloc.bytesize = bytes;
  CGRT_ASSIGN_OR_RETURN(const MemAllocNode node, typed<MemAllocNode>(state, dependencies, params));
  return GraphAllocation{node, reinterpret_cast<void*>(params.alloc.dptr)};
}

absl::StatusOr<MemFreeNode> add_free(GraphState& state, Dependencies dependencies, void* address) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  params.free.dptr = reinterpret_cast<CUdeviceptr>(address);
  absl::StatusOr<MemFreeNode> node = typed<MemFreeNode>(state, dependencies, params);
  if (node.ok() || !driver::cuda_result(node.status()).has_value()) return node;
  return explain_free(node.status(), address);
}

absl::StatusOr<BatchMemOpNode> add_memory_ops(GraphState& state, Dependencies dependencies,
                                              absl::Span<const MemoryOp> ops) {
  CGRT_RETURN_IF_ERROR(check_for_node(ops));
  std::vector<CUstreamBatchMemOpParams> operations = to_driver(ops);
  CUgraphNodeParams params{};
  set_memory_op_params(params, state.context, operations);
  absl::StatusOr<BatchMemOpNode> node = typed<BatchMemOpNode>(state, dependencies, params);
  if (node.ok() || !driver::cuda_result(node.status()).has_value()) return node;
  return explain(node.status(), ops);
}

absl::StatusOr<NodeRef> add_semaphores(GraphState& state, Dependencies dependencies, SemaphoreAction action,
                                       absl::Span<const SemaphoreValue> values) {
  CGRT_RETURN_IF_ERROR(check(values));
  SemaphoreArrays arrays = to_driver(action, values);
  CUgraphNodeParams params{};
  set_semaphore_params(params, action, arrays);
  absl::StatusOr<NodeRef> node = typed<NodeRef>(state, dependencies, params);
  if (node.ok() || !driver::cuda_result(node.status()).has_value()) return node;
  return explain(node.status(), action, values);
}

absl::StatusOr<ChildGraphNode> add_child(GraphState& state, Dependencies dependencies,
                                         const std::shared_ptr<GraphState>& child, ChildOwnership ownership) {
  // Driver 580 crashes on a copy of the graph into itself, and takes a move into itself.
  if (child->contains(state)) {
    return absl::InvalidArgumentError(
        "A graph cannot be a child of itself, nor of one that is inside of it. Clone it first: Graph::clone.");
  }
  if (child->has_alternatives) {
    return absl::FailedPreconditionError(
        "The graph has the nodes of several steps (build_alternatives), and as a child all of them would run. Build "
        "the alternatives of the whole step instead.");
  }
  if (has_conditionals(*child)) {
    return absl::FailedPreconditionError(
        "A graph with conditional nodes cannot be a child graph: CUDA has them in the graph itself and in the bodies "
        "of others. Build its nodes here, through a cursor.");
  }
  if (state.is_in_conditional) CGRT_RETURN_IF_ERROR(check_in_conditional(child->handle));
  CGRT_ASSIGN_OR_RETURN(const std::size_t position, count_nodes(state.handle));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = child->handle;
  params.graph.ownership =
      ownership == ChildOwnership::kMove ? CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE : CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
  const absl::StatusOr<ChildGraphNode> added = typed<ChildGraphNode>(state, dependencies, params);
  if (ABSL_PREDICT_FALSE(!added.ok())) {
    const std::string forbidden = ownership == ChildOwnership::kCopy ? what_forbids_copies(child->handle) : "";
    if (forbidden.empty() || !driver::cuda_result(added.status()).has_value()) return added.status();
    return driver::annotate(
        added.status(),
        absl::StrCat("Because of ", forbidden, " the graph can be no child by copy: move it in, with std::move"));
  }
  const ChildGraphNode node = *added;
  if (ownership == ChildOwnership::kMove) {
    child->move_into(state);
    if (state.is_in_conditional) set_in_conditional(*child);
    state.children.push_back({position, node.get(), child});
    return node;
  }
  absl::Cleanup remove = [&] { driver::api().GraphDestroyNode(node.get()); };
  CGRT_ASSIGN_OR_RETURN(const CUgraph inside, graph_inside(node.get()));
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<GraphState> copy, copy_state(*child, inside, false));
  for (const std::shared_ptr<const void>& library : libraries_lost_by_copy(*child)) {
    CGRT_RETURN_IF_ERROR(keep_library(state, library));
  }
  state.children.push_back({position, node.get(), std::move(copy)});
  std::move(remove).Cancel();
  return node;
}

absl::StatusOr<Conditional> add_conditional(GraphState& state, Dependencies dependencies,
                                            CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                                            unsigned bodies) {
  if (bodies == 0) return absl::InvalidArgumentError("A switch node needs a body.");
  CGRT_ASSIGN_OR_RETURN(const std::size_t position, count_nodes(state.handle));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = bodies;
  params.conditional.ctx = state.context;
  const absl::StatusOr<CUgraphNode> node = add_node(state, dependencies, params);
  if (ABSL_PREDICT_FALSE(!node.ok())) {
    return refused(node.status(), state, dependencies, "Conditional node: ", [](const absl::Status& status) {
      return driver::annotate(status,
                              "The conditional handle is not of this graph or one around it, or it has a node already: "
                              "make one for each node with Graph::add_conditional_handle");
    });
  }
  Conditional conditional{ConditionalNode(*node), {}};
  std::vector<std::shared_ptr<GraphState>> states;
  for (unsigned i = 0; i < bodies; ++i) {
    auto body = std::make_shared<GraphState>(params.conditional.phGraph_out[i], state.context);
    body->is_body = body->is_in_conditional = true;
    body->move_into(state);
    states.push_back(body);
    conditional.bodies.emplace_back(std::move(body));
  }
  state.conditionals.push_back({position, handle, type, std::move(states)});
  return conditional;
}

}  // namespace cgrt::internal
