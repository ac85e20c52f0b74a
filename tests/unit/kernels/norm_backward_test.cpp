// Which kernel sums the weight gradients of rows in the backward of a norm.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/norm/norm.h"
#include "support/catch.h"
#include "support/launches.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

constexpr DeviceRef kDevice(0);

struct Row {
  std::uint64_t columns;
  DType type;
};

// The first kernel of a norm's backward with weight gradients.
struct SumsPlanned {
  std::string kernel;
  std::uint64_t blocks, groups;
};
SumsPlanned planned_sums(NormOp op, const Row& row, std::uint64_t rows, std::size_t shift) {
  unsigned char* const memory = reinterpret_cast<unsigned char*>(4096);
  void* const a = memory + shift;
  const NormBackwardPlan plan =
      *plan_norm_backward(kDevice, {op, row.type, rows, row.columns, 1e-5f, WeightGradients::kSummed});
  const Launches launches = launches_of("norm backward", [&](LaunchTarget target) {
    return launch_norm_backward(
        target, plan,
        {.dx = a, .dy = a, .x = a, .dweight = a, .dbias = a, .workspace = {memory, plan.workspace_bytes}});
  });
  const std::uint64_t blocks = launches.attributes.front().cluster.count();
  return {std::string(launches.kernels.front().name()), blocks, launches.grids.front().x / blocks};
}

TEST_CASE("few long rows with weight gradients are spread over all blocks where these have room for them",
          "[kernels]") {
  struct Case {
    NormOp op;
    DType type;
    std::uint64_t rows, columns;
    bool is_expected;
  };
  constexpr NormOp kLayer = NormOp::kLayerNorm, kRms = NormOp::kRmsNorm;
  const auto are_as_expected = [](bool has_clusters) {
    for (const auto& [op, type, rows, columns, is_expected] : {
             Case{kLayer, DType::kFloat16, 1, 400000, true}, Case{kLayer, DType::kFloat16, 1, 399999, false},
             Case{kRms, DType::kBFloat16, 17, 50257, true}, Case{kRms, DType::kFloat32, 1, 1200000, true},
             Case{kRms, DType::kFloat32, 1, 1199999, false}, Case{kLayer, DType::kFloat32, 17, 151935, true},
             Case{kLayer, DType::kFloat32, 17, 250002, false},  // no room for all rows
             Case{kLayer, DType::kFloat16, 22, 40001, true},    // none to publish more rows
             Case{kLayer, DType::kFloat16, 23, 40001, false}, Case{kRms, DType::kFloat16, 32, 40001, true},
             Case{kRms, DType::kFloat16, 33, 40001, false},
             Case{kRms, DType::kFloat16, 32, 16384, false},  // short rows
         }) {
      INFO(to_string(op) << " of " << to_string(type) << " " << rows << "x" << columns);
      const SumsPlanned plan = planned_sums(op, {columns, type}, rows, 0);
      CHECK(absl::StrContains(plan.kernel, "norm_backward_spread") == (is_expected && has_clusters));
    }
  };
  {
    Simulator simulator;
    are_as_expected(true);
  }
  Simulator simulator({.ptx_version = 80});
  are_as_expected(false);
}

TEST_CASE("sums of columns are in shared memory where registers would need rows that begin alike", "[kernels]") {
  struct Case {
    Row row;
    std::size_t shift;
    std::uint64_t blocks;  // of a cluster; 0: other kernels take the row
  };
  const auto are_in_table = [](const SumsPlanned& plan) {
    return absl::StrContains(plan.kernel, "norm_backward_column_sums");
  };
  {
    Simulator simulator;
    for (const auto& [row, shift, blocks] : {Case{{16384, DType::kFloat16}, 2, 0},
                                             {{16385, DType::kFloat16}, 0, 2},
                                             {{50257, DType::kBFloat16}, 0, 8},
                                             {{151935, DType::kFloat16}, 0, 16},
                                             {{131072, DType::kFloat16}, 0, 0},
                                             {{131080, DType::kFloat16}, 0, 16},
                                             {{327680, DType::kBFloat16}, 2, 16},
                                             {{327681, DType::kBFloat16}, 0, 0},
                                             {{1024, DType::kFloat32}, 4, 0},
                                             {{1025, DType::kFloat32}, 0, 1},
                                             {{20001, DType::kFloat32}, 0, 4},
                                             {{50257, DType::kFloat32}, 0, 8},
                                             {{65536, DType::kFloat32}, 0, 0},
                                             {{65540, DType::kFloat32}, 0, 16},
                                             {{262144, DType::kFloat32}, 0, 16},
                                             {{262145, DType::kFloat32}, 0, 0}}) {
      INFO(row.columns << " of " << to_string(row.type) << " + " << shift);
      for (const NormOp op : {NormOp::kLayerNorm, NormOp::kRmsNorm}) {
        const SumsPlanned plan = planned_sums(op, row, 20000, shift);
        CHECK(are_in_table(plan) == (blocks != 0));
        if (blocks != 0) CHECK(plan.blocks == blocks);
      }
    }
    // With fewer rows for each group, others are faster.
    for (const auto& [row, rows_of_group] :
         {std::pair{Row{151935, DType::kFloat16}, 4}, std::pair{Row{2049, DType::kFloat32}, 8}}) {
      INFO(row.columns);
      const std::uint64_t rows = rows_of_group * planned_sums(NormOp::kLayerNorm, row, 20000, 0).groups;
      CHECK(are_in_table(planned_sums(NormOp::kLayerNorm, row, rows, 0)));
      CHECK_FALSE(are_in_table(planned_sums(NormOp::kLayerNorm, row, rows - 1, 0)));
    }
  }
  {
    Simulator simulator({.largest_cluster = 8});
    for (const auto& [row, shift, blocks] : {Case{{50257, DType::kFloat32}, 0, 8},
                                             {{131072, DType::kFloat32}, 0, 8},
                                             {{131073, DType::kFloat32}, 0, 0},
                                             {{151935, DType::kFloat16}, 0, 8},
                                             {{163841, DType::kFloat16}, 0, 0}}) {
      INFO(row.columns << " of " << to_string(row.type));
      const SumsPlanned plan = planned_sums(NormOp::kRmsNorm, row, 20000, shift);
      CHECK(are_in_table(plan) == (blocks != 0));
      CHECK(plan.blocks == std::max<std::uint64_t>(blocks, 1));
    }
  }
  Simulator simulator({.ptx_version = 80});
  CHECK_FALSE(are_in_table(planned_sums(NormOp::kRmsNorm, {1025, DType::kFloat32}, 20000, 0)));
}

}  // namespace
}  // namespace cgrt::testing
