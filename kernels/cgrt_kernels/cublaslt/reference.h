// What a product means, in plain C++ and in double: the tests' reference and the simulator's host function.
#pragma once

#include <cstdint>

#include "cgrt_kernels/cublaslt/matmul_desc.h"
#include "cgrt_kernels/elementwise/reference.h"

namespace cgrt::kernels {

// `a(i)`, `b(i)` and `bias(i)` give element i of an array as a double.
template <class A, class B, class Bias>
double matmul_reference(const MatmulDesc& desc, std::uint64_t row, std::uint64_t column, A a, B b, Bias bias) {
  double sum = 0;
  for (std::uint64_t i = 0; i < desc.k; ++i) {
    const std::uint64_t at = desc.b_layout == MatmulLayout::kPlain ? i * desc.n + column : column * desc.k + i;
    sum += a(row * desc.k + i) * b(at);
  }
  if (has_bias(desc.epilogue)) sum += bias(column);
  return has_gelu(desc.epilogue) ? gelu_tanh_reference(sum) : sum;
}

}  // namespace cgrt::kernels
