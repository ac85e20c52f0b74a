#include <cooperative_groups.h>

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/rows/op.h"
#include "cgrt_kernels/rows/op_reference.h"

namespace cgrt::kernels {
namespace {

constexpr int kMostWarps = 16;  // of a block

template <RowOp kOp>
constexpr bool kIsSoftmax = kOp == RowOp::kSoftmax || kOp == RowOp::kLogSoftmax;

__device__ __forceinline__ float exp_of(float x) {  // within 2 units in the last place; 0 below -87
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.4426950408889634f));
  return result;
}

// The largest value so far and the sum of exp(value - largest). Merging two of them rescales the
// smaller (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
struct MaxSum {
  float most, sum;
};
__device__ __forceinline__ float finite_or_zero(float most) { return most == -INFINITY ? 0.0f : most; }
__device__ __forceinline__ MaxSum merge(MaxSum a, MaxSum b) {
  const float most = fmaxf(a.most, b.most), base = finite_or_zero(most);
  return {most, a.sum * exp_of(a.most - base) + b.sum * exp_of(b.most - base)};
}
__device__ __forceinline__ float merge(float a, float b) { return a + b; }
__device__ __forceinline__ MaxSum none(MaxSum) { return {-INFINITY, 0.0f}; }
__device__ __forceinline__ float none(float) { return 0.0f; }

__device__ __forceinline__ float shuffle(float value, int mask) { return __shfl_xor_sync(~0u, value, mask); }
__device__ __forceinline__ MaxSum shuffle(MaxSum value, int mask) {
  return {shuffle(value.most, mask), shuffle(value.sum, mask)};
}
template <class Value>
__device__ __forceinline__ Value reduce_warp(Value value) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value = merge(value, shuffle(value, mask));
  return value;
}

// The threads that share a row.
struct WarpPerRow {
  __device__ std::uint32_t row() const { return blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; }
  __device__ std::uint32_t thread() const { return threadIdx.x % 32; }
  __device__ std::uint32_t threads() const { return 32; }
  template <int kNth, class Value>
  __device__ Value reduce(Value mine) const {
    return reduce_warp(mine);
  }
  __device__ void leave() const {}
};

// A block, or a cluster of blocks, which read each other's partial results.
struct BlocksPerRow {
#if __CUDA_ARCH__ >= 900
  __device__ std::uint32_t blocks() const { return cooperative_groups::cluster_group::num_blocks(); }
  __device__ std::uint32_t block() const { return cooperative_groups::cluster_group::block_rank(); }
  template <class Value>
  __device__ const Value* of_block(const Value* mine, std::uint32_t block) const {
    return cooperative_groups::cluster_group::map_shared_rank(const_cast<Value*>(mine), static_cast<int>(block));
  }
  __device__ void synchronize() const {
    if (blocks() == 1) {
      __syncthreads();
    } else {
      cooperative_groups::cluster_group::sync();
    }
  }
  // Nobody ends while another may still read from it.
  __device__ void leave() const {
    if (blocks() > 1) cooperative_groups::cluster_group::sync();
  }
#else
  __device__ std::uint32_t blocks() const { return 1; }
  __device__ std::uint32_t block() const { return 0; }
  template <class Value>
  __device__ const Value* of_block(const Value* mine, std::uint32_t) const {
    return mine;
  }
  __device__ void synchronize() const { __syncthreads(); }
  __device__ void leave() const {}
#endif
  __device__ std::uint32_t row() const { return blockIdx.x / blocks(); }
  __device__ std::uint32_t thread() const { return block() * blockDim.x + threadIdx.x; }
  __device__ std::uint32_t threads() const { return blocks() * blockDim.x; }

  // kNth: the reductions of a kernel have places of their own, so that none waits for readers of another.
  template <int kNth, class Value>
  __device__ Value reduce(Value mine) const {
    __shared__ Value partial[kMostWarps];
    const std::uint32_t lane = threadIdx.x % 32, warps = blockDim.x / 32;
    mine = reduce_warp(mine);
    if (lane == 0) partial[threadIdx.x / 32] = mine;
    synchronize();
    Value value = none(mine);
    for (std::uint32_t from = lane / kMostWarps; from < blocks(); from += 32 / kMostWarps) {
      if (lane % kMostWarps < warps) value = merge(value, of_block(partial, from)[lane % kMostWarps]);
    }
    return reduce_warp(value);
  }
};

// One row per group of threads, read once: kFloats of it stay in the registers of each thread, in
// packs of 16 bytes, neighbours in neighbouring threads.
template <RowOp kOp, class T, class Group, int kFloats>
__global__ void __launch_bounds__(std::is_same_v<Group, WarpPerRow> ? 128 : 512)
    rows_in_registers(void* out, const void* in, const void* weight, const void* bias, float epsilon,
                      std::uint32_t rows, std::uint32_t columns) {
  constexpr int kSize = kPackSize<T>, kPacks = kFloats / kSize;
  const Group group;
  const std::uint32_t row = group.row(), thread = group.thread(), threads = group.threads();
  if (row >= rows) return;  // whole warps; blocks have a row each
  const std::uint32_t packs = columns / kSize;
  const std::uint64_t first = std::uint64_t{row} * packs;
  const T* const x = static_cast<const T*>(in);

  float values[kPacks][kSize];
  wait_for_predecessors();
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const std::uint32_t at = thread + static_cast<std::uint32_t>(p) * threads;
    if (at < packs) {
      load_pack(x, first + at, values[p]);
    } else {
#pragma unroll
      for (float& value : values[p]) value = kIsSoftmax<kOp> ? -INFINITY : 0.0f;
    }
  }
  let_dependents_start();

  float scale = 1, shift = 0;
  if constexpr (kIsSoftmax<kOp>) {
    MaxSum mine{-INFINITY, 0.0f};
#pragma unroll
    for (auto& pack : values) {
#pragma unroll
      for (float value : pack) mine.most = fmaxf(mine.most, value);
    }
    const float base = finite_or_zero(mine.most);
#pragma unroll
    for (auto& pack : values) {
#pragma unroll
      for (float& value : pack) {
        const float power = exp_of(value - base);
        mine.sum += power;
        if constexpr (kOp == RowOp::kSoftmax) value = power;
      }
    }
    const MaxSum all = group.template reduce<0>(mine);
    if constexpr (kOp == RowOp::kSoftmax) {
      scale = exp_of(base - finite_or_zero(all.most)) / all.sum;
    } else {
      shift = -all.most - logf(all.sum);
    }
  } else {
    const float share = 1.0f / static_cast<float>(columns);
    if constexpr (kOp == RowOp::kLayerNorm) {
      float sum = 0;
#pragma unroll
      for (auto& pack : values) {
#pragma unroll
        for (float value : pack) sum += value;
      }
      shift = -group.template reduce<0>(sum) * share;
    }
    float squares = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (thread + static_cast<std::uint32_t>(p) * threads >= packs) continue;
#pragma unroll
      for (float value : values[p]) squares += (value + shift) * (value + shift);
    }
    scale = rsqrtf(group.template reduce<1>(squares) * share + epsilon);
  }

#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const std::uint32_t at = thread + static_cast<std::uint32_t>(p) * threads;
    if (at >= packs) continue;
    float(&pack)[kSize] = values[p];
    if constexpr (kOp == RowOp::kSoftmax) {
#pragma unroll
      for (float& value : pack) value *= scale;
    } else {
#pragma unroll
      for (float& value : pack) value = (value + shift) * scale;
      float other[kSize];
      if (!kIsSoftmax<kOp> && weight != nullptr) {
        load_pack(static_cast<const T*>(weight), at, other);
#pragma unroll
        for (int i = 0; i < kSize; ++i) pack[i] *= other[i];
      }
      if (kOp == RowOp::kLayerNorm && bias != nullptr) {
        load_pack(static_cast<const T*>(bias), at, other);
#pragma unroll
        for (int i = 0; i < kSize; ++i) pack[i] += other[i];
      }
    }
    store_pack(static_cast<T*>(out), first + at, pack);
  }
  group.leave();
}

// A block per row, element by element: rows of any length at any address.
template <RowOp kOp, class T>
__global__ void __launch_bounds__(512) rows_any(void* out, const void* in, const void* weight, const void* bias,
                                                float epsilon, std::uint32_t, std::uint32_t columns) {
  const BlocksPerRow group;
  const T* const x = static_cast<const T*>(in) + std::uint64_t{blockIdx.x} * columns;
  T* const y = static_cast<T*>(out) + std::uint64_t{blockIdx.x} * columns;
  wait_for_predecessors();

  float scale = 1, shift = 0;
  if constexpr (kIsSoftmax<kOp>) {
    MaxSum mine{-INFINITY, 0.0f};
    for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) mine = merge(mine, MaxSum{to_float(x[i]), 1.0f});
    const MaxSum all = group.reduce<0>(mine);
    shift = kOp == RowOp::kSoftmax ? -finite_or_zero(all.most) : -all.most - logf(all.sum);
    scale = 1 / all.sum;
  } else {
    const float share = 1.0f / static_cast<float>(columns);
    if constexpr (kOp == RowOp::kLayerNorm) {
      float sum = 0;
      for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) sum += to_float(x[i]);
      shift = -group.reduce<0>(sum) * share;
    }
    float squares = 0;
    for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
      const float value = to_float(x[i]) + shift;
      squares += value * value;
    }
    scale = rsqrtf(group.reduce<1>(squares) * share + epsilon);
  }

  for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
    float value = to_float(x[i]) + shift;
    if constexpr (kOp == RowOp::kSoftmax) value = exp_of(value);
    if constexpr (kOp != RowOp::kLogSoftmax) value *= scale;
    if (!kIsSoftmax<kOp> && weight != nullptr) value *= to_float(static_cast<const T*>(weight)[i]);
    if (kOp == RowOp::kLayerNorm && bias != nullptr) value += to_float(static_cast<const T*>(bias)[i]);
    y[i] = from_float<T>(value);
  }
}

template <RowOp kOp, class T>
void rows_on_host(HostGrid, void* out, const void* in, const void* weight, const void* bias, float epsilon,
                  std::uint32_t rows, std::uint32_t columns) {
  const auto read = [columns](const void* from, std::uint64_t first) {
    std::vector<double> values(from != nullptr ? columns : 0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(to_float(static_cast<const T*>(from)[first + i]));
    }
    return values;
  };
  const std::vector<double> weights = read(weight, 0), biases = read(bias, 0);
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::vector<double> values = read(in, row * columns);
    row_reference(kOp, values, weight != nullptr ? weights.data() : nullptr, bias != nullptr ? biases.data() : nullptr,
                  epsilon);
    for (std::uint32_t i = 0; i < columns; ++i) {
      static_cast<T*>(out)[row * columns + i] = from_float<T>(static_cast<float>(values[i]));
    }
  }
}

template <auto kKernel, RowOp kOp, class T>
RowsKernel with_host_body() {
  return make_kernel<kKernel, rows_on_host<kOp, T>, KernelResources{.registers = 64, .max_threads = 512}>();
}

template <RowOp kOp, class T>
RowsKernel of_regime(RowRegime regime) {
  switch (regime) {
    case RowRegime::kWarp8: return with_host_body<rows_in_registers<kOp, T, WarpPerRow, 8>, kOp, T>();
    case RowRegime::kWarp16: return with_host_body<rows_in_registers<kOp, T, WarpPerRow, 16>, kOp, T>();
    case RowRegime::kWarp32: return with_host_body<rows_in_registers<kOp, T, WarpPerRow, 32>, kOp, T>();
    case RowRegime::kBlock8: return with_host_body<rows_in_registers<kOp, T, BlocksPerRow, 8>, kOp, T>();
    case RowRegime::kBlock32: return with_host_body<rows_in_registers<kOp, T, BlocksPerRow, 32>, kOp, T>();
    case RowRegime::kAny: break;
  }
  return with_host_body<rows_any<kOp, T>, kOp, T>();
}

template <RowOp kOp>
RowsKernel of_type(DType type, RowRegime regime) {
  switch (type) {
    case DType::kFloat32: return of_regime<kOp, float>(regime);
    case DType::kFloat16: return of_regime<kOp, __half>(regime);
    case DType::kBFloat16: break;
  }
  return of_regime<kOp, __nv_bfloat16>(regime);
}

}  // namespace

RowsKernel rows_kernel(RowOp op, DType type, RowRegime regime) {
  switch (op) {
    case RowOp::kSoftmax: return of_type<RowOp::kSoftmax>(type, regime);
    case RowOp::kLogSoftmax: return of_type<RowOp::kLogSoftmax>(type, regime);
    case RowOp::kLayerNorm: return of_type<RowOp::kLayerNorm>(type, regime);
    case RowOp::kRmsNorm: break;
  }
  return of_type<RowOp::kRmsNorm>(type, regime);
}

}  // namespace cgrt::kernels
