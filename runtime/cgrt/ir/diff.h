// Whether two graphs do the same, and if not, where they first part.
//
//   if (auto difference = ir::first_difference(before, after)) std::puts(difference->where.c_str());
//
// Nodes are compared by id: node 3 of one with node 3 of the other. Scopes are not compared: they
// are names for people and change nothing that a graph does. Everything else is compared, so two
// graphs without a difference are equal values but for their scopes.
//
// Neither graph needs to be valid. Thread-safe: pure functions.
#pragma once

#include <optional>
#include <string>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

struct Difference {
  std::string where;  // node 3 "scale": grid
  std::string a, b;   // (4,1,1) and (8,1,1)
  // The nodes whose ids only one graph has: node 4 "add", node 5 (memset). Empty when none.
  std::string only_in_a, only_in_b;
};

// The first in the order nodes, node count, edges, allocations; nullopt when there is none.
std::optional<Difference> first_difference(const GraphIr& a, const GraphIr& b);

}  // namespace cgrt::ir
