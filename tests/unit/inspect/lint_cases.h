// Tables of graphs with something wrong, each beside its twin where that is right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cgrt/inspect/lint.h"
#include "cgrt/ir/validate.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/ir/graphs.h"

namespace cgrt::testing {

struct LintCase {
  const char* sentence;
  const char* rule;
  inspect::Severity severity;
  std::vector<std::uint32_t> nodes;  // of the finding
  ir::GraphIr faulty, twin;
};

inline std::vector<inspect::Finding> findings_of(const ir::GraphIr& graph, std::string_view rule) {
  std::vector<inspect::Finding> findings = inspect::lint(graph);
  std::erase_if(findings, [&](const inspect::Finding& finding) { return finding.rule->id != rule; });
  return findings;
}

inline void check_case(const LintCase& one) {
  INFO(one.sentence);
  REQUIRE_OK(ir::validate(one.faulty));
  REQUIRE_OK(ir::validate(one.twin));

  const std::vector<inspect::Finding> found = findings_of(one.faulty, one.rule);
  const std::vector<inspect::Finding> of_twin = findings_of(one.twin, one.rule);

  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == one.severity);
  std::vector<std::uint32_t> nodes = found[0].nodes;
  std::sort(nodes.begin(), nodes.end());
  CHECK(nodes == one.nodes);
  CHECK(of_twin.empty());
}

// Two allocations of a device, 4096 bytes each, and one of pinned host memory.
inline ir::GraphIr with_memory() {
  ir::GraphIr graph;
  graph.allocations = {
      {ir::MemoryKind::kDevice, 0, 4096}, {ir::MemoryKind::kDevice, 0, 4096}, {ir::MemoryKind::kPinnedHost, -1, 4096}};
  return graph;
}

// `change` applied to a copy.
inline ir::GraphIr changed(ir::GraphIr graph, const std::function<void(ir::GraphIr&)>& change) {
  change(graph);
  return graph;
}

inline ir::GraphIr with_edges(ir::GraphIr graph, std::vector<ir::Edge> edges) {
  graph.edges = std::move(edges);
  return graph;
}

// memset of `bytes` bytes at an address.
inline ir::Node set_bytes(ir::Pointer to, std::uint64_t bytes) {
  return memset_node({.destination = to, .value = 0, .element_bytes = 1, .width = bytes});
}

inline ir::Node copy_bytes(ir::Pointer to, ir::Pointer from, std::uint64_t bytes) {
  return memcpy_node({.destination = to, .source = from, .width_bytes = bytes});
}

inline ir::Node alloc_node(ir::Pointer address, std::uint64_t bytes) {
  return {.kind = ir::NodeKind::kMemAlloc, .device = 0, .params = ir::MemAllocParams{address, bytes}};
}

inline ir::Node free_node(ir::Pointer address) {
  return {.kind = ir::NodeKind::kMemFree, .params = ir::MemFreeParams{address}};
}

inline ir::Node batch_node(std::vector<ir::MemOp> operations) {
  return {.kind = ir::NodeKind::kBatchMemOp, .params = ir::BatchMemOpParams{std::move(operations)}};
}

inline ir::Edge programmatic_edge(std::uint32_t from, std::uint32_t to) {
  return {.from = from, .to = to, .from_port = 1, .to_port = 0, .type = ir::EdgeType::kProgrammatic};
}

}  // namespace cgrt::testing
