#include "cgrt/graph/walk.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::internal {
namespace {

// The one at `position` of a graph's children or conditional nodes; null: none is known there.
template <class Node>
const Node* find_at(const std::vector<Node>& nodes, std::size_t position) {
  const auto found = std::lower_bound(nodes.begin(), nodes.end(), position,
                                      [](const Node& node, std::size_t at) { return node.position < at; });
  return found != nodes.end() && found->position == position ? &*found : nullptr;
}

}  // namespace

std::string Walk::scope_of(const WalkedNode& node) const {
  if (node.note != nullptr) return node.note->scope;
  const GraphState* state = graphs[node.graph].state;
  if (state == nullptr) return "";
  const auto after = std::upper_bound(state->scope_runs.begin(), state->scope_runs.end(), node.position,
                                      [](std::size_t at, const ScopeRun& run) { return at < run.first_node; });
  return after == state->scope_runs.begin() ? "" : std::prev(after)->scope;
}

const GraphState::ConditionalNode* Walk::conditional(const WalkedNode& node) const {
  const GraphState* state = graphs[node.graph].state;
  if (state == nullptr || node.type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return nullptr;
  return find_at(state->conditionals, node.position);
}

namespace {

using NoteOf = absl::FunctionRef<const NodeNote*(CUgraphNode)>;

absl::StatusOr<Walk> walk_from(CUgraph graph, const GraphState* state, NoteOf note_of) {
  Walk walk{{{graph, state, 0}}, {}};
  for (std::uint32_t body = 0; body < walk.graphs.size(); ++body) {
    walk.graphs[body].first_node = static_cast<std::uint32_t>(walk.nodes.size());
    const WalkedGraph current = walk.graphs[body];
    CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(current.handle));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto id = static_cast<std::uint32_t>(walk.nodes.size());
      CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
      CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(nodes[i], &type), "cuGraphNodeGetType"));
      const NodeNote* const note = note_of(nodes[i]);
      walk.nodes.push_back({.handle = nodes[i], .type = type, .graph = body, .position = i, .note = note});
      if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
        CGRT_ASSIGN_OR_RETURN(const CUgraph child, graph_inside(nodes[i]));
        const auto* known = current.state != nullptr ? find_at(current.state->children, i) : nullptr;
        walk.nodes.back().child = static_cast<std::uint32_t>(walk.graphs.size());
        walk.graphs.push_back({child, known != nullptr ? known->state.get() : nullptr, id});
      } else if (const auto* known = walk.conditional(walk.nodes.back()); known != nullptr) {
        for (const std::shared_ptr<GraphState>& inside : known->bodies) {
          walk.graphs.push_back({inside->handle, inside.get(), id});
        }
      } else if (const auto* noted = walk.nodes.back().noted_conditional(); noted != nullptr) {
        for (const CUgraph inside : noted->bodies) walk.graphs.push_back({inside, nullptr, id});
      }
    }
  }
  return walk;
}

}  // namespace

absl::StatusOr<Walk> walk(CUgraph graph, const GraphState* state) {
  return walk_from(graph, state, [](CUgraphNode) -> const NodeNote* { return nullptr; });
}

absl::StatusOr<Walk> walk(CUgraph graph, NoteOf note_of) { return walk_from(graph, nullptr, note_of); }

}  // namespace cgrt::internal
