// In which bin of a histogram a number is: one formula for the device, the simulator and the tests. Plain: no Abseil.
//
// float32: the last bin whose lower edge is not above x. Edges are lower + i * width, in double and rounded once, where
// width is (upper - lower) / bins, in double. int32: floor((x - lower) * bins / (upper - lower)), exactly. So each
// number of [lower, upper) is in one of the bins, and no other is: of these the answer is the number of bins.
//
// Both find the edge next to the number from an estimate, and then on which side of it the number is. The estimate is
// off by less than half a bin: a float's edges are 2^-48 of it apart or more, and of double's errors there are fewer
// than 2^-51 times as large.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cgrt_kernels/histogram/histogram_desc.h"

namespace cgrt::kernels {

// A number that is nearest to another one, as an integer and in double, by one addition: what is added to this has its
// integer in the lower bits. No conversion, of which a multiprocessor does few.
class NearestEdge {
 public:
  // To from * factor, which is below 2^31.
  __host__ __device__ NearestEdge(double from, double factor) : shifted_(std::fma(from, factor, kShift)) {}

  __host__ __device__ double as_double() const { return shifted_ - kShift; }
  __host__ __device__ std::int32_t number() const {
    std::uint64_t bits;
    memcpy(&bits, &shifted_, sizeof(bits));
    return static_cast<std::int32_t>(bits);
  }

 private:
  static constexpr double kShift = 0x1.8p52;
  double shifted_;
};

template <class T>
class BinOf;

template <>
class BinOf<float> {
 public:
  explicit BinOf(const HistogramDesc& desc)
      : first_(static_cast<float>(desc.lower)),
        end_(static_cast<float>(desc.upper)),
        lower_(static_cast<double>(first_)),
        width_((static_cast<double>(end_) - lower_) / desc.bins),
        bins_per_unit_(desc.bins / (static_cast<double>(end_) - lower_)),
        last_(desc.bins - 1) {}

  __host__ __device__ std::int32_t bins() const { return last_ + 1; }

  __host__ __device__ std::int32_t operator()(float number) const {
    const auto x = static_cast<double>(number);
    const NearestEdge edge(x - lower_, bins_per_unit_);
    const bool is_below = x < std::fma(edge.as_double(), width_, lower_);  // not of the first, which is `lower_`
    const std::int32_t bin = edge.number() - (is_below ? 1 : 0);
    const bool is_inside = number >= first_ && number < end_;  // NaN is not
    return is_inside ? (bin < last_ ? bin : last_) : bins();
  }

 private:
  float first_, end_;
  double lower_, width_, bins_per_unit_;
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

  __host__ __device__ std::int32_t bins() const { return static_cast<std::int32_t>(bins_); }

  __host__ __device__ std::int32_t operator()(std::int32_t number) const {
    const std::int64_t x = number - lower_;
    if (x < 0 || x >= range_) return bins();
    const NearestEdge edge(static_cast<double>(static_cast<std::uint32_t>(x)), bins_per_unit_);
    const std::int32_t bin = edge.number();
    return bin * range_ > x * bins_ ? bin - 1 : bin;  // both are below 2^57
  }

 private:
  std::int64_t lower_, range_, bins_;
  double bins_per_unit_;
};

}  // namespace cgrt::kernels
