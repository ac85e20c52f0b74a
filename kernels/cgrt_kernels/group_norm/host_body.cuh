// What the kernels' host bodies do on the simulator, by the reference in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/group_norm/kernels.h"
#include "cgrt_kernels/group_norm/reference.h"

namespace cgrt::kernels {

template <class T>
void statistics_on_host(HostGrid, GroupNormParams p) {
  const std::uint64_t size = p.group_channels.value();
  for (std::uint64_t image = 0; image < p.batch; ++image) {
    for (std::uint64_t group = 0; group < p.groups; ++group) {
      const T* const x = static_cast<const T*>(p.args.x) + image * p.plane * p.channels + group * size;
      const GroupMoments moments = group_moments(p.plane * size, [&](std::uint64_t i) {
        return static_cast<double>(to_float(x[i / size * p.channels + i % size]));
      });
      p.statistics[image * p.groups + group] = {
          static_cast<float>(moments.mean),
          static_cast<float>(1 / std::sqrt(moments.variance + static_cast<double>(p.epsilon)))};
    }
  }
}

template <class T>
void apply_on_host(HostGrid, GroupNormParams p) {
  const auto at = [](const void* array, std::uint64_t i, double otherwise) {
    return array == nullptr ? otherwise : static_cast<double>(to_float(static_cast<const T*>(array)[i]));
  };
  for (std::uint64_t i = 0, count = std::uint64_t{p.batch} * p.plane * p.channels; i < count; ++i) {
    const std::uint64_t channel = i % p.channels, image = i / p.channels / p.plane;
    const GroupNormStatistics& of_group = p.statistics[image * p.groups + channel / p.group_channels.value()];
    const double y = group_norm_reference(p.activation, at(p.args.x, i, 0), static_cast<double>(of_group.mean),
                                          static_cast<double>(of_group.scale), at(p.args.weight, channel, 1),
                                          at(p.args.bias, channel, 0));
    static_cast<T*>(p.args.y)[i] = from_float<T>(static_cast<float>(y));
  }
}

template <class T>
void group_norm_on_host(HostGrid grid, GroupNormParams p) {
  std::vector<GroupNormStatistics> statistics(std::size_t{p.batch} * p.groups);
  p.statistics = statistics.data();
  statistics_on_host<T>(grid, p);
  apply_on_host<T>(grid, p);
}

}  // namespace cgrt::kernels
