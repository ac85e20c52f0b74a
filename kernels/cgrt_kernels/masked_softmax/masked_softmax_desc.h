// Softmax of scaled and masked rows: what can be asked for. Plain: no Abseil. The functions that plan and
// launch are in masked_softmax.h.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

// kLowerRight: row r of a matrix sees its first r + 1 + columns - rows columns, so that the last row sees all.
enum class CausalMask : std::uint8_t { kNone, kLowerRight };

// out = softmax(scale * in + mask) of each row of each matrix, over the columns that the row sees; 0 elsewhere,
// and everywhere in a row that sees none or only -inf (where PyTorch gives NaN). Where a row sees a NaN or +inf,
// all that it sees is NaN, and the rest still 0. Computed in float.
struct MaskedSoftmaxDesc {
  DType type = DType::kFloat32;  // of in, out and the additive mask; or float16, bfloat16
  std::uint64_t matrices = 1, rows = 0, columns = 0;
  float scale = 1;
  CausalMask causal = CausalMask::kNone;
  // There are that many masks and lengths: each is for matrices / mask_matrices consecutive matrices, as those
  // of the heads of a sequence. mask_rows is `rows`, or 1 where all rows of a matrix have the same mask.
  std::uint64_t mask_matrices = 1, mask_rows = 1;
};

// Device addresses of contiguous arrays: out and in of matrices * rows * columns elements; out == in is
// allowed, any other overlap is undefined. `mask` is added, mask_matrices * mask_rows * columns elements, or
// null: nothing is. `lengths` are mask_matrices numbers of columns that are seen, or null: all; what is below
// 0 or above `columns` counts as that.
struct MaskedSoftmaxArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const void* mask = nullptr;
  const std::int32_t* lengths = nullptr;
};

// What the kernel takes.
struct MaskedSoftmaxTask {
  void* out;
  const void* in;
  const void* mask;
  const std::int32_t* lengths;
  float scale;
  std::uint32_t all_rows, rows, columns;  // of all matrices, of one
  std::uint32_t matrices_per_mask, mask_rows, is_causal;
};

// How the threads share a row.
enum class MaskedSoftmaxRegime : std::uint8_t {
  kWarp8,  // a warp per row; each thread keeps that many floats in registers
  kWarp32,
  kBlock8,  // a block per row, or a cluster of blocks
  kBlock16,
  kElements8,  // the same element by element: any length and alignment
  kAny,        // a block per row that reads it three times, element by element
};

using MaskedSoftmaxKernel = Kernel<MaskedSoftmaxTask>;

// The device code (kernels.cu).
MaskedSoftmaxKernel masked_softmax_kernel(DType type, MaskedSoftmaxRegime regime);

}  // namespace cgrt::kernels
