// What all lanes of a warp have found, in each of them: as reduce_lanes, with less to do for what belongs together.
#pragma once

#include "cgrt_kernels/common/reduction.cuh"

namespace cgrt::kernels {

__device__ __forceinline__ float join_lanes(float part) { return reduce_lanes(part); }
__device__ __forceinline__ MaxSum join_lanes(MaxSum part) {
  float max = part.max;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) max = fmaxf(max, shuffle(max, mask));
  return {max, reduce_lanes(part.sum * exp_of(part.max - finite_or_zero(max)))};
}
__device__ __forceinline__ Moments join_lanes(Moments part) { return join_warp(part, reduce_lanes(part.count)); }

}  // namespace cgrt::kernels
