// Elementwise operations on fp32 arrays: what can be asked for. Plain: no Abseil.
// The functions that plan and launch are in elementwise.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cgrt/launch/kernel.h"

namespace cgrt::kernels {

enum class ElementwiseOp : std::uint8_t {
  kScale,  // out[i] = alpha * a[i]
  kAdd,    // out[i] = a[i] + b[i]
  kMul,    // out[i] = a[i] * b[i]
  kAxpy,   // out[i] = alpha * a[i] + b[i], rounded once
};

constexpr bool takes_two_inputs(ElementwiseOp op) { return op != ElementwiseOp::kScale; }

struct ElementwiseDesc {
  ElementwiseOp op = ElementwiseOp::kScale;
  std::uint64_t count = 0;  // elements
};

// Pointers are device addresses of `count` floats, aligned to 4 bytes; any overlap other than
// out == a or out == b is undefined. `b` and `alpha` are ignored by operations that lack them.
struct ElementwiseArgs {
  float* out = nullptr;
  const float* a = nullptr;
  const float* b = nullptr;
  float alpha = 1.0f;
};

using ElementwiseKernel = Kernel<float*, const float*, const float*, float, std::uint64_t>;

// The device code of an operation (op.cu).
ElementwiseKernel elementwise_kernel(ElementwiseOp op);

}  // namespace cgrt::kernels
