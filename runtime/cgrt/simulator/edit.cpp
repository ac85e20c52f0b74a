// Graphs that are changed after they were built: edges added and removed, parameters set.
#include <algorithm>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

std::vector<Dependency>::iterator find_dependency(CUgraphNode to, CUgraphNode from) {
  return std::find_if(to->dependencies.begin(), to->dependencies.end(),
                      [&](const Dependency& dependency) { return dependency.node == from; });
}

bool are_nodes_of(const CUgraph_st* graph, CUgraphNode from, CUgraphNode to) {
  return state->nodes.contains(from) && state->nodes.contains(to) && from->graph == graph && to->graph == graph;
}

}  // namespace

CUresult GraphAddDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                              const CUgraphEdgeData* edges, std::size_t count) {
  const Lock lock(state->mutex);
  const CUgraph_st* graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (!are_nodes_of(graph, from[i], to[i]) || from[i] == to[i]) return CUDA_ERROR_INVALID_VALUE;
    const CUgraphEdgeData edge = edges != nullptr ? edges[i] : CUgraphEdgeData{};
    const bool is_special = edge.type != CU_GRAPH_DEPENDENCY_TYPE_DEFAULT || edge.from_port != 0;
    if (is_special && from[i]->data->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
    const bool is_programmatic = edge.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    if (is_programmatic && to[i]->data->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
    if (find_dependency(to[i], from[i]) != to[i]->dependencies.end()) return CUDA_ERROR_INVALID_VALUE;
    to[i]->dependencies.push_back({from[i], edge});
  }
  return CUDA_SUCCESS;
}

CUresult GraphRemoveDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
                                 std::size_t count) {
  const Lock lock(state->mutex);
  const CUgraph_st* graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (has_memory_nodes(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
  for (std::size_t i = 0; i < count; ++i) {
    if (!are_nodes_of(graph, from[i], to[i])) return CUDA_ERROR_INVALID_VALUE;
    const auto found = find_dependency(to[i], from[i]);
    if (found == to[i]->dependencies.end()) return CUDA_ERROR_INVALID_VALUE;
    to[i]->dependencies.erase(found);
  }
  return CUDA_SUCCESS;
}

CUresult GraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  const Lock lock(state->mutex);
  if (!state->nodes.contains(node) || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const NodeData& now = *node->data;
  const bool is_alike = params->type == now.type && now.type != CU_GRAPH_NODE_TYPE_GRAPH &&
                        now.type != CU_GRAPH_NODE_TYPE_CONDITIONAL && now.memory == nullptr;
  if (!is_alike) return CUDA_ERROR_INVALID_VALUE;
  NodeDataRef data;
  if (const CUresult bad = node_data(*params, &data); bad != CUDA_SUCCESS) return bad;
  auto changed = std::make_shared<NodeData>(*data);
  changed->attributes = now.attributes;
  changed->updatable = now.updatable;
  if (changed->type == CU_GRAPH_NODE_TYPE_KERNEL) {
    if (const CUresult bad = check_attributes(*changed); bad != CUDA_SUCCESS) return bad;
  }
  node->data = std::move(changed);
  return CUDA_SUCCESS;
}

}  // namespace cgrt::simulator
