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
  Workspace workspace = {};  // as the plan says: SoftmaxPlan::workspace_bytes
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

// As SoftmaxArgs; dx may be dy or y.
struct SoftmaxBackwardArgs {
  void* dx = nullptr;
  const void* dy = nullptr;
  const void* y = nullptr;
  Workspace workspace = {};  // as the plan says: SoftmaxBackwardPlan::workspace_bytes
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
  // There are that many masks and lengths: each is for matrices / mask_matrices consecutive matrices, as those
  // of the heads of a sequence. mask_rows is `rows`, or 1 where all rows of a matrix have the same mask.
  std::uint64_t mask_matrices = 1, mask_rows = 1;
};

// As SoftmaxArgs, of matrices * rows * columns elements. `mask` is added, mask_matrices * mask_rows * columns
// elements, or null: nothing is. `lengths` are mask_matrices numbers of columns that are seen, or null: all; what is
// below 0 or above `columns` counts as that.
struct MaskedSoftmaxArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const void* mask = nullptr;
  const std::int32_t* lengths = nullptr;
  Workspace workspace = {};  // as the plan says: MaskedSoftmaxPlan::workspace_bytes
};

}  // namespace cgrt::kernels
