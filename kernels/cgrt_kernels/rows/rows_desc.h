// Operations on each row of a matrix: what can be asked for. Plain: no Abseil. The functions that
// plan and launch are in rows.h.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

// x is a row of the input, N its length. Computed in float, whatever the type of the elements.
enum class RowOp : std::uint8_t {
  kSoftmax,     // exp(x - max) / sum(exp(x - max))
  kLogSoftmax,  // x - max - log(sum(exp(x - max)))
  kLayerNorm,   // (x - mean) / sqrt(variance + epsilon) * weight + bias; the variance is over N
  kRmsNorm,     // x / sqrt(mean(x * x) + epsilon) * weight
};
constexpr const char* to_string(RowOp op) {
  switch (op) {
    case RowOp::kSoftmax: return "softmax";
    case RowOp::kLogSoftmax: return "log_softmax";
    case RowOp::kLayerNorm: return "layer_norm";
    case RowOp::kRmsNorm: return "rms_norm";
  }
  return "unknown";
}

struct RowsDesc {
  RowOp op = RowOp::kSoftmax;
  DType type = DType::kFloat32;  // of all arrays; or float16, bfloat16
  std::uint64_t rows = 0, columns = 0;
  float epsilon = 1e-5f;  // layer_norm and rms_norm
};

// Device addresses of contiguous arrays: out and in of rows * columns elements, weight and bias of
// `columns`; out == in is allowed, any other overlap is undefined. Null weight or bias: ones, zeros.
// Softmaxes ignore both, rms_norm the bias.
struct RowsArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
};

// How the threads share a row. kBlock16 is there for fp32 layer_norm only, kBlock64 for 16-bit types.
enum class RowRegime : std::uint8_t {
  kLanes4,  // so many threads of a warp per row, each keeps 16 floats in registers
  kLanes16,
  kWarp16,  // a warp per row; each thread keeps that many floats
  kWarp32,
  kBlock8,  // a block per row, or a cluster of blocks
  kBlock16,
  kBlock32,
  kBlock64,
  kElementLanes4,  // as kLanes4, kWarp16 and blocks with 16 floats a thread, element by element: any alignment
  kElementWarp16,
  kElements16,
  kStream,  // blocks that stay, or clusters of them, the next rows fetched meanwhile
  kAny,     // a block per row that reads it more than once, element by element
};

// out, in, weight, bias, epsilon, rows, columns, rows ahead of a block's own to be fetched into the L2 cache
using RowsKernel =
    Kernel<void*, const void*, const void*, const void*, float, std::uint32_t, std::uint32_t, std::uint32_t>;

// The streamed regime: rows that may be on their way at once, warps of a block, packs of a row that a
// thread has.
inline constexpr std::uint32_t kMostStages = 4;
inline constexpr int kStreamWarps = 16, kStreamPacks = 8;

// The device code of an operation (kernels.cu).
RowsKernel rows_kernel(RowOp op, DType type, RowRegime regime);

}  // namespace cgrt::kernels
