#include "cgrt_kernels/batch_norm/batch_norm.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

constexpr DeviceRef kDevice(0);

TEST_CASE("kernels overlap only where their code waits for each other, whatever the target says", "[kernels]") {
  struct Seen {
    std::vector<EdgeKind> edges;
    std::uint64_t topology;
  };
  const auto second_launch = [] {
    const BatchNormPlan plan = *plan_batch_norm(kDevice, {.batch = 256, .channels = 8, .plane = 112 * 112});
    const DeviceBuffer x = *DeviceBuffer::create(kDevice, std::size_t{256} * 8 * 112 * 112 * 4),
                       of_channels = *DeviceBuffer::create(kDevice, 32),
                       workspace = *DeviceBuffer::create(kDevice, plan.workspace_bytes);
    Graph graph = *Graph::create(kDevice);
    Cursor cursor = graph.cursor();
    for (const LaunchTarget& target : {LaunchTarget(cursor), cursor.programmatic()}) {
      REQUIRE_OK(launch_batch_norm_train(target, plan,
                                         {.y = x.data(),
                                          .x = x.data(),
                                          .save_mean = of_channels.as<float>(),
                                          .save_invstd = of_channels.as<float>(),
                                          .workspace = {workspace.data(), plan.workspace_bytes}}));
    }
    Seen seen{{}, plan.topology_id()};
    const ir::GraphIr ir = *snapshot(graph);
    for (const ir::Edge& edge : ir.edges) {
      seen.edges.push_back(edge.type == ir::EdgeType::kFull ? EdgeKind::kFull : EdgeKind::kProgrammatic);
    }
    return seen;
  };
  Seen with_code_for_90, with_code_for_80;
  {
    Simulator simulator;
    with_code_for_90 = second_launch();
  }
  {
    Simulator simulator({.ptx_version = 80});
    with_code_for_80 = second_launch();
  }

  constexpr EdgeKind kEarly = EdgeKind::kProgrammatic, kFull = EdgeKind::kFull;
  CHECK(with_code_for_90.edges == std::vector{kEarly, kEarly, kEarly, kEarly, kEarly});
  CHECK(with_code_for_80.edges == std::vector{kFull, kFull, kFull, kFull, kFull});
  CHECK(with_code_for_90.topology != with_code_for_80.topology);
}

}  // namespace
}  // namespace cgrt::testing
