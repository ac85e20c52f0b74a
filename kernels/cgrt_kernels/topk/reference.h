// The largest of a row with their softmax in double, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "cgrt_kernels/topk/topk_desc.h"

namespace cgrt::kernels {

// (expert, weight), largest first.
inline std::vector<std::pair<std::int32_t, double>> topk_reference(const std::vector<double>& logits, std::uint64_t k,
                                                                   TopkWeights weights) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](std::int32_t expert) { return logits[static_cast<std::size_t>(expert)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::isnan(at(b)) ? !std::isnan(at(a)) : at(a) > at(b);
  });
  const double max = at(order[0]);
  double sum = 0;
  const bool has_nan = std::any_of(logits.begin(), logits.end(), [](double logit) { return std::isnan(logit); });
  for (std::size_t i = 0; i < (weights == TopkWeights::kOfAll ? order.size() : k); ++i) {
    sum += std::exp(at(order[i]) - max);
  }
  std::vector<std::pair<std::int32_t, double>> chosen;
  for (std::size_t i = 0; i < k; ++i) {
    chosen.emplace_back(order[i], has_nan ? std::nan("") : std::exp(at(order[i]) - max) / sum);
  }
  return chosen;
}

}  // namespace cgrt::kernels
