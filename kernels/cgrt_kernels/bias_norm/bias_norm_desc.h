// layer_norm and rms_norm of a projection's output with its bias and a residual: what can be asked for. Plain: no
// Abseil. The functions that plan and launch are in bias_norm.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/norm/norm_desc.h"

namespace cgrt::kernels {

// x = in + in_bias + residual, computed in float and rounded to the type once; the norm is that of x, as NormOp says.
struct BiasNormDesc {
  NormOp op = NormOp::kLayerNorm;
  DType type = DType::kFloat32;  // of all arrays; or float16, bfloat16
  std::uint64_t rows = 0, columns = 0;
  float epsilon = 1e-5f;
};

// Device addresses of contiguous arrays: out, in, residual and sum of rows * columns elements, the others of `columns`.
// Null weight or bias: ones, zeros; rms_norm ignores the bias. `sum` gets x; it is not written when it is null. out and
// sum may each be in or residual, but not the same; any other overlap is undefined.
struct BiasNormArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const void* in_bias = nullptr;
  const void* residual = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  void* sum = nullptr;
};

}  // namespace cgrt::kernels
