// Step 3 mends repeated loads from global memory. A block of 32 x 32 threads loads tiles of a and b into shared memory,
// and each element serves 32 threads.
#pragma once

#include <cstdint>

namespace cgrt::bench {

__global__ void __launch_bounds__(1024)
    gemm_shared_tile(float* d, const float* a, const float* b, std::uint32_t n, std::uint32_t k) {
  constexpr std::uint32_t kTile = 32;
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const std::uint32_t x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const std::uint32_t row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (std::uint32_t first = 0; first < k; first += kTile) {
    a_tile[y][x] = a[row * k + first + x];
    b_tile[y][x] = b[(first + y) * n + column];
    __syncthreads();
#pragma unroll
    for (std::uint32_t i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
    __syncthreads();
  }
  d[row * n + column] = sum;
}

}  // namespace cgrt::bench
