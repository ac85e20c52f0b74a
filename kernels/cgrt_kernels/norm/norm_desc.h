// layer_norm and rms_norm of rows: what can be asked for. Plain: no Abseil. The functions that plan and launch are in
// norm.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// x is a row, N elements. Computed in float, whatever the type of the elements.
enum class NormOp : std::uint8_t {
  kLayerNorm,  // (x - mean) / sqrt(variance + epsilon) * weight + bias; the variance is over N
  kRmsNorm,    // x / sqrt(mean(x * x) + epsilon) * weight
};
constexpr const char* to_string(NormOp op) { return op == NormOp::kLayerNorm ? "layer_norm" : "rms_norm"; }

// kAdded: x = in + residual, rounded to the type.
enum class Residual : std::uint8_t { kNone, kAdded };

struct NormDesc {
  NormOp op = NormOp::kRmsNorm;
  DType type = DType::kFloat32;  // of all arrays; or float16, bfloat16
  std::uint64_t rows = 0, columns = 0;
  float epsilon = 1e-5f;
  Residual residual = Residual::kNone;
};

// Device addresses of contiguous arrays: out, in, residual and sum of rows * columns elements, weight and bias of
// `columns`. Null weight or bias: ones, zeros; rms_norm does not read the bias, but checks its alignment. `residual`
// and `sum` are for kAdded; the sum is not written when it is null. out and sum may each be in or residual, but not the
// same; any other overlap is undefined.
struct NormArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
  void* sum = nullptr;
  Workspace workspace = {};  // NormPlan::workspace_bytes
};

enum class WeightGradients : std::uint8_t { kNone, kSummed };

// dx of a row, from dy and x, with h the normalized x and g = dy * weight:
//   layer_norm:  (g - mean(g) - h * mean(g * h)) / sqrt(variance + epsilon)
//   rms_norm:    (g - h * mean(g * h)) / sqrt(mean(x * x) + epsilon)
// kSummed: dweight = sum(dy * h) and dbias = sum(dy) over the rows.
struct NormBackwardDesc {
  NormOp op = NormOp::kRmsNorm;
  DType type = DType::kFloat32;  // of all arrays; or float16, bfloat16
  std::uint64_t rows = 0, columns = 0;
  float epsilon = 1e-5f;
  WeightGradients weight_gradients = WeightGradients::kNone;
};

// Device addresses of contiguous arrays: dx, dy and x of rows * columns elements, the others of `columns`; dx may be dy
// or x, any other overlap is undefined. Null weight: ones. dweight and dbias are for kSummed; dbias may be null, and
// rms_norm ignores it.
struct NormBackwardArgs {
  void* dx = nullptr;
  const void* dy = nullptr;
  const void* x = nullptr;
  const void* weight = nullptr;
  void* dweight = nullptr;
  void* dbias = nullptr;
  Workspace workspace = {};  // NormBackwardPlan::workspace_bytes
};

}  // namespace cgrt::kernels
