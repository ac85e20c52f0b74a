#include "inject/graph_clone.h"

#include <utility>
#include <vector>

#include "cgrt/driver/api.h"
#include "inject/graph_nodes.h"

namespace graphdump {

namespace driver = cgrt::driver;

NotFollowed GraphClone::make(CUgraph graph, NoteOf note_of) {
  reset();
  if (driver::api().GraphClone(&clone_, graph) != CUDA_SUCCESS) {
    clone_ = nullptr;
    return NotFollowed::kNoClone;
  }
  const NotFollowed reason = pair_nodes(graph, clone_, note_of);
  if (reason != NotFollowed::kNone) reset();
  return reason;
}

void GraphClone::reset() {
  if (clone_ != nullptr) driver::api().GraphDestroy(std::exchange(clone_, nullptr));
  in_clone_.clear();
  notes_.clear();
  set_.clear();
}

NotFollowed GraphClone::set(CUgraphNode node, CUgraphNodeParams params) {
  if (params.type == CU_GRAPH_NODE_TYPE_GRAPH) return NotFollowed::kChildGraph;
  const auto found = in_clone_.find(node);
  if (found == in_clone_.end()) return NotFollowed::kGraphChanged;
  if (driver::api().GraphNodeSetParams(found->second, &params) != CUDA_SUCCESS) return NotFollowed::kRefused;
  set_.insert(found->second);
  return NotFollowed::kNone;
}

const cgrt::NodeNote* GraphClone::note_of(CUgraphNode node) const {
  const auto found = notes_.find(node);
  return found != notes_.end() ? &found->second : nullptr;
}

// Not by cuGraphNodeFindInClone: it does not say that it finds nodes of child graphs. The order is the same.
NotFollowed GraphClone::pair_nodes(CUgraph graph, CUgraph clone, NoteOf note_of) {
  const driver::Api& api = driver::api();
  const std::vector<CUgraphNode> from = nodes_of(graph), to = nodes_of(clone);
  if (from.size() != to.size()) return NotFollowed::kNotRead;
  for (std::size_t i = 0; i < from.size(); ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY, type_of_clone = CU_GRAPH_NODE_TYPE_EMPTY;
    if (api.GraphNodeGetType(from[i], &type) != CUDA_SUCCESS ||
        api.GraphNodeGetType(to[i], &type_of_clone) != CUDA_SUCCESS || type != type_of_clone) {
      return NotFollowed::kNotRead;
    }
    in_clone_.emplace(from[i], to[i]);
    if (const cgrt::NodeNote* const note = note_of(from[i]); note != nullptr) notes_.emplace(to[i], *note);
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    CUgraph inside = nullptr, inside_clone = nullptr;
    if (api.GraphChildGraphNodeGetGraph(from[i], &inside) != CUDA_SUCCESS ||
        api.GraphChildGraphNodeGetGraph(to[i], &inside_clone) != CUDA_SUCCESS) {
      return NotFollowed::kNotRead;
    }
    const NotFollowed reason = pair_nodes(inside, inside_clone, note_of);
    if (reason != NotFollowed::kNone) return reason;
  }
  return NotFollowed::kNone;
}

}  // namespace graphdump
