// Nodes that signal external semaphores and wait for them, as text, JSON, DOT, a diff, and what is refused of them.
#include <string>

#include "cgrt/inspect/dot.h"
#include "cgrt/inspect/json.h"
#include "cgrt/inspect/text.h"
#include "cgrt/ir/diff.h"
#include "cgrt/ir/validate.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/ir/graphs.h"

namespace cgrt::testing {
namespace {

ir::GraphIr semaphore_graph() {
  ir::GraphIr graph;
  graph.nodes = {{.kind = ir::NodeKind::kSemaphoreWait, .params = ir::SemaphoreParams{{{0, 7}, {1, 0}}}},
                 {.kind = ir::NodeKind::kSemaphoreSignal, .params = ir::SemaphoreParams{{{0, 8}}}}};
  graph.edges = {edge(0, 1)};
  return graph;
}

TEST_CASE("semaphores are written as text and DOT", "[inspect][text]") {
  CHECK(inspect::to_text(semaphore_graph()) == R"(graph: 2 nodes, 1 edge, depth 2, width 1, 1 root, 1 leaf

0  semaphore wait    2 semaphores  (semaphore#0: 7; semaphore#1: 0)
1  semaphore signal  1 semaphore   (semaphore#0: 8)                  after 0
)");
  CHECK(inspect::to_dot(semaphore_graph()).find("n1 [label=\"1 semaphore signal\"]") != std::string::npos);
}

TEST_CASE("semaphores survive a file, as version 1", "[inspect][json]") {
  const std::string json = inspect::to_json(semaphore_graph());

  CHECK(json.find("\"version\": 1") != std::string::npos);
  const absl::StatusOr<ir::GraphIr> read = inspect::from_json(json);
  REQUIRE_OK(read);
  CHECK(*read == semaphore_graph());
}

TEST_CASE("files from before semaphores were decoded are read", "[inspect][json]") {
  ir::GraphIr graph = semaphore_graph();
  for (ir::Node& node : graph.nodes) node.params = ir::NoParams{};

  const absl::StatusOr<ir::GraphIr> read = inspect::from_json(inspect::to_json(graph));

  REQUIRE_OK(read);
  CHECK(*read == graph);
}

TEST_CASE("differences of semaphores are named", "[ir]") {
  ir::GraphIr other = semaphore_graph();
  auto& waited = std::get<ir::SemaphoreParams>(other.nodes[0].params).semaphores;
  waited[1].value = 9;
  CHECK(ir::first_difference(semaphore_graph(), other)->where == "node 0 (semaphore wait): semaphore 1");
  CHECK(ir::first_difference(semaphore_graph(), other)->b == "semaphore#1: 9");
  waited.pop_back();
  CHECK(ir::first_difference(semaphore_graph(), other)->where == "node 0 (semaphore wait): number of semaphores");
}

TEST_CASE("semaphores that cannot be are refused", "[ir]") {
  ir::GraphIr graph = semaphore_graph();
  std::get<ir::SemaphoreParams>(graph.nodes[0].params).semaphores.clear();
  CHECK_THAT(ir::validate(graph), StatusIs(absl::StatusCode::kInvalidArgument, "has no semaphores"));
  graph = semaphore_graph();
  graph.nodes[1].kind = ir::NodeKind::kHost;
  CHECK_THAT(ir::validate(graph),
             StatusIs(absl::StatusCode::kInvalidArgument, "the parameters of external semaphores"));
}

}  // namespace
}  // namespace cgrt::testing
