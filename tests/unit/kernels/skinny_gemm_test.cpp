#include "cgrt_kernels/skinny_gemm/skinny_gemm.h"

#include <cstdint>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

constexpr DeviceRef kDevice(0);

SkinnyGemmPlan plan_of(std::uint64_t rows, std::uint64_t n, std::uint64_t k) {
  return *plan_skinny_gemm(kDevice, {.rows = rows, .n = n, .k = k, .weights = SkinnyWeights::kInt4});
}

TEST_CASE("few rows of integers have whole tiles of 16 rows of W, where that idles for less time than joining",
          "[kernels]") {
  Simulator simulator;  // two blocks on each of 132 multiprocessors
  const auto blocks_of_whole = [](std::uint64_t n, std::uint64_t k) {
    const SkinnyGemmPlan plan = plan_of(1, n, k);
    CHECK_FALSE(plan.shares_tiles);
    CHECK(plan.workspace_bytes == 0);
    CHECK(plan.config.grid.x == plan.blocks);
    return plan.blocks;
  };
  CHECK(blocks_of_whole(4096, 4096) == 256);   // one each
  CHECK(blocks_of_whole(6144, 4096) == 192);   // two each
  CHECK(blocks_of_whole(11008, 4096) == 230);  // three each, but the last two
  CHECK(blocks_of_whole(5120, 5120) == 264);   // two in 56 of them
  const SkinnyGemmPlan shared = plan_of(1, 2048, 14336);
  CHECK(shared.shares_tiles);
  CHECK(shared.blocks == 264);
  CHECK(shared.workspace_bytes > 0);
}

TEST_CASE("launches that may have few of many rows of integers divide them among half blocks", "[kernels]") {
  Simulator simulator;
  const SkinnyGemmPlan whole = plan_of(64, 4096, 4096);
  if (!whole.is_wide) return;  // in builds without code for sm_90
  CHECK_FALSE(whole.shares_tiles);
  CHECK(whole.blocks == 256);
  CHECK(whole.config.grid.x * 2 >= whole.blocks);
  const SkinnyGemmPlan shared = plan_of(64, 2048, 14336);
  CHECK(shared.shares_tiles);
  CHECK(shared.blocks == shared.config.grid.x * 2);
  CHECK(shared.workspace_bytes > 0);
}

}  // namespace
}  // namespace cgrt::testing
