// What the edges of a graph say: an order to run in, and how long and how wide the graph is.
//
//   const ir::Shape shape = ir::shape_of(graph);                        // shape.depth nodes follow one another:
//   const std::vector<std::uint32_t> path = ir::critical_path(graph);   // these
//
// Edge ends must be in range (see validate.h). Thread-safe: pure functions, linear in the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

// Each node after all that it waits for, lowest ids first among equals of one level;
// nullopt when the graph has a cycle.
std::optional<std::vector<std::uint32_t>> topological_order(const GraphIr& graph);

// A node's level is the number of nodes on the longest path that ends just before it.
struct Shape {
  std::size_t depth = 0;   // nodes on the longest path: the critical path when all nodes take equally long
  std::size_t width = 0;   // max nodes of a level
  std::size_t roots = 0;   // nodes that wait for none
  std::size_t leaves = 0;  // nodes that none waits for
};

// Of one body; 0: the graph itself, without its child graphs. All zero for a graph with a cycle.
Shape shape_of(const GraphIr& graph, std::uint32_t body = 0);

// The nodes of the longest path of the graph itself, in the order in which they run; as many as shape_of(graph).depth.
// Of several such paths the one with the lowest ids, compared from the front. Empty for a graph with
// a cycle.
std::vector<std::uint32_t> critical_path(const GraphIr& graph);

}  // namespace cgrt::ir
