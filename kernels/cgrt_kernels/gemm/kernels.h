// What gemm's plan and device code have in common. Internal.
//
// A block of three warpgroups multiplies tiles of 128 rows of a by `columns` columns of b. The first asks for stages of
// 64 elements of k, the others multiply 64 rows each. Blocks stay and take tiles in turn. The two blocks of a cluster
// take tiles one below the other, and each copies half of their columns of b to both.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/gemm/matmul_desc.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kGemmThreads = 384, kGemmRows = 128, kGemmDepth = 64;
inline constexpr std::uint32_t kGemmBox = 64;  // rows and columns of a box of d

struct GemmShape {
  std::uint32_t columns;  // 128 or 256
  std::uint32_t cluster;  // 1 or 2 blocks
};

// In shared memory. They leave room for 32 KiB of boxes of d, the barriers, and to begin at a multiple of 1024.
__host__ __device__ constexpr int gemm_stages(std::uint32_t columns) { return columns == 256 ? 4 : 6; }
__host__ __device__ constexpr std::uint32_t gemm_shared_bytes(std::uint32_t columns) {
  const std::uint32_t stage = (kGemmRows + columns) * kGemmDepth * 2;
  return static_cast<std::uint32_t>(gemm_stages(columns)) * stage + (32 << 10) + 3072;
}

struct GemmParams {
  CUtensorMap maps[4];  // of a, b, d and the residual
  MatmulArgs args;
  std::uint32_t m, n, k;
  std::uint32_t row_tiles, column_tiles;  // rows: of all blocks of a cluster
  std::uint32_t tile_columns;             // of d
  std::uint32_t second_half;              // where that of a tile's columns of b begins, beyond the end of the first
  std::uint32_t stages;                   // of a tile
  std::uint32_t group;                    // row tiles that are taken before the next columns
  MatmulLayout b_layout;
  MatmulEpilogue epilogue;
};

// In hopper.cu: only in builds for sm_90.
Kernel<GemmParams> gemm_kernel(DType type, MatmulLayout b_layout, GemmShape shape);

}  // namespace cgrt::kernels
