// What a group's moments make of the elements of a pack, whose channels may lie in several groups.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/elementwise/functors.cuh"
#include "cgrt_kernels/group_norm/kernels.h"

namespace cgrt::kernels {

__device__ __forceinline__ GroupNormStatistics statistics_of(const Moments& group, float epsilon) {
  return {group.mean, 1.0f / sqrtf(group.squares / group.count + epsilon)};
}

// Weights and biases of a pack's channels; ones and zeros where there are none.
template <class T, Alignment kAlignment>
struct PackWeights {
  using Pack = PackFor<T, kAlignment>;
  Pack weight, bias;

  __device__ __forceinline__ PackWeights(const GroupNormArgs& args, std::uint32_t pack)
      : weight(load_or(args.weight, pack, 1)), bias(load_or(args.bias, pack, 0)) {}

 private:
  __device__ __forceinline__ static Pack load_or(const void* from, std::uint32_t pack, float otherwise) {
    if (from != nullptr) return static_cast<const Pack*>(from)[pack];
    float values[kPackSizeFor<T, kAlignment>];
#pragma unroll
    for (float& value : values) value = otherwise;
    Pack filled;
    pack_into(filled, values);
    return filled;
  }
};

template <class T, Alignment kAlignment>
class PackNorm {
 public:
  using Pack = PackFor<T, kAlignment>;
  static constexpr int kSize = kPackSizeFor<T, kAlignment>;

  // `channel`: the first; `statistics`: of the group of channel 0 and those behind it.
  __device__ __forceinline__ PackNorm(const GroupNormParams& p, const PackWeights<T, kAlignment>& weights,
                                      std::uint32_t channel, const GroupNormStatistics* statistics)
      : activation_(p.activation) {
    unpack(weights.weight, scale_);
    unpack(weights.bias, bias_);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const GroupNormStatistics of_group = statistics[p.group_channels.quotient(channel + i)];
      mean_[i] = of_group.mean, scale_[i] *= of_group.scale;
    }
  }

  __device__ __forceinline__ Pack operator()(const Pack& x) const {
    float values[kSize];
    unpack(x, values);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      values[i] = __fmaf_rn(values[i] - mean_[i], scale_[i], bias_[i]);
      if (activation_ == GroupNormActivation::kSilu) values[i] = silu_of(values[i]);
    }
    Pack y;
    pack_into(y, values);
    return y;
  }

 private:
  float mean_[kSize], scale_[kSize], bias_[kSize];
  const GroupNormActivation activation_;
};

}  // namespace cgrt::kernels
