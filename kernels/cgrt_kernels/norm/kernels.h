// What norm's plans and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/norm/norm_desc.h"

namespace cgrt::kernels {

// What all kernels read comes first, in 48 bytes: the first read of each 64 takes a launch 100 clocks (H100).
struct NormParams {
  void* out;
  const void *in, *weight, *bias;
  float epsilon, one_of_columns;
  std::uint32_t rows, columns;
  void* sum;
  const void *residual, *in_bias;  // the latter of bias_norm
  std::uint32_t rows_ahead;        // from a block's own row to that which it fetches into the L2 cache
  RowShares shares;
  RowSlices slices;
  void* workspace;  // of rows in slices
};

// `partials`: null, or what each of `groups` has summed of its rows: groups x columns floats for dweight, then as many
// for dbias. Where a block has its columns of all rows there are none, and it writes dweight and dbias, which may be
// null.
struct NormBackwardParams {
  void *dx, *dweight, *dbias;
  const void *dy, *x, *weight;
  float* partials;
  float epsilon, one_of_columns;
  std::uint32_t rows, columns, groups;
  RowShares shares;
  RowSlices slices;
  void* workspace;  // of rows in slices or in chunks, or that are spread over all blocks
};

struct SumPartialsParams {
  void *dweight, *dbias;
  const float* partials;
  std::uint32_t groups, columns;
};

using NormKernel = Kernel<NormParams>;
using NormBackwardKernel = Kernel<NormBackwardParams>;
using SumPartialsKernel = Kernel<SumPartialsParams>;

// How the threads share a row, and how many elements of it each keeps in registers.
enum class NormRegime : std::uint8_t {
  kFew4,  // a warp, so many elements each, wherever they lie: little code for few short rows; forward: norm_few_kernel
  kFew8,  //
  kLanes4,  // so many lanes of a warp, 16 elements each; kLanes4 only for aligned rows; see norm_lanes_kernel, too
  kLanes16,
  kWarp,           // a warp, 32 elements each (16 of unaligned floats); forward, aligned: 16-bit types, no residual
  kClusterShort,   // a block or a cluster of blocks, 8 elements each
  kClusterMiddle,  // 16 elements; forward: aligned rows of floats only
  kCluster,        // 32 elements (16 of unaligned floats, and in the backward of unaligned rows)
  kClusterLong,    // 64 elements; aligned rows of 16-bit types without a residual only
  kHeldColumns,    // persistent clusters, kHeldColumnPacks packs of a row; forward without a residual only
  kWideBlock,      // a block of up to kMaxWideThreads, kWidePacks packs each; aligned rows with a residual only
  kBulkStream,     // persistent blocks or clusters, the next rows in flight
  kSlices,         // in slices of a group of blocks: any length
  kFindInChunks,   // in chunks: any length; the first kernel
  kWriteChunks,    // and the second
};

inline constexpr std::uint32_t kMaxWideThreads = 1024, kWidePacks = 4;
// Of blocks that hold weight and bias: two of the largest share a multiprocessor's registers.
inline constexpr std::uint32_t kHeldColumnThreads = 384;
inline constexpr int kHeldColumnPacks = 8;

// Where gradients of the weights are summed: who takes a row. Each thread has kSumPacks packs of it, whose sums are in
// its registers.
enum class NormSumRegime : std::uint8_t {
  kLanes4,   // so many lanes of a warp; kLanes4 only for aligned rows
  kLanes16,  //
  kWarps,    // warps of a block or of a cluster of blocks
};
inline constexpr int kSumPacks = 4;
inline constexpr int kSumStages = 3;                   // rows of dy and of x in shared memory, or in flight to it
inline constexpr std::uint32_t kMaxSumThreads = 1024;  // of a block of sum_partials

inline constexpr std::uint32_t kMaxFewRows = 64, kMaxFewColumns = 256;                         // in one block
constexpr std::uint32_t few_warps(std::uint32_t columns) { return columns <= 128 ? 32 : 16; }  // at most
inline constexpr std::uint32_t kTileStages = 3, kMaxTileWords = 128, kTileBytes = 2048,
                               kMaxTileWarps = 12;  // of short rows in chunks

// Bytes of shared memory of a warp for a row: unaligned ones have single elements.
template <Alignment kAlignment>
inline constexpr std::uint32_t kSumStageBytes = 2 * 32 * (kSumPacks * 16 + (kAlignment == Alignment::kAligned ? 0 : 4));

// How the threads share a row of which each has few elements (held.cuh).
enum class HeldRegime : std::uint8_t {
  kWarp,       // a warp, 8 elements each; of bias_norm; aligned rows only, as the next four
  kWarpLong,   // 16 elements; 16-bit types with a residual only
  kBlock4,     // a block of up to 4 warps, 8 elements each
  kBlock8,     // of up to 8 warps
  kBlock16,    // of up to 16 warps; 16 elements of 16-bit types
  kSingles8,   // a block of up to 8 warps, 4 elements each, wherever they lie
  kSingles16,  // of up to 16 warps, 4 elements each
  kSingles32,  // of up to 32 warps, held_singles() each; 16-bit types only
};
// More do not fit the registers of a thread.
constexpr std::uint32_t held_singles(bool has_residual) { return has_residual ? 4 : 6; }
NormKernel norm_held_kernel(NormOp op, Residual residual, DType type, HeldRegime regime);
NormKernel norm_kernel(NormOp op, Residual residual, DType type, NormRegime regime, Alignment alignment);
inline constexpr std::uint32_t kMaxLaneColumns = 256;
// The lanes of a warp that take a row of norm_lanes_kernel, and the elements of each, at most.
struct NormLanes {
  std::uint32_t lanes;
  int elements;
};
constexpr NormLanes norm_lanes(std::uint64_t columns, Alignment alignment) {
  if (alignment == Alignment::kAligned) return {columns <= 64 ? 4u : columns <= 128 ? 8u : 16u, 16};
  if (columns <= 64) return {16, 4};
  return {columns <= 128 ? 16u : 32u, 8};
}
// Rows that a lane has at once. Aligned 16-bit rows four at a time, as in softmax, take so many registers that fewer
// warps are resident: 3 % slower on an H200. Many rows of 4 elements of a lane have a residual: others are staged.
constexpr int norm_lane_rows(std::uint32_t bytes_of_element, int arrays, Alignment alignment, int elements) {
  const int rows = lane_rows(bytes_of_element, arrays, alignment);
  if (elements == 4 && arrays == 2) return 2 * rows;
  return alignment == Alignment::kAligned && rows > 2 ? 2 : rows;
}
NormKernel norm_lanes_kernel(NormOp op, Residual residual, DType type, Alignment alignment, std::uint32_t columns);
// Of few rows of up to 16 * kFewElements columns, a warp each.
NormKernel norm_few_kernel(NormOp op, Residual residual, DType type);
// Of up to 255 columns that are not aligned.
NormKernel norm_staged_kernel(NormOp op, DType type, std::uint32_t columns);
NormBackwardKernel norm_backward_kernel(NormOp op, DType type, NormRegime regime, Alignment alignment);
NormBackwardKernel norm_summed_kernel(NormOp op, DType type, NormSumRegime regime, Alignment alignment);
// The same with sums in shared memory, in a table with rows of `shares.stride` columns. A thread has `packs` packs of a
// row: 4, or 8 of floats.
NormBackwardKernel norm_column_sums(NormOp op, DType type, std::uint32_t packs, Alignment alignment);
inline constexpr std::uint32_t kMaxColumnSumThreads = 640;
template <int kPacks>
inline constexpr std::uint32_t kColumnSumThreads = kPacks == 4 ? kMaxColumnSumThreads : 512;  // of a block, at most
// After kFindInChunks: a thread has a word of columns of all rows of its group, or kSumWords of rows that pass through
// shared memory.
inline constexpr std::uint32_t kSumColumnThreads = 256, kSumWords = 4;
NormBackwardKernel norm_summed_chunks(NormOp op, DType type, bool is_stream);
// The same of up to so many long rows, not more than there are blocks: a block on each multiprocessor, up to so many,
// has its columns of all rows. Its warps find up to so many parts of rows; to write, `shares.blocks` groups of warps,
// each of which has all columns of the block, have rows in turn.
inline constexpr std::uint32_t kMaxSpreadRows = 32, kMaxSpreadParts = 96, kSpreadThreads = 1024, kMaxSpreadBlocks = 256;
// Tagged words: of a row, layer_norm's mean and three sums of each block, or two sums, and what is found of the whole
// row; and which blocks' columns are claimed.
constexpr std::uint64_t spread_words(NormOp op, std::uint64_t rows, std::uint32_t blocks) {
  return rows * (blocks * (op == NormOp::kLayerNorm ? 4 : 2) + 4) + blocks;
}
NormBackwardKernel norm_spread_sums(NormOp op, DType type);
// Of few rows: what kFindInChunks leaves, of rows of up to so many columns, a block each: up to 256 threads with 4
// elements, or up to 512 with 8; and what comes after either, where a block of up to so many warps has 32 columns.
inline constexpr std::uint32_t kMaxFoundColumns = 4096, kMaxSumWarps = 32;
constexpr std::uint32_t found_of_thread(std::uint32_t columns) { return columns <= 4 * 256 ? 4 : 8; }
NormBackwardKernel norm_find_in_rows(NormOp op, DType type, std::uint32_t columns);
NormBackwardKernel norm_summed_few_rows(NormOp op, DType type);
// All rows in one block, which sums, too.
NormBackwardKernel norm_summed_few(NormOp op, DType type, std::uint32_t columns);
// Rows of so many words, begun ones counted, in chunks of `shares.share` that are whole packs.
NormBackwardKernel norm_summed_tiled(NormOp op, DType type, std::uint32_t words);
SumPartialsKernel sum_partials_kernel(DType type);

}  // namespace cgrt::kernels
