// How blocks of the kernel for few rows share tiles of W, and how sums become elements of y in both kernels.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/word.cuh"
#include "cgrt_kernels/elementwise/functors.cuh"
#include "cgrt_kernels/skinny_gemm/kernels.h"

namespace cgrt::kernels {

// The stages of all tiles, one tile after the other, in ranges whose lengths differ by at most one stage, or by one
// tile where blocks do not share tiles.
struct SkinnyRanges {
  std::uint32_t tiles, stages, max_blocks;  // stages: of a tile
  bool shares_tiles;
  std::uint32_t unit = shares_tiles ? 1 : stages;                     // of a range
  std::uint32_t all = tiles * (shares_tiles ? stages : 1);            // units: below 2^32, W has 16 KB or more of each
  std::uint32_t blocks = min(all, max_blocks);                        // that have stages
  std::uint32_t share = all / blocks, longer = all - share * blocks;  // as many blocks have a unit more

  __device__ __forceinline__ std::uint32_t begin(std::uint32_t block) const {
    return (share * block + min(block, longer)) * unit;
  }
  __device__ __forceinline__ std::uint32_t count(std::uint32_t block) const {
    return block < blocks ? (share + (block < longer ? 1 : 0)) * unit : 0;
  }
  // The block that has the stage, counted through all tiles. Where tiles are shared.
  __device__ __forceinline__ std::uint32_t block_of(std::uint32_t stage) const {
    const std::uint32_t in_longer = longer * (share + 1);
    return stage < in_longer ? stage / (share + 1) : longer + (stage - in_longer) / share;
  }
  __device__ __forceinline__ std::uint32_t first_block(std::uint32_t tile) const { return block_of(tile * stages); }
  __device__ __forceinline__ std::uint32_t last_block(std::uint32_t tile) const {
    return block_of(tile * stages + stages - 1);
  }
  // Where a block leaves its part of a tile that others have parts of. It has at most two: of a tile that others
  // began, and of one that it begins.
  static __device__ __forceinline__ std::uint32_t slot_of(std::uint32_t block, std::uint32_t first_block) {
    return 2 * block + (block == first_block ? 1 : 0);
  }
};

__device__ __forceinline__ void add(float (&to)[4], float4 from) {
  to[0] += from.x, to[1] += from.y, to[2] += from.z, to[3] += from.w;
}

// `row`: of W, `column`: of y.
template <class T>
struct SkinnyEpilogue {
  const SkinnyGemmParams& p;

  __device__ __forceinline__ float with_bias(float sum, std::uint32_t row) const {
    return p.args.bias == nullptr ? sum : sum + to_float(static_cast<const T*>(p.args.bias)[row]);
  }
  __device__ __forceinline__ float activated(float sum) const {
    return p.activation == SkinnyActivation::kGelu       ? short_gelu_of(sum)
           : p.activation == SkinnyActivation::kGeluTanh ? gelu_tanh_of(sum)
                                                         : sum;
  }
  // Of sums with their bias, those of up with a gate. Which activation it is, is asked once for all of them.
  template <std::uint32_t kRows>
  __device__ __forceinline__ void finish(float (&sums)[kRows][4], const float (&ups)[kRows][4]) const {
    const auto each = [&](auto with) {
#pragma unroll
      for (std::uint32_t i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = with(sums[i][j], ups[i][j]);
      }
    };
    switch (p.activation) {
      case SkinnyActivation::kNone: return;
      case SkinnyActivation::kSiluGate: return each([](float sum, float up) { return silu_of(sum) * up; });
      case SkinnyActivation::kGelu: return each([](float sum, float) { return short_gelu_of(sum); });
      case SkinnyActivation::kGeluTanh: return each([](float sum, float) { return gelu_tanh_of(sum); });
    }
  }
  // Whether four columns of y, the first a multiple of four, are 8 bytes at once in all arrays.
  __device__ __forceinline__ bool has_whole_packs() const {
    const auto addresses = reinterpret_cast<std::uintptr_t>(p.args.y) | reinterpret_cast<std::uintptr_t>(p.args.bias) |
                           reinterpret_cast<std::uintptr_t>(p.args.residual);
    return (addresses % 8 | p.y_stride % 4 | p.n % 4) == 0;
  }
  // Of an array from element `at` on, where y has four columns from `column` on, or those before n.
  __device__ __forceinline__ void add_four(float (&to)[4], const void* array, std::uint64_t at, std::uint32_t column,
                                           bool is_whole) const {
    const T* const from = static_cast<const T*>(array) + at;
    if (is_whole) {
      const uint2 words = *reinterpret_cast<const uint2*>(from);
      float values[2][2];
      Word<T>::unpack(words.x, values[0]), Word<T>::unpack(words.y, values[1]);
      add(to, {values[0][0], values[0][1], values[1][0], values[1][1]});
    } else {
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        if (column + i < p.n) to[i] += to_float(from[i]);
      }
    }
  }
  template <std::uint32_t kRows>
  __device__ __forceinline__ void add_residual(float (&to)[kRows][4], std::uint32_t first_row,
                                               const std::uint32_t (&rows)[kRows], std::uint32_t column,
                                               bool is_whole) const {
    if (p.args.residual == nullptr) return;
#pragma unroll
    for (std::uint32_t i = 0; i < kRows; ++i) {
      add_four(to[i], p.args.residual, (first_row + rows[i]) * p.y_stride + column, column, is_whole);
    }
  }
  __device__ __forceinline__ void store_four(std::uint32_t row_of_x, std::uint32_t column, bool is_whole,
                                             const float (&values)[4]) const {
    T* const to = static_cast<T*>(p.args.y) + row_of_x * p.y_stride + column;
    if (is_whole) {
      *reinterpret_cast<uint2*>(to) = {Word<T>::pack({values[0], values[1]}), Word<T>::pack({values[2], values[3]})};
    } else {
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        if (column + i < p.n) to[i] = from_float<T>(values[i]);
      }
    }
  }
  __device__ __forceinline__ void store(std::uint32_t row_of_x, std::uint32_t column, float value) const {
    const std::uint64_t at = row_of_x * p.y_stride + column;
    if (p.args.residual != nullptr) value += to_float(static_cast<const T*>(p.args.residual)[at]);
    static_cast<T*>(p.args.y)[at] = from_float<T>(value);
  }
};

}  // namespace cgrt::kernels
