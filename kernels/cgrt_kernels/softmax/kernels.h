// What softmax's plans and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/softmax/softmax_desc.h"

namespace cgrt::kernels {

// Parameters of the forward kernels. Those with a mask read the second part.
struct SoftmaxParams {
  void* out;
  const void* in;
  std::uint32_t rows, columns;  // rows of all matrices
  std::uint32_t rows_ahead;     // from a block's own row to that which it fetches into the L2 cache
  RowShares shares;
  RowSlices slices;
  void* workspace;  // of rows in slices

  const void* mask = nullptr;
  const std::int32_t* lengths = nullptr;
  float scale = 1;
  std::uint32_t rows_of_matrix = 1, matrices_of_mask = 1, mask_rows = 1, is_causal = 0;
};

struct SoftmaxBackwardParams {
  void* dx;
  const void *dy, *y;
  float scale;
  std::uint32_t rows, columns;
  RowShares shares;
  RowSlices slices;
  void* workspace;
};

using SoftmaxKernel = Kernel<SoftmaxParams>;
using SoftmaxBackwardKernel = Kernel<SoftmaxBackwardParams>;

// How the threads share a row, and how many elements of it each keeps in registers.
enum class SoftmaxRegime : std::uint8_t {
  kFew4,    // a warp, so many elements each, wherever they lie: little code for few short rows
  kFew8,    // and of masked rows
  kLane,    // a lane, all of it in shared memory: rows of few elements
  kLanes2,  // so many lanes of a warp, 32 bytes each, of aligned rows
  kLanes4,
  kLanes8,
  kLanes16,       // 16 elements each
  kWarp,          // a warp, 32 elements each (16 of unaligned floats)
  kBlock,         // a block, 8 elements each; not of masked rows
  kClusterShort,  // a block or a cluster of blocks, 8 elements each
  kCluster,       // as kWarp; 16 in the backward of unaligned rows
  kClusterLong,   // 8 packs of 16 bytes each; 5 in the backward; not of masked rows
  kBulkStream,    // persistent blocks or clusters, the next rows in flight; floats in the forward only
  kSlices,        // in slices of a group of blocks: any length
  kFindInChunks,  // in chunks: any length; the first kernel
  kWriteChunks,   // and the second
};

SoftmaxKernel softmax_kernel(SoftmaxOp op, DType type, SoftmaxRegime regime, Alignment alignment);
// Many rows of up to 255 columns that are not aligned.
SoftmaxKernel staged_softmax_kernel(SoftmaxOp op, DType type, std::uint32_t columns);
SoftmaxKernel masked_softmax_kernel(DType type, SoftmaxRegime regime, Alignment alignment);
SoftmaxBackwardKernel softmax_backward_kernel(SoftmaxOp op, DType type, SoftmaxRegime regime, Alignment alignment);

}  // namespace cgrt::kernels
