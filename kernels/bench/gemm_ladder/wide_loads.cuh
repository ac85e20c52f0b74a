// Step 5 mends small loads. All are of 16 bytes: from global memory, and, with the tile of a transposed, from shared
// memory. What is left: two lanes of a warp store to one bank, those that have pieces of one row of a.
#pragma once

#include <cstdint>

namespace cgrt::bench {

__global__ void __launch_bounds__(256, 2)
    gemm_wide_loads(float* d, const float* a, const float* b, std::uint32_t n, std::uint32_t k) {
  constexpr std::uint32_t kTile = 128, kDepth = 8;
  __shared__ alignas(16) float a_tile[kDepth][kTile], b_tile[kDepth][kTile];
  // A warp has 32 x 64 elements of d, a thread four squares of 4 x 4 of them.
  const std::uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const std::uint32_t y = warp / 2 * 32 + lane / 8 * 4, x = warp % 2 * 64 + lane % 8 * 4;
  const std::uint32_t row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  const std::uint32_t a_row = thread / 2, a_depth = thread % 2 * 4, b_depth = thread / 32, b_column = thread % 32 * 4;
  float sums[2][2][4][4] = {};
  for (std::uint32_t first = 0; first < k; first += kDepth) {
    const float4 of_row = *reinterpret_cast<const float4*>(a + (row + a_row) * k + first + a_depth);
    a_tile[a_depth][a_row] = of_row.x, a_tile[a_depth + 1][a_row] = of_row.y;
    a_tile[a_depth + 2][a_row] = of_row.z, a_tile[a_depth + 3][a_row] = of_row.w;
    *reinterpret_cast<float4*>(&b_tile[b_depth][b_column]) =
        *reinterpret_cast<const float4*>(b + (first + b_depth) * n + column + b_column);
    __syncthreads();
#pragma unroll
    for (std::uint32_t i = 0; i < kDepth; ++i) {
      float of_a[2][4], of_b[2][4];
#pragma unroll
      for (std::uint32_t half = 0; half < 2; ++half) {
        *reinterpret_cast<float4*>(of_a[half]) = *reinterpret_cast<const float4*>(&a_tile[i][y + half * 16]);
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
