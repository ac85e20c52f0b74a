#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

TEST_CASE("short of memory, instantiate trims what graphs freed and tries once more", "[exec]") {
  Simulator simulator;
  Graph graph = *Graph::create(DeviceRef(0));
  REQUIRE_OK(graph.add_empty({}));
  driver::Instrument instrument;

  SECTION("and succeeds when that was enough") {
    instrument.fail_call(3, CUDA_ERROR_OUT_OF_MEMORY);  // after the count, the context and the capture mode
    CHECK_OK(instantiate(graph));
  }
  SECTION("and says so when it was not") {
    instrument.fail_entry("cuGraphInstantiateWithParams", CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_THAT(instantiate(graph).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  }

  CHECK(instrument.count("cuGraphInstantiateWithParams") == 2);
  CHECK(instrument.count("cuDeviceGraphMemTrim") == 1);
}

TEST_CASE("what keeps a graph from a second executable is named inside of child graphs, too", "[exec]") {
  Simulator simulator;
  Graph child = *Graph::create(DeviceRef(0)), graph = *Graph::create(DeviceRef(0));
  REQUIRE_OK(graph.add_empty({}));
  REQUIRE_OK(child.add_alloc({}, 64));
  REQUIRE_OK(graph.add_child({}, std::move(child)));
  const GraphExec first = *instantiate(graph);

  const auto named = [] {
    return StatusIs(absl::StatusCode::kUnimplemented, "Because of node 0 (mem alloc) of the child graph at node 1");
  };
  CHECK_THAT(instantiate(graph).status(), named());
  CHECK_THAT(graph.clone().status(), named());
}

}  // namespace
}  // namespace cgrt::testing
