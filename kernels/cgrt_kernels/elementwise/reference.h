// What each operation means, in plain C++ and in double: the tests' reference.
#pragma once

#include <cmath>

#include "cgrt_kernels/elementwise/elementwise_desc.h"
#include "cgrt_kernels/elementwise/matrix_desc.h"

namespace cgrt::kernels {

inline double silu_reference(double x) { return x / (1 + std::exp(-x)); }
inline double gelu_reference(double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }
inline double gelu_tanh_reference(double x) {
  return x / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

inline double elementwise_reference(ElementwiseOp op, double a, double b, double alpha) {
  switch (op) {
    case ElementwiseOp::kScale: return alpha * a;
    case ElementwiseOp::kAdd: return a + b;
    case ElementwiseOp::kMul: return a * b;
    case ElementwiseOp::kAxpy: return std::fma(alpha, a, b);
    case ElementwiseOp::kRelu: return a < 0 ? 0 : a;
    case ElementwiseOp::kSilu: return silu_reference(a);
    case ElementwiseOp::kGelu: return gelu_reference(a);
    case ElementwiseOp::kGeluTanh: return gelu_tanh_reference(a);
    case ElementwiseOp::kCast: break;
  }
  return a;
}

// `a` and `b` are the two that meet: for gates the gate and what it lets through.
inline double matrix_reference(MatrixOp op, double a, double b) {
  switch (op) {
    case MatrixOp::kAddPerColumn:
    case MatrixOp::kAddPerRow: return a + b;
    case MatrixOp::kMulPerColumn:
    case MatrixOp::kMulPerRow: return a * b;
    case MatrixOp::kSiluAndMul: return silu_reference(a) * b;
    case MatrixOp::kGeluAndMul: return gelu_reference(a) * b;
    case MatrixOp::kGeluTanhAndMul: break;
  }
  return gelu_tanh_reference(a) * b;
}

}  // namespace cgrt::kernels
