// Which way to change a graph is named as the cheapest.
#include "absl/strings/match.h"
#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

struct AdvisorTest {
  Graph chain(int kernels, EdgeKind edge = EdgeKind::kFull) {
    Graph graph = *Graph::create(device);
    Cursor cursor = graph.cursor();
    for (int i = 0; i < kernels; ++i) {
      const LaunchTarget target = edge == EdgeKind::kFull ? LaunchTarget(cursor) : cursor.programmatic();
      REQUIRE_OK(launch(target, {.grid = 1, .block = 32}, scale_kernel(), x, x, 1.0f, 1));
    }
    return graph;
  }
  UpdateWay cheapest(const Graph& graph, const ChangePattern& pattern) {
    return advise(graph, pattern)->estimates.front().way;
  }

  DeviceRef device{0};
  Simulator simulator;
  PinnedBuffer buffer = *PinnedBuffer::create(device, 4);
  float* x = buffer.as<float>();
};

TEST_CASE_METHOD(AdvisorTest, "advice depends on how much changes, and how often", "[exec][advisor]") {
  const Graph graph = chain(1000);

  CHECK(cheapest(graph, {.arguments = 1000}) == UpdateWay::kBinding);
  CHECK(cheapest(graph, {.arguments = 1000, .grids = 1000}) == UpdateWay::kBinding);
  CHECK(cheapest(graph, {.arguments = 1}) == UpdateWay::kSetParams);
  CHECK(cheapest(graph, {.arguments = 1000, .launches = 1000}) == UpdateWay::kSetParams);
  CHECK(cheapest(graph, {}) == UpdateWay::kSetParams);
  const Advice advice = *advise(graph, {.arguments = 1000, .grids = 500});
  CHECK(advice.estimates.size() == 5);
  CHECK(absl::StrContains(advice.text, "Of 1000 kernels, 1000 change their arguments and 500 of these their grids"));
}

TEST_CASE_METHOD(AdvisorTest, "advice weighs programmatic edges and kernels that are left out", "[exec][advisor]") {
  const Graph programmatic = chain(1000, EdgeKind::kProgrammatic);
  CHECK(cheapest(programmatic, {.arguments = 500}) == UpdateWay::kSetParams);
  CHECK(absl::StrContains(advise(programmatic, {.arguments = 500})->text, "999 programmatic edges"));

  const Graph graph = chain(1000);
  const Advice few = *advise(graph, {.arguments = 5, .alternatives = 10});
  CHECK(few.estimates.front().way == UpdateWay::kBinding);
  CHECK(few.estimates.size() == 3);  // neither set_params nor update brings other kernels
  const Advice many = *advise(chain(20), {.arguments = 1, .alternatives = 20, .launches = 100});
  CHECK(many.estimates.front().way == UpdateWay::kInstantiate);
  CHECK(absl::StrContains(many.text, "few large kernels"));
}

TEST_CASE_METHOD(AdvisorTest, "a pattern that the graph cannot have is refused", "[exec][advisor]") {
  const Graph graph = chain(2);

  CHECK_THAT(advise(graph, {.arguments = 3}).status(), StatusIs(absl::StatusCode::kInvalidArgument, "has 2 kernels"));
  CHECK_THAT(advise(graph, {.arguments = 1, .grids = 2}).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK_THAT(advise(graph, {.launches = 0}).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK_THAT(advise(Graph(), {}).status(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace cgrt::testing
