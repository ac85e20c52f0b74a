// Group normalization in double, for tests and the simulator.
#pragma once

#include <cmath>
#include <cstdint>

#include "cgrt_kernels/group_norm/group_norm_desc.h"

namespace cgrt::kernels {

struct GroupMoments {
  double mean = 0, variance = 0;
};
// Of elements at(0) to at(count - 1).
template <class At>
GroupMoments group_moments(std::uint64_t count, const At& at) {
  GroupMoments moments;
  for (std::uint64_t i = 0; i < count; ++i) moments.mean += at(i);
  moments.mean /= static_cast<double>(count);
  for (std::uint64_t i = 0; i < count; ++i) moments.variance += (at(i) - moments.mean) * (at(i) - moments.mean);
  moments.variance /= static_cast<double>(count);
  return moments;
}

inline double group_norm_reference(GroupNormActivation activation, double x, double mean, double scale, double weight,
                                   double bias) {
  const double y = (x - mean) * scale * weight + bias;
  return activation == GroupNormActivation::kSilu ? y / (1 + std::exp(-y)) : y;
}

}  // namespace cgrt::kernels
