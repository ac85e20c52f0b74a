// Step 6 mends bank conflicts. Columns of the tile of a change places by their depth, so that a warp's stores are in 32
// banks. Four columns stay side by side: loads are still of 16 bytes.
#pragma once

#include <cstdint>

namespace cgrt::bench {

__global__ void __launch_bounds__(256, 2)
    gemm_swizzled(float* d, const float* a, const float* b, std::uint32_t n, std::uint32_t k) {
  constexpr std::uint32_t kTile = 128, kDepth = 16;
  __shared__ alignas(16) float a_tile[kDepth][kTile], b_tile[kDepth][kTile];
  const auto place = [](std::uint32_t depth, std::uint32_t of_row) { return of_row ^ depth / 4 * 8; };
  const std::uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const std::uint32_t y = warp / 2 * 32 + lane / 8 * 4, x = warp % 2 * 64 + lane % 8 * 4;
  const std::uint32_t row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  float sums[2][2][4][4] = {};
  for (std::uint32_t first = 0; first < k; first += kDepth) {
#pragma unroll
    for (std::uint32_t i = thread; i < 512; i += 256) {
      const std::uint32_t a_row = i / 4, a_depth = i % 4 * 4, b_depth = i / 32, b_column = i % 32 * 4;
      const float4 of_a = *reinterpret_cast<const float4*>(a + (row + a_row) * k + first + a_depth);
      const std::uint32_t at = place(a_depth, a_row);
      a_tile[a_depth][at] = of_a.x, a_tile[a_depth + 1][at] = of_a.y;
      a_tile[a_depth + 2][at] = of_a.z, a_tile[a_depth + 3][at] = of_a.w;
      *reinterpret_cast<float4*>(&b_tile[b_depth][b_column]) =
          *reinterpret_cast<const float4*>(b + (first + b_depth) * n + column + b_column);
    }
    __syncthreads();
#pragma unroll
    for (std::uint32_t i = 0; i < kDepth; ++i) {
      float of_a[2][4], of_b[2][4];
#pragma unroll
      for (std::uint32_t half = 0; half < 2; ++half) {
        *reinterpret_cast<float4*>(of_a[half]) = *reinterpret_cast<const float4*>(&a_tile[i][place(i, y + half * 16)]);
        *reinterpret_cast<float4*>(of_b[half]) = *reinterpret_cast<const float4*>(&b_tile[i][x + half * 32]);
      }
#pragma unroll
      for (std::uint32_t j = 0; j < 64; ++j) {
        sums[j / 32][j / 16 % 2][j / 4 % 4][j % 4] += of_a[j / 32][j / 4 % 4] * of_b[j / 16 % 2][j % 4];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (std::uint32_t j = 0; j < 16; ++j) {
    *reinterpret_cast<float4*>(d + (row + y + j / 8 * 16 + j % 4) * n + column + x + j / 4 % 2 * 32) =
        *reinterpret_cast<const float4*>(sums[j / 8][j / 4 % 2][j % 4]);
  }
}

}  // namespace cgrt::bench
