// Tiles of rows: where they are, their edges, and sums of packs among the threads of a block.
#pragma once

#include <cstdint>
#include <cstring>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/scan/kernels.h"

namespace cgrt::kernels {

inline constexpr int kScanMaxWarps = kScanMaxThreads / 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

template <class T>
struct alignas(16) Plain {
  T value[kPackSize<T>];
};
template <class T>
__device__ __forceinline__ void unpack(const Plain<T>& pack, T (&values)[kPackSize<T>]) {
#pragma unroll
  for (int i = 0; i < kPackSize<T>; ++i) values[i] = pack.value[i];
}
template <class T>
__device__ __forceinline__ void pack_into(Plain<T>& pack, const T (&values)[kPackSize<T>]) {
#pragma unroll
  for (int i = 0; i < kPackSize<T>; ++i) pack.value[i] = values[i];
}

// Signed integers are scanned as unsigned ones, which may wrap around.
template <class T>
struct ElementOf {
  using Sum = T;
  using Pack = Plain<T>;
};
template <>
struct ElementOf<__half> {
  using Sum = float;
  using Pack = Pairs<__half2>;
};
template <>
struct ElementOf<__nv_bfloat16> {
  using Sum = float;
  using Pack = Pairs<__nv_bfloat162>;
};

// Where a tile is: its first slot is element `at` of the arrays, and its row's elements are in the slots
// [low, high). Tiles begin at a multiple of 16 bytes: where a row does not, they begin before it.
struct Tile {
  std::int64_t at;
  std::uint32_t low, high;
  std::uint32_t row, index;  // the index is in the row
};

template <class T>
__device__ __forceinline__ std::uint32_t misaligned(const T* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer) % 16);
}

template <class T>
__device__ __forceinline__ Tile make_tile(const T* in, std::uint64_t columns, std::uint32_t row, std::uint32_t index,
                                          std::uint32_t width) {
  const std::uint32_t shift = misaligned(in + row * columns) / sizeof(T);
  const std::uint64_t first = std::uint64_t{index} * width, end = shift + columns;
  return {static_cast<std::int64_t>(row * columns + first) - shift, index == 0 ? shift : 0,
          static_cast<std::uint32_t>(first >= end          ? 0
                                     : end - first < width ? end - first
                                                           : width),
          row, index};
}

// Whether the pack at slot `slot` has elements of the row only.
template <class T>
__device__ __forceinline__ bool is_inside(std::uint32_t slot, std::uint32_t low, std::uint32_t high) {
  return slot >= low && slot + kPackSize<T> <= high;
}

// `from` is where the pack is; 0 for what is not of the row.
template <class T>
__device__ __forceinline__ void load_edge(void* pack, const T* from, std::uint32_t slot, std::uint32_t low,
                                          std::uint32_t high) {
  T elements[kPackSize<T>];
#pragma unroll
  for (int i = 0; i < kPackSize<T>; ++i) elements[i] = slot + i >= low && slot + i < high ? from[i] : T(0);
  memcpy(pack, elements, 16);
}
template <class T>
__device__ __forceinline__ void store_edge(T* to, const void* pack, std::uint32_t slot, std::uint32_t low,
                                           std::uint32_t high) {
  T elements[kPackSize<T>];
  memcpy(elements, pack, 16);
#pragma unroll
  for (int i = 0; i < kPackSize<T>; ++i) {
    if (slot + i >= low && slot + i < high) to[i] = elements[i];
  }
}

template <class T, class Sum = typename ElementOf<T>::Sum>
__device__ __forceinline__ Sum sum_of(const typename ElementOf<T>::Pack& pack) {
  Sum values[kPackSize<T>];
  unpack(pack, values);
#pragma unroll
  for (int i = 1; i < kPackSize<T>; ++i) values[i] += values[i - 1];
  return values[kPackSize<T> - 1];
}

// What was computed from `pack` is computed again behind this, not kept in registers meanwhile: floats of
// 16-bit elements take twice as many.
template <class Pack>
__device__ __forceinline__ void forget_origin(Pack& pack) {
  auto& words = reinterpret_cast<uint4&>(pack);
  asm volatile("" : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w));
}

// The results of a pack, where all elements before it sum up to `before`.
template <class T>
__device__ __forceinline__ typename ElementOf<T>::Pack scan_pack(const typename ElementOf<T>::Pack& pack,
                                                                 typename ElementOf<T>::Sum before, bool is_exclusive) {
  typename ElementOf<T>::Sum values[kPackSize<T>];
  unpack(pack, values);
#pragma unroll
  for (int i = 1; i < kPackSize<T>; ++i) values[i] += values[i - 1];
  if (is_exclusive) {
#pragma unroll
    for (int i = kPackSize<T> - 1; i > 0; --i) values[i] = values[i - 1];
    values[0] = {};
  }
#pragma unroll
  for (auto& value : values) value += before;
  typename ElementOf<T>::Pack result;
  pack_into(result, values);
  return result;
}

// The packs of a warp, or of some lanes side by side, a power of two, in their order: pack 0 of each lane, pack 1 of
// each, ... Each pack's sum becomes that of all packs before it; returns the sum of all.
template <class Sum, int kCount>
__device__ __forceinline__ Sum scan_warp(Sum (&sums)[kCount], std::uint32_t lanes = 32) {
  const std::uint32_t lane = threadIdx.x & (lanes - 1);
  const auto width = static_cast<int>(lanes);
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const Sum before = __shfl_up_sync(kAllLanes, sums[k], distance, width);
      if (lane >= distance) sums[k] += before;
    }
  }
  Sum total{};
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const Sum of_all_lanes = __shfl_sync(kAllLanes, sums[k], width - 1, width);
    const Sum before = __shfl_up_sync(kAllLanes, sums[k], 1, width);
    sums[k] = lane == 0 ? total : total + before;
    total += of_all_lanes;
  }
  return total;
}

template <class Sum>
struct SumsOfBlock {
  Sum before_warp, all;
};
template <class Sum>
__device__ __forceinline__ SumsOfBlock<Sum> scan_block(const Sum* of_warps) {
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  Sum sum = lane < warps ? of_warps[lane] : Sum{};
#pragma unroll
  for (int distance = 1; distance < kScanMaxWarps; distance *= 2) {
    const Sum before = __shfl_up_sync(kAllLanes, sum, distance);
    if (lane >= distance) sum += before;
  }
  const Sum before = __shfl_sync(kAllLanes, sum, warp - 1);
  return {warp == 0 ? Sum{} : before, __shfl_sync(kAllLanes, sum, warps - 1)};
}

}  // namespace cgrt::kernels
