#include "cgrt_kernels/index/index.h"

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::IndexDesc;
using kernels::IndexOp;
using kernels::IndexPlan;
using kernels::plan_index;
using kernels::SumOrder;

constexpr DeviceRef kDevice(0);

IndexPlan plan(IndexOp op, DType type, std::uint64_t rows, std::uint64_t columns, std::uint64_t count) {
  return *plan_index(kDevice, {.op = op, .type = type, .rows = rows, .columns = columns, .count = count});
}

TEST_CASE("16-bit sums that are added to by atomics are floats of the workspace", "[kernels]") {
  Simulator simulator;

  for (const IndexOp op : {IndexOp::kAdd, IndexOp::kScatterAdd}) {
    for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
      for (const std::uint64_t count : {1025, 4097, 60000}) {
        const IndexPlan found = plan(op, type, 17, 8, count);

        CHECK(found.has_atomics);
        CHECK(found.sums.has_value());
        CHECK(found.workspace_bytes >= 17 * 8 * sizeof(float));
      }
    }
  }
  CHECK(plan(IndexOp::kAdd, DType::kFloat32, 17, 8, 4097).workspace_bytes == 0);  // added to in place
}

TEST_CASE("16-bit sums of few among many rows are not a float for each of their elements", "[kernels]") {
  Simulator simulator;

  const IndexPlan owned = plan(IndexOp::kAdd, DType::kFloat16, 128256, 2048, 1100);  // a row of floats for each index
  CHECK(owned.owned.has_value());
  CHECK(owned.workspace_bytes < 2 * (1100 * 2048 + 128256) * sizeof(float));
  CHECK(plan(IndexOp::kAdd, DType::kFloat16, 128256, 4096, 32769).sorted.has_value());
  CHECK(plan(IndexOp::kScatterAdd, DType::kFloat16, 1 << 20, 16, 100).sorted.has_value());
  CHECK(plan(IndexOp::kScatterAdd, DType::kFloat16, 1ull << 30, 64, 100).has_atomics);  // no keys
}

TEST_CASE("few indices take one kernel and no workspace", "[kernels]") {
  Simulator simulator;

  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const SumOrder order : {SumOrder::kAny, SumOrder::kFixed}) {
      const auto with = [&](std::uint64_t count) {
        return *plan_index(kDevice, {IndexOp::kAdd, type, DType::kInt64, 128256, 2048, count, order});
      };
      const bool adds_by_atomics = type == DType::kFloat32 && order == SumOrder::kAny;
      CHECK(with(1024).workspace_bytes == 0);
      CHECK(with(1024).has_atomics == adds_by_atomics);
      CHECK(with(33).grouped.has_value() != adds_by_atomics);
      CHECK(with(1024).grouped.has_value() != adds_by_atomics);
      CHECK_FALSE(with(32).grouped.has_value());
      CHECK_FALSE(with(1025).grouped.has_value());
      CHECK(with(32).workspace_bytes == 0);
      CHECK_FALSE(with(1024).sorted.has_value());
      CHECK_FALSE(with(1024).owned.has_value());
      CHECK_FALSE(with(1024).sums.has_value());
      CHECK(with(1024).topology_id() == with(32).topology_id());
    }
  }
}

TEST_CASE("few indices sort where they have many elements", "[kernels]") {
  Simulator simulator;

  const auto sorts = [](std::uint64_t count) {
    const IndexDesc desc{IndexOp::kAdd, DType::kFloat32, DType::kInt64, 128256, 1 << 14, count, SumOrder::kFixed};
    return plan_index(kDevice, desc)->sorted.has_value();
  };
  CHECK_FALSE(sorts(255));
  CHECK(sorts(256));
}

TEST_CASE("blocks merge what they add to one row between the sizes where atomics alone and sorts are faster",
          "[kernels]") {
  Simulator simulator;
  const auto is_merged = [](const IndexPlan& plan) {
    CHECK((plan.merged.has_value() || plan.sorted.has_value() || plan.has_atomics));
    return plan.merged.has_value() && plan.has_atomics;
  };
  constexpr std::uint64_t kMega = 1 << 20;

  CHECK_FALSE(is_merged(plan(IndexOp::kAdd, DType::kFloat32, 1000, 64, kMega / 32 - 1)));
  CHECK(is_merged(plan(IndexOp::kAdd, DType::kFloat32, 1000, 64, kMega / 32)));
  CHECK(is_merged(plan(IndexOp::kAdd, DType::kFloat32, kMega, 128, 40 * kMega / 128 - 1)));
  CHECK(plan(IndexOp::kAdd, DType::kFloat32, kMega, 128, 40 * kMega / 128).sorted.has_value());
  CHECK_FALSE(is_merged(plan(IndexOp::kAdd, DType::kFloat32, 1000, 31, kMega)));
  CHECK(is_merged(plan(IndexOp::kAdd, DType::kFloat16, 1000, 128, 20 * kMega / 128 - 1)));
  CHECK(plan(IndexOp::kAdd, DType::kFloat16, 1000, 128, 20 * kMega / 128).sorted.has_value());
  CHECK(plan(IndexOp::kAdd, DType::kBFloat16, kMega, 128, 40000).sorted.has_value());  // no room for their sums

  const IndexPlan few = plan(IndexOp::kAdd, DType::kFloat32, 1000, 64, kMega / 32);
  CHECK((*few.merged)[0].window == 256);  // 128 blocks, for as many as there are multiprocessors
  const IndexPlan many = plan(IndexOp::kAdd, DType::kFloat32, 1000, 64, kMega / 4);
  CHECK((*many.merged)[0].window == 1024);
}

TEST_CASE("more 16-bit elements than sums can be are refused", "[kernels]") {
  Simulator simulator;

  CHECK_THAT(plan_index(kDevice, {.op = IndexOp::kScatterAdd,
                                  .type = DType::kFloat16,
                                  .rows = (1ull << 31) - 1,
                                  .columns = 1024,
                                  .count = 100})
                 .status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "scatter_add: 2147483647 rows of 1024 columns"));
}

}  // namespace
}  // namespace cgrt::testing
