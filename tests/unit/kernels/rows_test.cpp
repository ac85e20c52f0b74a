#include <array>
#include <cstdint>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/norm/kernels.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/softmax/kernels.h"
#include "cgrt_kernels/softmax/softmax.h"
#include "support/catch.h"
#include "support/launches.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

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

TEST_CASE("rows are not streamed by code that was compiled for 8.0, whose kernel for that is empty", "[kernels]") {
  void* const memory = reinterpret_cast<void*>(4096);
  const auto is_streamed = [&] {
    const NormPlan norm = *plan_norm(kDevice, {NormOp::kLayerNorm, DType::kFloat32, 400, 16384});
    const SoftmaxPlan softmax = *plan_softmax(kDevice, {SoftmaxOp::kSoftmax, DType::kFloat32, 400, 131072});
    const Launches of_norm = launches_of("layer_norm", [&](LaunchTarget target) {
      return launch_norm(target, norm, {.out = memory, .in = memory, .workspace = {memory, norm.workspace_bytes}});
    });
    const Launches of_softmax = launches_of("softmax", [&](LaunchTarget target) {
      return launch_softmax(target, softmax,
                            {.out = memory, .in = memory, .workspace = {memory, softmax.workspace_bytes}});
    });
    const NormBackwardPlan sums =
        *plan_norm_backward(kDevice, {NormOp::kRmsNorm, DType::kFloat32, 400, 300001, 1e-5f, WeightGradients::kSummed});
    const Launches of_sums = launches_of("rms_norm backward", [&](LaunchTarget target) {
      return launch_norm_backward(
          target, sums,
          {.dx = memory, .dy = memory, .x = memory, .dweight = memory, .workspace = {memory, sums.workspace_bytes}});
    });
    constexpr Alignment kAligned = Alignment::kAligned;
    const bool is_norm = of_norm.kernels.front() == norm_kernel(NormOp::kLayerNorm, Residual::kNone, DType::kFloat32,
                                                                NormRegime::kBulkStream, kAligned);
    const bool is_softmax = of_softmax.kernels.front() ==
                            softmax_kernel(SoftmaxOp::kSoftmax, DType::kFloat32, SoftmaxRegime::kBulkStream, kAligned);
    const bool is_sums = of_sums.kernels.at(1) == norm_summed_chunks(NormOp::kRmsNorm, DType::kFloat32, true);
    return std::array{is_norm, is_softmax, is_sums};
  };
  {
    Simulator simulator;
    CHECK(is_streamed() == std::array{true, true, true});
  }
  Simulator simulator({.ptx_version = 80});
  CHECK(is_streamed() == std::array{false, false, false});
}

}  // namespace
}  // namespace cgrt::testing
