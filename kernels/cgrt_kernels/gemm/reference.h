// What a product means, in plain C++ and in double: the tests' reference and the simulator's host function.
#pragma once

#include <cmath>
#include <cstdint>

#include "cgrt_kernels/elementwise/reference.h"
#include "cgrt_kernels/gemm/matmul_desc.h"

namespace cgrt::kernels {

// `a(i)`, `b(i)`, `bias(i)` and `residual(i)` give element i of an array as a double.
template <class A, class B, class Bias, class Residual>
double matmul_reference(const MatmulDesc& desc, std::uint64_t row, std::uint64_t column, A a, B b, Bias bias,
                        Residual residual) {
  const auto sum_of = [&](std::uint64_t of_b) {
    double sum = 0;
    for (std::uint64_t i = 0; i < desc.k; ++i) {
      const std::uint64_t at =
          desc.b_layout == MatmulLayout::kPlain ? i * columns_of_b(desc) + of_b : of_b * desc.k + i;
      sum += a(row * desc.k + i) * b(at);
    }
    return sum;
  };
  double sum = sum_of(column);
  if (desc.epilogue == MatmulEpilogue::kSiluGate) return sum / (1 + std::exp(-sum)) * sum_of(desc.n + column);
  if (has_bias(desc.epilogue)) sum += bias(column);
  if (has_residual(desc.epilogue)) sum += residual(row * desc.n + column);
  return has_gelu(desc.epilogue) ? gelu_tanh_reference(sum) : sum;
}

}  // namespace cgrt::kernels
