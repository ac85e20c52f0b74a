// An element of y in double: for tests, and as the host body of the kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "cgrt_kernels/skinny_gemm/skinny_gemm_desc.h"

namespace cgrt::kernels {

// The weight at position k of a row that begins at `row`.
inline int skinny_integer(SkinnyWeights weights, const unsigned char* row, std::uint64_t k) {
  if (weights == SkinnyWeights::kInt8) return static_cast<signed char>(row[k]);
  return (row[k / 2] >> k % 2 * 4 & 15) - 8;
}

// x(i, k), weight(j, k) and bias(j) are elements as doubles.
template <class X, class Weight, class Bias>
double skinny_gemm_reference(SkinnyActivation activation, std::uint64_t n, std::uint64_t k, std::uint64_t row,
                             std::uint64_t column, X x, Weight weight, Bias bias) {
  const auto product = [&](std::uint64_t j) {
    double sum = 0;
    for (std::uint64_t i = 0; i < k; ++i) sum += x(row, i) * weight(j, i);
    return sum + bias(j);
  };
  const double sum = product(column);
  switch (activation) {
    case SkinnyActivation::kNone: break;
    case SkinnyActivation::kGelu: return sum / 2 * (1 + std::erf(sum * std::sqrt(0.5)));
    case SkinnyActivation::kGeluTanh:
      return sum / 2 * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
    case SkinnyActivation::kSiluGate: return sum / (1 + std::exp(-sum)) * product(n + column);
  }
  return sum;
}

}  // namespace cgrt::kernels
