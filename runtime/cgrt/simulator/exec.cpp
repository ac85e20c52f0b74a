// Executables: instantiate, launch in a random legal order, set, update.
#include <algorithm>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

using DependencyList = std::vector<std::pair<std::size_t, CUgraphEdgeData>>;

CUgraphExec_st* find_exec(CUgraphExec handle) {
  const auto found = state->execs.find(handle);
  return found != state->execs.end() ? found->second.get() : nullptr;
}

std::unordered_map<CUgraphNode, std::size_t> positions_of(const CUgraph_st& graph) {
  std::unordered_map<CUgraphNode, std::size_t> positions;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) positions.emplace(graph.nodes[i].get(), i);
  return positions;
}

DependencyList dependencies_of(const CUgraphNode_st& node,
                               const std::unordered_map<CUgraphNode, std::size_t>& positions) {
  DependencyList list;
  for (const Dependency& dependency : node.dependencies)
    list.emplace_back(positions.at(dependency.node), dependency.edge);
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return list;
}

bool same_edges(const DependencyList& a, const DependencyList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.from_port == y.second.from_port && x.second.type == y.second.type;
  });
}

bool on_device(CUdeviceptr address) {
  const auto* allocation = find_allocation(address);
  return allocation != nullptr && allocation->second.on_device;
}

// What the driver lets a node of an executable become.
bool can_become(const NodeData& from, const NodeData& to) {
  if (from.context != to.context) return false;
  if (from.type != CU_GRAPH_NODE_TYPE_MEMCPY) return true;
  return on_device(from.copy.srcDevice) == on_device(to.copy.srcDevice) &&
         on_device(from.copy.dstDevice) == on_device(to.copy.dstDevice);
}

void run_nodes(const std::vector<NodeDataRef>& nodes, const std::vector<DependencyList>& dependencies) {
  std::vector<std::size_t> waits(nodes.size()), ready;
  std::vector<std::vector<std::size_t>> dependents(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    waits[i] = dependencies[i].size();
    for (const auto& [position, edge] : dependencies[i]) dependents[position].push_back(i);
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[state->random() % ready.size()], ready.back());
    const std::size_t node = ready.back();
    ready.pop_back();
    run_node(*nodes[node]);
    for (std::size_t dependent : dependents[node]) {
      if (--waits[dependent] == 0) ready.push_back(dependent);
    }
  }
}

}  // namespace

CUresult GraphInstantiateWithParams(CUgraphExec* out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const Lock lock(state->mutex);
  const auto found = state->graphs.find(handle);
  if (out == nullptr || found == state->graphs.end()) return CUDA_ERROR_INVALID_VALUE;
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  constexpr cuuint64_t kKnown =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if ((params->flags & ~kKnown) != 0) return unsupported("the simulator does not have that instantiate flag");
  const CUgraph_st& graph = *found->second;
  auto exec = std::make_unique<CUgraphExec_st>();
  exec->positions = positions_of(graph);
  exec->kept = graph.kept;
  for (const auto& node : graph.nodes) {
    exec->nodes.push_back(node->data);
    exec->dependencies.push_back(dependencies_of(*node, exec->positions));
  }
  params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  params->hErrNode_out = nullptr;
  *out = exec.get();
  state->execs.emplace(*out, std::move(exec));
  return CUDA_SUCCESS;
}

CUresult GraphExecDestroy(CUgraphExec exec) {
  const Lock lock(state->mutex);
  return state->execs.erase(exec) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult GraphUpload(CUgraphExec handle, CUstream stream) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  if (find_stream(stream, &result) == nullptr) return result;
  return find_exec(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult GraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(stream_handle, &result);
  if (stream == nullptr) return result;
  CUgraphExec_st* exec = find_exec(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    invalidate(*stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (const CUresult implicit = check_implicit_dependency(stream); implicit != CUDA_SUCCESS) return implicit;
  for (const NodeDataRef& node : exec->nodes) {
    if (const CUresult bodiless = check_body(*node); bodiless != CUDA_SUCCESS) return bodiless;
  }
  // Launches of one executable run one after the other, in whatever streams.
  std::vector<MarkerRef> gates;
  if (exec->last_launch != nullptr) gates.push_back(exec->last_launch);
  exec->last_launch = std::make_shared<Marker>();
  enqueue(
      stream,
      [nodes = exec->nodes, dependencies = exec->dependencies, kept = exec->kept] { run_nodes(nodes, dependencies); },
      std::move(gates), exec->last_launch);
  return CUDA_SUCCESS;
}

CUresult GraphExecNodeSetParams(CUgraphExec handle, CUgraphNode node, CUgraphNodeParams* params) {
  const Lock lock(state->mutex);
  CUgraphExec_st* exec = find_exec(handle);
  if (exec == nullptr || !state->nodes.contains(node)) return CUDA_ERROR_INVALID_VALUE;
  const auto position = exec->positions.find(node);
  if (position == exec->positions.end()) return CUDA_ERROR_INVALID_VALUE;
  NodeDataRef& current = exec->nodes[position->second];
  if (params->type != current->type) return CUDA_ERROR_INVALID_VALUE;
  NodeDataRef data;
  if (const CUresult bad = node_data(*params, &data); bad != CUDA_SUCCESS) return bad;
  if (!can_become(*current, *data)) return CUDA_ERROR_INVALID_VALUE;
  current = std::move(data);  // launches in flight hold the old one
  return CUDA_SUCCESS;
}

CUresult GraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* kernel) {
  CUgraphNodeParams params = generic_params(*kernel);
  return GraphExecNodeSetParams(exec, node, &params);
}

CUresult GraphExecUpdate(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo_v1* info) {
  const Lock lock(state->mutex);
  CUgraphExec_st* exec = find_exec(handle);
  const auto found = state->graphs.find(graph_handle);
  if (exec == nullptr || found == state->graphs.end()) return CUDA_ERROR_INVALID_VALUE;
  const CUgraph_st& graph = *found->second;
  const auto refuse = [&](CUgraphExecUpdateResult reason, CUgraphNode node) {
    *info = {reason, node, nullptr};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  if (graph.nodes.size() != exec->nodes.size()) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  const auto positions = positions_of(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const CUgraphNode_st& node = *graph.nodes[i];
    if (!same_edges(exec->dependencies[i], dependencies_of(node, positions))) {
      return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, graph.nodes[i].get());
    }
    if (node.data->type != exec->nodes[i]->type) {
      return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, graph.nodes[i].get());
    }
    if (!can_become(*exec->nodes[i], *node.data)) {
      return refuse(node.data->type == CU_GRAPH_NODE_TYPE_KERNEL ? CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED
                                                                 : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
                    graph.nodes[i].get());
    }
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) exec->nodes[i] = graph.nodes[i]->data;
  exec->kept = graph.kept;  // what the template kept is let go, as the driver does
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  return CUDA_SUCCESS;
}

}  // namespace cgrt::simulator
