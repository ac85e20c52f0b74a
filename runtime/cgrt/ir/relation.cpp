#include "cgrt/ir/relation.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

#include "cgrt/ir/analysis.h"
#include "cgrt/ir/reachability.h"

namespace cgrt::ir {
namespace {

enum class Direction { kForward, kBackward };

std::vector<std::vector<std::size_t>> edges_by_node(const GraphIr& graph, Direction direction) {
  std::vector<std::vector<std::size_t>> out(graph.nodes.size());
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    const Edge& edge = graph.edges[i];
    out[direction == Direction::kForward ? edge.from : edge.to].push_back(i);
  }
  return out;
}

// Edges from `from` to `to`; the first of them is one that `may_begin`. Edges ascend, so that those of a node, and with
// them the nodes of a distance, come lowest ids first.
std::vector<Edge> shortest_path(const GraphIr& graph, std::uint32_t from, std::uint32_t to,
                                const std::function<bool(const Edge&)>& may_begin) {
  const auto edges = edges_by_node(graph, Direction::kForward);
  constexpr std::size_t kNone = SIZE_MAX;
  std::vector<std::size_t> by(graph.nodes.size(), kNone);  // the edge by which the node was reached
  std::vector<std::uint32_t> queue = {from};
  for (std::size_t next = 0; next < queue.size() && by[to] == kNone; ++next) {
    for (const std::size_t i : edges[queue[next]]) {
      const Edge& edge = graph.edges[i];
      if (by[edge.to] != kNone || edge.to == from || (queue[next] == from && !may_begin(edge))) continue;
      by[edge.to] = i;
      queue.push_back(edge.to);
    }
  }
  std::vector<Edge> path;
  for (std::uint32_t node = to; node != from && by[node] != kNone; node = path.back().from) {
    path.push_back(graph.edges[by[node]]);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<bool> reached_from(const GraphIr& graph, std::uint32_t node, Direction direction) {
  const auto edges = edges_by_node(graph, direction);
  std::vector<bool> is_reached(graph.nodes.size());
  std::vector<std::uint32_t> todo = {node};
  while (!todo.empty()) {
    const std::uint32_t one = todo.back();
    todo.pop_back();
    for (const std::size_t i : edges[one]) {
      const std::uint32_t other = direction == Direction::kForward ? graph.edges[i].to : graph.edges[i].from;
      if (!is_reached[other]) todo.push_back(other);
      is_reached[other] = true;
    }
  }
  return is_reached;
}

// In a topological order, which is by levels, the last node before both or the first behind both; of one level the one
// with the lowest id.
std::optional<std::uint32_t> common(const GraphIr& graph, std::uint32_t a, std::uint32_t b, Direction direction) {
  const std::vector<bool> of_a = reached_from(graph, a, direction), of_b = reached_from(graph, b, direction);
  std::vector<std::size_t> levels(graph.nodes.size());
  const auto before = edges_by_node(graph, Direction::kBackward);
  std::optional<std::uint32_t> found;
  for (const std::uint32_t node : topological_order(graph).value_or(std::vector<std::uint32_t>())) {
    for (const std::size_t i : before[node]) levels[node] = std::max(levels[node], levels[graph.edges[i].from] + 1);
    if (!of_a[node] || !of_b[node]) continue;
    if (direction == Direction::kForward) return node;
    if (!found.has_value() || levels[node] > levels[*found]) found = node;
  }
  return found;
}

// Both in one body: the nodes themselves, or those that have them inside.
std::pair<std::uint32_t, std::uint32_t> in_one_body(const GraphIr& graph, std::uint32_t a, std::uint32_t b) {
  const auto body = [&](std::uint32_t node) { return graph.nodes[node].body; };
  // A body comes after the one that its owner is in, so that the larger number is not around the other.
  while (body(a) != body(b)) {
    std::uint32_t& inner = body(a) > body(b) ? a : b;
    inner = graph.bodies[body(inner) - 1].owner;
  }
  return {a, b};
}

bool is_inside(const GraphIr& graph, std::uint32_t inner, std::uint32_t outer) {
  while (inner != outer && graph.nodes[inner].body != 0) inner = graph.bodies[graph.nodes[inner].body - 1].owner;
  return inner == outer;
}

}  // namespace

Relation relation_between(const GraphIr& graph, std::uint32_t a, std::uint32_t b) {
  Relation relation;
  std::tie(relation.a, relation.b) = in_one_body(graph, a, b);
  if (relation.a == relation.b) {
    relation.order = is_inside(graph, a, b) || is_inside(graph, b, a) ? Order::kSame : Order::kExclusive;
    return relation;
  }
  const auto any = [](const Edge&) { return true; };
  const auto try_path = [&](std::uint32_t from, std::uint32_t to, Order order, const auto& may_begin) {
    relation.path = shortest_path(graph, from, to, may_begin);
    if (!relation.path.empty()) relation.order = order;
    return !relation.path.empty();
  };
  if (try_path(relation.a, relation.b, Order::kBefore, waits_for_end) ||
      try_path(relation.b, relation.a, Order::kAfter, waits_for_end) ||
      try_path(relation.a, relation.b, Order::kStartsAfter, any) ||
      try_path(relation.b, relation.a, Order::kStartsBefore, any)) {
    return relation;
  }
  relation.last_common_ancestor = common(graph, relation.a, relation.b, Direction::kBackward);
  relation.first_common_descendant = common(graph, relation.a, relation.b, Direction::kForward);
  return relation;
}

}  // namespace cgrt::ir
