#include <cstdint>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/dispatch.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/norm/backward.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {
namespace {

// `count` elements to shared memory, 16 bytes at a time with what is around them, but nothing from outside of `first`
// to `last`. They come to lie behind `to` as far as `from` is behind a multiple of 16 bytes.
template <class T>
__device__ __forceinline__ void copy_window(unsigned char* to, const T* from, std::uint32_t count, const T* first,
                                            const T* last) {
  const auto begin = reinterpret_cast<std::uintptr_t>(from) / 16 * 16;
  const auto end = reinterpret_cast<std::uintptr_t>(from + count);
  for (std::uint32_t i = threadIdx.x * 16; begin + i < end; i += blockDim.x * 16) {
    const T* const piece = reinterpret_cast<const T*>(begin + i);
    if (piece >= first && piece + kPackSize<T> <= last) {
      copy_asynchronously(to + i, piece);
      continue;
    }
    for (int e = 0; e < kPackSize<T>; ++e) {
      if (piece + e >= first && piece + e < last) reinterpret_cast<T*>(to + i)[e] = piece[e];
    }
  }
}

constexpr int threads_of(int elements) { return elements == 8 ? static_cast<int>(kMaxShort) / 8 : 512; }

// A block, or a cluster of blocks, takes a row at a time; each thread has the same columns of all rows and keeps their
// sums in registers. The next rows are in flight into shared memory meanwhile. Where rows are not aligned they lie
// there as in memory and are read shifted; results go back through a warp's part of shared memory, out of which they
// are stored in whole 16 bytes.
template <NormOp kOp, class T, int kElements, Alignment kAlignment>
__global__ void __launch_bounds__(threads_of(kElements), 1) norm_backward_summed(NormBackwardParams p) {
  constexpr int kPacks = kElements / kPackSize<T>, kSize = kPackSize<T>;
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  using Row = Tile<T, kPacks, 32, Alignment::kAligned>;  // of columns
  using Pack = typename Row::Pack;
  extern __shared__ __align__(16) unsigned char shared[];
  ClusterPerRow<16> group;
  const std::uint32_t share = blockDim.x * kElements, begin = min(group.block() * share, p.columns);
  const std::uint32_t count = min(share, p.columns - begin);
  // The last pack of an unaligned row may have fewer columns: zeros stand for the rest.
  const typename Row::Where place(static_cast<const T*>(nullptr), (count + kSize - 1) / kSize * kSize, threadIdx.x);
  // Unaligned: what lies around, and a pack more for each warp's results.
  const std::uint32_t window_bytes = share * sizeof(T) + (kIsAligned ? 0 : 32 + blockDim.x / 2);
  const auto window = [&](std::uint32_t stage, int array) { return shared + (stage * 2 + array) * window_bytes; };
  const T *const all_x = static_cast<const T*>(p.x), *const all_dy = static_cast<const T*>(p.dy);
  const auto fetch_array = [&](std::uint32_t stage, int array, const T* all, std::uint64_t row) {
    const T* const from = all + row * p.columns + begin;
    if constexpr (kIsAligned) {
      Pack* const to = reinterpret_cast<Pack*>(window(stage, array)) + threadIdx.x;
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        if (place.has(i)) copy_asynchronously(to + i * blockDim.x, from + place.of(i));
      }
    } else {
      copy_window(window(stage, array), from, count, all, all + std::uint64_t{p.rows} * p.columns);
    }
  };
  const auto fetch = [&](std::uint32_t stage, std::uint64_t row) {
    if (row < p.rows) fetch_array(stage, 0, all_x, row), fetch_array(stage, 1, all_dy, row);
    end_copy_group();
  };
  const auto take = [&](Row& tile, std::uint32_t stage, int array, const T* all, std::uint64_t row) {
    if constexpr (kIsAligned) {
      const Pack* const from = reinterpret_cast<const Pack*>(window(stage, array)) + threadIdx.x;
#pragma unroll
      for (int i = 0; i < kPacks; ++i) tile.packs[i] = place.has(i) ? from[i * blockDim.x] : Pack{};
    } else {
      const auto shift = reinterpret_cast<std::uintptr_t>(all + row * p.columns + begin) % 16;
      const T* const from = reinterpret_cast<const T*>(window(stage, array) + shift);
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        tile.packs[i] = Pack{};
        if (!place.has(i)) continue;
        tile.packs[i] = load_pack(from + place.of(i), from + share + kSize);
        if (place.of(i) + kSize <= count) continue;
        float values[kSize];
        unpack(tile.packs[i], values);
#pragma unroll
        for (int k = 0; k < kSize; ++k) values[k] = place.of(i) + k < count ? values[k] : 0.0f;
        pack_into(tile.packs[i], values);
      }
    }
  };

  wait_for_predecessors();
  let_dependents_start();
  std::uint64_t row = group.row();
#pragma unroll
  for (int s = 0; s < kSumStages - 1; ++s) fetch(s, row + std::uint64_t{group.rows()} * s);
  // Weights, of which the last pack's may end before it does.
  const Columns<T> weight(p.weight, begin, p.columns);
  Row weights;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    float values[kSize];
#pragma unroll
    for (int k = 0; k < kSize; ++k) values[k] = weight.is_there() ? 0.0f : 1.0f;
    if (weight.is_there() && place.has(i)) {
      if constexpr (kIsAligned) {
        load_values<kAlignment>(values, weight.begin, place.of(i), weight.end);
      } else {
#pragma unroll
        for (int k = 0; k < kSize; ++k) {
          if (place.of(i) + k < count) values[k] = to_float(weight.begin[place.of(i) + k]);
        }
      }
    }
    pack_into(weights.packs[i], values);
  }

  const float all = static_cast<float>(p.columns);
  float of_weight[kPacks][kSize] = {}, of_bias[kPacks][kSize] = {};
  for (std::uint32_t stage = 0; row < p.rows; row += group.rows(), group.next()) {
    if constexpr (!kIsAligned) {
      wait_for_copies<kSumStages - 2>();
      __syncthreads();  // all have what they asked for, and are done with the stage that is free
    }
    const std::uint32_t free = stage == 0 ? kSumStages - 1 : stage - 1;
    fetch(free, row + std::uint64_t{group.rows()} * (kSumStages - 1));
    if constexpr (kIsAligned) wait_for_copies<kSumStages - 1>();
    Row x, dy;
    take(x, stage, 0, all_x, row);
    take(dy, stage, 1, all_dy, row);
    unsigned char* const done = window(stage, 0);
    stage = stage == kSumStages - 1 ? 0 : stage + 1;

    float mean = 0, elements = all;
    if constexpr (kOp == NormOp::kLayerNorm) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        float values[kSize];
        unpack(x.packs[i], values);
#pragma unroll
        for (const float value : values) sum += value;
      }
      const std::uint32_t first = place.first - threadIdx.x % 32, end = (place.first / 32 * 32 + 32 * kPacks) * kSize;
      elements = static_cast<float>(min(end, count) - min(first * kSize, count));
      mean = __fdividef(reduce_lanes(sum), fmaxf(elements, 1.0f));
      x.stay_packed();
    }
    float squares = 0, sum = 0, product = 0;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (!place.has(i)) continue;
      float values[kSize], gradients[kSize], weighted[kSize], of_pack = 0;
      unpack(x.packs[i], values);
      unpack(dy.packs[i], gradients);
      unpack(weights.packs[i], weighted);
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
        float centered = values[k] - mean;
        if (!kIsAligned && kOp == NormOp::kLayerNorm && place.of(i) + k >= count) centered = 0;
        const float g = gradients[k] * weighted[k];
        of_pack += centered * centered;
        sum += g;
        product += g * centered;
      }
      squares += of_pack;
    }
    GradientFacts facts;
    if constexpr (kOp == NormOp::kLayerNorm) {
      facts = gradient_facts(
          group.join(Comoments{elements, mean, reduce_lanes(squares), reduce_lanes(sum), reduce_lanes(product)}, all),
          all, p.epsilon);
    } else {
      facts = gradient_facts(group.reduce(Products{squares, product}), all, p.epsilon);
    }
    x.stay_packed();
    dy.stay_packed();
    weights.stay_packed();
    T* const dx = static_cast<T*>(p.dx) + row * p.columns + begin;
    // A warp's columns, in the stage that its block has read.
    const std::uint32_t first = place.first - threadIdx.x % 32;
    T* const bounce = reinterpret_cast<T*>(done) + (first + threadIdx.x / 32) * kSize;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (!place.has(i)) continue;
      float values[kSize], gradients[kSize], weighted[kSize];
      unpack(x.packs[i], values);
      unpack(dy.packs[i], gradients);
      unpack(weights.packs[i], weighted);
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
        float normalized;
        values[k] = gradient_of(facts, values[k], gradients[k], weighted[k], normalized);
        of_weight[i][k] += gradients[k] * normalized;
        if (kOp == NormOp::kLayerNorm) of_bias[i][k] += gradients[k];
      }
      if constexpr (kIsAligned) {
        store_values(dx + place.of(i), values);
      } else {
        store_values(bounce + place.of(i) - first * kSize, values);
      }
    }
    if constexpr (!kIsAligned) {
      __syncwarp();
      const std::uint32_t run = min(32u * kPacks * kSize, count - min(first * kSize, count));
      using Out = Place<T, kPacks, 32, Alignment::kUnaligned>;
      T* const out = dx + first * kSize;
      const Out where(out, run, threadIdx.x % 32);
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        if (where.has(i)) {
          *reinterpret_cast<Pack*>(out + where.of(i)) = load_pack(bounce + where.of(i), bounce + run + kSize);
        }
      }
      if (where.has_single()) out[where.single] = bounce[where.single];
    }
  }

  float* const mine = p.partials + std::uint64_t{group.row()} * p.columns + begin;
  const auto leave = [&](float* to, const float(&sums)[kPacks][kSize]) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (!place.has(i)) continue;
#pragma unroll
      for (int k = 0; k < kSize; k += kIsAligned ? 4 : 1) {
        if constexpr (kIsAligned) {
          *reinterpret_cast<float4*>(to + place.of(i) + k) = {sums[i][k], sums[i][k + 1], sums[i][k + 2],
                                                              sums[i][k + 3]};
        } else if (place.of(i) + k < count) {
          to[place.of(i) + k] = sums[i][k];
        }
      }
    }
  };
  leave(mine, of_weight);
  if (kOp == NormOp::kLayerNorm) leave(mine + std::uint64_t{p.groups} * p.columns, of_bias);
}

// Columns of what the groups have summed, always added in the same order.
template <class T>
__global__ void __launch_bounds__(kSumColumns* kSumLanes) sum_partials(SumPartialsParams p) {
  __shared__ float sums[kSumLanes][kSumColumns];
  const std::uint32_t column = blockIdx.x * kSumColumns + threadIdx.x, lane = threadIdx.y;
  const bool is_bias = blockIdx.y == 1;
  T* const out = static_cast<T*>(is_bias ? p.dbias : p.dweight);
  const float* const plane = p.partials + (is_bias ? std::uint64_t{p.groups} * p.columns : 0);
  wait_for_predecessors();
  let_dependents_start();
  float sum = 0;
  if (column < p.columns) {
#pragma unroll 16
    for (std::uint32_t group = lane; group < p.groups; group += kSumLanes) {
      sum += plane[std::uint64_t{group} * p.columns + column];
    }
  }
  sums[lane][threadIdx.x] = sum;
  __syncthreads();
  if (lane != 0 || column >= p.columns) return;
#pragma unroll
  for (std::uint32_t other = 1; other < kSumLanes; ++other) sum += sums[other][threadIdx.x];
  out[column] = from_float<T>(sum);
}

template <class T>
void sum_on_host(HostGrid grid, SumPartialsParams p) {
  for (std::uint64_t plane = 0; plane < grid.grid.y; ++plane) {
    T* const out = static_cast<T*>(plane == 1 ? p.dbias : p.dweight);
    for (std::uint64_t i = 0; i < p.columns; ++i) {
      double sum = 0;
      for (std::uint64_t g = 0; g < p.groups; ++g) {
        sum += static_cast<double>(p.partials[(plane * p.groups + g) * p.columns + i]);
      }
      out[i] = from_float<T>(static_cast<float>(sum));
    }
  }
}

// Sums of layer_norm's two arrays would not leave enough registers for 512 threads.
template <NormOp kOp, class T>
constexpr bool kHasLong = kOp == NormOp::kRmsNorm && sizeof(T) == 2;

template <NormOp kOp, class T, int kElements, Alignment kAlignment>
NormBackwardKernel summed() {
  return make_kernel<norm_backward_summed<kOp, T, kElements, kAlignment>, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = threads_of(kElements)}>();
}

template <NormOp kOp, class T, Alignment kAlignment>
NormBackwardKernel of_regime(NormSumRegime regime) {
  switch (regime) {
    case NormSumRegime::kShort: return summed<kOp, T, 8, kAlignment>();
    case NormSumRegime::kLong:
      if constexpr (kHasLong<kOp, T>) return summed<kOp, T, 32, kAlignment>();
      break;
    default: break;
  }
  return summed<kOp, T, 16, kAlignment>();
}

template <class T>
SumPartialsKernel sum_of_type() {
  return make_kernel<sum_partials<T>, sum_on_host<T>, KernelResources{.registers = 32, .max_threads = 1024}>();
}

}  // namespace

NormBackwardKernel norm_summed_kernel(NormOp op, DType type, NormSumRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? of_regime<NormOp::kLayerNorm, T, kAlignment>(regime)
                                    : of_regime<NormOp::kRmsNorm, T, kAlignment>(regime);
  });
}

SumPartialsKernel sum_partials_kernel(DType type) {
  switch (type) {
    case DType::kFloat32: return sum_of_type<float>();
    case DType::kFloat16: return sum_of_type<__half>();
    default: return sum_of_type<__nv_bfloat16>();
  }
}

}  // namespace cgrt::kernels
