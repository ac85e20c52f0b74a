#include "cgrt_kernels/group_norm/kernels.h"

#include <cstdint>

#include "cgrt_kernels/common/arrival.cuh"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/group_norm/host_body.cuh"
#include "cgrt_kernels/group_norm/pack_norm.cuh"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kInFlight = 4;  // loads of a thread

// A block's threads lie on `width` packs of each of `height` pixels; those that are left over have none.
struct Place {
  std::uint32_t pack, line, height;

  __device__ explicit Place(const GroupNormParams& p)
      : pack(p.shape.width.remainder(threadIdx.x)),
        line(p.shape.width.quotient(threadIdx.x)),
        height(p.shape.width.quotient(kGroupNormBlock)) {}
  __device__ bool is_there() const { return line < height; }
};

// How many of `pixels`, or parts, a line of the block has: every `height`-th.
__device__ __forceinline__ std::uint32_t pixels_of(std::uint32_t line, std::uint32_t height, std::uint32_t pixels) {
  return line < pixels ? (pixels - line - 1) / height + 1 : 0;
}

// use(number, value) for `count` values from `from` on, each `step` behind the one before.
template <class Value, class Use>
__device__ __forceinline__ void for_each_in_line(const Value* from, std::uint32_t count, std::uint64_t step, Use use) {
  for (std::uint32_t first = 0; first < count; first += kInFlight) {
    Value values[kInFlight];
#pragma unroll
    for (std::uint32_t i = 0; i < kInFlight; ++i) {
      if (first + i < count) values[i] = from[(first + i) * step];
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kInFlight; ++i) {
      if (first + i < count) use(first + i, values[i]);
    }
  }
}

// For one thread.
__device__ __forceinline__ void write_statistics(const GroupNormParams& p, std::uint32_t image, std::uint32_t group,
                                                 const Moments& all) {
  p.statistics[std::uint64_t{image} * p.groups + group] = statistics_of(all, p.epsilon);
}

// By a block, of all splits of an image. Threads lie on groups beside each other, so that what they load does, too.
__device__ __forceinline__ void join_parts(const GroupNormParams& p, std::uint32_t image) {
  __shared__ Moments of_lines[kGroupNormBlock];
  const std::uint32_t splits = p.shape.splits.value(), width = min(p.groups, kGroupNormBlock);
  const std::uint32_t height = kGroupNormBlock / width, line = threadIdx.x / width, column = threadIdx.x - line * width;
  const GroupNormPart* const parts = p.parts + std::uint64_t{image} * splits * p.groups;
  for (std::uint32_t first = 0; first < p.groups; first += width) {
    const std::uint32_t groups = min(width, p.groups - first);
    if (line < height && column < groups) {
      // Sums of differences from the first mean: merged one after the other, means far from zero would lose their last
      // bits.
      float shift = 0, count = 0, sum = 0, squares = 0;
      for_each_in_line(parts + line * p.groups + first + column, pixels_of(line, height, splits),
                       std::uint64_t{height} * p.groups, [&](std::uint32_t nth, const GroupNormPart& part) {
                         if (nth == 0) shift = part.mean;
                         const float delta = part.mean - shift, share = part.count * delta;
                         count += part.count, sum += share, squares += __fmaf_rn(share, delta, part.squares);
                       });
      const float offset = sum / fmaxf(count, 1.0f), rest = squares - sum * offset;
      of_lines[threadIdx.x] = {count, shift + offset, rest < 0 ? 0 : rest};
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x / 32; i < groups; i += kGroupNormBlock / 32) {
      Moments all = none(Moments{});
      for (std::uint32_t some = threadIdx.x % 32; some < height; some += 32) {
        all = merge(all, of_lines[some * width + i]);
      }
      all = reduce_lanes(all);
      if (threadIdx.x % 32 == 0) write_statistics(p, image, first + i, all);
    }
    __syncthreads();
  }
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
  const std::uint32_t image = p.shape.splits.quotient(blockIdx.x), split = blockIdx.x - image * p.shape.splits.value();
  const std::uint32_t begin = split * p.shape.split_pixels, left = p.plane - begin;
  const std::uint32_t pixels = left < p.shape.split_pixels ? left : p.shape.split_pixels;
  wait_for_predecessors();
  const std::uint32_t count = pixels_of(place.line, place.height, pixels);
  const Pack* const from =
      static_cast<const Pack*>(p.args.x) + (std::uint64_t{image} * p.plane + begin + place.line) * packs;
  for (std::uint32_t pack = place.pack; place.is_there() && count > 0 && pack < packs; pack += p.shape.width.value()) {
    float shift[kSize], a[kSize] = {}, b[kSize] = {};
    unpack(from[pack], shift);
    for_each_in_line(from + pack, count, std::uint64_t{place.height} * packs, [&](std::uint32_t, const Pack& x) {
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
    if (p.shape.splits.value() == 1) {
      write_statistics(p, image, group, all);
    } else {
      p.parts[std::uint64_t{blockIdx.x} * p.groups + group] = {all.count, all.mean, all.squares};
    }
  }
  if (p.shape.splits.value() == 1 || !is_last_to_arrive(&p.counters[image], p.shape.splits.value())) return;
  join_parts(p, image);
}

template <class T, Alignment kAlignment>
__global__ void __launch_bounds__(kGroupNormBlock, 3) group_apply(const __grid_constant__ GroupNormParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kSize = kPackSizeFor<T, kAlignment>;
  const Place place(p);
  const std::uint32_t packs = p.channels / kSize;
  const std::uint32_t image = p.shape.tiles.quotient(blockIdx.x), tile = blockIdx.x - image * p.shape.tiles.value();
  const std::uint32_t begin = tile * p.shape.tile_pixels, left = p.plane - begin;
  const std::uint32_t count =
      pixels_of(place.line, place.height, left < p.shape.tile_pixels ? left : p.shape.tile_pixels);
  let_dependents_start();
  wait_for_predecessors();
  if (!place.is_there() || count == 0) return;
  const std::uint64_t first = (std::uint64_t{image} * p.plane + begin + place.line) * packs;
  const std::uint64_t step = std::uint64_t{place.height} * packs;
  for (std::uint32_t pack = place.pack; pack < packs; pack += p.shape.width.value()) {
    const PackNorm<T, kAlignment> norm(p, PackWeights<T, kAlignment>(p.args, pack), pack * kSize,
                                       p.statistics + std::uint64_t{image} * p.groups);
    Pack* const to = static_cast<Pack*>(p.args.y) + first + pack;
    for_each_in_line(static_cast<const Pack*>(p.args.x) + first + pack, count, step,
                     [&](std::uint32_t nth, const Pack& x) { to[nth * step] = norm(x); });
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
