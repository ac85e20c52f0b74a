// A residual added, then a norm of each row: what can be asked for. Plain: no Abseil. The functions that plan
// and launch are in add_norm.h.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/rows/rows_desc.h"

namespace cgrt::kernels {

// sum = in + residual, rounded to the type, and out = norm(sum): see RowOp. Only kLayerNorm and kRmsNorm.
struct AddNormDesc {
  RowOp op = RowOp::kRmsNorm;
  DType type = DType::kFloat32;  // of all arrays; or float16, bfloat16
  std::uint64_t rows = 0, columns = 0;
  float epsilon = 1e-5f;
};

// Device addresses of contiguous arrays: out, sum, in and residual of rows * columns elements, weight and bias
// of `columns`. out and sum may each be in or residual, but not the same; any other overlap is undefined. Null
// weight or bias: ones, zeros. rms_norm ignores the bias.
struct AddNormArgs {
  void* out = nullptr;
  void* sum = nullptr;
  const void* in = nullptr;
  const void* residual = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
};

// How the threads share a row.
enum class AddNormRegime : std::uint8_t {
  kWarp32,     // a warp per row; each thread keeps that many floats in registers
  kBlock8,     // a block per row, or a cluster of blocks
  kBlock16,    // of up to kMostWideThreads threads
  kBlock32,    // the same, 16-bit types only
  kElements8,  // the same element by element: any length and alignment
  kAny,        // a block per row that reads the sum again, element by element
};

inline constexpr std::uint32_t kMostWideThreads = 1024;

// out, sum, in, residual, weight, bias, epsilon, rows, columns, rows ahead as in rows/rows_desc.h
using AddNormKernel = Kernel<void*, void*, const void*, const void*, const void*, const void*, float, std::uint32_t,
                             std::uint32_t, std::uint32_t>;

// The device code (kernels.cu).
AddNormKernel add_norm_kernel(RowOp op, DType type, AddNormRegime regime);

}  // namespace cgrt::kernels
