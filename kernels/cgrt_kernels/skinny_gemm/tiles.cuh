// How blocks share tiles of W, and how sums become elements of y: the same in all kernels of skinny_gemm.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/elementwise/functors.cuh"
#include "cgrt_kernels/skinny_gemm/kernels.h"

namespace cgrt::kernels {

// The stages of all tiles, one tile after the other, in ranges whose lengths differ by at most one.
struct SkinnyRanges {
  std::uint32_t tiles, stages, max_blocks;                            // stages: of a tile
  std::uint32_t all = tiles * stages;                                 // below 2^32: W has 16 KB or more of each
  std::uint32_t blocks = min(all, max_blocks);                        // that have stages
  std::uint32_t share = all / blocks, longer = all - share * blocks;  // as many blocks have a stage more

  __device__ __forceinline__ std::uint32_t begin() const { return share * blockIdx.x + min(blockIdx.x, longer); }
  __device__ __forceinline__ std::uint32_t count() const { return share + (blockIdx.x < longer ? 1 : 0); }
  // The block that has the stage, counted through all tiles.
  __device__ __forceinline__ std::uint32_t block_of(std::uint32_t stage) const {
    const std::uint32_t in_longer = longer * (share + 1);
    return stage < in_longer ? stage / (share + 1) : longer + (stage - in_longer) / share;
  }
  __device__ __forceinline__ std::uint32_t first_block(std::uint32_t tile) const { return block_of(tile * stages); }
  __device__ __forceinline__ std::uint32_t last_block(std::uint32_t tile) const {
    return block_of(tile * stages + stages - 1);
  }
  // Where this block leaves its part of a tile that others have parts of. It has at most two: of a tile that others
  // began, and of one that it begins.
  static __device__ __forceinline__ std::uint32_t slot_of(std::uint32_t block, std::uint32_t first_block) {
    return 2 * block + (block == first_block ? 1 : 0);
  }
};

// `row`: of W, `column`: of y.
template <class T>
struct SkinnyEpilogue {
  const SkinnyGemmParams& p;

  __device__ __forceinline__ float with_bias(float sum, std::uint32_t row) const {
    return p.args.bias == nullptr ? sum : sum + to_float(static_cast<const T*>(p.args.bias)[row]);
  }
  __device__ __forceinline__ float activated(float sum) const {
    return p.activation == SkinnyActivation::kGelu       ? gelu_of(sum)
           : p.activation == SkinnyActivation::kGeluTanh ? gelu_tanh_of(sum)
                                                         : sum;
  }
  // Of sums with their bias, those of up with a gate. Which activation it is, is asked once for all of them.
  template <int kCount>
  __device__ __forceinline__ void finish(float (&sums)[kCount], const float (&ups)[kCount]) const {
    if (p.activation == SkinnyActivation::kNone) return;
    if (p.activation == SkinnyActivation::kSiluGate) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) sums[i] = silu_of(sums[i]) * ups[i];
    } else if (p.activation == SkinnyActivation::kGelu) {
#pragma unroll
      for (float& sum : sums) sum = gelu_of(sum);
    } else {
#pragma unroll
      for (float& sum : sums) sum = gelu_tanh_of(sum);
    }
  }
  // The first `count` of them, `step` rows apart.
  template <int kCount>
  __device__ __forceinline__ void store(std::uint32_t row_of_x, std::uint32_t step, std::uint32_t count,
                                        std::uint32_t column, float (&values)[kCount]) const {
    const std::uint64_t begin = row_of_x * p.y_stride + column, distance = step * p.y_stride;
    if (p.args.residual != nullptr) {
      T residuals[kCount] = {};
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (i < count) residuals[i] = static_cast<const T*>(p.args.residual)[begin + i * distance];
      }
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] += to_float(residuals[i]);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (i < count) static_cast<T*>(p.args.y)[begin + i * distance] = from_float<T>(values[i]);
    }
  }
  __device__ __forceinline__ void store(std::uint32_t row_of_x, std::uint32_t column, float value) const {
    const std::uint64_t at = row_of_x * p.y_stride + column;
    if (p.args.residual != nullptr) value += to_float(static_cast<const T*>(p.args.residual)[at]);
    static_cast<T*>(p.args.y)[at] = from_float<T>(value);
  }
};

__device__ __forceinline__ void add(float (&to)[4], float4 from) {
  to[0] += from.x, to[1] += from.y, to[2] += from.z, to[3] += from.w;
}

}  // namespace cgrt::kernels
