// Step 1. One thread computes one element of d. The threads of a warp have neighbouring rows, so each of its loads of a
// and stores of d touches 32 places far apart.
#pragma once

#include <cstdint>

namespace cgrt::bench {

__global__ void __launch_bounds__(256)
    gemm_naive(float* d, const float* a, const float* b, std::uint32_t n, std::uint32_t k) {
  const std::uint32_t row = blockIdx.y * 32 + threadIdx.x % 32, column = blockIdx.x * 8 + threadIdx.x / 32;
  float sum = 0;
  for (std::uint32_t i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  d[row * n + column] = sum;
}

}  // namespace cgrt::bench
