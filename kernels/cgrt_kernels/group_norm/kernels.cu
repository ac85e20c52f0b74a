#include "cgrt_kernels/group_norm/kernels.h"

#include <cmath>
#include <cstdint>

#include "cgrt_kernels/common/arrival.cuh"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/elementwise/functors.cuh"
#include "cgrt_kernels/group_norm/reference.h"

namespace cgrt::kernels {
namespace {

constexpr int kInFlight = 4;  // packs of a thread

// A block's threads lie on `width` packs of each of `height` pixels; those that are left over have none.
struct Place {
  std::uint32_t pack, line, height;

  __device__ explicit Place(const GroupNormParams& p)
      : pack(p.width.remainder(threadIdx.x)),
        line(p.width.quotient(threadIdx.x)),
        height(p.width.quotient(kGroupNormBlock)) {}
  __device__ bool is_there() const { return line < height; }
};

// How many of `pixels` a line of the block has: every `height`-th.
__device__ __forceinline__ std::uint32_t pixels_of(std::uint32_t line, std::uint32_t height, std::uint32_t pixels) {
  return line < pixels ? (pixels - line - 1) / height + 1 : 0;
}

// use(pack) for `count` packs from `from` on, each `step` behind the one before.
template <class Pack, class Use>
__device__ __forceinline__ void for_each_pixel(const Pack* from, std::uint32_t count, std::uint64_t step, Use use) {
  for (std::uint32_t first = 0; first < count; first += kInFlight) {
    Pack packs[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (first + i < count) packs[i] = from[(first + i) * step];
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (first + i < count) use(first + i, packs[i]);
    }
  }
}

__device__ __forceinline__ Moments moments_in(const GroupNormPart& part) {
  return {part.count, part.mean, part.squares};
}

// For one thread.
__device__ __forceinline__ void write_statistics(const GroupNormParams& p, std::uint32_t image, std::uint32_t group,
                                                 const Moments& all) {
  const float variance = all.squares / all.count;
  p.statistics[std::uint64_t{image} * p.groups + group] = {all.mean, 1.0f / sqrtf(variance + p.epsilon)};
}

// Each block has some pixels of an image; the one that comes last joins what all of them have of its groups. The sums
// of a thread are of differences from its first pixel: squares far from zero would cancel.
template <class T, Alignment kAlignment>
__global__ void __launch_bounds__(kGroupNormBlock, 3) group_statistics(const __grid_constant__ GroupNormParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kSize = kPackSizeFor<T, kAlignment>;
  __shared__ float means[kGroupNormMaxChannels], squares[kGroupNormMaxChannels];  // of each line's channels
  const Place place(p);
  const std::uint32_t packs = p.channels / kSize;
  const std::uint32_t image = p.splits.quotient(blockIdx.x), split = blockIdx.x - image * p.splits.value();
  const std::uint32_t begin = split * p.split_pixels, left = p.plane - begin;
  const std::uint32_t pixels = left < p.split_pixels ? left : p.split_pixels;
  wait_for_predecessors();
  const std::uint32_t count = pixels_of(place.line, place.height, pixels);
  const Pack* const from =
      static_cast<const Pack*>(p.args.x) + (std::uint64_t{image} * p.plane + begin + place.line) * packs;
  for (std::uint32_t pack = place.pack; place.is_there() && count > 0 && pack < packs; pack += p.width.value()) {
    float shift[kSize], a[kSize] = {}, b[kSize] = {};
    unpack(from[pack], shift);
    for_each_pixel(from + pack, count, std::uint64_t{place.height} * packs, [&](std::uint32_t, const Pack& x) {
      float values[kSize];
      unpack(x, values);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float delta = values[i] - shift[i];
        a[i] += delta, b[i] = __fmaf_rn(delta, delta, b[i]);
      }
    });
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float offset = a[i] / static_cast<float>(count), rest = b[i] - a[i] * offset;
      const std::uint32_t at = place.line * p.channels + pack * kSize + i;
      means[at] = shift[i] + offset, squares[at] = rest < 0 ? 0 : rest;
    }
  }
  let_dependents_start();
  __syncthreads();

  const std::uint32_t lane = threadIdx.x % 32, size = p.group_channels.value();
  for (std::uint32_t group = threadIdx.x / 32; group < p.groups; group += kGroupNormBlock / 32) {
    Moments all = none(Moments{});
    for (std::uint32_t i = lane; i < size * place.height; i += 32) {
      const std::uint32_t line = p.group_channels.quotient(i), of_line = pixels_of(line, place.height, pixels);
      const std::uint32_t at = line * p.channels + group * size + (i - line * size);
      if (of_line > 0) all = merge(all, Moments{static_cast<float>(of_line), means[at], squares[at]});
    }
    all = reduce_lanes(all);
    if (lane != 0) continue;
    if (p.splits.value() == 1) {
      write_statistics(p, image, group, all);
    } else {
      p.parts[std::uint64_t{blockIdx.x} * p.groups + group] = {all.count, all.mean, all.squares};
    }
  }
  if (p.splits.value() == 1 || !is_last_to_arrive(&p.counters[image], p.splits.value())) return;
  const GroupNormPart* const parts = p.parts + std::uint64_t{image} * p.splits.value() * p.groups;
  for (std::uint32_t group = threadIdx.x / 32; group < p.groups; group += kGroupNormBlock / 32) {
    Moments all = none(Moments{});
    for (std::uint32_t i = lane; i < p.splits.value(); i += 32)
      all = merge(all, moments_in(parts[i * p.groups + group]));
    all = reduce_lanes(all);
    if (lane == 0) write_statistics(p, image, group, all);
  }
}

template <class Pack, int kSize, class T>
__device__ __forceinline__ void load_or(const void* from, std::uint32_t pack, float otherwise, float (&values)[kSize]) {
#pragma unroll
  for (int i = 0; i < kSize; ++i) values[i] = otherwise;
  if (from != nullptr) unpack(static_cast<const Pack*>(from)[pack], values);
}

template <class T, Alignment kAlignment>
__global__ void __launch_bounds__(kGroupNormBlock, 3) group_apply(const __grid_constant__ GroupNormParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kSize = kPackSizeFor<T, kAlignment>;
  const Place place(p);
  const std::uint32_t packs = p.channels / kSize;
  const std::uint32_t image = p.tiles.quotient(blockIdx.x), tile = blockIdx.x - image * p.tiles.value();
  const std::uint32_t begin = tile * p.tile_pixels, left = p.plane - begin;
  const std::uint32_t count = pixels_of(place.line, place.height, left < p.tile_pixels ? left : p.tile_pixels);
  let_dependents_start();
  wait_for_predecessors();
  if (!place.is_there() || count == 0) return;
  const std::uint64_t first = (std::uint64_t{image} * p.plane + begin + place.line) * packs;
  const std::uint64_t step = std::uint64_t{place.height} * packs;
  for (std::uint32_t pack = place.pack; pack < packs; pack += p.width.value()) {
    float mean[kSize], scale[kSize], bias[kSize];
    load_or<Pack, kSize, T>(p.args.weight, pack, 1, scale);
    load_or<Pack, kSize, T>(p.args.bias, pack, 0, bias);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const std::uint32_t group = p.group_channels.quotient(pack * kSize + i);
      const GroupNormStatistics statistics = p.statistics[std::uint64_t{image} * p.groups + group];
      mean[i] = statistics.mean, scale[i] *= statistics.scale;
    }
    Pack* const to = static_cast<Pack*>(p.args.y) + first + pack;
    for_each_pixel(static_cast<const Pack*>(p.args.x) + first + pack, count, step,
                   [&](std::uint32_t nth, const Pack& x) {
                     float values[kSize];
                     unpack(x, values);
#pragma unroll
                     for (int i = 0; i < kSize; ++i) {
                       values[i] = __fmaf_rn(values[i] - mean[i], scale[i], bias[i]);
                       if (p.activation == GroupNormActivation::kSilu) values[i] = silu_of(values[i]);
                     }
                     Pack y;
                     pack_into(y, values);
                     to[nth * step] = y;
                   });
  }
}

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

constexpr KernelResources kResources{.registers = 80, .max_threads = kGroupNormBlock};

}  // namespace

Kernel<GroupNormParams> group_norm_statistics_kernel(DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return make_kernel<group_statistics<T, kAlignment>, statistics_on_host<T>, kResources>();
  });
}

Kernel<GroupNormParams> group_norm_apply_kernel(DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return make_kernel<group_apply<T, kAlignment>, apply_on_host<T>, kResources>();
  });
}

}  // namespace cgrt::kernels
