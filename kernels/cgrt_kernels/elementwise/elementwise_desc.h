// Elementwise operations on arrays: what can be asked for. Plain: no Abseil. The functions that plan and launch are in
// elementwise.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

enum class ElementwiseOp : std::uint8_t {
  kScale,     // out[i] = alpha * a[i]
  kAdd,       // out[i] = a[i] + b[i]
  kMul,       // out[i] = a[i] * b[i]
  kAxpy,      // out[i] = alpha * a[i] + b[i], rounded once to the type that is computed in
  kRelu,      // out[i] = max(a[i], 0); NaN stays NaN
  kSilu,      // out[i] = a[i] / (1 + exp(-a[i]))
  kGelu,      // out[i] = a[i] / 2 * (1 + erf(a[i] / sqrt(2)))
  kGeluTanh,  // the same with tanh(sqrt(2 / pi) * (a[i] + 0.044715 * a[i]^3)) in place of erf
  kCast,      // out[i] = a[i], in the type `out_type`
};
constexpr const char* to_string(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::kScale: return "scale";
    case ElementwiseOp::kAdd: return "add";
    case ElementwiseOp::kMul: return "mul";
    case ElementwiseOp::kAxpy: return "axpy";
    case ElementwiseOp::kRelu: return "relu";
    case ElementwiseOp::kSilu: return "silu";
    case ElementwiseOp::kGelu: return "gelu";
    case ElementwiseOp::kGeluTanh: return "gelu_tanh";
    case ElementwiseOp::kCast: return "cast";
  }
  return "unknown";
}

constexpr bool takes_two_inputs(ElementwiseOp op) {
  return op == ElementwiseOp::kAdd || op == ElementwiseOp::kMul || op == ElementwiseOp::kAxpy;
}

// float32, float16 and bfloat16 for all operations, computed in float; scale, add, mul and axpy of
// float64 too, computed in double; casts between two different ones of float32, float16 and bfloat16.
struct ElementwiseDesc {
  ElementwiseOp op = ElementwiseOp::kScale;
  std::uint64_t count = 0;           // elements
  DType type = DType::kFloat32;      // of all arrays
  DType out_type = DType::kFloat32;  // of a cast's result; ignored by the others
};

constexpr DType out_type_of(const ElementwiseDesc& desc) {
  return desc.op == ElementwiseOp::kCast ? desc.out_type : desc.type;
}

// Pointers are device addresses of `count` elements, aligned to their size; any overlap other than
// out == a or out == b, of one type, is undefined. `b` and `alpha` are ignored by operations that lack
// them; alpha is a float for float64 too.
struct ElementwiseArgs {
  void* out = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  float alpha = 1.0f;
};

// What ElementwisePlan::kernel takes, of any operation: out, a, b, alpha, count.
using ElementwiseKernel = Kernel<void*, const void*, const void*, float, std::uint64_t>;

}  // namespace cgrt::kernels
