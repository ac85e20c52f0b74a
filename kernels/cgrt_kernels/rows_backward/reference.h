// What each operation means, in plain C++ and in double: the tests' reference and the simulator's host body.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "cgrt_kernels/rows_backward/rows_backward_desc.h"

namespace cgrt::kernels {

// `dy` is of a row, and becomes dx. `weight` is null or as long. What the row adds to dweight and dbias is
// added to them when they are not null.
inline void row_backward_reference(RowOp op, std::vector<double>& dy, const std::vector<double>& saved,
                                   const double* weight, double epsilon, double* dweight, double* dbias) {
  const std::size_t columns = dy.size();
  const auto count = static_cast<double>(columns);
  double sum = 0, product = 0, mean = 0, square = 0;
  if (op == RowOp::kSoftmax || op == RowOp::kLogSoftmax) {
    for (std::size_t i = 0; i < columns; ++i) sum += op == RowOp::kSoftmax ? dy[i] * saved[i] : dy[i];
    for (std::size_t i = 0; i < columns; ++i) {
      dy[i] = op == RowOp::kSoftmax ? saved[i] * (dy[i] - sum) : dy[i] - std::exp(saved[i]) * sum;
    }
    return;
  }
  if (op == RowOp::kLayerNorm) {
    for (double x : saved) mean += x / count;
  }
  for (double x : saved) square += (x - mean) * (x - mean) / count;
  const double scale = 1 / std::sqrt(square + epsilon);
  for (std::size_t i = 0; i < columns; ++i) {
    const double normalized = (saved[i] - mean) * scale;
    if (dweight != nullptr) dweight[i] += dy[i] * normalized;
    if (dbias != nullptr) dbias[i] += dy[i];
    if (weight != nullptr) dy[i] *= weight[i];
    if (op == RowOp::kLayerNorm) sum += dy[i] / count;
    product += dy[i] * normalized / count;
  }
  for (std::size_t i = 0; i < columns; ++i) dy[i] = scale * (dy[i] - sum - (saved[i] - mean) * scale * product);
}

}  // namespace cgrt::kernels
