#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/softmax/softmax.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::NormOp;
using kernels::plan_norm;
using kernels::plan_softmax;
using kernels::SoftmaxOp;
using kernels::SoftmaxPlan;

constexpr DeviceRef kDevice(0);
constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

TEST_CASE("rows and columns that no kernel can have are refused", "[kernels]") {
  Simulator simulator;
  CHECK_THAT(plan_softmax(kDevice, {SoftmaxOp::kSoftmax, DType::kFloat32, 0, 8}).status(),
             StatusIs(kRefused, "0 rows"));
  CHECK_THAT(plan_norm(kDevice, {NormOp::kRmsNorm, DType::kFloat16, 8, 0}).status(), StatusIs(kRefused, "rms_norm"));
  CHECK_THAT(plan_softmax(kDevice, {SoftmaxOp::kSoftmax, DType::kFloat32, 1ull << 31, 8}).status(),
             StatusIs(kRefused, "2147483647"));
}

TEST_CASE("pointers that a row kernel cannot take are refused by name", "[kernels]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  DeviceBuffer x = *DeviceBuffer::create(kDevice, 64);
  const kernels::NormPlan plan = *plan_norm(kDevice, {NormOp::kLayerNorm, DType::kFloat32, 1, 8});
  unsigned char* odd = x.as<unsigned char>() + 2;

  CHECK_THAT(launch_norm(stream.ref(), plan, {.out = nullptr, .in = x.data()}), StatusIs(kRefused, "out is null"));
  CHECK_THAT(launch_norm(stream.ref(), plan, {.out = x.data(), .in = nullptr}), StatusIs(kRefused, "in is null"));
  CHECK_THAT(launch_norm(stream.ref(), plan, {.out = x.data(), .in = x.data(), .weight = odd}),
             StatusIs(kRefused, "weight"));
  CHECK_THAT(launch_norm(stream.ref(), plan, {.out = x.data(), .in = x.data(), .bias = odd}),
             StatusIs(kRefused, "not aligned to 4 bytes"));
}

TEST_CASE("a plan takes the regime of its rows", "[kernels]") {
  Simulator simulator;
  const auto plan = [](std::uint64_t rows, std::uint64_t columns) {
    return *plan_softmax(kDevice, {SoftmaxOp::kSoftmax, DType::kFloat16, rows, columns});
  };
  const auto config = [&](std::uint64_t rows, std::uint64_t columns) {
    return plan(rows, columns).launches.aligned.config;
  };

  CHECK(config(1000, 64).grid == Dim3(32));                     // eight rows a warp
  CHECK(config(1000, 1024).block == Dim3(128));                 // four warps, a row each
  CHECK(config(1000, 4096).grid == Dim3(1000));                 // a block each
  CHECK(config(1, 4096).block.x > config(1000, 4096).block.x);  // alone on the device: more threads
  CHECK(config(1000, 32768).attributes.cluster == Dim3(1));
  CHECK(config(1000, 131072).attributes.cluster == Dim3(8));
  CHECK(plan(7, 112).launches.aligned.kernel == plan(7, 112).launches.unaligned.kernel);  // few: wherever they lie
  CHECK(plan(700, 111).launches.aligned.kernel == plan(700, 111).launches.unaligned.kernel);
  CHECK_FALSE(plan(700, 112).launches.aligned.kernel == plan(700, 112).launches.unaligned.kernel);
}

}  // namespace
}  // namespace cgrt::testing
