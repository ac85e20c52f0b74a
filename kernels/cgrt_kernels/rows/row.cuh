// What the row kernels share: the arithmetic of a row, and reductions among the threads that share one.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/rows/op.h"

namespace cgrt::kernels {

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

inline constexpr int kMostWarps = 16;  // of a block

// The threads that share a row.
struct WarpPerRow {
  std::uint32_t turn = 0;  // as below; warps need none
  __device__ std::uint32_t row() const { return blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; }
  __device__ std::uint32_t rows() const { return gridDim.x * (blockDim.x / 32); }  // that are worked on at once
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
  __device__ std::uint32_t rows() const { return gridDim.x / blocks(); }
  __device__ std::uint32_t thread() const { return block() * blockDim.x + threadIdx.x; }
  __device__ std::uint32_t threads() const { return blocks() * blockDim.x; }

  // 0 and 1 in turn from row to row: a slow block may still read what the others left for the row before.
  std::uint32_t turn = 0;

  // kNth: the reductions of a row have places of their own, too.
  template <int kNth, class Value>
  __device__ Value reduce(Value mine) const {
    __shared__ Value partials[2][kMostWarps];
    Value* const partial = partials[turn];
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

// A row in the registers of the threads that share it: each has every threads()-th pack of its part.
template <class T, int kPacks>
struct RowPart {
  using Pack = typename PackOf<T>::Type;
  static constexpr int kSize = kPackSize<T>;
  Pack packs[kPacks];

  // Keeps the compiler from unpacking before this: two halves in one register, or two registers and
  // half as many threads.
  __device__ __forceinline__ void stay_packed() {
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (Pack& pack : packs) {
        auto& words = reinterpret_cast<std::uint32_t(&)[4]>(pack);
        asm volatile("" : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3]));
      }
    }
  }

  __device__ __forceinline__ void fill(float value) {
    float values[kSize];
#pragma unroll
    for (float& one : values) one = value;
#pragma unroll
    for (Pack& pack : packs) pack_into(pack, values);
  }

  // `count` packs at `base`, of which this is thread `thread` of `threads`; the others become zeros.
  __device__ __forceinline__ void load(const Pack* base, std::uint32_t thread, std::uint32_t threads,
                                       std::uint32_t count) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const std::uint32_t at = thread + static_cast<std::uint32_t>(p) * threads;
      packs[p] = at < count ? base[at] : Pack{};
    }
  }
};

// The operation on a row whose parts the threads of `group` have loaded. When kHeld, `weights` is the
// same part of the weights; otherwise they are read here, from `weight`, as the biases always are.
template <RowOp kOp, class T, int kPacks, bool kHeld, class Group>
__device__ __forceinline__ void finish_row(const Group& group, RowPart<T, kPacks>& x, RowPart<T, kPacks>& weights,
                                           const typename PackOf<T>::Type* weight, const typename PackOf<T>::Type* bias,
                                           float epsilon, std::uint32_t columns, typename PackOf<T>::Type* out,
                                           std::uint32_t thread, std::uint32_t threads, std::uint32_t count) {
  constexpr int kSize = kPackSize<T>;
  using Pack = typename PackOf<T>::Type;
  const auto position = [&](int p) { return thread + static_cast<std::uint32_t>(p) * threads; };
  if constexpr (kIsSoftmax<kOp>) {
    float values[kPacks][kSize];
    MaxSum mine{-INFINITY, 0.0f};
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      unpack(x.packs[p], values[p]);
      if (position(p) >= count) {
#pragma unroll
        for (float& value : values[p]) value = -INFINITY;
      }
#pragma unroll
      for (float value : values[p]) mine.most = fmaxf(mine.most, value);
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
    const float scale = exp_of(base - finite_or_zero(all.most)) / all.sum, shift = -all.most - logf(all.sum);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (position(p) >= count) continue;
#pragma unroll
      for (float& value : values[p]) value = kOp == RowOp::kSoftmax ? value * scale : value + shift;
      pack_into(out[position(p)], values[p]);
    }
  } else {
    const float share = 1.0f / static_cast<float>(columns);
    float shift = 0;
    if constexpr (kOp == RowOp::kLayerNorm) {
      float sum = 0;
#pragma unroll
      for (const Pack& pack : x.packs) {
        float values[kSize];
        unpack(pack, values);
#pragma unroll
        for (float value : values) sum += value;
      }
      shift = -group.template reduce<0>(sum) * share;
      x.stay_packed();
    }
    float squares = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (kOp == RowOp::kLayerNorm && position(p) >= count) continue;  // zeros elsewhere add nothing
      float values[kSize];
      unpack(x.packs[p], values);
#pragma unroll
      for (float value : values) squares += (value + shift) * (value + shift);
    }
    const float scale = rsqrtf(group.template reduce<1>(squares) * share + epsilon);
    x.stay_packed();
    if (kHeld) weights.stay_packed();
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (position(p) >= count) continue;
      float values[kSize], other[kSize];
      unpack(x.packs[p], values);
#pragma unroll
      for (float& value : values) value = (value + shift) * scale;
      if (kHeld || weight != nullptr) {
        unpack(kHeld ? weights.packs[p] : weight[position(p)], other);
#pragma unroll
        for (int i = 0; i < kSize; ++i) values[i] *= other[i];
      }
      if (kOp == RowOp::kLayerNorm && bias != nullptr) {
        unpack(bias[position(p)], other);
#pragma unroll
        for (int i = 0; i < kSize; ++i) values[i] += other[i];
      }
      pack_into(out[position(p)], values);
    }
  }
}

}  // namespace cgrt::kernels
