// Attention of one query in double, for the simulator and for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace cgrt::kernels {

// The output and the logarithm of the sum, of a query and a row of keys and of values for each position.
inline std::pair<std::vector<double>, double> decode_attention_reference(const std::vector<double>& q,
                                                                         const std::vector<double>& k,
                                                                         const std::vector<double>& v, double scale) {
  const std::size_t size = q.size(), positions = k.size() / size;
  std::vector<double> weights(positions), out(size);
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t i = 0; i < positions; ++i) {
    double product = 0;
    for (std::size_t d = 0; d < size; ++d) product += q[d] * k[i * size + d];
    weights[i] = scale * product;
    max = std::max(max, weights[i]);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - max);
  for (std::size_t i = 0; i < positions; ++i) {
    for (std::size_t d = 0; d < size; ++d) out[d] += weights[i] / sum * v[i * size + d];
  }
  return {out, positions == 0 ? max : max + std::log(sum)};
}

}  // namespace cgrt::kernels
