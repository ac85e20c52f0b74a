// A block that takes a row by itself, where there is no need of clusters: less code, and fewer steps of a reduction.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/common/row/group.cuh"

namespace cgrt::kernels {

// kMaxWarps is a power of 2.
template <int kMaxWarps>
struct BlockPerRow {
  static constexpr int kMaxThreads = 32 * kMaxWarps;
  static constexpr int kLanes = 32;
  static constexpr bool kIsWarp = false;
  __device__ std::uint32_t row() const { return blockIdx.x; }
  __device__ std::uint32_t thread() const { return threadIdx.x; }
  __device__ std::uint32_t block() const { return 0; }
  __device__ std::uint32_t blocks() const { return 1; }

  template <class Value>
  __device__ Value reduce(Value mine) const {
    return reduce_lanes<kMaxWarps>(of_warps(reduce_lanes(mine)));
  }
  // Facts of a row of `count` elements from those of the warps.
  __device__ Moments join(Moments of_warp, float count) const {
    const Moments part = of_warps(of_warp);
    const float mean = __fdividef(reduce_lanes<kMaxWarps>(part.count * part.mean), count), away = part.mean - mean;
    return {count, mean, reduce_lanes<kMaxWarps>(part.squares + part.count * away * away)};
  }

 private:
  // What the warps have, spread over each kMaxWarps lanes. Once in a kernel.
  template <class Value>
  __device__ Value of_warps(Value of_warp) const {
    __shared__ Value partials[kMaxWarps];
    const std::uint32_t warp = threadIdx.x % kMaxWarps;
    if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = of_warp;
    __syncthreads();
    return warp < blockDim.x / 32 ? partials[warp] : none(of_warp);
  }
};

}  // namespace cgrt::kernels
