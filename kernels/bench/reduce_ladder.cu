// A learner's ladder: the sum of an array, from the plainest kernel to one that memory limits, each
// step with what it mends. Every kernel leaves one partial sum per block; kernels/cgrt_kernels/reduce
// goes on to the scalar in the same launch. The last three kernels show what atomics on one address
// cost. A small sum and every step's result are compared before anything is timed.
#include <cuda_fp16.h>

#include <cmath>
#include <memory>
#include <vector>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

constexpr unsigned kBlock = 256;  // threads of every kernel here; 32 at a time are a warp

// v0: a tree over shared memory. Of each pair of neighbours the left one adds, then of each four, ...
// Slow: threads that add and threads that do not are in the same warps, and `%` is costly.
__global__ void __launch_bounds__(kBlock) reduce_v0(const float* in, float* out) {
  __shared__ float sums[kBlock];
  const unsigned thread = threadIdx.x;
  sums[thread] = in[blockIdx.x * kBlock + thread];
  __syncthreads();
  for (unsigned apart = 1; apart < kBlock; apart *= 2) {
    if (thread % (2 * apart) == 0) sums[thread] += sums[thread + apart];
    __syncthreads();
  }
  if (thread == 0) out[blockIdx.x] = sums[0];
}

// v1: mends divergent branches. The first threads do the same additions: whole warps work or rest.
// New trouble: the words that a warp touches are 2 * apart apart, many of them in the same bank.
__global__ void __launch_bounds__(kBlock) reduce_v1(const float* in, float* out) {
  __shared__ float sums[kBlock];
  const unsigned thread = threadIdx.x;
  sums[thread] = in[blockIdx.x * kBlock + thread];
  __syncthreads();
  for (unsigned apart = 1; apart < kBlock; apart *= 2) {
    const unsigned at = 2 * apart * thread;
    if (at < kBlock) sums[at] += sums[at + apart];
    __syncthreads();
  }
  if (thread == 0) out[blockIdx.x] = sums[0];
}

// v2: mends bank conflicts. The upper half is added to the lower half, then again: a warp touches 32
// words beside each other, each in a bank of its own.
__global__ void __launch_bounds__(kBlock) reduce_v2(const float* in, float* out) {
  __shared__ float sums[kBlock];
  const unsigned thread = threadIdx.x;
  sums[thread] = in[blockIdx.x * kBlock + thread];
  __syncthreads();
  for (unsigned half = kBlock / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread == 0) out[blockIdx.x] = sums[0];
}

// v3: mends idle threads. In the first step half of them only watched: now each adds two elements as it
// reads them, and half as many blocks do the same work.
__global__ void __launch_bounds__(kBlock) reduce_v3(const float* in, float* out) {
  __shared__ float sums[kBlock];
  const unsigned thread = threadIdx.x, first = blockIdx.x * 2 * kBlock + thread;
  sums[thread] = in[first] + in[first + kBlock];
  __syncthreads();
  for (unsigned half = kBlock / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread == 0) out[blockIdx.x] = sums[0];
}

// The last six steps, where one warp is left: it need not wait for the others, only for itself.
__device__ void reduce_last_warp(float* sums, unsigned thread) {
  float mine = sums[thread] + sums[thread + 32];
#pragma unroll
  for (unsigned half = 16; half > 0; half /= 2) {
    sums[thread] = mine;
    __syncwarp();
    mine += sums[thread + half];
    __syncwarp();
  }
  if (thread == 0) sums[0] = mine;
}

// v4: mends barriers that nobody needs. Once a single warp is left, __syncwarp takes the place of
// __syncthreads, and the last steps are written out.
__global__ void __launch_bounds__(kBlock) reduce_v4(const float* in, float* out) {
  __shared__ float sums[kBlock];
  const unsigned thread = threadIdx.x, first = blockIdx.x * 2 * kBlock + thread;
  sums[thread] = in[first] + in[first + kBlock];
  __syncthreads();
  for (unsigned half = kBlock / 2; half > 32; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread < 32) reduce_last_warp(sums, thread);
  if (thread == 0) out[blockIdx.x] = sums[0];
}

// The whole tree for a block size that the compiler knows.
template <unsigned kThreads>
__device__ void reduce_tree(float* sums, unsigned thread) {
#pragma unroll
  for (unsigned half = kThreads / 2; half > 32; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread < 32) reduce_last_warp(sums, thread);
}

// v5: mends the loop itself. With the block size as a template argument the tree is unrolled: no
// counter, no comparison, no branch back.
template <unsigned kThreads>
__global__ void __launch_bounds__(kThreads) reduce_v5(const float* in, float* out) {
  __shared__ float sums[kThreads];
  const unsigned thread = threadIdx.x, first = blockIdx.x * 2 * kThreads + thread;
  sums[thread] = in[first] + in[first + kThreads];
  __syncthreads();
  reduce_tree<kThreads>(sums, thread);
  if (thread == 0) out[blockIdx.x] = sums[0];
}

// v6: mends trees that cost more than what they sum. A fixed grid of 1024 blocks: each thread first
// adds many elements in a register, and there is one tree for all of them.
template <unsigned kThreads>
__global__ void __launch_bounds__(kThreads) reduce_v6(const float* in, std::uint64_t count, float* out) {
  __shared__ float sums[kThreads];
  const unsigned thread = threadIdx.x;
  float sum = 0;
  for (std::uint64_t i = blockIdx.x * kThreads + thread; i < count; i += gridDim.x * kThreads) sum += in[i];
  sums[thread] = sum;
  __syncthreads();
  reduce_tree<kThreads>(sums, thread);
  if (thread == 0) out[blockIdx.x] = sums[0];
}

// The sum of a block's values, in thread 0: in each warp from register to register, then once more
// among the warps' sums.
template <unsigned kThreads>
__device__ float reduce_shuffles(float sum) {
  __shared__ float sums[kThreads / 32];
#pragma unroll
  for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(~0u, sum, half);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return 0;
  sum = threadIdx.x < kThreads / 32 ? sums[threadIdx.x] : 0.0f;
#pragma unroll
  for (int half = kThreads / 64; half > 0; half /= 2) sum += __shfl_down_sync(~0u, sum, half);
  return sum;
}

// v7: mends the way through shared memory. Threads of a warp hand each other their registers, and one
// barrier is left.
template <unsigned kThreads>
__global__ void __launch_bounds__(kThreads) reduce_v7(const float* in, std::uint64_t count, float* out) {
  float sum = 0;
  for (std::uint64_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) sum += in[i];
  sum = reduce_shuffles<kThreads>(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// v8: mends loads that are too small. 16 bytes each, four of them in flight before the first is used,
// and as many blocks as run at once: enough bytes on their way to keep memory busy.
template <unsigned kThreads>
__global__ void __launch_bounds__(kThreads) reduce_v8(const float* in, std::uint64_t count, float* out) {
  const auto* const packs = reinterpret_cast<const float4*>(in);
  const std::uint64_t threads = gridDim.x * kThreads;
  float sum = 0;
  std::uint64_t i = blockIdx.x * kThreads + threadIdx.x;
  for (; i + 3 * threads < count / 4; i += 4 * threads) {
    float4 loaded[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) loaded[k] = packs[i + static_cast<std::uint64_t>(k) * threads];
#pragma unroll
    for (const float4& pack : loaded) sum += (pack.x + pack.y) + (pack.z + pack.w);
  }
  for (; i < count / 4; i += threads) sum += (packs[i].x + packs[i].y) + (packs[i].z + packs[i].w);
  sum = reduce_shuffles<kThreads>(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// Atomics on one address, a test of their throughput and of nothing else: the published sum of 2^25
// products is long beyond what a half can tell. Each thread one product, added to a half.
__global__ void __launch_bounds__(kBlock) atomic_half(const __half* a, const __half* b, __half* sum) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * kBlock + threadIdx.x;
  atomicAdd(sum, __hmul(a[i], b[i]));
}

// Each thread two products, added to a pair of halves at once: half as many atomics.
__global__ void __launch_bounds__(kBlock) atomic_half2(const __half2* a, const __half2* b, __half2* sum) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * kBlock + threadIdx.x;
  atomicAdd(sum, __hmul2(a[i], b[i]));
}

// Each thread one product again, beside a zero in a pair: as many atomics as atomic_half has, of the
// kind of atomic_half2. Where they are much faster, single halves go through a slow path.
__global__ void __launch_bounds__(kBlock) atomic_half_and_zero(const __half* a, const __half* b, __half2* sum) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * kBlock + threadIdx.x;
  atomicAdd(sum, __halves2half2(__hmul(a[i], b[i]), __half(0)));
}

struct Step {
  std::uint32_t grid;
  std::function<absl::Status(LaunchTarget, const LaunchConfig&, const float* in, float* out)> start;
};

// `count` is a multiple of 2 * kBlock.
absl::StatusOr<Step> ladder_step(const std::string& kernel, std::uint64_t count) {
  CGRT_ASSIGN_OR_RETURN(const int sms, kDevice.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const auto blocks = static_cast<std::uint32_t>(count / kBlock), wave = static_cast<std::uint32_t>(8 * sms);
  const auto simple = [](auto code) {
    return [code](LaunchTarget target, const LaunchConfig& config, const float* in, float* out) {
      return launch(target, config, code, in, out);
    };
  };
  const auto counted = [count](auto code) {
    return [code, count](LaunchTarget target, const LaunchConfig& config, const float* in, float* out) {
      return launch(target, config, code, in, count, out);
    };
  };
  if (kernel == "reduce_v0") return Step{blocks, simple(make_kernel<reduce_v0>())};
  if (kernel == "reduce_v1") return Step{blocks, simple(make_kernel<reduce_v1>())};
  if (kernel == "reduce_v2") return Step{blocks, simple(make_kernel<reduce_v2>())};
  if (kernel == "reduce_v3") return Step{blocks / 2, simple(make_kernel<reduce_v3>())};
  if (kernel == "reduce_v4") return Step{blocks / 2, simple(make_kernel<reduce_v4>())};
  if (kernel == "reduce_v5") return Step{blocks / 2, simple(make_kernel<reduce_v5<kBlock>>())};
  if (kernel == "reduce_v6") return Step{1024, counted(make_kernel<reduce_v6<kBlock>>())};
  if (kernel == "reduce_v7") return Step{1024, counted(make_kernel<reduce_v7<kBlock>>())};
  if (kernel == "reduce_v8") return Step{wave, counted(make_kernel<reduce_v8<kBlock>>())};
  return absl::NotFoundError("");
}

template <class T>
absl::StatusOr<std::vector<T>> read_back(StreamRef stream, const DeviceBuffer& buffer) {
  std::vector<T> values(buffer.size_bytes() / sizeof(T));
  CGRT_RETURN_IF_ERROR(copy(stream, values.data(), buffer.data(), buffer.size_bytes()));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return values;
}

// The partial sums must add up to the sum of the array.
absl::Status check_sum(StreamRef stream, const std::string& kernel, const DeviceBuffer& in, const DeviceBuffer& out) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_back<float>(stream, in));
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> partials, read_back<float>(stream, out));
  double expected = 0, found = 0;
  for (const float value : values) expected += static_cast<double>(value);
  for (const float partial : partials) found += static_cast<double>(partial);
  if (std::abs(found - expected) <= 1e-5 * expected) return absl::OkStatus();
  return absl::InternalError(kernel + " gives " + std::to_string(found) + " for " + std::to_string(expected) + ".");
}

}  // namespace

// count
absl::StatusOr<Work> make_reduce_ladder(const Case& test) {
  const std::uint64_t count = test.size_or("count", std::uint64_t{1} << 25);
  CGRT_ASSIGN_OR_RETURN(const Step step, ladder_step(test.kernel, count));
  if (count % (2 * kBlock) != 0 || count == 0 || count > std::uint64_t{1} << 32 ||
      test.type != kernels::DType::kFloat32) {
    return absl::InvalidArgumentError(test.kernel + " takes float32 and a count that is a multiple of 512.");
  }
  return Work{count * 4, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, test.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, step.grid * sizeof(float)));
                const auto set = std::make_shared<std::pair<DeviceBuffer, DeviceBuffer>>(std::move(in), std::move(out));
                const Launch start = [=](LaunchTarget target) {
                  return step.start(target, {.grid = step.grid, .block = kBlock}, set->first.as<const float>(),
                                    set->second.as<float>());
                };
                if (seed == 0) {
                  CGRT_RETURN_IF_ERROR(start(stream));
                  CGRT_RETURN_IF_ERROR(check_sum(stream, test.kernel, set->first, set->second));
                }
                return start;
              }};
}

// count: of the products, which are not computed for their sum
absl::StatusOr<Work> make_atomics(const Case& test) {
  const bool is_pairs = test.kernel == "atomic_half2", is_padded = test.kernel == "atomic_half_and_zero";
  if (!is_pairs && !is_padded && test.kernel != "atomic_half") return absl::NotFoundError("");
  const std::uint64_t count = test.size_or("count", std::uint64_t{1} << 25);
  if (count % (2 * kBlock) != 0 || count == 0 || count > std::uint64_t{1} << 32 ||
      test.type != kernels::DType::kFloat16) {
    return absl::InvalidArgumentError(test.kernel + " takes float16 and a count that is a multiple of 512.");
  }
  const LaunchConfig config{.grid = static_cast<std::uint32_t>(count / kBlock / (is_pairs ? 2 : 1)), .block = kBlock};
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer pair, DeviceBuffer::create(kDevice, sizeof(__half2)));
  const auto sum = std::make_shared<DeviceBuffer>(std::move(pair));
  // As if it were much: one set of buffers and few launches are enough for what is no matter of memory.
  constexpr std::size_t kMuch = std::size_t{1} << 30;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer a, make_numbers(stream, test.type, count, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer b, make_numbers(stream, test.type, count, seed + 1));
    const auto set = std::make_shared<std::pair<DeviceBuffer, DeviceBuffer>>(std::move(a), std::move(b));
    return [=](LaunchTarget target) {
      if (is_pairs) {
        return launch(target, config, make_kernel<atomic_half2>(), set->first.as<const __half2>(),
                      set->second.as<const __half2>(), sum->as<__half2>());
      }
      if (is_padded) {
        return launch(target, config, make_kernel<atomic_half_and_zero>(), set->first.as<const __half>(),
                      set->second.as<const __half>(), sum->as<__half2>());
      }
      return launch(target, config, make_kernel<atomic_half>(), set->first.as<const __half>(),
                    set->second.as<const __half>(), sum->as<__half>());
    };
  };
  // A half of 4096 or more stays what it is when less than 2 is added, and a compare-and-swap that changes
  // nothing makes no other thread try again. The 20 launches of a sample end near 2000.
  const auto reset = [sum](StreamRef stream) { return fill32(stream, sum->data(), 0, 1); };
  return Work{kMuch, make, reset};
}

}  // namespace cgrt::bench
