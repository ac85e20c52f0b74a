// A learner's ladder: d = a b, from the plainest kernel to the library's, each step with what it mends and in a file of
// its own. Steps 1 to 7 have floats and b as k rows of n; 8 to 11, which need tensor cores, bfloat16 and b as n rows of
// k, as gemm, which is step 12. Sizes are multiples of their tiles: the library has the rest. Some elements of a first
// product are compared before anything is timed. docs/gemm_ladder.md has the figures.
#include <cuda_bf16.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/common/tensor_map.h"
#include "kernels/bench/bench.h"
#include "kernels/bench/gemm_ladder/coalesced.cuh"
#include "kernels/bench/gemm_ladder/double_buffered.cuh"
#include "kernels/bench/gemm_ladder/hopper.h"
#include "kernels/bench/gemm_ladder/mma.cuh"
#include "kernels/bench/gemm_ladder/naive.cuh"
#include "kernels/bench/gemm_ladder/register_tile.cuh"
#include "kernels/bench/gemm_ladder/shared_tile.cuh"
#include "kernels/bench/gemm_ladder/swizzled.cuh"
#include "kernels/bench/gemm_ladder/wide_loads.cuh"

namespace cgrt::bench {
namespace {

using kernels::DType;

struct Arrays {
  DeviceBuffer d, a, b;
};
using Start = std::function<absl::Status(LaunchTarget, const Arrays&)>;
struct Step {
  DType type;
  std::uint32_t rows, columns;  // of what sizes must be multiples of
  Start start;
};

struct Sizes {
  std::uint32_t m, n, k;
};

template <class T>
Step simple_step(DType type, Kernel<T*, const T*, const T*, std::uint32_t, std::uint32_t> kernel, std::uint32_t threads,
                 std::uint32_t rows, std::uint32_t columns, const Sizes& sizes, std::uint32_t shared_bytes = 0) {
  const LaunchConfig config{
      .grid = {sizes.n / columns, sizes.m / rows}, .block = threads, .shared_bytes = shared_bytes};
  return {type, rows, columns, [=](LaunchTarget target, const Arrays& arrays) {
            return launch(target, config, kernel, arrays.d.as<T>(), arrays.a.as<const T>(), arrays.b.as<const T>(),
                          sizes.n, sizes.k);
          }};
}

#ifdef CGRT_HOPPER
Step hopper_step_of(const HopperStep& step, const Sizes& sizes) {
  LaunchConfig config{.grid = {sizes.n / kHopperColumns * step.cluster, sizes.m / kHopperRows / step.cluster},
                      .block = step.threads,
                      .shared_bytes = kHopperStages * kStageBytes};
  config.attributes.cluster = step.cluster;
  return {DType::kBFloat16, 2 * kHopperRows, kHopperColumns,
          [=](LaunchTarget target, const Arrays& arrays) -> absl::Status {
            CGRT_ASSIGN_OR_RETURN(const CUcontext context, target.context());
            CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
            HopperParams params{};
            params.d = arrays.d.data(), params.n = sizes.n, params.k = sizes.k;
            CGRT_ASSIGN_OR_RETURN(
                params.a, kernels::make_tensor_map(arrays.a.data(), DType::kBFloat16,
                                                   {{sizes.k, 1, kHopperDepth}, {sizes.m, sizes.k, kHopperRows}}));
            CGRT_ASSIGN_OR_RETURN(params.b,
                                  kernels::make_tensor_map(
                                      arrays.b.data(), DType::kBFloat16,
                                      {{sizes.k, 1, kHopperDepth}, {sizes.n, sizes.k, kHopperColumns / step.cluster}}));
            return launch(target, config, step.kernel, params);
          }};
}
#endif

absl::StatusOr<Step> step_of(const std::string& kernel, const Sizes& sizes) {
  const auto float_step = [&](auto code, std::uint32_t threads, std::uint32_t rows, std::uint32_t columns) {
    return simple_step<float>(DType::kFloat32, code, threads, rows, columns, sizes);
  };
  if (kernel == "gemm_naive") return float_step(make_kernel<gemm_naive>(), 256, 32, 8);
  if (kernel == "gemm_coalesced") return float_step(make_kernel<gemm_coalesced>(), 256, 8, 32);
  if (kernel == "gemm_shared_tile") return float_step(make_kernel<gemm_shared_tile>(), 1024, 32, 32);
  if (kernel == "gemm_register_tile") return float_step(make_kernel<gemm_register_tile>(), 256, 128, 128);
  if (kernel == "gemm_wide_loads") return float_step(make_kernel<gemm_wide_loads>(), 256, 128, 128);
  if (kernel == "gemm_swizzled") return float_step(make_kernel<gemm_swizzled>(), 256, 128, 128);
  if (kernel == "gemm_double_buffered")
    return float_step(make_kernel<gemm_double_buffered>(), 256, 128, kDoubleBufferedColumns);
  const auto allow = [](KernelRef code, std::uint32_t bytes) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(const kernels::Machine machine, kernels::machine_of(kDevice));
    return kernels::allow_shared_bytes(code, machine, bytes);
  };
  if (kernel == "gemm_mma") {
    const auto code = make_kernel<gemm_mma>();
    CGRT_RETURN_IF_ERROR(allow(code, kMmaSharedBytes));
    return simple_step<__nv_bfloat16>(DType::kBFloat16, code, 128, 128, 128, sizes, kMmaSharedBytes);
  }
#ifdef CGRT_HOPPER
  for (int i = 0; i < kHopperSteps; ++i) {
    const HopperStep step = hopper_step(i);
    if (kernel != step.name) continue;
    CGRT_RETURN_IF_ERROR(allow(step.kernel, kHopperStages * kStageBytes));
    return hopper_step_of(step, sizes);
  }
#endif
  return absl::NotFoundError("");
}

double element(DType type, const std::vector<unsigned char>& bytes, std::uint64_t i) {
  if (type == DType::kFloat32) {
    float value;
    std::memcpy(&value, &bytes[i * 4], 4);
    return static_cast<double>(value);
  }
  __nv_bfloat16 value;
  std::memcpy(&value, &bytes[i * 2], 2);
  return static_cast<double>(__bfloat162float(value));
}

absl::Status check_product(StreamRef stream, const std::string& kernel, const Arrays& arrays, DType type,
                           const Sizes& sizes) {
  const auto read_back = [&](const DeviceBuffer& buffer) -> absl::StatusOr<std::vector<unsigned char>> {
    std::vector<unsigned char> bytes(buffer.size_bytes());
    CGRT_RETURN_IF_ERROR(copy(stream, bytes.data(), buffer.data(), buffer.size_bytes()));
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    return bytes;
  };
  CGRT_ASSIGN_OR_RETURN(const std::vector<unsigned char> d, read_back(arrays.d));
  CGRT_ASSIGN_OR_RETURN(const std::vector<unsigned char> a, read_back(arrays.a));
  CGRT_ASSIGN_OR_RETURN(const std::vector<unsigned char> b, read_back(arrays.b));
  const std::uint64_t count = std::uint64_t{sizes.m} * sizes.n;
  for (std::uint64_t i = 0; i < count; i += 1 + count / 509) {
    const std::uint64_t row = i / sizes.n, column = i % sizes.n;
    double expected = 0, magnitude = 0;
    for (std::uint64_t j = 0; j < sizes.k; ++j) {
      const std::uint64_t at = type == DType::kFloat32 ? j * sizes.n + column : column * sizes.k + j;
      const double product = element(type, a, row * sizes.k + j) * element(type, b, at);
      expected += product, magnitude += std::abs(product);
    }
    const double found = element(type, d, i);
    const double rounding = type == DType::kFloat32 ? 0x1p-23 : 0x1p-8;
    if (std::abs(found - expected) <= rounding * std::abs(expected) + 1e-5 * magnitude) continue;
    return absl::InternalError(
        absl::StrCat(kernel, " gives ", found, " for ", expected, " in row ", row, ", column ", column, "."));
  }
  return absl::OkStatus();
}

}  // namespace

// m, n, k
absl::StatusOr<Work> make_gemm_ladder(const Case& test) {
  const auto narrow = [](std::uint64_t size) { return static_cast<std::uint32_t>(size); };
  const std::uint64_t m = test.size_or("m", 4096), n = test.size_or("n", 4096), k = test.size_or("k", 4096);
  const Sizes sizes{narrow(m), narrow(n), narrow(k)};
  CGRT_ASSIGN_OR_RETURN(const Step step, step_of(test.kernel, sizes));
  constexpr std::uint64_t kMax = 32768;  // offsets are of 32 bits
  if (test.type != step.type || m % step.rows != 0 || n % step.columns != 0 || k % 64 != 0 || m * n * k == 0 ||
      m > kMax || n > kMax || k > kMax) {
    return absl::InvalidArgumentError(absl::StrCat(test.kernel, " takes ", to_string(step.type), ", m a multiple of ",
                                                   step.rows, ", n of ", step.columns, ", k of 64, up to ", kMax, "."));
  }
  const std::size_t size = size_of(step.type);
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer d, DeviceBuffer::create(kDevice, m * n * size));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer a, make_numbers(stream, step.type, m * k, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer b, make_numbers(stream, step.type, n * k, seed + 1));
    const auto arrays = std::make_shared<Arrays>(Arrays{std::move(d), std::move(a), std::move(b)});
    if (seed == 0) {
      CGRT_RETURN_IF_ERROR(step.start(stream, *arrays));
      CGRT_RETURN_IF_ERROR(check_product(stream, test.kernel, *arrays, step.type, sizes));
    }
    return [=](LaunchTarget target) { return step.start(target, *arrays); };
  };
  return Work{(m * n + m * k + n * k) * size, make};
}

}  // namespace cgrt::bench
