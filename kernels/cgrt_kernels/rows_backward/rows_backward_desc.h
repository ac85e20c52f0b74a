// Backward of the operations on rows: what can be asked for. Plain: no Abseil. The functions that plan and
// launch are in rows_backward.h.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/rows/rows_desc.h"

namespace cgrt::kernels {

enum class WeightGradients : std::uint8_t { kNone, kSummed };

// dx of a row, from dy and from `saved`: y of a softmax, x of a norm. Computed in float.
//   softmax:      y * (dy - sum(dy * y))
//   log_softmax:  dy - exp(y) * sum(dy)
//   layer_norm:   (g - mean(g) - h * mean(g * h)) / sqrt(variance + epsilon), g = dy * weight, h the normalized x
//   rms_norm:     (g - h * mean(g * h)) / sqrt(mean(x * x) + epsilon)
// kSummed, for norms: dweight = sum(dy * h) and dbias = sum(dy) over the rows.
struct RowsBackwardDesc {
  RowOp op = RowOp::kSoftmax;
  DType type = DType::kFloat32;  // of all arrays; or float16, bfloat16
  std::uint64_t rows = 0, columns = 0;
  float epsilon = 1e-5f;
  WeightGradients weight_gradients = WeightGradients::kNone;
};

// Device addresses of contiguous arrays: dx, dy and saved of rows * columns elements, the others of
// `columns`; dx == dy or dx == saved is allowed, any other overlap is undefined. Null weight: ones. Softmaxes
// ignore it. dweight, dbias and the workspace are for kSummed; dbias may be null, and rms_norm ignores it.
struct RowsBackwardArgs {
  void* dx = nullptr;
  const void* dy = nullptr;
  const void* saved = nullptr;
  const void* weight = nullptr;
  void* dweight = nullptr;
  void* dbias = nullptr;
  void* workspace = nullptr;  // plan.workspace_bytes, aligned to 256
};

// How the threads share a row.
enum class RowBackwardRegime : std::uint8_t {
  kLanes4,  // so many threads of a warp per row, each keeps 16 floats of dy, and as many of saved, in registers
  kLanes16,
  kWarp32,
  kBlock8,  // a block per row, or a cluster of blocks
  kBlock16,
  kBlock32,
  kElementLanes4,  // as above, element by element: any length and alignment
  kElementWarp16,
  kElements16,
  kSummed8,  // kSummed: blocks that stay, with the sums of their columns in registers; up to kMostShort
  kSummed16,
  kSummedElements16,
  kAny,  // a block per row that reads it several times, element by element; sums in the workspace
};

// dx, dy, saved, weight, partials, groups, epsilon, rows, columns. `partials` is null without kSummed, else
// what each of `groups` blocks or clusters has summed: groups x columns floats for dweight, then for dbias.
using RowsBackwardKernel =
    Kernel<void*, const void*, const void*, const void*, float*, std::uint32_t, float, std::uint32_t, std::uint32_t>;
// dweight, dbias, partials, groups, columns
using SumPartialsKernel = Kernel<void*, void*, const float*, std::uint32_t, std::uint32_t>;

// Rows of dy and of saved that a block of the summed regimes has in shared memory, or on their way there.
inline constexpr int kSummedStages = 3;

inline constexpr std::uint32_t kMostShort = 256;  // columns of kSummed8

inline constexpr std::uint32_t kSumColumns = 32, kSumLanes = 16;  // of a block of sum_partials

// The device code (kernels.cu). Only norms have the summed regimes.
RowsBackwardKernel rows_backward_kernel(RowOp op, DType type, RowBackwardRegime regime);
SumPartialsKernel sum_partials_kernel(DType type);

}  // namespace cgrt::kernels
