// Step 7 mends waiting. There are two tiles of each: while one is multiplied, the next is on its way, b straight to
// shared memory and a, which is transposed, through registers. One barrier a step is left. Tiles of 128 x 256, of which
// a thread computes 8 x 16 elements: 24 loads serve 128 multiplications.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/async_copy.cuh"

namespace cgrt::bench {

inline constexpr std::uint32_t kDoubleBufferedColumns = 256;

__global__ void __launch_bounds__(256, 1)
    gemm_double_buffered(float* d, const float* a, const float* b, std::uint32_t n, std::uint32_t k) {
  constexpr std::uint32_t kRows = 128, kColumns = kDoubleBufferedColumns, kDepth = 16;
  __shared__ alignas(16) float a_tiles[2][kDepth][kRows], b_tiles[2][kDepth][kColumns];
  // A warp has 32 x 128 elements of d, a thread eight squares of 4 x 4 of them.
  const std::uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const std::uint32_t y = warp / 2 * 32 + lane / 8 * 4, x = warp % 2 * 128 + lane % 8 * 4;
  const std::uint32_t row = blockIdx.y * kRows, column = blockIdx.x * kColumns;
  const std::uint32_t a_row = thread / 2, a_depth = thread % 2 * 8, b_depth = thread / 64, b_column = thread % 64 * 4;
  const std::uint32_t a_place = a_row ^ thread % 2 * 16;
  const float* from_a = a + (row + a_row) * k + a_depth;
  const float* from_b = b + b_depth * n + column + b_column;
  float4 of_row[2];
  const auto load = [&](std::uint32_t buffer) {
#pragma unroll
    for (std::uint32_t i = 0; i < kDepth; i += 4) {
      kernels::copy_asynchronously(&b_tiles[buffer][b_depth + i][b_column], from_b + i * n);
    }
    kernels::end_copy_group();
    of_row[0] = *reinterpret_cast<const float4*>(from_a);
    of_row[1] = *reinterpret_cast<const float4*>(from_a + 4);
    from_a += kDepth, from_b += kDepth * n;
  };
  const auto store = [&](std::uint32_t buffer) {
#pragma unroll
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t depth = a_depth + 4 * i;
      a_tiles[buffer][depth][a_place] = of_row[i].x, a_tiles[buffer][depth + 1][a_place] = of_row[i].y;
      a_tiles[buffer][depth + 2][a_place] = of_row[i].z, a_tiles[buffer][depth + 3][a_place] = of_row[i].w;
    }
    kernels::wait_for_copies<0>();
    __syncthreads();
  };

  float sums[2][4][4][4] = {};
  load(0);
  store(0);
  for (std::uint32_t first = 0, buffer = 0; first < k; first += kDepth, buffer ^= 1) {
    const bool has_next = first + kDepth < k;
    if (has_next) load(buffer ^ 1);
#pragma unroll
    for (std::uint32_t i = 0; i < kDepth; ++i) {
      float of_a[2][4], of_b[4][4];
#pragma unroll
      for (std::uint32_t j = 0; j < 2; ++j) {
        *reinterpret_cast<float4*>(of_a[j]) =
            *reinterpret_cast<const float4*>(&a_tiles[buffer][i][y + (j ^ i / 8) * 16]);
      }
#pragma unroll
      for (std::uint32_t j = 0; j < 4; ++j) {
        *reinterpret_cast<float4*>(of_b[j]) = *reinterpret_cast<const float4*>(&b_tiles[buffer][i][x + j * 32]);
      }
#pragma unroll
      for (std::uint32_t j = 0; j < 128; ++j) {
        sums[j / 64][j / 16 % 4][j / 4 % 4][j % 4] += of_a[j / 64][j / 4 % 4] * of_b[j / 16 % 4][j % 4];
      }
    }
    if (has_next) store(buffer ^ 1);
  }
#pragma unroll
  for (std::uint32_t j = 0; j < 32; ++j) {
    *reinterpret_cast<float4*>(d + (row + y + j / 16 * 16 + j % 4) * n + column + x + j / 4 % 4 * 32) =
        *reinterpret_cast<const float4*>(sums[j / 16][j / 4 % 4][j % 4]);
  }
}

}  // namespace cgrt::bench
