#include "cgrt_kernels/reduce/reduce.h"
#include "cgrt_kernels/reduce/kernels.h"

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::plan_reduce;
using kernels::reduce_columns_kernel;
using kernels::reduce_few_rows_kernel;
using kernels::reduce_rows_kernel;
using kernels::ReduceColumns;
using kernels::ReduceOp;
using kernels::ReduceOver;
using kernels::ReducePlan;
using kernels::ReduceRegime;

constexpr DeviceRef kDevice(0);

ReducePlan plan(ReduceOver over, std::uint64_t rows, std::uint64_t columns, DType type = DType::kFloat32) {
  return *plan_reduce(kDevice, {ReduceOp::kSum, type, over, rows, columns});
}

TEST_CASE("a reduction takes the regime of its shape", "[kernels]") {
  Simulator simulator;
  const auto rows = [](ReduceRegime regime) { return reduce_rows_kernel(ReduceOp::kSum, DType::kFloat32, regime); };
  const auto columns = [](ReduceColumns of_thread) {
    return reduce_columns_kernel(ReduceOp::kSum, DType::kFloat32, of_thread);
  };
  const auto few_rows = [](DType type, ReduceColumns of_thread) {
    return reduce_few_rows_kernel(ReduceOp::kSum, type, of_thread);
  };

  CHECK(plan(ReduceOver::kRow, 49152, 1024).aligned.kernel == rows(ReduceRegime::kLanes));
  CHECK(plan(ReduceOver::kRow, 49152, 1024).aligned.lanes == 32);
  CHECK(plan(ReduceOver::kRow, 1000, 16).aligned.lanes == 1);
  CHECK(plan(ReduceOver::kRow, 8192, 4096).aligned.kernel == rows(ReduceRegime::kBlocks));
  CHECK(plan(ReduceOver::kColumn, 100, 16).aligned.kernel == columns(ReduceColumns::kPack));
  CHECK(plan(ReduceOver::kColumn, 100, 17).aligned.kernel == columns(ReduceColumns::kSpread));
  CHECK(plan(ReduceOver::kColumn, 100000, 1).aligned.kernel == rows(ReduceRegime::kBlocks));  // an array
  CHECK(plan(ReduceOver::kColumn, 64, 200001).unaligned.kernel == few_rows(DType::kFloat32, ReduceColumns::kSingle));
  CHECK(plan(ReduceOver::kColumn, 64, 600000).aligned.kernel == few_rows(DType::kFloat32, ReduceColumns::kPack));
  CHECK(plan(ReduceOver::kColumn, 17, 300001, DType::kFloat16).unaligned.kernel ==
        few_rows(DType::kFloat16, ReduceColumns::kSpread));
}

TEST_CASE("a reduction needs a workspace where blocks share a result", "[kernels]") {
  Simulator simulator;

  CHECK(plan(ReduceOver::kAll, 1, 8192).workspace_bytes == 0);     // one block
  CHECK(plan(ReduceOver::kAll, 1, 1 << 20).workspace_bytes > 0);   // many, for one result
  CHECK(plan(ReduceOver::kRow, 4096, 8192).workspace_bytes == 0);  // a block for each row
  CHECK(plan(ReduceOver::kRow, 4, 1 << 20).workspace_bytes > 0);   // fewer rows than multiprocessors
  CHECK(plan(ReduceOver::kColumn, 32768, 1024).workspace_bytes > 0);
}

TEST_CASE("a large reduction keeps every multiprocessor busy and is one wave", "[kernels]") {
  Simulator simulator;
  const int sms = *kDevice.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);

  for (const std::uint64_t count : {1ull << 20, 1ull << 25, 1ull << 28}) {
    const ReducePlan all = plan(ReduceOver::kAll, 1, count, DType::kFloat16);

    CHECK(static_cast<int>(all.aligned.parts) >= sms * 9 / 10);
    CHECK(static_cast<int>(all.aligned.parts) <= sms * 4);
  }
}

}  // namespace
}  // namespace cgrt::testing
