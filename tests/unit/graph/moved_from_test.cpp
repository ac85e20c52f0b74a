#include <utility>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

const auto kRefused = [] { return StatusIs(absl::StatusCode::kFailedPrecondition, "was moved from"); };

TEST_CASE("a graph that was moved from says so", "[graph]") {
  Simulator simulator;
  Graph graph = *Graph::create(DeviceRef(0));
  Graph other = std::move(graph);

  CHECK_THAT(graph.add_empty({}).status(), kRefused());
  CHECK_THAT(graph.node_count().status(), kRefused());
  CHECK_THAT(graph.clone().status(), kRefused());
  CHECK_THAT(graph.cursor().add_empty(), kRefused());
  CHECK_THAT(other.add_child({}, graph).status(), kRefused());
  CHECK_THAT(other.cursor().add_child(std::move(graph)), kRefused());
  CHECK_THAT(snapshot(graph).status(), kRefused());
  CHECK_THAT(instantiate(graph).status(), kRefused());
  CHECK_THAT(Graph::adopt(nullptr, DeviceRef(0)).status(), StatusIs(absl::StatusCode::kInvalidArgument, "null"));
}

TEST_CASE("an executable that was moved from says so", "[exec]") {
  Simulator simulator;
  Stream stream = *Stream::create(DeviceRef(0));
  Graph graph = *Graph::create(DeviceRef(0));
  const Event event = *Event::create(DeviceRef(0));
  EventWaitNode node = *graph.add_event_wait({}, event.ref());
  GraphExec exec = *instantiate(graph);
  const GraphExec other = std::move(exec);

  CHECK_THAT(exec.launch(stream.ref()), kRefused());
  CHECK_THAT(exec.upload(stream.ref()), kRefused());
  CHECK_THAT(exec.update(graph).status(), kRefused());
  CHECK_THAT(exec.enabled(node).status(), kRefused());
}

}  // namespace
}  // namespace cgrt::testing
