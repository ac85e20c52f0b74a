// In which bin of a histogram a number is: one formula for the device, the simulator and the tests. Plain: no Abseil.
//
// float32: the last bin whose lower edge is not above x. Edges are lower + i * width, in double and rounded once, where
// width is (upper - lower) / bins, in double. int32: floor((x - lower) * bins / (upper - lower)), exactly. So each
// number of [lower, upper) is in one of the bins, and no other is.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cmath>
#include <cstdint>

#include "cgrt_kernels/cub/cub_desc.h"

namespace cgrt::kernels {

inline constexpr std::int32_t kNoBin = -1;

template <class T>
class BinOf;

template <>
class BinOf<float> {
 public:
  explicit BinOf(const HistogramDesc& desc)
      : lower_(static_cast<double>(static_cast<float>(desc.lower))),
        upper_(static_cast<double>(static_cast<float>(desc.upper))),
        width_((upper_ - lower_) / desc.bins),
        bins_per_unit_(desc.bins / (upper_ - lower_)),
        last_(desc.bins - 1) {}

  __host__ __device__ std::int32_t operator()(float number) const {
    const auto x = static_cast<double>(number);
    if (!(x >= lower_ && x < upper_)) return kNoBin;  // nor is NaN
    auto bin = static_cast<std::int32_t>((x - lower_) * bins_per_unit_);
    if (bin > last_) bin = last_;
    while (x < edge(bin)) --bin;  // the first edge is `lower`
    while (bin < last_ && x >= edge(bin + 1)) ++bin;
    return bin;
  }

 private:
  __host__ __device__ double edge(std::int32_t bin) const { return std::fma(static_cast<double>(bin), width_, lower_); }

  double lower_, upper_, width_, bins_per_unit_;
  std::int32_t last_;
};

template <>
class BinOf<std::int32_t> {
 public:
  explicit BinOf(const HistogramDesc& desc)
      : lower_(static_cast<std::int64_t>(desc.lower)),
        range_(static_cast<std::int64_t>(desc.upper) - lower_),
        bins_(desc.bins),
        bins_per_unit_(desc.bins / static_cast<double>(range_)) {}

  __host__ __device__ std::int32_t operator()(std::int32_t number) const {
    const std::int64_t x = number - lower_;
    if (x < 0 || x >= range_) return kNoBin;
    // Below 2^56. The product of doubles is off by less than one.
    const std::int64_t scaled = x * bins_;
    auto bin = static_cast<std::int64_t>(static_cast<double>(x) * bins_per_unit_);
    while (bin * range_ > scaled) --bin;
    while ((bin + 1) * range_ <= scaled) ++bin;
    return static_cast<std::int32_t>(bin);
  }

 private:
  std::int64_t lower_, range_, bins_;
  double bins_per_unit_;
};

}  // namespace cgrt::kernels
