// What skinny_gemm's plan and device code have in common. Internal.
//
// On sm_90a more than 8 rows, and most products with many 16-bit weights (is_faster_wide in plan.cpp), have a kernel of
// their own (hopper.cu): W and x come through shared memory and warpgroups multiply, a tile of 128 rows of W to a
// cluster, whose blocks have parts of k. What follows is of the other kernels, and of launches of that one which turn
// out to have few rows of integers: there two groups of a block's threads are what is called a block here.
//
// A tile is the rows of W that a block multiplies at once: 16 for each of kRowWarps warps, while the other warps take
// other parts of k. A stage is what a block loads of a tile at a time, straight into registers: through shared memory
// it took 1.15 times as long (H100). The stages of all tiles, in order, are divided among the blocks in ranges that
// differ by at most one stage, or by one tile where blocks have whole tiles: where few idle then, or few rows of
// integers let them idle for less time than joining takes. Where a range ends within a tile, its blocks leave their
// sums in the workspace, and the last to come adds them in the order of the blocks.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/skinny_gemm/skinny_gemm_desc.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kSkinnyThreads = 256, kSkinnyWarps = kSkinnyThreads / 32;

// Where scales are applied.
enum class SkinnyScales : std::uint8_t {
  kNone,
  kToSums,     // groups hold whole packs of the 4 lanes that share a row
  kToWeights,  // smaller groups: weights are rounded to the type of x
};

// Which kernel.
struct SkinnyShape {
  std::uint32_t columns;    // of 8 rows of x each: 1, 2, 4, 8
  std::uint32_t row_warps;  // 1 or 4 with one column, 2 or 4 with two, else 8
};

// Of 16 bytes, that a thread loads of each of its two rows of W in a stage.
constexpr std::uint32_t skinny_packs(std::uint32_t bits) { return bits == 16 ? 4 : 2; }
// Stages in registers: one is in use, the others are on their way.
inline constexpr int kSkinnyDepth = 3;
// Values of k in a stage.
constexpr std::uint32_t skinny_stage_values(std::uint32_t bits, std::uint32_t row_warps) {
  return kSkinnyWarps / row_warps * 4 * skinny_packs(bits) * (128 / bits);
}
// On a multiprocessor.
constexpr std::uint32_t skinny_blocks(std::uint32_t bits, std::uint32_t columns) {
  return bits == 16 || columns > bits / 4 ? 1 : 2;
}
// Rows of x in a column of products.
inline constexpr std::uint32_t kSkinnyFewRows = 8;

// In shared memory: the sums of warps that share rows, of two tiles.
constexpr std::uint32_t skinny_joined_bytes(SkinnyShape shape) {
  return shape.row_warps < kSkinnyWarps ? 2 * kSkinnyThreads * 16 * shape.columns : 0;
}
// All rows of x there.
constexpr bool skinny_keeps_x(std::uint32_t bits, SkinnyShape shape) {
  return bits != 16 && shape.columns == 1 && shape.row_warps == 1;
}
// Between rows of x there: lets 8 lanes read 16 bytes of two rows without bank conflicts.
inline constexpr std::uint32_t kSkinnyRowGap = 64;
constexpr std::uint64_t skinny_kept_bytes(std::uint32_t bits, std::uint32_t groups, std::uint64_t rows,
                                          std::uint64_t k) {
  constexpr SkinnyShape kSmall = {1, 1};
  const std::uint64_t values = skinny_stage_values(bits, kSmall.row_warps);
  return groups * skinny_joined_bytes(kSmall) + rows * ((k + values - 1) / values * values * 2 + kSkinnyRowGap);
}
// A row of a stage of x there.
constexpr std::uint32_t skinny_x_row_bytes(std::uint32_t bits, std::uint32_t row_warps) {
  return skinny_stage_values(bits, row_warps) * 2 + kSkinnyRowGap;
}
// Of a block, which may turn out to have fewer rows.
constexpr std::uint32_t skinny_shared_bytes(std::uint32_t bits, SkinnyShape shape) {
  const auto of_shape = [=](SkinnyShape of) {
    return skinny_joined_bytes(of) + kSkinnyDepth * 8 * of.columns * skinny_x_row_bytes(bits, of.row_warps);
  };
  return shape.columns == 1 ? skinny_joined_bytes(shape) : std::max(of_shape(shape), of_shape({2, 4}));
}
// The sums of a tile, in the workspace.
constexpr std::size_t skinny_part_bytes(SkinnyShape shape) {
  return std::size_t{shape.row_warps} * shape.columns * 32 * 16;
}

// The kernel for more rows. Where scales go to sums, launches of few rows go in small tiles, one to each of two groups
// of kSkinnyThreads; with more rows the last 128 threads have nothing to do.
inline constexpr std::uint32_t kSkinnyMaxCluster = 8, kSkinnyWideGroups = 2;
__host__ __device__ constexpr std::uint32_t skinny_wide_threads(SkinnyScales scales) {
  return scales == SkinnyScales::kToSums ? kSkinnyWideGroups * kSkinnyThreads : 384;
}
// Columns of its products: so many rows of x are copied and multiplied.
__host__ __device__ constexpr std::uint32_t skinny_wide_columns(std::uint32_t rows) {
  return rows <= 16 ? 16 : rows <= 32 ? 32 : 64;
}
constexpr std::uint32_t skinny_wide_bytes(std::uint32_t bits) { return (bits == 16 ? 216 : 192) << 10; }
inline constexpr std::uint32_t kSkinnyBoxRows = 16;  // of x, in a tensor copy for fewer columns than were planned
constexpr std::uint32_t skinny_wide_stage_values(std::uint32_t bits) { return 1024 / bits; }

// The first read of each 64 bytes takes a launch 100 clocks (H100): what all kernels read first are the 64 bytes before
// args.
struct SkinnyGemmParams {
  CUtensorMap maps[3];  // of W, x, and x by kSkinnyBoxRows rows, in the kernel for more rows
  std::uint32_t rows, n, k;
  std::uint32_t weight_rows;  // n or 2 n
  std::uint32_t blocks;       // that have tiles; in the kernel for more rows groups, up to kSkinnyWideGroups x grid
  std::uint32_t clusters;     // in the kernel for more rows: how many have tiles
  Divisor cluster;            // blocks of each
  Divisor group;
  std::uint32_t groups;  // of a row
  SkinnyActivation activation;
  bool weights_are_constant;
  bool shares_tiles;      // blocks have parts of tiles
  std::uint8_t few_rows;  // in kernels for more rows: launches with at most so many go in small tiles
  std::uint64_t y_stride;
  SkinnyGemmArgs args;
  std::uint32_t* counters;  // of blocks that share a tile, at the number of the first
  void* parts;              // two for each block
  std::uint64_t x_stride;
  std::uint64_t weight_row_bytes, scale_row_bytes;
  std::uint64_t weight_distance_bytes, scale_distance_bytes;  // from a thread's first row of W to its second
  std::uint32_t warp_columns;                                 // of y, that a warp's 16 rows of W give: 16 or 8
  std::uint32_t distance;                                     // the same in rows: 8 or n
};
static_assert(offsetof(SkinnyGemmParams, args) == 3 * sizeof(CUtensorMap) + 64);

// A file for each kind of weights.
Kernel<SkinnyGemmParams> skinny_gemm_float_kernel(DType type, SkinnyShape shape);
Kernel<SkinnyGemmParams> skinny_gemm_int8_kernel(DType type, SkinnyScales scales, SkinnyShape shape);
Kernel<SkinnyGemmParams> skinny_gemm_int4_kernel(DType type, SkinnyScales scales, SkinnyShape shape);
// In hopper.cu: only in builds for sm_90.
Kernel<SkinnyGemmParams> skinny_gemm_wide_kernel(DType type, std::uint32_t bits, SkinnyScales scales);

}  // namespace cgrt::kernels
