// What each operation means, in plain C++ and in double: the tests' reference and the simulator's
// host body.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/rows/rows_desc.h"

namespace cgrt::kernels {

// `values` is a row, and becomes the result. `weight` and `bias` are null or as long.
inline void row_reference(RowOp op, std::vector<double>& values, const double* weight, const double* bias,
                          double epsilon) {
  const double count = static_cast<double>(values.size());
  double mean = 0, square = 0;
  switch (op) {
    case RowOp::kSoftmax:
    case RowOp::kLogSoftmax: {
      const double most = *std::max_element(values.begin(), values.end());
      double sum = 0;
      for (double value : values) sum += std::exp(value - most);
      for (double& value : values) {
        value = op == RowOp::kSoftmax ? std::exp(value - most) / sum : value - most - std::log(sum);
      }
      return;
    }
    case RowOp::kLayerNorm:
      for (double value : values) mean += value / count;
      break;
    case RowOp::kRmsNorm: break;
  }
  for (double value : values) square += (value - mean) * (value - mean) / count;
  const double scale = 1 / std::sqrt(square + epsilon);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (values[i] - mean) * scale * (weight != nullptr ? weight[i] : 1);
    if (op == RowOp::kLayerNorm && bias != nullptr) values[i] += bias[i];
  }
}

}  // namespace cgrt::kernels
