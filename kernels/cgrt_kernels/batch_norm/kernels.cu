#include <cooperative_groups.h>

#include <cstdint>

#include "cgrt_kernels/batch_norm/channel.cuh"
#include "cgrt_kernels/batch_norm/host_body.cuh"
#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/programmatic.cuh"

namespace cgrt::kernels {
namespace {

extern __shared__ __align__(16) unsigned char batch_norm_shared[];

// A block's columns, and what its threads have of them: rows that lie as far apart as those which all blocks cover
// at once, so that they walk through memory together.
template <int kLanes>
struct Share {
  std::uint32_t tile, split;
  std::uint32_t tile_begin, tile_columns;  // columns
  std::uint32_t height;                    // rows that the threads of a block cover at once
  std::uint32_t column;                    // the thread's first
  std::uint64_t first, step;               // packs: the thread's first one, and from row to row
  std::uint32_t rows;                      // of the thread

  __device__ __forceinline__ Share(const BatchNormTask& task, std::uint32_t block) {
    const std::uint32_t packs = task.columns / kLanes;
    tile = block % task.tiles, split = block / task.tiles;
    const std::uint32_t pack = tile * task.tile_packs + threadIdx.x % task.tile_packs;
    const std::uint32_t in_tile = min(task.tile_packs, packs - tile * task.tile_packs);
    tile_begin = tile * task.tile_packs * kLanes, tile_columns = in_tile * kLanes;
    height = blockDim.x / task.tile_packs;
    column = min(pack, packs - 1) * kLanes;
    const std::uint32_t row = split * height + threadIdx.x / task.tile_packs, next = task.splits * height;
    const bool has_rows = pack < packs && threadIdx.x < height * task.tile_packs && row < task.rows;
    rows = has_rows ? (task.rows - row - 1) / next + 1 : 0;
    first = std::uint64_t{row} * packs + pack, step = std::uint64_t{next} * packs;
  }
};

// Packs of each array that a thread has on their way at once: with 1024 threads on a multiprocessor,
// 64 KB of 16-byte packs.
template <int kLanes, bool kBackward>
constexpr int kUnroll = (kLanes == 1 ? 8 : 4) / (kBackward ? 2 : 1);

// Channels that no cluster holds: a channel of 256 planes of 112 x 112 halves is 6.4 MB, and clusters for
// 16 of them at once would read more than the second-level cache has. So all is read twice, the second
// time from its end. The last three times that a thread has kOnWay packs on their way are 25 MB on an H200, which the
// cache still has then, as it drops first what came before. Each block leaves what it knows of its channels in their
// slots: tile by tile, split by split.
template <class T, int kLanes, bool kBackward>
__global__ void __launch_bounds__(kBatchNormThreads, 4) channel_statistics(BatchNormTask task) {
  using Pack = LanesOf<T, kLanes>;
  constexpr int kOnWay = kUnroll<kLanes, kBackward>;
  const Share<kLanes> share(task, blockIdx.x);
  const PartsInShared<kLanes> parts{reinterpret_cast<float*>(batch_norm_shared)};
  wait_for_predecessors();

  LaneSums<kLanes, kBackward> sums;
  const Pack* const x = static_cast<const Pack*>(task.in);
  const Pack* const gradient = static_cast<const Pack*>(task.gradient);
  std::uint64_t at = share.first;
  if constexpr (kBackward) {
    for_each_lane<kLanes>(share.column, task.plane,
                          [&](int lane, std::uint32_t channel) { sums.shift[lane] = task.mean[channel]; });
  } else {
    if (share.rows != 0) unpack(x[at], sums.shift);
  }
  // On its way early, when the first rows are in the cache.
  float references[kLanes];
  for_each_lane<kLanes>(share.column, task.plane, [&](int lane, std::uint32_t channel) {
    references[lane] = kBackward ? 0 : first_element<T>(task, channel);
  });
  std::uint32_t left = share.rows;
  const auto add_all_but = [&](std::uint32_t last, auto load) {
    for (; left >= last + kOnWay; left -= kOnWay) {
      Pack values[kOnWay], gradients[kBackward ? kOnWay : 1];
#pragma unroll
      for (int i = 0; i < kOnWay; ++i) {
        values[i] = load(x + at);
        if constexpr (kBackward) gradients[i] = load(gradient + at);
        at += share.step;
      }
#pragma unroll
      for (int i = 0; i < kOnWay; ++i) sums.add(values[i], gradients[kBackward ? i : 0]);
    }
  };
  add_all_but(3 * kOnWay, load_last<Pack>);
  add_all_but(0, [](const Pack* from) { return *from; });
  for (; left > 0; --left) {
    const Pack value = x[at];
    sums.add(value, kBackward ? gradient[at] : value);
    at += share.step;
  }
  let_dependents_start();

  if constexpr (!kBackward) {
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) sums.shift[lane] -= references[lane];
  }
  put_parts(sums, share.rows, share.column, task.plane, parts);
  __syncthreads();
  const std::uint32_t first = share.tile_begin / task.plane, tile_columns = task.tile_packs * kLanes;
  const Footprint footprint{task.tile_packs, share.height, task.plane, share.tile_begin, share.tile_columns};
  reduce_channels<kLanes, kBackward>(parts, footprint, [&](std::uint32_t i, const Part& part) {
    const std::uint32_t channel = first + i, first_tile = channel * task.plane / tile_columns;
    const std::uint64_t slot =
        std::uint64_t{channel} * task.slots + (share.tile - first_tile) * task.splits + share.split;
    static_cast<float4*>(task.partials)[slot] = {part.a, part.b, part.count, 0};
  });
}

// A block per channel.
template <class T, int kLanes, bool kBackward>
__global__ void __launch_bounds__(kBatchNormThreads) channel_finish(BatchNormTask task) {
  __shared__ Merged<kBackward> of_warps[kBatchNormThreads / 32];
  const std::uint32_t channel = blockIdx.x, tile_columns = task.tile_packs * kLanes;
  const std::uint32_t tiles = ((channel + 1) * task.plane - 1) / tile_columns - channel * task.plane / tile_columns + 1;
  const float4* const slots = static_cast<const float4*>(task.partials) + std::uint64_t{channel} * task.slots;
  let_dependents_start();
  wait_for_predecessors();

  // All that comes from memory is on its way at once.
  const ChannelParameters<kBackward> parameters(task, channel);
  const float first = kBackward ? 0 : first_element<T>(task, channel);
  Merged<kBackward> merged;
  merged.reference = slots[0].x;
  const std::uint32_t count = tiles * task.splits;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const float4 slot = slots[i];
    merged.add({slot.x, slot.y, slot.z});
  }
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    merged.add_shuffled([mask](float value) { return __shfl_xor_sync(0xffffffff, value, mask); });
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = merged;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (std::uint32_t warp = 1; warp < blockDim.x / 32; ++warp) {
    merged.a += of_warps[warp].a, merged.b += of_warps[warp].b, merged.count += of_warps[warp].count;
  }
  static_cast<Coefficients*>(task.coefficients)[channel] =
      finish_channel(task, channel, parameters, first, merged.part(), true);
}

// A block has split_rows rows of a tile, and its threads a column of packs: few blocks that stay would wait for those
// on the slowest multiprocessor. The first blocks have the rows that were read last.
template <class T, int kLanes, BatchNormOp kOp>
__global__ void __launch_bounds__(kBatchNormThreads, kLanes == 1 ? 8 : 4) channel_apply(BatchNormTask task) {
  using Pack = LanesOf<T, kLanes>;
  constexpr bool kBackward = kOp == BatchNormOp::kBackward, kInfer = kOp == BatchNormOp::kInfer;
  constexpr int kOnWay = kUnroll<kLanes, kBackward>;
  const std::uint32_t packs = task.columns / kLanes, height = blockDim.y, block = gridDim.x - 1 - blockIdx.x;
  const std::uint32_t split = task.tiles_divisor.quotient(block), tile = block - split * task.tiles;
  const std::uint32_t pack = tile * task.tile_packs + threadIdx.x, first = split * task.split_rows;
  const std::uint32_t end = min(first + task.split_rows, task.rows);
  std::uint32_t row = first + threadIdx.y;
  const Pack* const x = static_cast<const Pack*>(task.in);
  const Pack* const gradient = static_cast<const Pack*>(task.gradient);
  Pack* const out = static_cast<Pack*>(task.out);
  const std::uint64_t step = std::uint64_t{height} * packs;
  std::uint64_t at = std::uint64_t{row} * packs + pack;
  let_dependents_start();
  wait_for_predecessors();
  if (pack >= packs) row = end;

  Pack values[kOnWay], gradients[kBackward ? kOnWay : 1];
  const auto load_rows = [&] {
#pragma unroll
    for (std::uint32_t i = 0; i < kOnWay; ++i) {
      if (row + i * height >= end) continue;
      values[i] = x[at + i * step];
      if constexpr (kBackward) gradients[i] = gradient[at + i * step];
    }
  };
  load_rows();
  if (row >= end) return;
  const auto load = [&](std::uint32_t channel) {
    if constexpr (!kInfer) return static_cast<const Coefficients*>(task.coefficients)[channel];
    return Coefficients{task.mean[channel], task.spread[channel], task.bias != nullptr ? task.bias[channel] : 0,
                        task.weight != nullptr ? task.weight[channel] : 1};
  };
  const LaneCoefficients<kLanes, kBackward, kInfer> apply(
      pack * kLanes, task.plane, load, [&](const Coefficients& loaded) {
        if constexpr (!kInfer) return loaded;
        return Coefficients{loaded.x, loaded.w * rsqrtf(loaded.y + task.epsilon), loaded.z, 0};
      });
  while (true) {
#pragma unroll
    for (std::uint32_t i = 0; i < kOnWay; ++i) {
      if (row + i * height >= end) continue;
      out[at + i * step] = apply.apply(values[i], gradients[kBackward ? i : 0]);
    }
    row += kOnWay * height, at += kOnWay * step;
    if (row >= end) return;
    load_rows();
  }
}

// The blocks of a cluster; one where there are none.
struct Blocks {
#if __CUDA_ARCH__ >= 900
  using Cluster = cooperative_groups::cluster_group;
  __device__ std::uint32_t count() const { return Cluster::num_blocks(); }
  __device__ std::uint32_t rank() const { return Cluster::block_rank(); }
  __device__ void synchronize() const {
    if (count() == 1) {
      __syncthreads();
    } else {
      Cluster::sync();
    }
  }
  template <class Value>
  __device__ const Value& of(const Value& mine, std::uint32_t block) const {
    return *Cluster::map_shared_rank(const_cast<Value*>(&mine), static_cast<int>(block));
  }
  // A block has read what it wants of the others; it ends when all of them have.
  __device__ void arrive() const {
    if (count() > 1) Cluster::barrier_arrive();
  }
  __device__ void leave() const {
    if (count() > 1) Cluster::barrier_wait();
  }
#else
  __device__ std::uint32_t count() const { return 1; }
  __device__ std::uint32_t rank() const { return 0; }
  __device__ void synchronize() const { __syncthreads(); }
  template <class Value>
  __device__ const Value& of(const Value& mine, std::uint32_t) const {
    return mine;
  }
  __device__ void arrive() const {}
  __device__ void leave() const {}
#endif
};

// A block, or the blocks of a cluster, have some whole channels: a tile of columns, each block a part of
// its rows. A thread only reads packs that it has copied itself, so that no barrier stands between
// loading and summing.
template <class T, bool kBackward>
__global__ void __launch_bounds__(kBatchNormMaxThreads, 2) channels_resident(BatchNormTask task) {
  constexpr int kLanes = kPackSize<T>, kStages = 4;
  using Pack = typename PackOf<T>::Type;
  __shared__ float firsts[kBatchNormMaxChannels];
  __shared__ Part of_channels[kBatchNormMaxChannels];
  __shared__ Coefficients coefficients[kBatchNormMaxChannels];
  const Blocks blocks;
  const std::uint32_t tile = blockIdx.x / blocks.count(), width = task.tile_packs, threads = blockDim.x;
  const ResidentLayout layout = resident_layout(task.split_rows, width, task.plane, kLanes, threads, kBackward ? 2 : 1);
  const std::uint32_t per_thread = layout.packs_per_thread;
  auto* const x_packs = reinterpret_cast<uint4*>(batch_norm_shared) + threadIdx.x;
  uint4* const gradient_packs = x_packs + per_thread * layout.active;
  const PartsInShared<kLanes> parts{reinterpret_cast<float*>(reinterpret_cast<uint4*>(batch_norm_shared) +
                                                             (kBackward ? 2 : 1) * per_thread * layout.active)};
  const std::uint32_t channels = width * kLanes / task.plane;
  const Footprint footprint = channels > 1 ? Footprint{width, threads / width, task.plane, 0, width * kLanes}
                                           : Footprint{threads, 1, threads * kLanes, 0, threads * kLanes};
  const std::uint32_t first_channel = tile * channels;
  const std::uint32_t column = threadIdx.x % footprint.packs * kLanes;

  const std::uint32_t row_begin = min(task.rows, blocks.rank() * task.split_rows);
  const std::uint32_t packs = (min(task.rows, row_begin + task.split_rows) - row_begin) * width;
  const std::uint32_t mine =
      threadIdx.x < layout.active && threadIdx.x < packs ? (packs - threadIdx.x - 1) / layout.active + 1 : 0;
  const std::uint64_t row_packs = task.columns / kLanes;
  const std::uint64_t origin = row_begin * row_packs + std::uint64_t{tile} * width;
  const std::uint32_t row_step = layout.active / width, pack_step = layout.active % width;
  // use(i, offset in packs) for each of the thread's packs from `begin` to `end`, in turn
  struct Position {
    std::uint32_t row, pack;
  };
  const auto walk = [&](Position& position, std::uint32_t begin, std::uint32_t end, auto use) {
#pragma unroll 4
    for (std::uint32_t i = begin; i < end; ++i) {
      use(i, origin + position.row * row_packs + position.pack);
      position.row += row_step, position.pack += pack_step;
      if (position.pack >= width) position.pack -= width, ++position.row;
    }
  };
  wait_for_predecessors();

  const std::uint32_t stage = (per_thread + kStages - 1) / kStages;
  const Position start{threadIdx.x / width, threadIdx.x % width};
  Position position = start;
#pragma unroll
  for (std::uint32_t s = 0; s < kStages; ++s) {
    walk(position, min(mine, s * stage), min(mine, (s + 1) * stage), [&](std::uint32_t i, std::uint64_t offset) {
      copy_asynchronously(x_packs + i * layout.active, static_cast<const uint4*>(task.in) + offset);
      if constexpr (kBackward)
        copy_asynchronously(gradient_packs + i * layout.active, static_cast<const uint4*>(task.gradient) + offset);
    });
    end_copy_group();
  }
  let_dependents_start();
  // Read now: when this block needs them last, another may write, and y may be x.
  if (!kBackward && threadIdx.x < channels) firsts[threadIdx.x] = first_element<T>(task, first_channel + threadIdx.x);

  LaneSums<kLanes, kBackward> sums;
  const auto pack_at = [&](const uint4* base, std::uint32_t i) {
    return *reinterpret_cast<const Pack*>(base + i * layout.active);
  };
  if constexpr (kBackward) {
    for_each_lane<kLanes>(column, footprint.plane, [&](int lane, std::uint32_t channel) {
      sums.shift[lane] = task.mean[first_channel + channel];
    });
  }
  const auto add = [&](std::uint32_t s) {
#pragma unroll 2
    for (std::uint32_t i = min(mine, s * stage); i < min(mine, (s + 1) * stage); ++i) {
      sums.add(pack_at(x_packs, i), pack_at(kBackward ? gradient_packs : x_packs, i));
    }
  };
  wait_for_copies<3>();
  if (!kBackward && mine != 0) unpack(pack_at(x_packs, 0), sums.shift);
  add(0);
  wait_for_copies<2>();
  add(1);
  wait_for_copies<1>();
  add(2);
  wait_for_copies<0>();
  add(3);

  if (!kBackward) __syncthreads();
  sums.make_relative(column, footprint.plane, [&](std::uint32_t channel) { return firsts[channel]; });
  put_parts(sums, mine, column, footprint.plane, parts);
  __syncthreads();
  reduce_channels<kLanes, kBackward>(parts, footprint,
                                     [&](std::uint32_t i, const Part& part) { of_channels[i] = part; });
  blocks.synchronize();
  if (threadIdx.x < channels) {
    Merged<kBackward> merged;
    merged.reference = blocks.of(of_channels[threadIdx.x], 0).a;
    for (std::uint32_t block = 0; block < blocks.count(); ++block) {
      merged.add(blocks.of(of_channels[threadIdx.x], block));
    }
    const std::uint32_t channel = first_channel + threadIdx.x;
    const ChannelParameters<kBackward> parameters(task, channel);
    coefficients[threadIdx.x] =
        finish_channel(task, channel, parameters, firsts[threadIdx.x], merged.part(), blocks.rank() == 0);
  }
  __syncthreads();
  blocks.arrive();

  const LaneCoefficients<kLanes, kBackward, false> apply(
      column, footprint.plane, [&](std::uint32_t channel) { return coefficients[channel]; },
      [](const Coefficients& loaded) { return loaded; });
  position = start;
  walk(position, 0, mine, [&](std::uint32_t i, std::uint64_t offset) {
    static_cast<Pack*>(task.out)[offset] =
        apply.apply(pack_at(x_packs, i), pack_at(kBackward ? gradient_packs : x_packs, i));
  });
  blocks.leave();
}

// The sums over the threads that have the same channel: `lanes` of them stand side by side. All of them get it.
__device__ __forceinline__ float2 sums_of_channel(float2 value, std::uint32_t lanes, float2* of_warps) {
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, channel = lane % lanes;
  const auto add_lanes = [&] {
    for (std::uint32_t mask = 16; mask >= lanes; mask /= 2) {
      value.x += __shfl_xor_sync(0xffffffff, value.x, static_cast<int>(mask));
      value.y += __shfl_xor_sync(0xffffffff, value.y, static_cast<int>(mask));
    }
  };
  add_lanes();
  if (lane < lanes) of_warps[warp * lanes + lane] = value;
  __syncthreads();
  value = {0, 0};
  for (std::uint32_t w = lane / lanes; w < blockDim.x / 32; w += 32 / lanes) {
    const float2 of_warp = of_warps[w * lanes + channel];
    value.x += of_warp.x, value.y += of_warp.y;
  }
  add_lanes();
  return value;
}

// Channels of few elements, wherever they begin: a block has one of them, or a tile of a few side by side where the
// elements of one are far apart. Each is read once and kept in a register.
template <bool kBackward>
constexpr std::uint32_t kHeldThreads = held_threads(kBackward ? BatchNormOp::kBackward : BatchNormOp::kTrain);

template <class T, bool kBackward>
__global__ void __launch_bounds__(kHeldThreads<kBackward>) channels_held(BatchNormTask task) {
  __shared__ float2 of_warps[kHeldThreads<kBackward>];
  const std::uint32_t lanes = task.tile_packs, depth = blockDim.x / lanes, plane = task.plane;
  const std::uint32_t lane = threadIdx.x % lanes, begin = threadIdx.x / lanes;
  const std::uint32_t channel = blockIdx.x * lanes + lane, of_channel = task.rows * plane;
  const std::uint32_t count = channel < task.tiles ? of_channel : 0, begin_row = begin < plane ? 0 : begin / plane;
  const std::uint32_t base = channel * plane;
  // use(k, offset) for each of the thread's elements, which are `depth` apart
  const auto walk = [&](auto use) {
    std::uint32_t column = begin - begin_row * plane;
    std::uint32_t at = base + begin_row * task.columns + column;
    const std::uint32_t step = task.step_rows * task.columns + task.step_columns;
#pragma unroll
    for (std::uint32_t k = 0; k < kBatchNormHeld; ++k) {
      if (k * depth >= of_channel) break;
      if (begin + k * depth < count) use(k, at);
      at += step, column += task.step_columns;
      if (column >= plane) column -= plane, at += task.columns - plane;
    }
  };
  wait_for_predecessors();

  T x[kBatchNormHeld], gradient[kBackward ? kBatchNormHeld : 1];
  walk([&](std::uint32_t k, std::uint32_t at) {
    x[k] = static_cast<const T*>(task.in)[at];
    if constexpr (kBackward) gradient[k] = static_cast<const T*>(task.gradient)[at];
  });
  const std::uint32_t some = count != 0 ? channel : 0;
  const ChannelParameters<kBackward> parameters(task, some);
  const float first = kBackward ? 0 : first_element<T>(task, some);
  let_dependents_start();
  float2 sums{0, 0};
#pragma unroll
  for (std::uint32_t k = 0; k < kBatchNormHeld; ++k) {
    if (begin + k * depth >= count) continue;
    const float delta = to_float(x[k]) - (kBackward ? parameters.mean : first);
    const float factor = kBackward ? to_float(gradient[kBackward ? k : 0]) : delta;
    sums.x += factor, sums.y = __fmaf_rn(factor, delta, sums.y);
  }
  sums = sums_of_channel(sums, lanes, of_warps);
  Part all{sums.x, sums.y, 0};
  if constexpr (!kBackward) {
    // Around the first element, which is one of them: see Merged.
    all.a /= static_cast<float>(of_channel);
    all.b -= sums.x * all.a;
    if (all.b < 0) all.b = 0;  // keeps NaN
  }
  const Coefficients of = finish_channel(task, some, parameters, first, all, begin == 0 && count != 0);
  walk([&](std::uint32_t k, std::uint32_t at) {
    float value = __fmaf_rn(to_float(x[k]) - of.x, of.y, of.z);
    if constexpr (kBackward) value = __fmaf_rn(to_float(gradient[k]), of.w, value);
    static_cast<T*>(task.out)[at] = from_float<T>(value);
  });
}

constexpr KernelResources kResources{.registers = 64, .max_threads = 256};
constexpr KernelResources kResidentResources{.registers = 80, .max_threads = kBatchNormMaxThreads};

template <class T, int kLanes, BatchNormOp kOp>
BatchNormKernel of_lanes(BatchNormStep step) {
  constexpr bool kBackward = kOp == BatchNormOp::kBackward;
  if (step == BatchNormStep::kStatistics) {
    return make_kernel<channel_statistics<T, kLanes, kBackward>, statistics_on_host<T, kBackward>, kResources>();
  }
  if (step == BatchNormStep::kFinish) {
    return make_kernel<channel_finish<T, kLanes, kBackward>, finish_steps_on_host<kBackward>, kResources>();
  }
  return make_kernel<channel_apply<T, kLanes, kOp>, apply_on_host<T, kBackward>, kResources>();
}

template <class T, BatchNormOp kOp>
BatchNormKernel of_type(BatchNormStep step, BatchNormAccess access) {
  constexpr bool kBackward = kOp == BatchNormOp::kBackward;
  if (step == BatchNormStep::kResident) {
    return make_kernel<channels_resident<T, kBackward>, resident_on_host<T, kBackward>, kResidentResources>();
  }
  if (step == BatchNormStep::kHeld) {
    constexpr KernelResources kHeld{.registers = kBackward ? 80 : 64, .max_threads = kHeldThreads<kBackward>};
    return make_kernel<channels_held<T, kBackward>, resident_on_host<T, kBackward>, kHeld>();
  }
  return access == BatchNormAccess::kPacked ? of_lanes<T, kPackSize<T>, kOp>(step) : of_lanes<T, 1, kOp>(step);
}

template <BatchNormOp kOp>
BatchNormKernel of_op(DType type, BatchNormStep step, BatchNormAccess access) {
  switch (type) {
    case DType::kFloat32: return of_type<float, kOp>(step, access);
    case DType::kFloat16: return of_type<__half, kOp>(step, access);
    default: return of_type<__nv_bfloat16, kOp>(step, access);  // plan_batch_norm lets no other pass
  }
}

}  // namespace

BatchNormKernel batch_norm_kernel(BatchNormOp op, DType type, BatchNormStep step, BatchNormAccess access) {
  switch (op) {
    case BatchNormOp::kTrain: return of_op<BatchNormOp::kTrain>(type, step, access);
    case BatchNormOp::kInfer: return of_op<BatchNormOp::kInfer>(type, step, access);
    case BatchNormOp::kBackward: break;
  }
  return of_op<BatchNormOp::kBackward>(type, step, access);
}

}  // namespace cgrt::kernels
