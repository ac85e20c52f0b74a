// What orders two nodes of a graph: `graphdump why`.
//
//   const ir::Relation relation = ir::relation_between(graph, 0, 2);
//   if (relation.order == ir::Order::kBefore) std::printf("%d edges\n", static_cast<int>(relation.path.size()));
//
// Nodes of different bodies are as ordered as the nodes of one body that have them inside: those are `a` and `b` then.
// A programmatic edge counts as if the kernel at its end waited for the one at its start.
// Edge ends must be in range (see validate.h). Thread-safe: a pure function, linear in the graph.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

enum class Order : std::uint8_t {
  kSame,         // a is b, or has it inside, or the other way round
  kBefore,       // b starts when a has ended
  kAfter,        // a starts when b has ended
  kStartsAfter,  // b starts when a has started, and may run beside it; `path` says what waits for less than an end
  kStartsBefore,
  kExclusive,  // in two bodies of one conditional node: a launch runs one of them, or one after the other
  kUnordered,  // may run at the same time
};

struct Relation {
  Order order = Order::kUnordered;
  std::uint32_t a = 0, b = 0;
  // A shortest path, from the one that comes first to the other; of several the one with the lowest ids, compared from
  // the front. Empty when there is none.
  std::vector<Edge> path = {};
  // Of nodes without an order: the deepest node that comes before both, and the least deep that comes behind both.
  std::optional<std::uint32_t> last_common_ancestor = {}, first_common_descendant = {};
};

Relation relation_between(const GraphIr& graph, std::uint32_t a, std::uint32_t b);

}  // namespace cgrt::ir
