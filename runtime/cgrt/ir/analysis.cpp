#include "cgrt/ir/analysis.h"

#include <algorithm>
#include <utility>

namespace cgrt::ir {
namespace {

// The successors of node n are targets[first[n]] to targets[first[n + 1]].
struct Successors {
  std::vector<std::size_t> first;
  std::vector<std::uint32_t> targets;
};

Successors successors_of(const GraphIr& graph) {
  Successors out{std::vector<std::size_t>(graph.nodes.size() + 1), std::vector<std::uint32_t>(graph.edges.size())};
  for (const Edge& edge : graph.edges) ++out.first[edge.from + 1];
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) out.first[n + 1] += out.first[n];
  std::vector<std::size_t> next(out.first.begin(), out.first.end() - 1);
  for (const Edge& edge : graph.edges) out.targets[next[edge.from]++] = edge.to;
  return out;
}

struct Levels {
  std::vector<std::uint32_t> order;     // by level, then by id; shorter than the graph when it has a cycle
  std::vector<std::size_t> level_ends;  // positions in `order`
};

Levels levels_of(const GraphIr& graph) {
  const Successors successors = successors_of(graph);
  std::vector<std::size_t> waits_for(graph.nodes.size());
  for (const Edge& edge : graph.edges) ++waits_for[edge.to];

  Levels out;
  out.order.reserve(graph.nodes.size());
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (waits_for[n] == 0) out.order.push_back(n);
  }
  // A node is free once its last predecessor is done, so it lands in the level after that one.
  for (std::size_t begin = 0; begin < out.order.size();) {
    const std::size_t end = out.order.size();
    out.level_ends.push_back(end);
    for (; begin < end; ++begin) {
      const std::uint32_t node = out.order[begin];
      for (std::size_t i = successors.first[node]; i < successors.first[node + 1]; ++i) {
        if (--waits_for[successors.targets[i]] == 0) out.order.push_back(successors.targets[i]);
      }
    }
    std::sort(out.order.begin() + static_cast<std::ptrdiff_t>(end), out.order.end());
  }
  return out;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> topological_order(const GraphIr& graph) {
  Levels levels = levels_of(graph);
  if (levels.order.size() != graph.nodes.size()) return std::nullopt;
  return std::move(levels.order);
}

Shape shape_of(const GraphIr& graph, std::uint32_t body) {
  const Levels levels = levels_of(graph);
  if (levels.order.size() != graph.nodes.size()) return {};

  // Edges stay within bodies, so each body's levels are those that it would have alone.
  Shape shape;
  std::size_t begin = 0;
  for (const std::size_t end : levels.level_ends) {
    std::size_t width = 0;
    for (; begin < end; ++begin) width += graph.nodes[levels.order[begin]].body == body ? 1 : 0;
    if (width == 0) break;
    if (shape.depth++ == 0) shape.roots = width;
    shape.width = std::max(shape.width, width);
  }
  std::vector<bool> is_waited_for(graph.nodes.size());
  for (const Edge& edge : graph.edges) is_waited_for[edge.from] = true;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].body == body && !is_waited_for[n]) ++shape.leaves;
  }
  return shape;
}

std::vector<std::uint32_t> critical_path(const GraphIr& graph) {
  const std::optional<std::vector<std::uint32_t>> order = topological_order(graph);
  if (!order.has_value() || order->empty()) return {};

  // From the last node to the first: the longest path that starts at a node goes on with the
  // successor whose own is longest.
  const Successors successors = successors_of(graph);
  std::vector<std::size_t> length(graph.nodes.size(), 1);  // nodes of that path
  std::vector<std::uint32_t> next(graph.nodes.size());
  for (auto node = order->rbegin(); node != order->rend(); ++node) {
    for (std::size_t i = successors.first[*node]; i < successors.first[*node + 1]; ++i) {
      const std::uint32_t target = successors.targets[i];
      const std::size_t through = length[target] + 1;
      if (through < length[*node] || (through == length[*node] && target >= next[*node])) continue;
      length[*node] = through;
      next[*node] = target;
    }
  }

  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].body != 0) length[n] = 0;
  }
  const auto longest = std::max_element(length.begin(), length.end());  // the first of them
  std::vector<std::uint32_t> path(*longest);
  auto node = static_cast<std::uint32_t>(longest - length.begin());
  for (std::uint32_t& id : path) id = std::exchange(node, next[node]);
  return path;
}

}  // namespace cgrt::ir
