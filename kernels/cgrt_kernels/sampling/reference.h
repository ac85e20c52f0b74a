// Sampling in double, for tests and the simulator.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cgrt_kernels/common/philox.h"
#include "cgrt_kernels/sampling/sampling_desc.h"

namespace cgrt::kernels {

// Of one row.
struct SamplingRule {
  float temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;

  bool is_greedy() const { return !(temperature >= kSamplingMinTemperature); }
};

// The first of the largest values; NaN is the least.
inline std::size_t first_of_largest(const std::vector<double>& values) {
  std::size_t first = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[first] || (std::isnan(values[first]) && !std::isnan(values[i]))) first = i;
  }
  return first;
}

// Which tokens top-k and top-p keep.
inline std::vector<bool> sampling_kept_reference(const std::vector<double>& logits, const SamplingRule& rule) {
  const double max = logits[first_of_largest(logits)];
  const auto weight = [&](double logit) {
    if (std::isnan(logit)) return 0.0;
    return logit == max ? 1 : std::exp((logit - max) / static_cast<double>(rule.temperature));
  };
  std::vector<double> ordered = logits;
  std::sort(ordered.begin(), ordered.end(), [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a > b; });
  const auto at_least = [](double a, double b) { return a >= b || std::isnan(b); };
  double least = ordered.back();
  if (rule.top_k > 0 && rule.top_k < static_cast<std::int64_t>(logits.size())) {
    least = ordered[static_cast<std::size_t>(rule.top_k) - 1];
  }
  if (rule.top_p < 1 && !std::isnan(max)) {
    double all = 0, sum = 0;
    for (const double logit : ordered) all += at_least(logit, least) ? weight(logit) : 0;
    std::size_t last = 0;
    for (; last + 1 < ordered.size(); ++last) {
      sum += weight(ordered[last]);
      if (sum >= rule.top_p * all) break;
    }
    if (at_least(ordered[last], least)) least = ordered[last];
  }
  std::vector<bool> kept(logits.size());
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = at_least(logits[i], least);
  return kept;
}

// What the tokens of a row are drawn by: the one that has the largest of those kept. `counter`: that of the row.
inline std::vector<double> sampling_keys_reference(const std::vector<double>& logits, const SamplingRule& rule,
                                                   std::uint64_t seed, std::uint64_t counter) {
  if (rule.is_greedy()) return logits;
  std::vector<double> keys(logits.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double number = static_cast<double>(random4(seed, counter + i / 4).of[i % 4]);
    const double v = std::min((number + 0.5) / 4294967296.0, 1 - 0x1p-24);
    keys[i] = logits[i] / static_cast<double>(rule.temperature) - std::log(-std::log1p(-v));
  }
  return keys;
}

inline std::size_t sampling_reference(const std::vector<double>& logits, const SamplingRule& rule, std::uint64_t seed,
                                      std::uint64_t counter) {
  std::vector<double> keys = sampling_keys_reference(logits, rule, seed, counter);
  if (!rule.is_greedy()) {
    const std::vector<bool> kept = sampling_kept_reference(logits, rule);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!kept[i]) keys[i] = std::nan("");
    }
  }
  return first_of_largest(keys);
}

// log_softmax(logits)[token]
inline double log_probability_reference(const std::vector<double>& logits, std::size_t token) {
  double max = -INFINITY, sum = 0;
  for (const double logit : logits) max = std::max(max, logit);
  for (const double logit : logits) sum += std::exp(logit - max);
  return logits[token] - max - std::log(sum);
}

}  // namespace cgrt::kernels
