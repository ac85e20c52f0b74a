// Sums over channels: of a thread's elements, merged among threads, blocks and kernels.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/batch_norm/kernels.h"
#include "cgrt_kernels/common/pack.cuh"

namespace cgrt::kernels {

// What a thread loads at once: 16 bytes, or an element.
template <class T, int kLanes>
using LanesOf = std::conditional_t<kLanes == 1, T, typename PackOf<T>::Type>;

// Of what is not needed again: the cache drops it first.
template <class Pack>
__device__ __forceinline__ Pack load_last(const Pack* from) {
  if constexpr (sizeof(Pack) != 16) {
    return *from;
  } else {
    const uint4 words = __ldcs(reinterpret_cast<const uint4*>(from));
    return reinterpret_cast<const Pack&>(words);
  }
}

// use(lane, channel) for each column from `column` on, which is of `channel`.
template <int kLanes, class Use>
__device__ __forceinline__ void for_each_lane(std::uint32_t channel, std::uint32_t column, std::uint32_t plane,
                                              Use use) {
  std::uint32_t end = (channel + 1) * plane;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    if (column + static_cast<std::uint32_t>(lane) == end) ++channel, end += plane;
    use(lane, channel);
  }
}

// A part of a channel. Forward: its mean, the sum of squared deviations from it, and its elements;
// backward: the sums of the gradient and of the gradient times x - mean. Means are differences from the
// channel's first element: far from zero they would lose what distinguishes them.
struct Part {
  float a = 0, b = 0, count = 0;
};

// Sums around a reference that is one of the values: what cancels when they are subtracted at the end
// is then at most `count` times the share that this value has in the result, however far from zero the
// values are. One subtraction per element; Welford's update would divide.
template <bool kBackward>
struct Merged {
  float reference = 0, a = 0, b = 0, count = 0;

  __device__ __forceinline__ void add(const Part& part) {
    if constexpr (kBackward) {
      a += part.a, b += part.b;
    } else {
      const float delta = part.a - reference, weighted = part.count * delta;
      a += weighted, b += part.b + weighted * delta, count += part.count;
    }
  }
  template <class Shuffle>
  __device__ __forceinline__ void add_shuffled(Shuffle shuffle) {
    a += shuffle(a), b += shuffle(b), count += shuffle(count);
  }
  __device__ __forceinline__ Part part() const {
    if (kBackward) return {a, b, 0};
    if (count == 0) return {};
    const float offset = a / count, squares = b - a * offset;
    return {reference + offset, squares < 0 ? 0 : squares, count};  // keeps NaN
  }
};

// The columns of a thread, over its rows.
template <int kLanes, bool kBackward>
struct LaneSums {
  float shift[kLanes], a[kLanes], b[kLanes];

  __device__ __forceinline__ LaneSums() {
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) shift[lane] = a[lane] = b[lane] = 0;
  }

  // After the last add: from here on means are relative to `reference(channel)`.
  template <class Reference>
  __device__ __forceinline__ void make_relative(std::uint32_t column, std::uint32_t plane, Reference reference) {
    if constexpr (!kBackward) {
      float one = 0;
      std::uint32_t held = ~0u;
      for_each_lane<kLanes>(column / plane, column, plane, [&](int lane, std::uint32_t channel) {
        if (channel != held) one = reference(channel);
        held = channel;
        shift[lane] -= one;
      });
    }
  }

  template <class Pack>
  __device__ __forceinline__ void add(const Pack& x, const Pack& gradient) {
    float values[kLanes], gradients[kLanes];
    unpack(x, values);
    if constexpr (kBackward) unpack(gradient, gradients);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      const float delta = values[lane] - shift[lane];
      if constexpr (kBackward) {
        a[lane] += gradients[lane], b[lane] = __fmaf_rn(gradients[lane], delta, b[lane]);
      } else {
        a[lane] += delta, b[lane] = __fmaf_rn(delta, delta, b[lane]);
      }
    }
  }

  __device__ __forceinline__ Part part(int lane, float rows, float share) const {
    if (kBackward) return {a[lane], b[lane], 0};
    const float offset = a[lane] * share;
    return {shift[lane] + offset, b[lane] - a[lane] * offset, rows};
  }
};

// How the threads of a block lie on the columns that they reduce: packs next to each other, then rows.
struct Footprint {
  std::uint32_t packs, height;  // thread = row * packs + pack; those behind have no columns
  std::uint32_t plane;
  std::uint32_t begin, columns;  // the first column, and how many there are
};

// An entry begins where the banks of a warp's packs end in the one before it: threads that read an element each of
// neighbouring columns do not meet in a bank.
template <int kLanes>
struct PartsInShared {
  float* memory;
  __device__ float* of(std::uint32_t entry, std::uint32_t thread) const {
    return memory + entry * (3 * blockDim.x + 32 / kLanes) + thread;
  }
  __device__ void put(std::uint32_t entry, const Part& part) const {
    float* const to = of(entry, threadIdx.x);
    to[0] = part.a, to[blockDim.x] = part.b, to[2 * blockDim.x] = part.count;
  }
  __device__ Part get(std::uint32_t entry, std::uint32_t thread) const {
    const float* const from = of(entry, thread);
    return {from[0], from[blockDim.x], from[2 * blockDim.x]};
  }
};

// `rows` of the thread went into `sums`; `column` is its first.
template <int kLanes, bool kBackward>
__device__ __forceinline__ void put_parts(const LaneSums<kLanes, kBackward>& sums, std::uint32_t rows,
                                          std::uint32_t column, std::uint32_t plane,
                                          const PartsInShared<kLanes>& parts) {
  const float count = static_cast<float>(rows), share = rows != 0 ? 1.0f / count : 0.0f;
  if (plane >= kLanes) {
    const std::uint32_t end = (column / plane + 1) * plane;
    Merged<kBackward> first, second;
    first.reference = sums.part(0, count, share).a;
    second.reference = sums.part(kLanes - 1, count, share).a;
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      const Part part = sums.part(lane, count, share);
      if (column + static_cast<std::uint32_t>(lane) < end) {
        first.add(part);
      } else {
        second.add(part);
      }
    }
    parts.put(0, first.part());
    if (plane % kLanes != 0) parts.put(1, second.part());
  } else {
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane)
      parts.put(static_cast<std::uint32_t>(lane), sums.part(lane, count, share));
  }
}

// use(channel - the first one, part) once for each channel of the footprint, when all threads have put
// their parts. The order of the additions depends on the footprint only.
template <int kLanes, bool kBackward, class Use>
__device__ __forceinline__ void reduce_channels(const PartsInShared<kLanes>& parts, const Footprint& at, Use use) {
  const std::uint32_t first = at.begin / at.plane, channels = (at.begin + at.columns - 1) / at.plane - first + 1;
  std::uint32_t group = 32;  // threads for a channel
  while (group > 1 && channels * group > blockDim.x) group /= 2;
  const std::uint32_t member = threadIdx.x % group, groups = blockDim.x / group;
  for (std::uint32_t base = 0; base < channels; base += groups) {
    const std::uint32_t channel = base + threadIdx.x / group;
    Merged<kBackward> merged;
    if (channel < channels) {
      const std::uint32_t channel_begin = (first + channel) * at.plane;
      const std::uint32_t begin = max(channel_begin, at.begin) - at.begin;
      const std::uint32_t end = min(channel_begin + at.plane - at.begin, at.columns);
      const std::uint32_t first_pack = begin / kLanes;
      if (at.plane >= kLanes) {
        const std::uint32_t packs = (end - 1) / kLanes + 1 - first_pack;
        const auto entry = [&](std::uint32_t pack) -> std::uint32_t {
          return at.begin + pack * kLanes >= channel_begin ? 0 : 1;
        };
        merged.reference = parts.get(entry(first_pack), first_pack).a;
        for (std::uint32_t i = member; i < packs * at.height; i += group) {
          const std::uint32_t pack = first_pack + i % packs;
          merged.add(parts.get(entry(pack), i / packs * at.packs + pack));
        }
      } else {  // whole channels within a pack, or across two
        merged.reference = parts.get(begin % kLanes, first_pack).a;
        for (std::uint32_t row = member; row < at.height; row += group) {
          for (std::uint32_t column = begin; column < end; ++column) {
            merged.add(parts.get(column % kLanes, row * at.packs + column / kLanes));
          }
        }
      }
    }
    for (std::uint32_t mask = group / 2; mask > 0; mask /= 2) {
      merged.add_shuffled([mask](float value) { return __shfl_xor_sync(0xffffffff, value, static_cast<int>(mask)); });
    }
    if (channel < channels && member == 0) use(channel, merged.part());
  }
}

// (x - x) * y + z + gradient * w
using Coefficients = float4;

template <class T>
__device__ __forceinline__ float first_element(const BatchNormParams& p, std::uint32_t channel) {
  return to_float(static_cast<const T*>(p.in)[std::uint64_t{channel} * p.plane]);
}

// What the coefficients of a channel, and what is saved of it, depend on beside its sums.
template <bool kBackward>
struct ChannelParameters {
  float weight = 1, bias = 0;
  float running_mean = 0, running_variance = 0;
  float mean = 0, invstd = 0;

  __device__ __forceinline__ ChannelParameters(const BatchNormParams& p, std::uint32_t channel) {
    if (p.weight != nullptr) weight = p.weight[channel];
    if constexpr (kBackward) {
      mean = p.mean[channel], invstd = p.spread[channel];
    } else {
      if (p.bias != nullptr) bias = p.bias[channel];
      if (p.running_mean != nullptr) {
        running_mean = p.running_mean[channel], running_variance = p.running_variance[channel];
      }
    }
  }
};

// What is saved, and the coefficients of a channel of which `all` is the whole and `first` the first element. One
// caller writes.
template <bool kBackward>
__device__ __forceinline__ Coefficients finish_channel(const BatchNormParams& p, std::uint32_t channel,
                                                       const ChannelParameters<kBackward>& of, float first,
                                                       const Part& all, bool writes) {
  const float count = static_cast<float>(std::uint64_t{p.rows} * p.plane);
  if constexpr (kBackward) {
    const float scale = of.weight * of.invstd;
    if (writes && p.weight_gradient != nullptr) p.weight_gradient[channel] = all.b * of.invstd;
    if (writes && p.bias_gradient != nullptr) p.bias_gradient[channel] = all.a;
    return {of.mean, -scale * of.invstd * (of.invstd * (all.b / count)), -scale * (all.a / count), scale};
  } else {
    const float mean_of_all = first + all.a;
    const float variance = all.b / count, invstd = 1 / sqrtf(variance + p.epsilon);
    if (writes) {
      p.save_mean[channel] = mean_of_all;
      p.save_invstd[channel] = invstd;
      if (p.running_mean != nullptr) {
        const float kept = 1 - p.momentum;  // a momentum of 1 keeps nothing of a finite one
        p.running_mean[channel] = kept * of.running_mean + p.momentum * mean_of_all;
        p.running_variance[channel] = kept * of.running_variance + p.momentum * (all.b / (count - 1));
      }
    }
    return {mean_of_all, invstd * of.weight, of.bias, 0};
  }
}

// The coefficients of a thread's columns. kEach: load for each lane, without branches between the loads,
// which would make them wait for each other; otherwise one predicated load for each channel.
template <int kLanes, bool kBackward, bool kEach>
struct LaneCoefficients {
  float mean[kLanes], scale[kLanes], offset[kLanes], gradient_scale[kBackward ? kLanes : 1];

  template <class Load, class Convert>
  __device__ __forceinline__ LaneCoefficients(std::uint32_t first_channel, std::uint32_t column, std::uint32_t plane,
                                              Load load, Convert convert) {
    Coefficients loaded[kLanes];
    std::uint32_t held = ~0u;
    for_each_lane<kLanes>(first_channel, column, plane, [&](int lane, std::uint32_t channel) {
      if (kEach || channel != held) {
        loaded[lane] = load(channel);
      } else {
        loaded[lane] = loaded[lane > 0 ? lane - 1 : 0];
      }
      if constexpr (kEach) loaded[lane] = convert(loaded[lane]);
      held = channel;
    });
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) set(lane, kEach ? loaded[lane] : convert(loaded[lane]));
  }

  // The first `count` lanes, and the others.
  __device__ __forceinline__ LaneCoefficients(std::uint32_t count, const Coefficients& first,
                                              const Coefficients& others) {
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) set(lane, static_cast<std::uint32_t>(lane) < count ? first : others);
  }

  __device__ __forceinline__ void set(int lane, const Coefficients& one) {
    mean[lane] = one.x, scale[lane] = one.y, offset[lane] = one.z;
    if constexpr (kBackward) gradient_scale[lane] = one.w;
  }

  template <class Pack>
  __device__ __forceinline__ Pack apply(const Pack& x, const Pack& gradient) const {
    float values[kLanes], gradients[kLanes];
    unpack(x, values);
    if constexpr (kBackward) unpack(gradient, gradients);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      // x - mean comes first: with a large mean and a small variance, nothing else is left of x.
      values[lane] = __fmaf_rn(values[lane] - mean[lane], scale[lane], offset[lane]);
      if constexpr (kBackward) values[lane] = __fmaf_rn(gradients[lane], gradient_scale[lane], values[lane]);
    }
    Pack result;
    pack_into(result, values);
    return result;
  }
};

}  // namespace cgrt::kernels
