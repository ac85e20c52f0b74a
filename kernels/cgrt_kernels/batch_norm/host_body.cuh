// What the kernels' host bodies do on the simulator, by the reference in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/batch_norm/channel.cuh"
#include "cgrt_kernels/batch_norm/reference.h"

namespace cgrt::kernels {

// The host's partial sums lie in the first slot of each channel.
template <class T>
double element_at(const void* from, std::uint64_t i) {
  return static_cast<double>(to_float(static_cast<const T*>(from)[i]));
}

template <class T, bool kBackward>
Part part_on_host(const BatchNormParams& p, std::uint32_t channel) {
  const std::uint64_t count = std::uint64_t{p.rows} * p.plane;
  const auto index = [&](std::uint64_t i) {
    return i / p.plane * p.columns + std::uint64_t{channel} * p.plane + i % p.plane;
  };
  if constexpr (kBackward) {
    double sum = 0, products = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const double gradient = element_at<T>(p.gradient, index(i));
      sum += gradient;
      products += gradient * (element_at<T>(p.in, index(i)) - static_cast<double>(p.mean[channel]));
    }
    return {static_cast<float>(sum), static_cast<float>(products), 0};
  } else {
    const ChannelMoments moments =
        channel_moments(count, [&](std::uint64_t i) { return element_at<T>(p.in, index(i)); });
    return {static_cast<float>(moments.mean), static_cast<float>(moments.variance), 0};
  }
}

template <bool kBackward>
ChannelCoefficients finish_on_host(const BatchNormParams& p, std::uint32_t channel, const Part& part) {
  const std::uint64_t count = std::uint64_t{p.rows} * p.plane;
  const double weight = p.weight != nullptr ? static_cast<double>(p.weight[channel]) : 1;
  const double a = static_cast<double>(part.a), b = static_cast<double>(part.b);
  if constexpr (kBackward) {
    const double invstd = static_cast<double>(p.spread[channel]);
    if (p.weight_gradient != nullptr) p.weight_gradient[channel] = static_cast<float>(b * invstd);
    if (p.bias_gradient != nullptr) p.bias_gradient[channel] = part.a;
    return backward_coefficients(static_cast<double>(p.mean[channel]), invstd, weight, a, b,
                                 static_cast<double>(count));
  } else {
    const double invstd = 1 / std::sqrt(b + static_cast<double>(p.epsilon));
    const auto update = [&](float& running, double batch) {
      running =
          static_cast<float>(running_reference(static_cast<double>(running), static_cast<double>(p.momentum), batch));
    };
    p.save_mean[channel] = part.a;
    p.save_invstd[channel] = static_cast<float>(invstd);
    if (p.running_mean != nullptr) {
      update(p.running_mean[channel], a);
      update(p.running_variance[channel], unbiased(b, count));
    }
    return forward_coefficients(a, invstd, weight, p.bias != nullptr ? static_cast<double>(p.bias[channel]) : 0);
  }
}

template <class T, bool kBackward>
void elements_on_host(const BatchNormParams& p, std::uint32_t channel, const ChannelCoefficients& of) {
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    for (std::uint64_t i = 0; i < p.plane; ++i) {
      const std::uint64_t at = row * p.columns + std::uint64_t{channel} * p.plane + i;
      const double gradient = kBackward ? element_at<T>(p.gradient, at) : 0;
      static_cast<T*>(p.out)[at] = from_float<T>(static_cast<float>(of(element_at<T>(p.in, at), gradient)));
    }
  }
}

template <class T, bool kBackward>
void statistics_on_host(HostGrid, BatchNormParams p) {
  for (std::uint32_t channel = 0; channel < p.columns / p.plane; ++channel) {
    const Part part = part_on_host<T, kBackward>(p, channel);
    static_cast<float4*>(p.partials)[std::uint64_t{channel} * p.slots] = {part.a, part.b, part.count, 0};
  }
}

template <bool kBackward>
void finish_steps_on_host(HostGrid, BatchNormParams p) {
  for (std::uint32_t channel = 0; channel < p.columns / p.plane; ++channel) {
    const float4 slot = static_cast<const float4*>(p.partials)[std::uint64_t{channel} * p.slots];
    const ChannelCoefficients of = finish_on_host<kBackward>(p, channel, {slot.x, slot.y, slot.z});
    static_cast<Coefficients*>(p.coefficients)[channel] = {static_cast<float>(of.mean), static_cast<float>(of.scale),
                                                           static_cast<float>(of.offset),
                                                           static_cast<float>(of.gradient_scale)};
  }
}

template <class T, bool kBackward>
void apply_on_host(HostGrid, BatchNormParams p) {
  const auto parameter = [](const float* of, std::uint32_t channel, double otherwise) {
    return of != nullptr ? static_cast<double>(of[channel]) : otherwise;
  };
  for (std::uint32_t channel = 0; channel < p.columns / p.plane; ++channel) {
    ChannelCoefficients of;
    if (p.coefficients != nullptr) {
      const Coefficients found = static_cast<const Coefficients*>(p.coefficients)[channel];
      of = {static_cast<double>(found.x), static_cast<double>(found.y), static_cast<double>(found.z),
            static_cast<double>(found.w)};
    } else {
      const double spread = static_cast<double>(p.spread[channel]) + static_cast<double>(p.epsilon);
      of = forward_coefficients(static_cast<double>(p.mean[channel]), 1 / std::sqrt(spread),
                                parameter(p.weight, channel, 1), parameter(p.bias, channel, 0));
    }
    elements_on_host<T, kBackward>(p, channel, of);
  }
}

template <class T, bool kBackward>
void resident_on_host(HostGrid, BatchNormParams p) {
  for (std::uint32_t channel = 0; channel < p.columns / p.plane; ++channel) {
    const Part part = part_on_host<T, kBackward>(p, channel);
    elements_on_host<T, kBackward>(p, channel, finish_on_host<kBackward>(p, channel, part));
  }
}

}  // namespace cgrt::kernels
