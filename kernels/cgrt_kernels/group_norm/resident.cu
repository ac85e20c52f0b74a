// Images that are read once. A block, or a cluster of blocks, has a slice of an image, which stays in shared memory:
// some groups of channels, of which each block has some pixels. A thread has the same channels of every pixel and reads
// only packs that it has copied itself, so that no barrier stands between loading and summing.
#include <cooperative_groups.h>

#include <cstdint>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/group_norm/host_body.cuh"
#include "cgrt_kernels/group_norm/pack_norm.cuh"

namespace cgrt::kernels {
namespace {

extern __shared__ __align__(16) unsigned char group_norm_shared[];

// The blocks that share a slice. They send each other what they know of its groups.
class Blocks {
 public:
#if __CUDA_ARCH__ >= 900
  using Cluster = cooperative_groups::cluster_group;
  __device__ explicit Blocks(std::uint32_t count) : count_(count) {
    if (count_ == 1) return;
    if (threadIdx.x == 0) {
      barrier().initialize();
      make_barriers_visible_to_cluster();
    }
    Cluster::barrier_arrive();
  }
  __device__ std::uint32_t rank() const { return count_ == 1 ? 0 : Cluster::block_rank(); }
  // All have begun; of each, `values` will come.
  __device__ void expect(std::uint32_t values) const {
    if (count_ == 1) return;
    if (threadIdx.x == 0) barrier().expect(count_ * values * sizeof(Moments));
    Cluster::barrier_wait();
  }
  // By a warp, to that place in all of them.
  __device__ void send(Moments* place, const Moments& value) const {
    const std::uint32_t lane = threadIdx.x % 32;
    if (count_ == 1) {
      if (lane == 0) *place = value;
    } else if (lane < count_) {
      barrier().send(lane, place, value);
    }
  }
  __device__ void wait() const {
    if (count_ == 1) {
      __syncthreads();
    } else {
      barrier().wait_for_cluster(0);
    }
  }

 private:
  __device__ static BulkBarrier& barrier() {
    __shared__ BulkBarrier of_block;
    return of_block;
  }
  const std::uint32_t count_;
#else
  __device__ explicit Blocks(std::uint32_t) {}
  __device__ std::uint32_t rank() const { return 0; }
  __device__ void expect(std::uint32_t) const {}
  __device__ void send(Moments* place, const Moments& value) const {
    if (threadIdx.x % 32 == 0) *place = value;
  }
  __device__ void wait() const { __syncthreads(); }
#endif
};

// Of elements: how many, and sums of their differences from a reference. Plain sums, which join by addition.
struct Sums {
  float count, sums, squares;

  __device__ __forceinline__ void add(const Moments& some, float reference) {
    const float away = some.mean - reference, times = some.count * away;
    count += some.count, sums += times, squares += __fmaf_rn(times, away, some.squares);
  }
  // As if the reference had been so much less.
  __device__ __forceinline__ void move(float by) { squares += by * (2 * sums + count * by), sums += count * by; }
  __device__ __forceinline__ Moments moments(float reference) const {
    const float away = __fdividef(sums, fmaxf(count, 1.0f)), rest = squares - sums * away;
    return {count, reference + away, rest < 0 ? 0 : rest};
  }
};
__device__ __forceinline__ Sums merge(const Sums& a, const Sums& b) {
  return {a.count + b.count, a.sums + b.sums, a.squares + b.squares};
}
__device__ __forceinline__ Sums shuffle(const Sums& value, int mask) {
  return {kernels::shuffle(value.count, mask), kernels::shuffle(value.sums, mask),
          kernels::shuffle(value.squares, mask)};
}

// A thread's channels lie in one group up to `cut`, and in the next from there on; of narrow groups each is alone. What
// is summed are differences from one of the thread's elements of the group: squares far from zero would cancel.
template <int kSize, bool kAreNarrow>
struct ChannelSums {
  float reference[kSize], sums[kSize] = {}, squares[kSize] = {};

  template <class Pack>
  __device__ __forceinline__ void begin(const Pack& x, std::uint32_t cut) {
    unpack(x, reference);
    if (kAreNarrow) return;
    const float second = reference[kSize - 1];
#pragma unroll
    for (int i = 1; i < kSize; ++i) reference[i] = i < cut ? reference[0] : second;
  }
  template <class Pack>
  __device__ __forceinline__ void add(const Pack& x) {
    float values[kSize];
    unpack(x, values);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float away = values[i] - reference[i];
      sums[i] += away, squares[i] = __fmaf_rn(away, away, squares[i]);
    }
  }
  // Mean and squared deviations of the first or the second group, of `count` pixels.
  template <int kGroup>
  __device__ __forceinline__ float2 of_group(std::uint32_t cut, std::uint32_t count) const {
    Sums all = {static_cast<float>(count * (kGroup == 0 ? cut : kSize - cut)), 0, 0};
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if ((i < cut) == (kGroup == 0)) all.sums += sums[i], all.squares += squares[i];
    }
    const Moments moments = all.moments(reference[kGroup == 0 ? 0 : kSize - 1]);
    return {moments.mean, moments.squares};
  }
  __device__ __forceinline__ float2 of_channel(int i, std::uint32_t count) const {
    const Moments moments = Sums{static_cast<float>(count), sums[i], squares[i]}.moments(reference[i]);
    return {moments.mean, moments.squares};
  }
};

template <class T, bool kAreNarrow>
__global__ void __launch_bounds__(resident_block(kAreNarrow), kAreNarrow ? 3 : 2)
    group_norm_resident(const __grid_constant__ GroupNormParams p) {
  using Norm = PackNorm<T, Alignment::kAligned>;
  using Pack = typename Norm::Pack;
  constexpr std::uint32_t kSize = Norm::kSize;
  const GroupNormShape& shape = p.shape;
  const Blocks blocks(shape.splits.value());
  const std::uint32_t rank = blocks.rank(), cluster = shape.splits.quotient(blockIdx.x);
  const std::uint32_t image = shape.slices.quotient(cluster), slice = cluster - image * shape.slices.value();
  const std::uint32_t first_group = slice * shape.slice_groups;
  const std::uint32_t groups = min(shape.slice_groups, p.groups - first_group), size = p.group_channels.value();
  const std::uint32_t width = shape.width.value(), height = shape.width.quotient(blockDim.x), active = height * width;
  const std::uint32_t line = shape.width.quotient(threadIdx.x), pack = threadIdx.x - line * width;
  const std::uint32_t begin = min(rank * shape.split_pixels, p.plane);
  const std::uint32_t pixels = min(shape.split_pixels, p.plane - begin);
  // Of a line: every `height`-th pixel.
  const std::uint32_t each = pixels / height, rest = pixels - each * height;
  const auto pixels_of = [=](std::uint32_t some) { return each + (some < rest ? 1 : 0); };
  const bool is_there = line < height && pack * kSize < groups * size;
  const std::uint32_t count = is_there ? pixels_of(line) : 0;
  const std::uint32_t packs = p.channels / kSize, first_pack = first_group * size / kSize + pack;
  const std::uint64_t first = (std::uint64_t{image} * p.plane + begin + line) * packs + first_pack;
  const std::uint64_t step = std::uint64_t{height} * packs;

  const ResidentLayout layout = resident_layout(shape, blockDim.x);
  Pack* const held = reinterpret_cast<Pack*>(group_norm_shared) + threadIdx.x;
  float2* const of_threads = reinterpret_cast<float2*>(group_norm_shared + layout.of_threads);
  Moments* const parts = reinterpret_cast<Moments*>(group_norm_shared + layout.parts);
  GroupNormStatistics* const statistics = reinterpret_cast<GroupNormStatistics*>(group_norm_shared + layout.statistics);

  wait_for_predecessors();
  constexpr int kStages = 4;
  const std::uint32_t stage = (count + kStages - 1) / kStages;
  const Pack* const from = static_cast<const Pack*>(p.args.x) + first;
#pragma unroll
  for (int s = 0; s < kStages; ++s) {
    for (std::uint32_t i = s * stage; i < min((s + 1) * stage, count); ++i) {
      copy_asynchronously(held + i * active, from + i * step);
    }
    end_copy_group();
  }
  let_dependents_start();
  const PackWeights<T, Alignment::kAligned> weights(p.args, is_there ? first_pack : 0);

  const std::uint32_t channel = pack * kSize;  // of the slice
  const std::uint32_t cut = min((p.group_channels.quotient(channel) + 1) * size - channel, kSize);
  ChannelSums<kSize, kAreNarrow> sums;
  const auto add = [&](std::uint32_t s) {
    for (std::uint32_t i = min(s * stage, count); i < min((s + 1) * stage, count); ++i) sums.add(held[i * active]);
  };
  wait_for_copies<3>();
  if (count > 0) sums.begin(held[0], cut);
  add(0);
  wait_for_copies<2>();
  add(1);
  wait_for_copies<1>();
  add(2);
  wait_for_copies<0>();
  add(3);
  if constexpr (kAreNarrow) {
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (count > 0) of_threads[i * active + threadIdx.x] = sums.of_channel(i, count);
    }
  } else {
    if (count > 0) of_threads[threadIdx.x] = sums.template of_group<0>(cut, count);
    if (count > 0 && cut < kSize) of_threads[active + threadIdx.x] = sums.template of_group<1>(cut, count);
  }
  __syncthreads();

  blocks.expect(groups * shape.parts.value());
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const std::uint32_t lines = min(height, pixels);
  for (std::uint32_t unit = warp; unit < groups * shape.parts.value(); unit += warps) {
    const std::uint32_t group = shape.parts.quotient(unit), part = unit - group * shape.parts.value();
    const std::uint32_t group_begin = group * size, group_end = group_begin + size, pack_begin = group_begin / kSize;
    Sums all = {};
    float reference = 0;
    for (std::uint32_t i = part * 32 + lane; i < lines * shape.span.value(); i += 32 * shape.parts.value()) {
      const std::uint32_t of_line = shape.span.quotient(i), nth = i - of_line * shape.span.value();
      float2 some;
      std::uint32_t channels = 1;
      if constexpr (kAreNarrow) {
        const std::uint32_t at = group_begin + nth;
        some = of_threads[at % kSize * active + of_line * width + at / kSize];
      } else {
        const std::uint32_t at = pack_begin + nth;
        const std::uint32_t from = max(at * kSize, group_begin), to = min((at + 1) * kSize, group_end);
        if (from >= to) continue;
        some = of_threads[(at * kSize < group_begin ? active : 0) + of_line * width + at];
        channels = to - from;
      }
      if (all.count == 0) reference = some.x;
      all.add({static_cast<float>(pixels_of(of_line) * channels), some.x, some.y}, reference);
    }
    // Of a lane that has elements: squares about 0 would cancel.
    const float common = __shfl_sync(~0u, reference, (__ffs(__ballot_sync(~0u, all.count > 0)) - 1) & 31);
    all.move(reference - common);
    blocks.send(parts + (group * shape.splits.value() + rank) * shape.parts.value() + part,
                reduce_lanes(all).moments(common));
  }
  blocks.wait();
  const std::uint32_t of_group = shape.splits.value() * shape.parts.value();
  for (std::uint32_t group = warp; group < groups; group += warps) {
    const Moments some = lane < of_group ? parts[group * of_group + lane] : none(Moments{});
    const float reference = __shfl_sync(~0u, some.mean, 0);
    Sums all = {};
    all.add(some, reference);
    all = reduce_lanes(all);
    if (lane == 0) statistics[group] = statistics_of(all.moments(reference), p.epsilon);
  }
  __syncthreads();

  if (count == 0) return;
  const Norm norm(p, weights, channel, statistics);
  Pack* const to = static_cast<Pack*>(p.args.y) + first;
#pragma unroll 2
  for (std::uint32_t i = 0; i < count; ++i) to[i * step] = norm(held[i * active]);
}

}  // namespace

Kernel<GroupNormParams> group_norm_resident_kernel(DType type, bool are_narrow) {
  constexpr KernelResources kResources{.registers = 64, .max_threads = resident_block(false)},
      kOfNarrow{.registers = 80, .max_threads = resident_block(true)};
  return of_float_type(type, [=]<class T>() {
    return are_narrow ? make_kernel<group_norm_resident<T, true>, group_norm_on_host<T>, kOfNarrow>()
                      : make_kernel<group_norm_resident<T, false>, group_norm_on_host<T>, kResources>();
  });
}

}  // namespace cgrt::kernels
