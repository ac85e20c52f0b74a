#include "cgrt_kernels/rows/rows.h"

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::plan_rows;
using kernels::RowOp;
using kernels::RowsPlan;

constexpr DeviceRef kDevice(0);
constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

TEST_CASE("rows and columns that no kernel can have are refused", "[kernels]") {
  Simulator simulator;
  CHECK_THAT(plan_rows(kDevice, {RowOp::kSoftmax, DType::kFloat32, 0, 8}).status(), StatusIs(kRefused, "0 rows"));
  CHECK_THAT(plan_rows(kDevice, {RowOp::kRmsNorm, DType::kFloat16, 8, 0}).status(), StatusIs(kRefused, "rms_norm"));
  CHECK_THAT(plan_rows(kDevice, {RowOp::kSoftmax, DType::kFloat32, 1ull << 31, 8}).status(),
             StatusIs(kRefused, "2147483647"));
}

TEST_CASE("pointers that a row kernel cannot take are refused by name", "[kernels]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  DeviceBuffer x = *DeviceBuffer::create(kDevice, 64);
  const RowsPlan plan = *plan_rows(kDevice, {RowOp::kLayerNorm, DType::kFloat32, 1, 8});
  unsigned char* odd = x.as<unsigned char>() + 2;

  CHECK_THAT(launch_rows(stream.ref(), plan, {.out = nullptr, .in = x.data()}), StatusIs(kRefused, "out is null"));
  CHECK_THAT(launch_rows(stream.ref(), plan, {.out = x.data(), .in = nullptr}), StatusIs(kRefused, "in is null"));
  CHECK_THAT(launch_rows(stream.ref(), plan, {.out = x.data(), .in = x.data(), .weight = odd}),
             StatusIs(kRefused, "weight"));
  CHECK_THAT(launch_rows(stream.ref(), plan, {.out = x.data(), .in = x.data(), .bias = odd}),
             StatusIs(kRefused, "not aligned to 4 bytes"));
}

TEST_CASE("a plan takes the regime of its rows", "[kernels]") {
  Simulator simulator;
  const auto plan = [](std::uint64_t rows, std::uint64_t columns, RowOp op = RowOp::kSoftmax) {
    return *plan_rows(kDevice, {op, DType::kFloat16, rows, columns});
  };

  CHECK(plan(1000, 64).config.grid == Dim3(32));                          // eight rows a warp
  CHECK(plan(1000, 1024).config.block == Dim3(128));                      // four warps, a row each
  CHECK(plan(1000, 4096).config.grid == Dim3(1000));                      // a block each
  CHECK(plan(1, 4096).config.block.x > plan(1000, 4096).config.block.x);  // alone on the device: more threads
  CHECK(plan(1000, 32768).config.attributes.cluster == Dim3(1));
  CHECK(plan(1000, 131072).config.attributes.cluster == Dim3(8));       // blocks of 256 threads
  CHECK(plan(1000, 65536, RowOp::kLayerNorm).config.shared_bytes > 0);  // rows ahead, on their way
  CHECK(plan(1000, 65536, RowOp::kLayerNorm).config.grid.x < 1000);     // in blocks that stay
  CHECK(plan(7, 111).kernel == plan(7, 111).any_kernel);
  CHECK_FALSE(plan(7, 112).kernel == plan(7, 112).any_kernel);
}

}  // namespace
}  // namespace cgrt::testing
