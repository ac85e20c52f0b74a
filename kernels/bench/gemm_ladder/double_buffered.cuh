// Step 7 mends waiting. There are two tiles of each: while one is multiplied, the next is on its way, b straight to
// shared memory and a, which is transposed, through registers. One barrier a step is left.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/async_copy.cuh"

namespace cgrt::bench {

__global__ void __launch_bounds__(256, 2)
    gemm_double_buffered(float* d, const float* a, const float* b, std::uint32_t n, std::uint32_t k) {
  constexpr std::uint32_t kTile = 128, kDepth = 16;
  __shared__ alignas(16) float a_tiles[2][kDepth][kTile], b_tiles[2][kDepth][kTile];
  const auto place = [](std::uint32_t depth, std::uint32_t of_row) { return of_row ^ depth / 4 * 8; };
  const std::uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const std::uint32_t y = warp / 2 * 32 + lane / 8 * 4, x = warp % 2 * 64 + lane % 8 * 4;
  const std::uint32_t row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  const std::uint32_t a_row = thread / 4, a_depth = thread % 4 * 4, b_depth = thread / 32, b_column = thread % 32 * 4;
  const float* from_a = a + (row + a_row) * k + a_depth;
  const float* from_b = b + b_depth * n + column + b_column;
  float4 next[2];
  const auto load = [&](std::uint32_t buffer) {
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      next[half] = *reinterpret_cast<const float4*>(from_a + half * 64 * k);
      kernels::copy_asynchronously(&b_tiles[buffer][b_depth + half * 8][b_column], from_b + half * 8 * n);
    }
    kernels::end_copy_group();
    from_a += kDepth, from_b += kDepth * n;
  };
  const auto store = [&](std::uint32_t buffer) {
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t at = place(a_depth, a_row + half * 64);
      a_tiles[buffer][a_depth][at] = next[half].x, a_tiles[buffer][a_depth + 1][at] = next[half].y;
      a_tiles[buffer][a_depth + 2][at] = next[half].z, a_tiles[buffer][a_depth + 3][at] = next[half].w;
    }
    kernels::wait_for_copies<0>();
    __syncthreads();
  };

  float sums[2][2][4][4] = {};
  load(0);
  store(0);
  for (std::uint32_t first = 0, buffer = 0; first < k; first += kDepth, buffer ^= 1) {
    const bool has_next = first + kDepth < k;
    if (has_next) load(buffer ^ 1);
#pragma unroll
    for (std::uint32_t i = 0; i < kDepth; ++i) {
      float of_a[2][4], of_b[2][4];
#pragma unroll
      for (std::uint32_t half = 0; half < 2; ++half) {
        *reinterpret_cast<float4*>(of_a[half]) =
            *reinterpret_cast<const float4*>(&a_tiles[buffer][i][place(i, y + half * 16)]);
        *reinterpret_cast<float4*>(of_b[half]) = *reinterpret_cast<const float4*>(&b_tiles[buffer][i][x + half * 32]);
      }
#pragma unroll
      for (std::uint32_t j = 0; j < 64; ++j) {
        sums[j / 32][j / 16 % 2][j / 4 % 4][j % 4] += of_a[j / 32][j / 4 % 4] * of_b[j / 16 % 2][j % 4];
      }
    }
    if (has_next) store(buffer ^ 1);
  }
#pragma unroll
  for (std::uint32_t j = 0; j < 16; ++j) {
    *reinterpret_cast<float4*>(d + (row + y + j / 8 * 16 + j % 4) * n + column + x + j / 4 % 2 * 32) =
        *reinterpret_cast<const float4*>(sums[j / 8][j / 4 % 2][j % 4]);
  }
}

}  // namespace cgrt::bench
