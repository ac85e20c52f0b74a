// Which node of one graph is which of another: also where nodes were put in or left out, or independent ones stand in
// another order.
//
//   const std::vector<std::uint32_t> matches = ir::match_nodes(before, after);
//   if (matches[1] == ir::kNoNode) std::puts("node 1 is gone");
//
// Nodes that look alike and have neighbours that look alike are matched first, where there is one such in each graph;
// from there the matching goes along the edges, then from the nodes that wait for none and those that none waits for.
// What is left is matched by what it runs, in the order of ids. Nodes of different kinds never match, and nodes of a
// body only those of the body that matches. A guess, as any answer is; the better, the less was changed.
//
// Edge ends must be in range (see validate.h). Thread-safe: a pure function. Linear in the graphs but for sorting.
#pragma once

#include <cstdint>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

inline constexpr std::uint32_t kNoNode = 0xffffffff;

// For each node of `a` that of `b`, or kNoNode. None of `b` is there twice.
std::vector<std::uint32_t> match_nodes(const GraphIr& a, const GraphIr& b);

}  // namespace cgrt::ir
