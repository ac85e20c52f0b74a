// Products of few rows with the weights of a linear layer: what can be asked for. Plain: no Abseil. The functions that
// plan and launch are in skinny_gemm.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// How a weight is stored. Integers are multiplied with a scale of their row and group.
enum class SkinnyWeights : std::uint8_t {
  kFloat,  // of the type of x
  kInt8,   // two's complement
  kInt4,   // two to a byte, that of the lower k in the lower half; the weight is the half minus 8
};
constexpr const char* to_string(SkinnyWeights weights) {
  switch (weights) {
    case SkinnyWeights::kFloat: return "float";
    case SkinnyWeights::kInt8: return "int8";
    case SkinnyWeights::kInt4: return "int4";
  }
  return "unknown";
}
constexpr std::uint32_t bits_of(SkinnyWeights weights) {
  return weights == SkinnyWeights::kInt4 ? 4 : weights == SkinnyWeights::kInt8 ? 8 : 16;
}

// f of y = f(x W^T + bias) + residual.
enum class SkinnyActivation : std::uint8_t {
  kNone,
  kGelu,      // with erf
  kGeluTanh,  // with tanh
  kSiluGate,  // silu(gate) * up: W has 2 n rows, first the n of gate and then the n of up, and so has the bias
};
constexpr const char* to_string(SkinnyActivation activation) {
  switch (activation) {
    case SkinnyActivation::kNone: return "none";
    case SkinnyActivation::kGelu: return "gelu";
    case SkinnyActivation::kGeluTanh: return "gelu_tanh";
    case SkinnyActivation::kSiluGate: return "silu_gate";
  }
  return "unknown";
}

inline constexpr std::uint64_t kSkinnyMaxRows = 64;

struct SkinnyGemmDesc {
  DType type = DType::kFloat16;  // of x, y, scales, bias and residual; or bfloat16. Sums are float, rounded once
  std::uint64_t rows = 0;        // of x, at most kSkinnyMaxRows
  std::uint64_t n = 0, k = 0;    // columns of y and of x; k: a multiple of 8
  SkinnyWeights weights = SkinnyWeights::kFloat;
  std::uint64_t group = 128;  // with integers: neighbouring k with one scale; a multiple of 32 that divides k
  SkinnyActivation activation = SkinnyActivation::kNone;
  bool has_bias = false, has_residual = false;
  std::uint64_t x_stride = 0;  // elements from row to row, a multiple of 8; 0: k
  std::uint64_t y_stride = 0;  // of y and residual; 0: n
  // Weights and scales may be read before the kernels in front have ended, where the edge is programmatic. False: one
  // of these may write them.
  bool weights_are_constant = true;
};

// Device addresses. x and weights are aligned to 16 bytes, all others to their elements. y may be the residual; no
// other arrays overlap.
struct SkinnyGemmArgs {
  void* y = nullptr;                        // [rows, n], rows y_stride apart
  const void* x = nullptr;                  // [rows, k], rows x_stride apart
  const void* weights = nullptr;            // [n, k], or [2 n, k] with a gate
  const void* scales = nullptr;             // [rows of weights, k / group], with integers
  const void* bias = nullptr;               // [rows of weights], with has_bias
  const void* residual = nullptr;           // as y, with has_residual
  const std::int32_t* row_count = nullptr;  // how many of the rows there are, clamped to 0 and `rows`; null: all
  Workspace workspace = {};                 // of SkinnyGemmPlan::workspace_bytes
};

}  // namespace cgrt::kernels
