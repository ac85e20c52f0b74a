// Clusters that share long rows: how many blocks they have, and which rows they take.
#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/softmax/softmax.h"
#include "support/catch.h"
#include "support/launches.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

constexpr DeviceRef kDevice(0);

// A plan of each operation on rows, at one alignment: its launches, and what it needs for rows in slices or in chunks.
struct RowsPlanned {
  Launches launches;
  std::size_t workspace_bytes;
  std::uint64_t cluster() const { return launches.attributes.front().cluster.count(); }
};
std::vector<RowsPlanned> planned_rows(DType type, std::uint64_t rows, std::uint64_t columns, std::size_t shift) {
  unsigned char* const memory = reinterpret_cast<unsigned char*>(4096);
  void* const a = memory + shift;
  std::vector<RowsPlanned> all;
  const auto add = [&](const auto& plan, auto launch) {
    REQUIRE(plan.ok());
    all.push_back({{}, plan->workspace_bytes});
    REQUIRE_OK(launch(LaunchTarget::into(all.back().launches), *plan, Workspace{memory, plan->workspace_bytes}));
  };
  add(plan_softmax(kDevice, {SoftmaxOp::kSoftmax, type, rows, columns}),
      [=](LaunchTarget target, const SoftmaxPlan& plan, const Workspace& workspace) {
        return launch_softmax(target, plan, {.out = a, .in = a, .workspace = workspace});
      });
  add(plan_softmax_backward(kDevice, {SoftmaxOp::kSoftmax, type, rows, columns}),
      [=](LaunchTarget target, const SoftmaxBackwardPlan& plan, const Workspace& workspace) {
        return launch_softmax_backward(target, plan, {.dx = a, .dy = a, .y = a, .workspace = workspace});
      });
  for (const NormOp op : {NormOp::kLayerNorm, NormOp::kRmsNorm}) {
    add(plan_norm(kDevice, {op, type, rows, columns}),
        [=](LaunchTarget target, const NormPlan& plan, const Workspace& workspace) {
          return launch_norm(target, plan, {.out = a, .in = a, .workspace = workspace});
        });
  }
  return all;
}
struct Row {
  std::uint64_t columns;
  DType type;
};
constexpr Row kLargeRows[] = {
    {140000, DType::kFloat32}, {262144, DType::kFloat32}, {300000, DType::kFloat16}, {327680, DType::kBFloat16}};

TEST_CASE("rows that need the registers of 16 blocks have clusters of 16", "[kernels]") {
  Simulator simulator;

  for (const auto& [columns, type] : kLargeRows) {
    INFO(columns << " of " << to_string(type));
    for (const RowsPlanned& plan : planned_rows(type, 40, columns, 0)) CHECK(plan.cluster() == 16);
  }
  for (const RowsPlanned& plan : planned_rows(DType::kFloat32, 40, 140001, 4)) {
    CHECK(plan.cluster() == 16);
    CHECK(plan.workspace_bytes == 0);
  }
}

TEST_CASE("where a device has no clusters of 16, such rows are split, and others have 8 blocks", "[kernels]") {
  for (const int largest : {1, 4, 8}) {
    Simulator simulator({.largest_cluster = largest});

    INFO("room for clusters of " << largest);
    for (const auto& [columns, type] : kLargeRows) {
      INFO(columns << " of " << to_string(type));
      for (const RowsPlanned& plan : planned_rows(type, 40, columns, 0)) {
        CHECK(plan.cluster() == 1);
        CHECK(plan.workspace_bytes > 0);
      }
    }
    // Clusters of 16 are the faster ones, but do not have to be.
    const std::uint64_t of_backward = planned_rows(DType::kFloat32, 40, 90000, 0)[1].cluster();
    CHECK(of_backward == (largest == 8 ? 8 : 1));
  }
}

TEST_CASE("clusters that hold weight and bias take rows that begin alike", "[kernels]") {
  Simulator simulator;
  struct Case {
    Row row;
    std::size_t shift;
    std::uint64_t blocks, alike;  // of a cluster; clusters between rows that begin alike
  };

  for (const auto& [row, shift, blocks, alike] : {Case{{17001, DType::kFloat16}, 0, 2, 8},
                                                  {{50257, DType::kFloat16}, 0, 4, 8},
                                                  {{151935, DType::kBFloat16}, 0, 8, 8},
                                                  {{250002, DType::kFloat16}, 0, 16, 4},
                                                  {{151936, DType::kFloat16}, 4, 8, 1},
                                                  {{151936, DType::kFloat16}, 0, 8, 1},
                                                  {{300000, DType::kFloat16}, 0, 16, 1},
                                                  {{40001, DType::kFloat32}, 0, 8, 4},
                                                  {{151935, DType::kFloat32}, 4, 16, 4}}) {
    INFO(row.columns << " of " << to_string(row.type) << " + " << shift);
    const RowsPlanned layer_norm = planned_rows(row.type, 500, row.columns, shift)[2];
    CHECK(absl::StrContains(layer_norm.launches.kernels.front().name(), "norm_with_held_columns"));
    CHECK(layer_norm.cluster() == blocks);
    CHECK(layer_norm.launches.grids.front().x / blocks % alike == 0);
  }
}

TEST_CASE("persistent clusters have so few threads that their rows stay in the L2 cache", "[kernels]") {
  Simulator simulator;

  const Launches layer_norm = planned_rows(DType::kFloat16, 5000, 17001, 0)[2].launches;
  CHECK(layer_norm.grids.front().x <= 768 / layer_norm.blocks.front().x * 132);
}

}  // namespace
}  // namespace cgrt::testing
