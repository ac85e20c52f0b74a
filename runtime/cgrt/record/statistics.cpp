#include "cgrt/record/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace cgrt::record {
namespace {

double quantile_of_sorted(const std::vector<double>& samples, double q) {
  if (samples.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double place = q * static_cast<double>(samples.size() - 1);
  const std::size_t below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return std::lerp(samples[below], samples[above], place - static_cast<double>(below));
}

}  // namespace

double median(std::vector<double> samples) { return quantile(std::move(samples), 0.5); }

double quantile(std::vector<double> samples, double q) {
  std::sort(samples.begin(), samples.end());
  return quantile_of_sorted(samples, q);
}

double spread(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return (quantile_of_sorted(samples, 0.75) - quantile_of_sorted(samples, 0.25)) / 2 / quantile_of_sorted(samples, 0.5);
}

}  // namespace cgrt::record
