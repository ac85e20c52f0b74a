// What it means, in plain C++ and in double: the tests' reference and the simulator's host body.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace cgrt::kernels {

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
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t i = 0; i < columns; ++i) {
    double& value = values[static_cast<std::size_t>(i)];
    value = i < seen ? value * scale + (mask != nullptr ? mask[i] : 0) : -std::numeric_limits<double>::infinity();
    most = std::max(most, value);
  }
  for (double& value : values) {
    value = std::isinf(value) && value < 0 ? 0 : std::exp(value - most);
    sum += value;
  }
  for (std::int64_t i = 0; i < columns; ++i) {  // a sum that is NaN is only for what is seen
    double& value = values[static_cast<std::size_t>(i)];
    value = sum == 0 || i >= seen ? 0 : value / sum;
  }
}

}  // namespace cgrt::kernels
