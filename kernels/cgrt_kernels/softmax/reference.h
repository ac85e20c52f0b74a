// What each operation means, in plain C++ and in double: the tests' reference and the simulator's host body.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cgrt_kernels/softmax/softmax_desc.h"

namespace cgrt::kernels {

// `values` is a row, and becomes the result.
inline void softmax_reference(SoftmaxOp op, std::vector<double>& values) {
  const double max = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += std::exp(value - max);
  for (double& value : values) {
    value = op == SoftmaxOp::kSoftmax ? std::exp(value - max) / sum : value - max - std::log(sum);
  }
}

// `dy` is of a row, and becomes dx.
inline void softmax_backward_reference(SoftmaxOp op, std::vector<double>& dy, const std::vector<double>& y,
                                       double scale) {
  double sum = 0;
  for (std::size_t i = 0; i < dy.size(); ++i) sum += op == SoftmaxOp::kSoftmax ? dy[i] * y[i] : dy[i];
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dy[i] = scale * (op == SoftmaxOp::kSoftmax ? y[i] * (dy[i] - sum) : dy[i] - std::exp(y[i]) * sum);
  }
}

// Of row `row` of a matrix, the columns that it sees.
inline std::int64_t seen_columns(std::int64_t row, std::int64_t rows, std::int64_t columns, bool is_causal,
                                 const std::int32_t* length) {
  std::int64_t seen = columns;
  if (length != nullptr) seen = std::min<std::int64_t>(seen, *length);
  if (is_causal) seen = std::min(seen, row + 1 + columns - rows);
  return std::max<std::int64_t>(seen, 0);
}

// `values` is a row, and becomes the result. `mask` is null or as long.
inline void masked_softmax_reference(std::vector<double>& values, double scale, const double* mask, std::int64_t seen) {
  const auto columns = static_cast<std::int64_t>(values.size());
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t i = 0; i < columns; ++i) {
    double& value = values[static_cast<std::size_t>(i)];
    value = i < seen ? value * scale + (mask != nullptr ? mask[i] : 0) : -std::numeric_limits<double>::infinity();
    max = std::max(max, value);
  }
  for (double& value : values) {
    value = std::isinf(value) && value < 0 ? 0 : std::exp(value - max);
    sum += value;
  }
  for (std::int64_t i = 0; i < columns; ++i) {  // a sum that is NaN is only for what is seen
    double& value = values[static_cast<std::size_t>(i)];
    value = sum == 0 || i >= seen ? 0 : value / sum;
  }
}

}  // namespace cgrt::kernels
