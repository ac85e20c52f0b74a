// What each operation means, in plain C++: the tests' reference and the simulator's host body.
#pragma once

#include <cmath>
#include <cstdint>

#include "cgrt_kernels/elementwise/op.h"

namespace cgrt::kernels {

template <ElementwiseOp kOp>
constexpr float elementwise_reference(float a, float b, float alpha) {
  switch (kOp) {
    case ElementwiseOp::kScale: return alpha * a;
    case ElementwiseOp::kAdd: return a + b;
    case ElementwiseOp::kMul: return a * b;
    case ElementwiseOp::kAxpy: return std::fma(alpha, a, b);
  }
  return 0;
}

template <ElementwiseOp kOp>
void elementwise_on_host(HostGrid, float* out, const float* a, const float* b, float alpha, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    out[i] = elementwise_reference<kOp>(a[i], takes_two_inputs(kOp) ? b[i] : 0.0f, alpha);
  }
}

}  // namespace cgrt::kernels
