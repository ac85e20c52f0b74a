// Nodes that allocate, free, and operate on words of memory, as text, JSON, a diff, and what is refused of them.
#include <string>

#include "cgrt/inspect/json.h"
#include "cgrt/inspect/stats.h"
#include "cgrt/inspect/text.h"
#include "cgrt/ir/diff.h"
#include "cgrt/ir/validate.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/ir/graphs.h"

namespace cgrt::testing {
namespace {

ir::GraphIr memory_graph() {
  ir::GraphIr graph;
  graph.nodes = {{.kind = ir::NodeKind::kMemAlloc, .device = 0, .params = ir::MemAllocParams{{0, 0}, 4096}},
                 {.kind = ir::NodeKind::kBatchMemOp,
                  .params = ir::BatchMemOpParams{{{ir::MemOpKind::kWaitGreaterOrEqual, {1, 8}, 7, 8},
                                                  {ir::MemOpKind::kWrite, {1, 0}, 1, 4}}}},
                 {.kind = ir::NodeKind::kMemFree, .params = ir::MemFreeParams{{0, 0}}}};
  graph.edges = {edge(0, 1), edge(1, 2)};
  graph.allocations = {{ir::MemoryKind::kDevice, 0, 4096}, {ir::MemoryKind::kPinnedHost, -1, 64}};
  return graph;
}

TEST_CASE("allocations, frees and memory operations are written as text", "[inspect][text]") {
  CHECK(inspect::to_text(memory_graph()) == R"(graph: 3 nodes, 2 edges, depth 3, width 1, 1 root, 1 leaf

0  mem alloc     device#0      4096 bytes
1  batch mem op  2 operations              (wait pinned#1+0x8 >= 7, 8 bytes; pinned#1 = 1, 4 bytes)  after 0
2  mem free      device#0                                                                            after 1

allocations
device#0  4096 bytes  device 0
pinned#1  64 bytes    pinned host
)");
}

TEST_CASE("allocations, frees and memory operations survive a file, as version 1", "[inspect][json]") {
  const std::string json = inspect::to_json(memory_graph());

  CHECK(json.find("\"version\": 1") != std::string::npos);
  const absl::StatusOr<ir::GraphIr> read = inspect::from_json(json);
  REQUIRE_OK(read);
  CHECK(*read == memory_graph());
}

TEST_CASE("files from before these nodes were decoded are read", "[inspect][json]") {
  ir::GraphIr graph = memory_graph();
  for (ir::Node& node : graph.nodes) node.params = ir::NoParams{};

  const absl::StatusOr<ir::GraphIr> read = inspect::from_json(inspect::to_json(graph));

  REQUIRE_OK(read);
  CHECK(*read == graph);
}

TEST_CASE("the bytes that a graph allocates are counted", "[inspect][stats]") {
  CHECK(inspect::to_stats_text(memory_graph()).find("allocated  4096 bytes a launch") != std::string::npos);
}

TEST_CASE("differences of allocations and memory operations are named", "[ir]") {
  ir::GraphIr other = memory_graph();
  std::get<ir::MemAllocParams>(other.nodes[0].params).bytes = 8;
  CHECK(ir::first_difference(memory_graph(), other)->where == "node 0 (mem alloc): bytes");
  other = memory_graph();
  std::get<ir::BatchMemOpParams>(other.nodes[1].params).operations[0].kind = ir::MemOpKind::kWaitEqual;
  CHECK(ir::first_difference(memory_graph(), other)->where == "node 1 (batch mem op): operation 0");
  CHECK(ir::first_difference(memory_graph(), other)->b == "wait pinned#1+0x8 == 7, 8 bytes");
}

TEST_CASE("allocations and memory operations that cannot be are refused", "[ir]") {
  ir::GraphIr graph = memory_graph();
  std::get<ir::MemAllocParams>(graph.nodes[0].params).bytes = 0;
  CHECK_THAT(ir::validate(graph), StatusIs(absl::StatusCode::kInvalidArgument, "allocates 0 bytes"));
  graph = memory_graph();
  std::get<ir::MemFreeParams>(graph.nodes[2].params).address = {9, 0};
  CHECK_THAT(ir::validate(graph), StatusIs(absl::StatusCode::kInvalidArgument, "points into allocation 9"));
  graph = memory_graph();
  std::get<ir::BatchMemOpParams>(graph.nodes[1].params).operations[1].bytes = 2;
  CHECK_THAT(ir::validate(graph), StatusIs(absl::StatusCode::kInvalidArgument, "operation 1 has the kind 0"));
  graph = memory_graph();
  graph.nodes[2].params = ir::MemAllocParams{{0, 0}, 1};
  CHECK_THAT(ir::validate(graph), StatusIs(absl::StatusCode::kInvalidArgument, "the parameters of an allocation"));
}

}  // namespace
}  // namespace cgrt::testing
