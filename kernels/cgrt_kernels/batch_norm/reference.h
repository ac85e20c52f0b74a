// What batch normalization means, in plain C++ and in double: the tests' reference and the simulator's
// host bodies.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/batch_norm/batch_norm_desc.h"

namespace cgrt::kernels {

struct ChannelMoments {
  double mean = 0, variance = 0;
};

// Two passes; `value(i)` for i < count.
template <class Value>
ChannelMoments channel_moments(std::uint64_t count, Value value) {
  const auto n = static_cast<double>(count);
  ChannelMoments moments;
  for (std::uint64_t i = 0; i < count; ++i) moments.mean += value(i) / n;
  for (std::uint64_t i = 0; i < count; ++i) {
    moments.variance += (value(i) - moments.mean) * (value(i) - moments.mean) / n;
  }
  return moments;
}

inline double running_reference(double running, double momentum, double batch) {
  return (1 - momentum) * running + momentum * batch;
}
inline double unbiased(double variance, std::uint64_t count) {
  return variance * static_cast<double>(count) / static_cast<double>(count - 1);
}

// An element of the result: (x - mean) * scale + offset + gradient * gradient_scale.
struct ChannelCoefficients {
  double mean = 0, scale = 0, offset = 0, gradient_scale = 0;
  double operator()(double x, double gradient) const { return (x - mean) * scale + offset + gradient * gradient_scale; }
};
inline ChannelCoefficients forward_coefficients(double mean, double invstd, double weight, double bias) {
  return {mean, invstd * weight, bias, 0};
}
// From the sums over the channel of the gradient, and of the gradient times x - mean.
inline ChannelCoefficients backward_coefficients(double mean, double invstd, double weight, double sum,
                                                 double sum_of_products, double count) {
  const double scale = invstd * weight;
  return {mean, -scale * invstd * invstd * sum_of_products / count, -scale * sum / count, scale};
}

}  // namespace cgrt::kernels
