// What the row kernels share: the arithmetic of a row, and reductions among the threads that share one.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/rows/rows_desc.h"

namespace cgrt::kernels {

template <RowOp kOp>
constexpr bool kIsSoftmax = kOp == RowOp::kSoftmax || kOp == RowOp::kLogSoftmax;

// To a relative error of 2^-22 + |x| * 2^-23, since x / log(2) is rounded; 0 below -87.34.
__device__ __forceinline__ float exp_of(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.4426950408889634f));
  return result;
}

// The largest value so far and the sum of exp(value - largest). Merging two of them rescales the
// smaller (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
struct alignas(8) MaxSum {
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
template <int kLanes, class Value>
__device__ __forceinline__ Value reduce_lanes(Value value) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) value = merge(value, shuffle(value, mask));
  return value;
}
template <class Value>
__device__ __forceinline__ Value reduce_warp(Value value) {
  return reduce_lanes<32>(value);
}

// Of a part of a row: how many elements, their mean, and the sum of their squared deviations from it
// (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979).
struct alignas(16) Moments {
  float count, mean, squares;
};
__device__ __forceinline__ Moments none(Moments) { return {0.0f, 0.0f, 0.0f}; }
// Of the parts that the lanes of a warp have, which are `count` elements together: 0 in a cluster's last block
// when those before it have the whole row.
__device__ __forceinline__ Moments join_warp(Moments part, float count) {
  const float mean = reduce_warp(part.count * part.mean) / fmaxf(count, 1.0f), away = part.mean - mean;
  return {count, mean, reduce_warp(part.squares + part.count * away * away)};
}

// The threads that share a row: some of a warp, or all of it.
template <int kLanesOfRow>
struct LanesPerRow {
  static constexpr int kMostThreads = 128;  // of a block
  static constexpr int kLanes = kLanesOfRow;
  static constexpr bool kIsWarp = true;
  __device__ std::uint32_t row() const { return blockIdx.x * (blockDim.x / kLanes) + threadIdx.x / kLanes; }
  __device__ std::uint32_t thread() const { return threadIdx.x % kLanes; }
  template <class Value>
  __device__ Value reduce(Value mine) const {
    return reduce_lanes<kLanes>(mine);
  }
  // Facts of parts of `count` elements in all, from those of the lanes.
  template <class Part = Moments>
  __device__ Part join(Part of_lanes, float) const {
    return of_lanes;
  }
};
using WarpPerRow = LanesPerRow<32>;

// A block, or a cluster of up to 8, which send each other their partial results.
template <int kMostWarps>
struct BlocksPerRow {
  static constexpr int kMostThreads = 32 * kMostWarps;
  static constexpr int kLanes = 32;
  static constexpr bool kIsWarp = false;
#if __CUDA_ARCH__ >= 900
  __device__ BlocksPerRow() {
    if (blocks() == 1) return;
    if (threadIdx.x == 0) {
      for (int turn = 0; turn < 2; ++turn) barriers()[turn].initialize();
      make_barriers_visible_to_cluster();
    }
    cooperative_groups::cluster_group::barrier_arrive();
  }
  __device__ std::uint32_t blocks() const { return cooperative_groups::cluster_group::num_blocks(); }
  __device__ std::uint32_t block() const { return cooperative_groups::cluster_group::block_rank(); }
#else
  __device__ std::uint32_t blocks() const { return 1; }
  __device__ std::uint32_t block() const { return 0; }
#endif
  __device__ std::uint32_t row() const { return blockIdx.x / blocks(); }
  __device__ std::uint32_t rows() const { return gridDim.x / blocks(); }  // that are worked on at once
  __device__ std::uint32_t thread() const { return block() * blockDim.x + threadIdx.x; }

  // How many reductions were before, which the kernel counts: the places of partial results alternate, as a
  // slow warp may still read what was left for the one before.
  std::uint32_t turn = 0;
  template <class Value>
  __device__ Value reduce(Value mine) const {
    return reduce_warp(of_row(reduce_warp(mine), [](Value parts) { return reduce_warp(parts); }));
  }
  template <class Part = Moments>
  __device__ Part join(Part of_warp, float count) const {
    return join_warp(of_row(of_warp, [](Part parts) { return join_warp(parts, reduce_warp(parts.count)); }), count);
  }

 private:
  // What the parts of the row have, spread over the lanes of each warp: its warps, or its blocks when there are
  // more than 32 warps, the parts of a block joined first.
  template <class Value, class Join>
  __device__ Value of_row(Value of_warp, Join join) const {
    if (blocks() == 1) return of_warps(of_warp);
    const std::uint32_t warps = blockDim.x / 32;
    const bool are_warps = blocks() * warps <= 32;
    if (!are_warps) {
      of_warp = of_warps(of_warp);
      if (threadIdx.x < 32) of_warp = join(of_warp);
    }
    const std::uint32_t of_block = are_warps ? warps : 1;  // values
    return of_cluster(of_warp, block() * of_block + (are_warps ? threadIdx.x / 32 : 0), blocks() * of_block,
                      are_warps || threadIdx.x < 32);
  }

  // What the warps of this block have, spread over the lanes of each.
  template <class Value>
  __device__ Value of_warps(Value of_warp) const {
    __shared__ Value partials[2][kMostWarps];
    Value* const partial = partials[turn % 2];
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane == 0) partial[threadIdx.x / 32] = of_warp;
    __syncthreads();
    return lane < blockDim.x / 32 ? partial[lane] : none(of_warp);
  }

  // What `parts` of the cluster have; a warp of each sends it to all blocks.
  template <class Value>
  __device__ Value of_cluster(Value mine, std::uint32_t part, std::uint32_t parts, bool sends) const {
#if __CUDA_ARCH__ >= 900
    __shared__ Value partials[2][32];
    Value* const partial = partials[turn % 2];
    BulkBarrier& barrier = barriers()[turn % 2];
    const std::uint32_t lane = threadIdx.x % 32;
    if (turn == 0) cooperative_groups::cluster_group::barrier_wait();  // all have begun
    if (threadIdx.x == 0) barrier.expect(parts * sizeof(Value));
    if (sends && lane < blocks()) barrier.send(lane, partial + part, mine);
    barrier.wait_for_cluster(turn / 2 % 2);
    return lane < parts ? partial[lane] : none(mine);
#else
    return mine;
#endif
  }

#if __CUDA_ARCH__ >= 900
  __device__ static BulkBarrier* barriers() {
    __shared__ BulkBarrier of_turns[2];
    return of_turns;
  }
#endif
};

// Which packs of a row, or of a block's share of it, a thread has. Those of kLanes threads lie together, so
// that one address and fixed distances from it serve all: sums of 32 bits, which may wrap, would not.
template <int kPacks, int kLanes = 32>
struct Place {
  std::uint32_t first, count;
  __device__ __forceinline__ Place(std::uint32_t thread, std::uint32_t count)
      : first(thread / kLanes * kLanes * kPacks + thread % kLanes), count(count) {}
  __device__ __forceinline__ std::uint64_t of(int pack) const { return std::uint64_t{first} + kLanes * pack; }
  __device__ __forceinline__ bool has(int pack) const { return static_cast<std::uint32_t>(of(pack)) < count; }
  __device__ __forceinline__ std::uint32_t of_warp() const {
    const std::uint32_t begin = first - threadIdx.x % 32;
    return begin < count ? min(count - begin, 32u * kPacks) : 0;
  }
};

// A part of a row in registers. Packs of one element serve rows that are not aligned to 16 bytes.
template <class T, int kPacks, int kSize, int kLanes = 32>
struct RowPart {
  using Element = T;
  using Pack = std::conditional_t<kSize == 1, T, typename PackOf<T>::Type>;
  using Where = Place<kPacks, kLanes>;
  static constexpr int kPackCount = kPacks, kElements = kSize;
  static constexpr bool kIsHalves = sizeof(T) == 2 && kSize > 1;
  Pack packs[kPacks];

  // Keeps the compiler from unpacking before this: two halves in one register, or two registers and
  // half as many threads.
  __device__ __forceinline__ void stay_packed() {
    if constexpr (kIsHalves) {
#pragma unroll
      for (Pack& pack : packs) {
        asm volatile("" : "+r"(pack.words.x), "+r"(pack.words.y), "+r"(pack.words.z), "+r"(pack.words.w));
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

  // Zeros where there is nothing.
  __device__ __forceinline__ void load(const Pack* base, const Where& place) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) packs[p] = place.has(p) ? base[place.of(p)] : Pack{};
  }

  // Merges reduce(element) of the elements that there are, beginning with `none`. One pack at a time, behind
  // a branch: without it the compiler unpacks, or addresses, all at once and runs out of registers.
  template <class Reduce, class Merge>
  __device__ __forceinline__ float fold(const Where& place, float none, Reduce reduce, Merge merge) const {
    float result = none;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!place.has(p)) continue;
      float values[kSize];
      unpack(packs[p], values);
      float of_pack = reduce(values[0]);
#pragma unroll
      for (int i = 1; i < kSize; ++i) of_pack = merge(of_pack, reduce(values[i]));
      result = merge(result, of_pack);
    }
    return result;
  }
  template <class Reduce>
  __device__ __forceinline__ float sum(const Where& place, Reduce reduce) const {
    return fold(place, 0.0f, reduce, [](float a, float b) { return a + b; });
  }
};

// Before the first row: the weights, which its blocks would otherwise all wait for after their sums. Also before
// predecessors have ended: what they write to them passes through the L2 cache, too.
template <RowOp kOp, class Group>
__device__ __forceinline__ void prefetch_weights(const Group& group, const void* weight, const void* bias,
                                                 std::uint32_t bytes) {
  if (group.row() != 0 || group.thread() != 0) return;
  if (!kIsSoftmax<kOp> && weight != nullptr) prefetch_to_l2(weight, bytes);
  if (kOp == RowOp::kLayerNorm && bias != nullptr) prefetch_to_l2(bias, bytes);
}

// What lies `ahead` rows behind that which this block begins with, so that its block finds it in the L2 cache: more
// is then on its way than registers have room for.
template <int kFloats, class Group, class T>
__device__ __forceinline__ void prefetch_ahead(const Group& group, const T* in, std::uint32_t rows,
                                               std::uint32_t columns, std::uint32_t ahead) {
  if (threadIdx.x != 0) return;
  const std::uint64_t begin = (std::uint64_t{group.row()} + ahead) * columns + group.thread() * kFloats;
  const std::uint64_t end = std::uint64_t{rows} * columns;
  const std::uint32_t count =
      Group::kIsWarp ? blockDim.x / Group::kLanes * columns : min(blockDim.x * kFloats, columns);
  if (begin < end) prefetch_to_l2(in + begin, min(std::uint64_t{count}, end - begin) * sizeof(T));
}

// The weights at `weight`; ones when there are none.
template <class Part>
__device__ __forceinline__ void load_weights(Part& weights, const void* weight, const typename Part::Where& place) {
  if (weight != nullptr) {
    weights.load(static_cast<const typename Part::Pack*>(weight), place);
  } else {
    weights.fill(1);
  }
}

// What write_row needs to know about the whole row.
struct RowFacts {
  float shift, scale;
};

// Powers are kept in place of the elements where that costs no registers; 16-bit elements stay
// packed at the price of a second exponential, so that more rows are worked on at once.
template <RowOp kOp, class Part>
constexpr bool kKeepsPowers = kOp == RowOp::kSoftmax && sizeof(typename Part::Element) == 4;

template <RowOp kOp, class Group, class Part>
__device__ __forceinline__ RowFacts reduce_row(const Group& group, Part& x, const typename Part::Where& place,
                                               float epsilon, std::uint32_t columns) {
  if constexpr (kIsSoftmax<kOp>) {
    const float most = x.fold(
        place, -INFINITY, [](float value) { return value; }, [](float a, float b) { return fmaxf(a, b); });
    x.stay_packed();
    const float base = finite_or_zero(most);
    MaxSum mine{most, 0.0f};
    if constexpr (kKeepsPowers<kOp, Part>) {
#pragma unroll
      for (int p = 0; p < Part::kPackCount; ++p) {
        if (!place.has(p)) continue;
        float values[Part::kElements], of_pack = 0;
        unpack(x.packs[p], values);
#pragma unroll
        for (float& value : values) of_pack += value = exp_of(value - base);
        mine.sum += of_pack;
        pack_into(x.packs[p], values);
      }
    } else {
      mine.sum = x.sum(place, [=](float value) { return exp_of(value - base); });
    }
    const MaxSum all = group.reduce(mine);
    if constexpr (kKeepsPowers<kOp, Part>) {
      // What is all -inf here has powers of 0, whose factor would overflow when the largest of the row is small.
      // Not 0, but 0 or NaN as the sum is.
      const bool is_nothing = most == -INFINITY && all.most != -INFINITY;
      return {0.0f, is_nothing ? 0.0f * all.sum : exp_of(base - finite_or_zero(all.most)) / all.sum};
    }
    return {-(kOp == RowOp::kSoftmax ? finite_or_zero(all.most) : all.most), -logf(all.sum)};
  } else {
    const float all = static_cast<float>(columns);
    if constexpr (kOp == RowOp::kRmsNorm) {
      const float squares = x.sum(place, [](float value) { return value * value; });
      return {0.0f, rsqrtf(group.reduce(squares) / all + epsilon)};
    } else {
      float elements = all;
      const float sum = x.sum(place, [](float value) { return value; });
      if constexpr (!Group::kIsWarp) elements = static_cast<float>(place.of_warp() * Part::kElements);
      const float mean = __fdividef(reduce_lanes<Group::kLanes>(sum), fmaxf(elements, 1.0f));
      x.stay_packed();
      const float squares = x.sum(place, [=](float value) { return (value - mean) * (value - mean); });
      const Moments moments = group.join({elements, mean, reduce_lanes<Group::kLanes>(squares)}, all);
      return {-moments.mean, rsqrtf(moments.squares / all + epsilon)};
    }
  }
}

// Held weights and biases are parts like x; others are read from where they are. Null: ones, zeros.
template <RowOp kOp, class Part>
__device__ __forceinline__ void write_row(const RowFacts& facts, Part& x, Part* held_weight, Part* held_bias,
                                          const typename Part::Pack* weight, const typename Part::Pack* bias,
                                          typename Part::Pack* out, const typename Part::Where& place) {
  constexpr int kSize = Part::kElements;
  x.stay_packed();
  if (held_weight != nullptr) held_weight->stay_packed();
  if (held_bias != nullptr) held_bias->stay_packed();
#pragma unroll
  for (int p = 0; p < Part::kPackCount; ++p) {
    if (!place.has(p)) continue;
    float values[kSize], other[kSize];
    unpack(x.packs[p], values);
    if constexpr (kKeepsPowers<kOp, Part>) {
#pragma unroll
      for (float& value : values) value *= facts.scale;
    } else if constexpr (kIsSoftmax<kOp>) {
#pragma unroll
      for (float& value : values) {
        value = value + facts.shift + facts.scale;
        if constexpr (kOp == RowOp::kSoftmax) value = exp_of(value);
      }
    } else {
#pragma unroll
      for (float& value : values) value = (kOp == RowOp::kLayerNorm ? value + facts.shift : value) * facts.scale;
      if (held_weight != nullptr || weight != nullptr) {
        unpack(held_weight != nullptr ? held_weight->packs[p] : weight[place.of(p)], other);
#pragma unroll
        for (int i = 0; i < kSize; ++i) values[i] *= other[i];
      }
      if (kOp == RowOp::kLayerNorm && (held_bias != nullptr || bias != nullptr)) {
        unpack(held_bias != nullptr ? held_bias->packs[p] : bias[place.of(p)], other);
#pragma unroll
        for (int i = 0; i < kSize; ++i) values[i] += other[i];
      }
    }
    pack_into(out[place.of(p)], values);
  }
}

}  // namespace cgrt::kernels
