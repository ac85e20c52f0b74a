#include "cgrt_kernels/bias_norm/bias_norm.h"

#include <cstdint>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/bias_norm/kernels.h"
#include "support/catch.h"
#include "support/launches.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

constexpr DeviceRef kDevice(0);

TEST_CASE("where bias_norm has many rows of 32 to 64 KB, each has a block instead of a cluster", "[kernels]") {
  static void* const a = reinterpret_cast<void*>(4096);
  static void* const b = reinterpret_cast<void*>(8192);
  Simulator simulator;
  const auto is_wide = [](NormOp op, DType type, std::uint64_t rows, std::uint64_t columns) {
    const BiasNormPlan plan = *plan_bias_norm(kDevice, {op, type, rows, columns});
    const Launches launches = launches_of("bias_norm", [&](LaunchTarget target) {
      return launch_bias_norm(target, plan, {.out = a, .in = a, .in_bias = b, .residual = a, .sum = b});
    });
    const bool found =
        launches.kernels.front() == bias_norm_kernel(op, type, BiasNormRegime::kWideBlock, Alignment::kAligned);
    if (!found) return false;
    const std::uint32_t threads = launches.blocks.front().x;
    CHECK(launches.grids.front().x == rows);
    CHECK(launches.attributes.front().cluster.x <= 1);
    CHECK(threads % 32 == 0);
    CHECK(threads <= kMaxWideThreads);
    CHECK(threads * kWidePacks * 16 / size_of(type) >= columns);
    return true;
  };
  CHECK(is_wide(NormOp::kLayerNorm, DType::kFloat32, 4096, 12288));
  CHECK(is_wide(NormOp::kLayerNorm, DType::kFloat32, 265, 8196));
  CHECK(is_wide(NormOp::kLayerNorm, DType::kFloat32, 265, 14 * 1024));
  CHECK(is_wide(NormOp::kRmsNorm, DType::kFloat32, 265, 16384));
  CHECK(is_wide(NormOp::kLayerNorm, DType::kFloat16, 265, 32768));
  CHECK(is_wide(NormOp::kRmsNorm, DType::kBFloat16, 265, 16392));
  CHECK_FALSE(is_wide(NormOp::kLayerNorm, DType::kFloat32, 264, 12288));
  CHECK_FALSE(is_wide(NormOp::kLayerNorm, DType::kFloat32, 265, 8192));
  CHECK_FALSE(is_wide(NormOp::kLayerNorm, DType::kFloat32, 265, 14 * 1024 + 4));
  CHECK_FALSE(is_wide(NormOp::kRmsNorm, DType::kFloat32, 265, 16388));
  CHECK_FALSE(is_wide(NormOp::kLayerNorm, DType::kFloat16, 265, 32776));
  CHECK_FALSE(is_wide(NormOp::kRmsNorm, DType::kBFloat16, 265, 16384));
}

}  // namespace
}  // namespace cgrt::testing
