// Limits that a graph is to stay in, for continuous integration: `graphdump lint --expect`.
//
//   CGRT_ASSIGN_OR_RETURN(const std::vector<inspect::Budget> budgets, inspect::parse_budgets("nodes<=500, host=0"));
//   const std::vector<std::string> broken = inspect::broken_budgets(graph, budgets);
//
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

enum class Comparison : std::uint8_t { kLess, kLessOrEqual, kEqual, kGreaterOrEqual, kGreater };

struct Budget {
  std::string name;
  Comparison comparison = Comparison::kLessOrEqual;
  std::uint64_t limit = 0;
};

// What can be limited: nodes, edges, programmatic_edges, depth, width, roots, leaves, bodies, allocations,
// copied_bytes, set_bytes, allocated_bytes (of one launch), and the nodes of a kind: kernel, memcpy, child_graph, ...
std::vector<std::string> budget_names();

// "NAME OPERATOR NUMBER, ..." with <, <=, =, >= and >. InvalidArgument says where, and what could stand there.
absl::StatusOr<std::vector<Budget>> parse_budgets(std::string_view text);

// A sentence for each that does not hold: "nodes is 512, and is to be <= 500." Of a valid graph.
std::vector<std::string> broken_budgets(const ir::GraphIr& graph, const std::vector<Budget>& budgets);

}  // namespace cgrt::inspect
