// Graphs: nodes, edges, parameters, children and clones.
#include <algorithm>
#include <cstring>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
CUgraph_st* find_graph(CUgraph handle) {
  const auto found = state->graphs.find(handle);
  if (found != state->graphs.end()) return found->second.get();
  if (state->embedded.contains(handle)) return handle;
  for (Capture& capture : state->captures) {
    if (capture.graph.get() == handle) return handle;
  }
  return nullptr;
}

namespace {

CUgraphNode find_node(CUgraphNode node, CUgraphNodeType type) {
  return state->nodes.contains(node) && node->data->type == type ? node : nullptr;
}

CUresult check_dependencies(CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* edges, std::size_t count,
                            std::vector<Dependency>* out) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!state->nodes.contains(nodes[i]) || nodes[i]->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    for (const Dependency& other : *out) {
      if (other.node == nodes[i]) return CUDA_ERROR_INVALID_VALUE;
    }
    const CUgraphEdgeData edge = edges != nullptr ? edges[i] : CUgraphEdgeData{};
    const bool special = edge.type != CU_GRAPH_DEPENDENCY_TYPE_DEFAULT || edge.from_port != 0;
    if (special && nodes[i]->data->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
    out->push_back({nodes[i], edge});
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUgraphNodeParams generic_params(const CUDA_KERNEL_NODE_PARAMS_v2& kernel) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  static_assert(sizeof(params.kernel) == sizeof(kernel));
  std::memcpy(&params.kernel, &kernel, sizeof(kernel));
  return params;
}

CUresult node_data(const CUgraphNodeParams& params, NodeDataRef* out) {
  auto data = std::make_shared<NodeData>();
  data->type = params.type;
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_EMPTY: break;
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const auto& p = params.kernel;
      const bool by_function = p.func != nullptr;
      const driver::KernelIdentity* kernel = find_kernel(by_function ? p.func : reinterpret_cast<CUfunction>(p.kern));
      if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      const auto function = state->function_handles.find(p.func);
      CUcontext context = function != state->function_handles.end() ? function->second->context
                          : p.ctx != nullptr                        ? p.ctx
                                                                    : current_context();
      if (!is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
      const Dim3 grid(p.gridDimX, p.gridDimY, p.gridDimZ), block(p.blockDimX, p.blockDimY, p.blockDimZ);
      const CUresult bad = check_launch(kernel, grid, block, p.sharedMemBytes);
      if (bad != CUDA_SUCCESS) return bad;
      *out = kernel_data(kernel, context, grid, block, p.sharedMemBytes, p.kernelParams);
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      const CUcontext context = params.memcpy.copyCtx != nullptr ? params.memcpy.copyCtx : current_context();
      if (!is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
      const CUresult bad = check_copy(params.memcpy.copyParams);
      if (bad != CUDA_SUCCESS) return bad;
      data->context = context;
      set_copy(*data, params.memcpy.copyParams);
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& p = params.memset;
      const CUcontext context = p.ctx != nullptr ? p.ctx : current_context();
      if (!is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
      const CUDA_MEMSET_NODE_PARAMS fill{p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
      const CUresult bad = check_fill(fill);
      if (bad != CUDA_SUCCESS) return bad;
      data->context = context;
      data->fill = fill;
      break;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      if (params.host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
      data->function = params.host.fn;
      data->user_data = params.host.userData;
      break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      data->event = params.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? params.eventRecord.event : params.eventWait.event;
      if (!state->events.contains(data->event)) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      if (find_graph(params.graph.graph) == nullptr) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
      const auto& p = params.conditional;
      const auto found = state->conditionals.find(p.handle);
      if (found == state->conditionals.end() || found->second->node != nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (found->second->graph == nullptr || found->second->context != p.ctx) return CUDA_ERROR_INVALID_VALUE;
      const unsigned most = p.type == CU_GRAPH_COND_TYPE_WHILE ? 1 : p.type == CU_GRAPH_COND_TYPE_IF ? 2 : UINT_MAX;
      if (p.type > CU_GRAPH_COND_TYPE_SWITCH || p.size == 0 || p.size > most) return CUDA_ERROR_INVALID_VALUE;
      data->context = p.ctx;
      data->conditional = found->second;
      data->conditional_type = p.type;
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      const auto& p = params.alloc;
      const int device = p.poolProps.location.id;
      const bool is_known = p.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE && device >= 0 &&
                            device < state->options.device_count;
      if (!is_known || p.poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
      const CUcontext context = state->contexts[static_cast<std::size_t>(device)].get();
      if (const CUresult bad = alloc_data(p.bytesize, context, *data); bad != CUDA_SUCCESS) return bad;
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      if (const CUresult bad = free_data(params.free.dptr, *data); bad != CUDA_SUCCESS) return bad;
      break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const auto& p = params.memOp;
      data->context = p.ctx != nullptr ? p.ctx : current_context();
      if (!is_context(data->context)) return CUDA_ERROR_INVALID_CONTEXT;
      data->operations.assign(p.paramArray, p.paramArray + p.count);
      if (const CUresult bad = check_operations(data->operations); bad != CUDA_SUCCESS) return bad;
      break;
    }
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
      if (const CUresult bad = semaphore_data(params.extSemSignal, *data); bad != CUDA_SUCCESS) return bad;
      break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      if (const CUresult bad = semaphore_data(params.extSemWait, *data); bad != CUDA_SUCCESS) return bad;
      break;
    default: return unsupported("the simulator does not have that kind of node");
  }
  *out = std::move(data);
  return CUDA_SUCCESS;
}

CUgraphNode append_node(CUgraph_st& graph, NodeDataRef data, std::vector<Dependency> dependencies) {
  auto node = std::make_unique<CUgraphNode_st>();
  node->graph = &graph;
  node->data = std::move(data);
  node->dependencies = std::move(dependencies);
  state->nodes.insert(node.get());
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().get();
}

bool has_updatable_nodes(const CUgraph_st& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const auto& node) {
    return node->data->updatable != nullptr ||
           std::any_of(node->inside.begin(), node->inside.end(),
                       [](const auto& inside) { return has_updatable_nodes(*inside); });
  });
}

bool has_conditional_nodes(const CUgraph_st& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const auto& node) {
    return node->data->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
           std::any_of(node->inside.begin(), node->inside.end(),
                       [](const auto& inside) { return has_conditional_nodes(*inside); });
  });
}

namespace {

void forget_inside(const CUgraphNode_st& node) {
  for (const auto& inside : node.inside) {
    forget_nodes(*inside);
    state->embedded.erase(inside.get());
  }
}

}  // namespace

void forget_nodes(const CUgraph_st& graph) {
  for (const auto& node : graph.nodes) {
    state->nodes.erase(node.get());
    forget_inside(*node);
  }
  for (const auto& [handle, conditional] : state->conditionals) {
    if (conditional->graph == &graph) conditional->graph = nullptr;
  }
}

CUresult GraphCreate(CUgraph* out, unsigned flags) {
  const Lock lock(state->mutex);
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_unique<CUgraph_st>();
  *out = graph.get();
  state->graphs.emplace(*out, std::move(graph));
  return CUDA_SUCCESS;
}

CUresult GraphDestroy(CUgraph graph) {
  const Lock lock(state->mutex);
  const auto found = state->graphs.find(graph);
  if (found == state->graphs.end()) return CUDA_ERROR_INVALID_VALUE;
  forget_nodes(*found->second);
  state->graphs.erase(found);
  return CUDA_SUCCESS;
}

namespace {

// A deep copy; `clones` gets every node of it, by the original's.
std::unique_ptr<CUgraph_st> clone(const CUgraph_st& graph, std::unordered_map<CUgraphNode, CUgraphNode>& clones) {
  auto copy = std::make_unique<CUgraph_st>();
  copy->kept = graph.kept;
  for (const auto& node : graph.nodes) {
    std::vector<Dependency> dependencies = node->dependencies;
    for (Dependency& dependency : dependencies) dependency.node = clones.at(dependency.node);
    CUgraphNode added = append_node(*copy, node->data, std::move(dependencies));
    clones.emplace(node.get(), added);
    for (const auto& inside : node->inside) embed(*added, clone(*inside, clones));
  }
  return copy;
}

}  // namespace

void embed(CUgraphNode_st& node, std::unique_ptr<CUgraph_st> child) {
  state->embedded.insert(child.get());
  child->owner = &node;
  node.inside.push_back(std::move(child));
}

CUresult GraphClone(CUgraph* out, CUgraph original) {
  const Lock lock(state->mutex);
  const CUgraph_st* graph = find_graph(original);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (has_updatable_nodes(*graph) || has_conditional_nodes(*graph) || has_memory_nodes(*graph)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::unordered_map<CUgraphNode, CUgraphNode> clones;
  auto copy = clone(*graph, clones);
  copy->clones = std::move(clones);
  *out = copy.get();
  state->graphs.emplace(*out, std::move(copy));
  return CUDA_SUCCESS;
}

CUresult GraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph handle) {
  const Lock lock(state->mutex);
  const CUgraph_st* graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = graph->clones.find(original);
  if (found == graph->clones.end() || !state->nodes.contains(found->second)) return CUDA_ERROR_INVALID_VALUE;
  *out = found->second;
  return CUDA_SUCCESS;
}

CUresult GraphDestroyNode(CUgraphNode node) {
  const Lock lock(state->mutex);
  if (!state->nodes.contains(node)) return CUDA_ERROR_INVALID_VALUE;
  if (node->data->updatable != nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraph_st& graph = *node->graph;
  if (has_memory_nodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
  for (const auto& other : graph.nodes) {
    std::erase_if(other->dependencies, [&](const Dependency& dependency) { return dependency.node == node; });
  }
  state->nodes.erase(node);
  if (node->data->conditional != nullptr) node->data->conditional->node = nullptr;
  forget_inside(*node);
  std::erase_if(graph.nodes, [&](const auto& other) { return other.get() == node; });
  return CUDA_SUCCESS;
}

CUresult GraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext context,
                                      unsigned at_launch, unsigned flags) {
  const Lock lock(state->mutex);
  if (handle == nullptr || find_graph(graph) == nullptr || (flags & ~unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  auto conditional = std::make_shared<Conditional>();
  conditional->graph = graph;
  conditional->context = context;
  conditional->is_assigned = flags != 0;
  conditional->at_launch = at_launch;
  *handle = state->conditionals.size() + 1;
  state->conditionals.emplace(*handle, std::move(conditional));
  return CUDA_SUCCESS;
}

CUresult SetConditional(CUgraphConditionalHandle handle, unsigned value) {
  const Lock lock(state->mutex);
  const auto found = state->conditionals.find(handle);
  if (found == state->conditionals.end()) return CUDA_ERROR_INVALID_VALUE;
  found->second->value = value;
  return CUDA_SUCCESS;
}

namespace {

// Whether `graph` is `outer` or inside of it.
bool is_inside(const CUgraph_st* graph, const CUgraph_st* outer) {
  while (graph != outer && graph->owner != nullptr) graph = graph->owner->graph;
  return graph == outer;
}

}  // namespace

CUresult GraphAddNode(CUgraphNode* out, CUgraph handle, const CUgraphNode* nodes, const CUgraphEdgeData* edges,
                      std::size_t count, CUgraphNodeParams* params) {
  const Lock lock(state->mutex);
  CUgraph_st* graph = find_graph(handle);
  if (graph == nullptr || out == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Dependency> dependencies;
  if (const CUresult bad = check_dependencies(graph, nodes, edges, count, &dependencies); bad != CUDA_SUCCESS)
    return bad;
  NodeDataRef data;
  if (const CUresult bad = node_data(*params, &data); bad != CUDA_SUCCESS) return bad;
  for (const Dependency& dependency : dependencies) {
    const bool is_programmatic = dependency.edge.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    if (is_programmatic && data->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  }
  if (data->memory != nullptr) {
    if (const CUresult bad = check_memory_node(*data, *graph); bad != CUDA_SUCCESS) return bad;
    if (data->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) params->alloc.dptr = data->memory->address;
    note_memory_node(*data, graph);
  }
  const std::shared_ptr<Conditional> conditional = data->conditional;
  if (conditional != nullptr && !is_inside(graph, conditional->graph)) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<CUgraph_st> child;
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    if (has_conditional_nodes(*find_graph(params->graph.graph))) return CUDA_ERROR_NOT_SUPPORTED;
    const auto owned = state->graphs.find(params->graph.graph);
    if (params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
      if (has_memory_nodes(*find_graph(params->graph.graph))) return CUDA_ERROR_NOT_SUPPORTED;
      std::unordered_map<CUgraphNode, CUgraphNode> clones;
      child = clone(*find_graph(params->graph.graph), clones);
    } else if (owned == state->graphs.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    } else {
      child = std::move(owned->second);
      state->graphs.erase(owned);
    }
  }
  *out = append_node(*graph, std::move(data), std::move(dependencies));
  if (child != nullptr) embed(**out, std::move(child));
  if (conditional == nullptr) return CUDA_SUCCESS;
  conditional->node = *out;
  for (unsigned i = 0; i < params->conditional.size; ++i) {
    auto body = std::make_unique<CUgraph_st>();
    (*out)->body_handles.push_back(body.get());
    embed(**out, std::move(body));
  }
  params->conditional.phGraph_out = (*out)->body_handles.data();
  return CUDA_SUCCESS;
}

CUresult GraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  const Lock lock(state->mutex);
  const CUgraphNode node = find_node(handle, CU_GRAPH_NODE_TYPE_GRAPH);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = node->inside.front().get();
  return CUDA_SUCCESS;
}

CUresult GraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent* event) {
  const Lock lock(state->mutex);
  const CUgraphNode node = find_node(handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *event = node->data->event;
  return CUDA_SUCCESS;
}

CUresult GraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent* event) {
  const Lock lock(state->mutex);
  const CUgraphNode node = find_node(handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *event = node->data->event;
  return CUDA_SUCCESS;
}

CUresult GraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue* value) {
  const Lock lock(state->mutex);
  const CUgraphNode node = find_node(handle, CU_GRAPH_NODE_TYPE_KERNEL);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult bad = check_attribute(*node->data, id, *value); bad != CUDA_SUCCESS) return bad;
  auto changed = std::make_shared<NodeData>(*node->data);
  if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
    const bool is_wanted = value->deviceUpdatableKernelNode.deviceUpdatable != 0;
    if (!is_wanted) return changed->updatable == nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (changed->updatable == nullptr) changed->updatable = &state->updatable_nodes.emplace_back();
    // As the driver does, though the value is const.
    const_cast<CUkernelNodeAttrValue*>(value)->deviceUpdatableKernelNode.devNode = changed->updatable;
  }
  changed->attributes[id] = *value;
  if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) changed->attributes[id].priority = clamped_priority(value->priority);
  node->data = std::move(changed);
  return CUDA_SUCCESS;
}

CUresult GraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue* value) {
  const Lock lock(state->mutex);
  const CUgraphNode node = find_node(handle, CU_GRAPH_NODE_TYPE_KERNEL);
  if (node == nullptr || id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) return CUDA_ERROR_INVALID_VALUE;
  const auto found = node->data->attributes.find(id);
  *value = found != node->data->attributes.end() ? found->second : CUkernelNodeAttrValue{};
  return CUDA_SUCCESS;
}

CUresult GraphKernelNodeCopyAttributes(CUgraphNode to_handle, CUgraphNode from_handle) {
  const Lock lock(state->mutex);
  const CUgraphNode to = find_node(to_handle, CU_GRAPH_NODE_TYPE_KERNEL);
  const CUgraphNode from = find_node(from_handle, CU_GRAPH_NODE_TYPE_KERNEL);
  if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto changed = std::make_shared<NodeData>(*to->data);
  changed->attributes = from->data->attributes;
  to->data = std::move(changed);
  return CUDA_SUCCESS;
}

CUresult GraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* nodes, std::size_t count,
                            const CUDA_KERNEL_NODE_PARAMS_v2* kernel) {
  CUgraphNodeParams params = generic_params(*kernel);
  return GraphAddNode(out, graph, nodes, nullptr, count, &params);
}

CUresult GraphGetNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  const Lock lock(state->mutex);
  const CUgraph_st* graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (nodes != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
  }
  *count = nodes == nullptr ? graph->nodes.size() : std::min(*count, graph->nodes.size());
  return CUDA_SUCCESS;
}

CUresult GraphNodeGetDependencies(CUgraphNode node, CUgraphNode* dependencies, CUgraphEdgeData* edges,
                                  std::size_t* count) {
  const Lock lock(state->mutex);
  if (!state->nodes.contains(node)) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t known = node->dependencies.size();
  for (std::size_t i = 0; dependencies != nullptr && i < std::min(*count, known); ++i) {
    const Dependency& dependency = node->dependencies[i];
    const bool is_special = dependency.edge.type != 0 || dependency.edge.from_port != 0;
    if (edges == nullptr && is_special) return CUDA_ERROR_LOSSY_QUERY;
    dependencies[i] = dependency.node;
    if (edges != nullptr) edges[i] = dependency.edge;
  }
  *count = dependencies == nullptr ? known : std::min(*count, known);
  return CUDA_SUCCESS;
}

CUresult GraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* dependents, CUgraphEdgeData* edges,
                                    std::size_t* count) {
  const Lock lock(state->mutex);
  if (!state->nodes.contains(node)) return CUDA_ERROR_INVALID_VALUE;
  std::size_t listed = 0;
  for (const auto& other : node->graph->nodes) {
    for (const Dependency& dependency : other->dependencies) {
      if (dependency.node != node) continue;
      if (dependents != nullptr && listed < *count) {
        dependents[listed] = other.get();
        if (edges != nullptr) edges[listed] = dependency.edge;
      }
      ++listed;
    }
  }
  *count = dependents == nullptr ? listed : std::min(*count, listed);
  return CUDA_SUCCESS;
}

CUresult GraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  const Lock lock(state->mutex);
  if (!state->nodes.contains(node)) return CUDA_ERROR_INVALID_VALUE;
  *type = node->data->type;
  return CUDA_SUCCESS;
}

CUresult GraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  const Lock lock(state->mutex);
  const CUgraphNode node = find_node(handle, CU_GRAPH_NODE_TYPE_KERNEL);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const NodeData& data = *node->data;
  *params = {};
  params->func = function_of(data.kernel, data.context);
  params->kern = reinterpret_cast<CUkernel>(const_cast<void*>(data.kernel->symbol));
  params->ctx = data.context;
  params->gridDimX = data.grid.x;
  params->gridDimY = data.grid.y;
  params->gridDimZ = data.grid.z;
  params->blockDimX = data.block.x;
  params->blockDimY = data.block.y;
  params->blockDimZ = data.block.z;
  params->sharedMemBytes = data.shared_bytes;
  params->kernelParams = const_cast<void**>(data.arguments.data());
  return CUDA_SUCCESS;
}

CUresult GraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS* params) {
  const Lock lock(state->mutex);
  const CUgraphNode node = find_node(handle, CU_GRAPH_NODE_TYPE_HOST);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = {node->data->function, node->data->user_data};
  return CUDA_SUCCESS;
}

CUresult GraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* params) {
  const Lock lock(state->mutex);
  const CUgraphNode node = find_node(handle, CU_GRAPH_NODE_TYPE_MEMCPY);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = node->data->copy;
  return CUDA_SUCCESS;
}

CUresult GraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS_v1* params) {
  const Lock lock(state->mutex);
  const CUgraphNode node = find_node(handle, CU_GRAPH_NODE_TYPE_MEMSET);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = node->data->fill;
  return CUDA_SUCCESS;
}

}  // namespace cgrt::simulator
