// Step 8: 16 bits and tensor cores. A block computes 128 x 128 elements of d, each of its four warps 64 x 64 by
// products of 16 x 8 x 16. Three stages of 64 elements of k are in shared memory: one is multiplied, two are on their
// way.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/matrix_load.cuh"
#include "cgrt_kernels/common/mma.cuh"
#include "cgrt_kernels/common/word.cuh"

namespace cgrt::bench {

inline constexpr std::uint32_t kMmaStages = 3, kMmaSharedBytes = kMmaStages * 2 * 128 * 128;

__global__ void __launch_bounds__(128, 2)
    gemm_mma(__nv_bfloat16* d, const __nv_bfloat16* a, const __nv_bfloat16* b, std::uint32_t n, std::uint32_t k) {
  constexpr std::uint32_t kTile = 128, kDepth = 64, kTileBytes = kTile * kDepth * 2;
  extern __shared__ __align__(16) unsigned char mma_stages[];
  // Of a row of 128 bytes the pieces of 16 change places by its number: eight rows at one piece are in all banks.
  const auto place = [](std::uint32_t row, std::uint32_t piece) { return row * 128 + (piece ^ row % 8) * 16; };
  const std::uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const __nv_bfloat16* from_a = a + (blockIdx.y * kTile + thread / 8) * k + thread % 8 * 8;
  const __nv_bfloat16* from_b = b + (blockIdx.x * kTile + thread / 8) * k + thread % 8 * 8;
  std::uint32_t to_load = 0;
  const auto load = [&] {
    unsigned char* const to = mma_stages + to_load % kMmaStages * 2 * kTileBytes;
    if (to_load * kDepth < k) {
#pragma unroll
      for (std::uint32_t i = 0; i < kTile; i += 16) {
        kernels::copy_asynchronously(to + place(thread / 8 + i, thread % 8), from_a + i * k);
        kernels::copy_asynchronously(to + kTileBytes + place(thread / 8 + i, thread % 8), from_b + i * k);
      }
    }
    kernels::end_copy_group();
    from_a += kDepth, from_b += kDepth, ++to_load;
  };

  float sums[4][8][4] = {};
  for (std::uint32_t i = 0; i + 1 < kMmaStages; ++i) load();
  for (std::uint32_t stage = 0; stage * kDepth < k; ++stage) {
    kernels::wait_for_copies<kMmaStages - 2>();
    __syncthreads();
    load();
    const unsigned char* const a_tile = mma_stages + stage % kMmaStages * 2 * kTileBytes;
    const unsigned char* const b_tile = a_tile + kTileBytes;
#pragma unroll
    for (std::uint32_t i = 0; i < kDepth / 16; ++i) {
      std::uint32_t of_a[4][4], of_b[4][4];
#pragma unroll
      for (std::uint32_t j = 0; j < 4; ++j) {
        kernels::load_matrices(of_a[j], a_tile + place(warp / 2 * 64 + j * 16 + lane % 16, 2 * i + lane / 16));
        kernels::load_matrices(of_b[j],
                               b_tile + place(warp % 2 * 64 + j * 16 + lane % 8 + lane / 16 * 8, 2 * i + lane / 8 % 2));
      }
#pragma unroll
      for (std::uint32_t j = 0; j < 32; ++j) {
        const std::uint32_t(&of_row)[4] = of_a[j / 8];
        kernels::multiply_add<__nv_bfloat16>(sums[j / 8][j % 8], of_row[0], of_row[1], of_row[2], of_row[3],
                                             of_b[j % 8 / 2][j % 2 * 2], of_b[j % 8 / 2][j % 2 * 2 + 1]);
      }
    }
  }
  const std::uint32_t row = blockIdx.y * kTile + warp / 2 * 64 + lane / 4;
  const std::uint32_t column = blockIdx.x * kTile + warp % 2 * 64 + lane % 4 * 2;
#pragma unroll
  for (std::uint32_t j = 0; j < 32; ++j) {
    const float(&of_lane)[4] = sums[j / 8][j % 8];
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      *reinterpret_cast<std::uint32_t*>(d + (row + j / 8 * 16 + half * 8) * n + column + j % 8 * 8) =
          kernels::Word<__nv_bfloat16>::pack({of_lane[2 * half], of_lane[2 * half + 1]});
    }
  }
}

}  // namespace cgrt::bench
