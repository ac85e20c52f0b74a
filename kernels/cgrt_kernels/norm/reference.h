// What each operation means, in plain C++ and in double: the tests' reference and the simulator's host body.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "cgrt_kernels/norm/norm_desc.h"

namespace cgrt::kernels {

// Of a row `x`: its mean, 0 for rms_norm, and what the distance from it is multiplied by.
struct NormFacts {
  double mean = 0, scale = 0;
};
inline NormFacts norm_facts(NormOp op, const std::vector<double>& x, double epsilon) {
  const auto count = static_cast<double>(x.size());
  NormFacts facts;
  double square = 0;
  if (op == NormOp::kLayerNorm) {
    for (const double value : x) facts.mean += value / count;
  }
  for (const double value : x) square += (value - facts.mean) * (value - facts.mean) / count;
  facts.scale = 1 / std::sqrt(square + epsilon);
  return facts;
}

// `values` is a row, and becomes the result. `weight` and `bias` are null or as long.
inline void norm_reference(NormOp op, std::vector<double>& values, const double* weight, const double* bias,
                           double epsilon) {
  const NormFacts facts = norm_facts(op, values, epsilon);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (values[i] - facts.mean) * facts.scale * (weight != nullptr ? weight[i] : 1);
    if (op == NormOp::kLayerNorm && bias != nullptr) values[i] += bias[i];
  }
}

// `dy` is of a row, and becomes dx. `weight` is null or as long. What the row adds to dweight and dbias is added to
// them when they are not null.
inline void norm_backward_reference(NormOp op, std::vector<double>& dy, const std::vector<double>& x,
                                    const double* weight, double epsilon, double* dweight, double* dbias) {
  const NormFacts facts = norm_facts(op, x, epsilon);
  const auto count = static_cast<double>(x.size());
  double sum = 0, product = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double normalized = (x[i] - facts.mean) * facts.scale;
    if (dweight != nullptr) dweight[i] += dy[i] * normalized;
    if (dbias != nullptr) dbias[i] += dy[i];
    if (weight != nullptr) dy[i] *= weight[i];
    if (op == NormOp::kLayerNorm) sum += dy[i] / count;
    product += dy[i] * normalized / count;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    dy[i] = facts.scale * (dy[i] - sum - (x[i] - facts.mean) * facts.scale * product);
  }
}

}  // namespace cgrt::kernels
