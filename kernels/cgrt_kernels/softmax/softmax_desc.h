// Softmax of rows: what can be asked for. Plain: no Abseil. The functions that plan and launch are in softmax.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// x is a row, N elements. Computed in float, whatever the type of the elements.
enum class SoftmaxOp : std::uint8_t {
  kSoftmax,     // exp(x - max) / sum(exp(x - max))
  kLogSoftmax,  // x - max - log(sum(exp(x - max)))
};
constexpr const char* to_string(SoftmaxOp op) { return op == SoftmaxOp::kSoftmax ? "softmax" : "log_softmax"; }

struct SoftmaxDesc {
  SoftmaxOp op = SoftmaxOp::kSoftmax;
  DType type = DType::kFloat32;  // of all arrays; or float16, bfloat16
  std::uint64_t rows = 0, columns = 0;
};

// Device addresses of contiguous arrays of rows * columns elements; out == in is allowed, any other overlap is
// undefined.
struct SoftmaxArgs {
  void* out = nullptr;
  const void* in = nullptr;
  Workspace workspace = {};  // SoftmaxPlan::workspace_bytes
};

// dx of a row, from dy and from y, which the forward gave:
//   softmax:      scale * y * (dy - sum(dy * y)), also of a masked one
//   log_softmax:  scale * (dy - exp(y) * sum(dy))
struct SoftmaxBackwardDesc {
  SoftmaxOp op = SoftmaxOp::kSoftmax;
  DType type = DType::kFloat32;  // of all arrays; or float16, bfloat16
  std::uint64_t rows = 0, columns = 0;
  float scale = 1;
};

// Device addresses of contiguous arrays of rows * columns elements; dx may be dy or y, any other overlap is undefined.
struct SoftmaxBackwardArgs {
  void* dx = nullptr;
  const void* dy = nullptr;
  const void* y = nullptr;
  Workspace workspace = {};  // SoftmaxBackwardPlan::workspace_bytes
};

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
  // The mask has `mask_matrices` matrices of `mask_rows` x `columns`; `lengths` has `mask_matrices` entries. Matrix i
  // uses number i / (matrices / mask_matrices) of both, so the heads of a sequence can share one. mask_matrices must
  // divide matrices. mask_rows is `rows`, or 1: one mask row for all rows.
  std::uint64_t mask_matrices = 1, mask_rows = 1;
};

// As SoftmaxArgs, of matrices * rows * columns elements. `mask` is added; null: nothing is. `lengths` are numbers of
// columns that are seen, below 0 as 0, above `columns` as `columns`; null: all.
struct MaskedSoftmaxArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const void* mask = nullptr;
  const std::int32_t* lengths = nullptr;
  Workspace workspace = {};  // MaskedSoftmaxPlan::workspace_bytes
};

}  // namespace cgrt::kernels
