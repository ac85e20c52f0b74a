// Step 4 mends loads from shared memory, one for each multiplication in step 3. A thread computes 8 x 8 elements of a
// block's 128 x 128: 16 loads serve 64 multiplications.
#pragma once

#include <cstdint>

namespace cgrt::bench {

__global__ void __launch_bounds__(256)
    gemm_register_tile(float* d, const float* a, const float* b, std::uint32_t n, std::uint32_t k) {
  constexpr std::uint32_t kTile = 128, kDepth = 16, kOwn = 8;
  __shared__ float a_tile[kTile][kDepth], b_tile[kDepth][kTile];
  const std::uint32_t thread = threadIdx.x, x = thread % 16, y = thread / 16;
  const std::uint32_t row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  float sums[kOwn][kOwn] = {};
  for (std::uint32_t first = 0; first < k; first += kDepth) {
    for (std::uint32_t i = thread; i < kTile * kDepth; i += 256) {
      a_tile[i / kDepth][i % kDepth] = a[(row + i / kDepth) * k + first + i % kDepth];
      b_tile[i / kTile][i % kTile] = b[(first + i / kTile) * n + column + i % kTile];
    }
    __syncthreads();
#pragma unroll
    for (std::uint32_t i = 0; i < kDepth; ++i) {
      float of_a[kOwn], of_b[kOwn];
#pragma unroll
      for (std::uint32_t j = 0; j < kOwn; ++j) of_a[j] = a_tile[y * kOwn + j][i], of_b[j] = b_tile[i][x + 16 * j];
#pragma unroll
      for (std::uint32_t j = 0; j < kOwn * kOwn; ++j) sums[j / kOwn][j % kOwn] += of_a[j / kOwn] * of_b[j % kOwn];
    }
    __syncthreads();
  }
#pragma unroll
  for (std::uint32_t j = 0; j < kOwn * kOwn; ++j) {
    d[(row + y * kOwn + j / kOwn) * n + column + x + 16 * (j % kOwn)] = sums[j / kOwn][j % kOwn];
  }
}

}  // namespace cgrt::bench
