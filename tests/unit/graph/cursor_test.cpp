#include "cgrt/graph/cursor.h"

#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

constexpr LaunchConfig kConfig{.grid = 1, .block = 32};

class CursorTest {
 protected:
  absl::Status step(LaunchTarget target) { return launch(target, kConfig, scale_kernel(), x, x, 1.0f, 32); }
  ir::EdgeType type_of_last_edge() { return (*snapshot(graph)).edges.back().type; }

  Simulator simulator;
  DeviceBuffer buffer = *DeviceBuffer::create(DeviceRef(0), 128);
  float* x = buffer.as<float>();
  Graph graph = *Graph::create(DeviceRef(0));
};

TEST_CASE_METHOD(CursorTest, "a cursor that starts after a kernel waits for it programmatically when asked",
                 "[graph]") {
  KernelNode first = *graph.add_kernel({}, kConfig, scale_kernel(), x, x, 1.0f, 32);

  Cursor cursor = graph.cursor(after(first));
  REQUIRE_OK(step(cursor.programmatic()));

  CHECK(type_of_last_edge() == ir::EdgeType::kProgrammatic);
}

TEST_CASE_METHOD(CursorTest, "a cursor whose graph was destroyed says so", "[graph]") {
  Cursor cursor = graph.cursor();
  REQUIRE(driver::api().GraphDestroy(graph.ref().get()) == CUDA_SUCCESS);

  const auto destroyed = [] {
    return StatusIs(absl::StatusCode::kInvalidArgument, "The driver does not know the graph, as when it was destroyed");
  };
  CHECK_THAT(step(cursor), destroyed());
  CHECK_THAT(fill32(cursor, x, 0, 1), destroyed());
  CHECK_THAT(cursor.add_empty(), destroyed());
  static_cast<void>(std::move(graph).release());
}

TEST_CASE_METHOD(CursorTest, "after a memset the dependency is a full one, as in a stream", "[graph]") {
  Cursor cursor = graph.cursor();
  REQUIRE_OK(fill32(cursor, x, 0, 1));
  REQUIRE_OK(step(cursor.programmatic()));

  CHECK(type_of_last_edge() == ir::EdgeType::kFull);
}

TEST_CASE_METHOD(CursorTest, "joining a full and a programmatic wait for one node gives the full one", "[graph]") {
  KernelNode first = *graph.add_kernel({}, kConfig, scale_kernel(), x, x, 1.0f, 32);

  for (const bool full_first : {true, false}) {
    Cursor full = graph.cursor(after(first));
    Cursor early = graph.cursor({{programmatic(first)}});
    (full_first ? full : early).join(full_first ? early : full);
    REQUIRE_OK((full_first ? full : early).add_empty());
    CHECK(type_of_last_edge() == ir::EdgeType::kFull);
  }
}

TEST_CASE_METHOD(CursorTest, "a launch that is refused leaves the cursor where it was", "[graph]") {
  Cursor cursor = graph.cursor();
  REQUIRE_OK(step(cursor));

  CHECK_THAT(launch(cursor.programmatic(), {.grid = 0, .block = 32}, scale_kernel(), x, x, 1.0f, 32),
             StatusIs(absl::StatusCode::kInvalidArgument));
  REQUIRE_OK(step(cursor));

  CHECK(type_of_last_edge() == ir::EdgeType::kFull);
  CHECK(*graph.node_count() == 2);
}

TEST_CASE("a count of blocks that does not fit 64 bits does not wrap to a small one", "[launch]") {
  constexpr std::uint32_t kHuge = 0xffffffff;
  CHECK(Dim3(kHuge, kHuge, kHuge).count() == UINT64_MAX);
  CHECK(Dim3(kHuge, 2, 0).count() == 0);
  CHECK(Dim3(kHuge, 2, 3).count() == 6 * std::uint64_t{kHuge});
}

}  // namespace
}  // namespace cgrt::testing
