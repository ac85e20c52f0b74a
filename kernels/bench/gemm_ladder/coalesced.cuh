// Step 2 mends the order of threads. Those of a warp have neighbouring columns: a load of b and a store of d is one
// piece of 128 bytes, and a load of a is one element for all.
#pragma once

#include <cstdint>

namespace cgrt::bench {

__global__ void __launch_bounds__(256)
    gemm_coalesced(float* d, const float* a, const float* b, std::uint32_t n, std::uint32_t k) {
  const std::uint32_t row = blockIdx.y * 8 + threadIdx.x / 32, column = blockIdx.x * 32 + threadIdx.x % 32;
  float sum = 0;
  for (std::uint32_t i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  d[row * n + column] = sum;
}

}  // namespace cgrt::bench
