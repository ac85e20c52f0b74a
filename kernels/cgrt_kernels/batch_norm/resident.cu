// Tensors that are read once: a block or a cluster keeps all elements of some channels, in shared memory or in
// registers.
#include <cooperative_groups.h>

#include <cstdint>

#include "cgrt_kernels/batch_norm/channel.cuh"
#include "cgrt_kernels/batch_norm/host_body.cuh"
#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"

namespace cgrt::kernels {
namespace {

extern __shared__ __align__(16) unsigned char batch_norm_shared[];

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
__global__ void __launch_bounds__(kBatchNormMaxThreads, 2) channels_resident(BatchNormParams p) {
  constexpr int kLanes = kPackSize<T>, kStages = 4;
  using Pack = typename PackOf<T>::Type;
  __shared__ float firsts[kBatchNormMaxChannels];
  __shared__ Part of_channels[kBatchNormMaxChannels];
  __shared__ Coefficients coefficients[kBatchNormMaxChannels];
  const Blocks blocks;
  const std::uint32_t tile = blockIdx.x / blocks.count(), width = p.tile_packs, threads = blockDim.x;
  const ResidentLayout layout = resident_layout(p.split_rows, width, p.plane, kLanes, threads, kBackward ? 2 : 1);
  const std::uint32_t per_thread = layout.packs_per_thread;
  auto* const x_packs = reinterpret_cast<uint4*>(batch_norm_shared) + threadIdx.x;
  uint4* const gradient_packs = x_packs + per_thread * layout.active;
  const PartsInShared<kLanes> parts{reinterpret_cast<float*>(reinterpret_cast<uint4*>(batch_norm_shared) +
                                                             (kBackward ? 2 : 1) * per_thread * layout.active)};
  const std::uint32_t channels = width * kLanes / p.plane;
  const Footprint footprint = channels > 1 ? Footprint{width, threads / width, p.plane, 0, width * kLanes}
                                           : Footprint{threads, 1, threads * kLanes, 0, threads * kLanes};
  const std::uint32_t first_channel = tile * channels;
  const std::uint32_t column = threadIdx.x % footprint.packs * kLanes, lanes_channel = column / footprint.plane;

  const std::uint32_t row_begin = min(p.rows, blocks.rank() * p.split_rows);
  const std::uint32_t packs = (min(p.rows, row_begin + p.split_rows) - row_begin) * width;
  const std::uint32_t mine =
      threadIdx.x < layout.active && threadIdx.x < packs ? (packs - threadIdx.x - 1) / layout.active + 1 : 0;
  const std::uint64_t row_packs = p.columns / kLanes;
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
      copy_asynchronously(x_packs + i * layout.active, static_cast<const uint4*>(p.in) + offset);
      if constexpr (kBackward)
        copy_asynchronously(gradient_packs + i * layout.active, static_cast<const uint4*>(p.gradient) + offset);
    });
    end_copy_group();
  }
  let_dependents_start();
  // Read now: when this block needs them last, another may write, and y may be x.
  // So are the parameters, whose latency would come behind the barriers.
  const ChannelParameters<kBackward> parameters(p, first_channel + (threadIdx.x < channels ? threadIdx.x : 0));
  if (!kBackward && threadIdx.x < channels) firsts[threadIdx.x] = first_element<T>(p, first_channel + threadIdx.x);

  LaneSums<kLanes, kBackward> sums;
  const auto pack_at = [&](const uint4* base, std::uint32_t i) {
    return *reinterpret_cast<const Pack*>(base + i * layout.active);
  };
  if constexpr (kBackward) {
    for_each_lane<kLanes>(lanes_channel, column, footprint.plane,
                          [&](int lane, std::uint32_t channel) { sums.shift[lane] = p.mean[first_channel + channel]; });
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
    coefficients[threadIdx.x] =
        finish_channel(p, channel, parameters, firsts[threadIdx.x], merged.part(), blocks.rank() == 0);
  }
  __syncthreads();
  blocks.arrive();

  const LaneCoefficients<kLanes, kBackward, false> apply(
      lanes_channel, column, footprint.plane, [&](std::uint32_t channel) { return coefficients[channel]; },
      [](const Coefficients& loaded) { return loaded; });
  position = start;
  walk(position, 0, mine, [&](std::uint32_t i, std::uint64_t offset) {
    static_cast<Pack*>(p.out)[offset] =
        apply.apply(pack_at(x_packs, i), pack_at(kBackward ? gradient_packs : x_packs, i));
  });
  blocks.leave();
}

// The sums over the threads that have the same channel: `lanes` of them, 2 to the power of `bits`, stand side by side.
// All of them get it.
__device__ __forceinline__ float2 sums_of_channel(float2 value, std::uint32_t bits, float2* of_warps) {
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, lanes = 1u << bits,
                      channel = lane & (lanes - 1);
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
  for (std::uint32_t w = lane >> bits; w < blockDim.x / 32; w += 32u >> bits) {
    const float2 of_warp = of_warps[w * lanes + channel];
    value.x += of_warp.x, value.y += of_warp.y;
  }
  add_lanes();
  return value;
}

// Of `count` elements, whose sums are those of sums_around(reference). Forward, `reference` is an element of the
// channel before, and the mean of all, or nearly, behind it where the element was so far from the mean that many digits
// of the squares cancelled: then they are summed once more. Threads with different channels call it together.
template <bool kBackward, class SumsAround>
__device__ __forceinline__ Part whole_channel(std::uint32_t count, float& reference, bool has_one_channel,
                                              SumsAround sums_around) {
  float2 sums = sums_around(reference);
  if constexpr (kBackward) return {sums.x, sums.y, 0};
  float mean = sums.x / static_cast<float>(count), squares = sums.y - sums.x * mean;
  const bool has_cancelled = squares < sums.y / 16;
  if (has_one_channel ? has_cancelled : __syncthreads_or(has_cancelled)) {
    if (has_cancelled) reference += mean;
    __syncthreads();  // before sums of warps are written again
    sums = sums_around(reference);
    mean = sums.x / static_cast<float>(count), squares = sums.y - sums.x * mean;
  }
  return {mean, squares < 0 ? 0 : squares, 0};  // keeps NaN
}

// Channels of few elements, wherever they begin: a block has one of them, or a tile of a few side by side where the
// elements of one are far apart. Each is read once and kept in a register, of which a thread has kHeld: with as few as
// do, a small launch has less code to fetch.
template <bool kBackward>
constexpr std::uint32_t kHeldThreads = held_threads(kBackward ? BatchNormOp::kBackward : BatchNormOp::kTrain);

template <class T, bool kBackward, std::uint32_t kHeld>
__global__ void __launch_bounds__(kHeldThreads<kBackward>) channels_held(BatchNormParams p) {
  __shared__ float2 of_warps[kHeldThreads<kBackward>];
  const std::uint32_t lanes = p.tile_packs, bits = 31 - __clz(static_cast<int>(lanes)), plane = p.plane;
  const std::uint32_t depth = blockDim.x >> bits, lane = threadIdx.x & (lanes - 1), begin = threadIdx.x >> bits;
  const std::uint32_t channel = blockIdx.x * lanes + lane, of_channel = p.rows * plane;
  const std::uint32_t count = channel < p.tiles ? of_channel : 0, begin_row = p.plane_divisor.quotient(begin);
  const std::uint32_t base = channel * plane;
  // use(k, offset) for each of the thread's elements, which are `depth` apart
  const auto walk = [&](auto use) {
    std::uint32_t column = begin - begin_row * plane;
    std::uint32_t at = base + begin_row * p.columns + column;
    const std::uint32_t step = p.step_rows * p.columns + p.step_columns;
#pragma unroll
    for (std::uint32_t k = 0; k < kHeld; ++k) {
      if (k * depth >= of_channel) break;
      if (begin + k * depth < count) use(k, at);
      at += step, column += p.step_columns;
      if (column >= plane) column -= plane, at += p.columns - plane;
    }
  };
  wait_for_predecessors();

  T x[kHeld], gradient[kBackward ? kHeld : 1];
  walk([&](std::uint32_t k, std::uint32_t at) {
    x[k] = static_cast<const T*>(p.in)[at];
    if constexpr (kBackward) gradient[k] = static_cast<const T*>(p.gradient)[at];
  });
  const std::uint32_t some = count != 0 ? channel : 0;
  const ChannelParameters<kBackward> parameters(p, some);
  float reference = kBackward ? parameters.mean : first_element<T>(p, some);
  let_dependents_start();
  const Part all = whole_channel<kBackward>(of_channel, reference, bits == 0, [&](float around) {
    float2 sums{0, 0};
#pragma unroll
    for (std::uint32_t k = 0; k < kHeld; ++k) {
      if (begin + k * depth >= count) continue;
      const float delta = to_float(x[k]) - around;
      const float factor = kBackward ? to_float(gradient[kBackward ? k : 0]) : delta;
      sums.x += factor, sums.y = __fmaf_rn(factor, delta, sums.y);
    }
    return sums_of_channel(sums, bits, of_warps);
  });
  const Coefficients of = finish_channel(p, some, parameters, reference, all, begin == 0 && count != 0);
  walk([&](std::uint32_t k, std::uint32_t at) {
    float value = __fmaf_rn(to_float(x[k]) - of.x, of.y, of.z);
    if constexpr (kBackward) value = __fmaf_rn(to_float(gradient[k]), of.w, value);
    static_cast<T*>(p.out)[at] = from_float<T>(value);
  });
}

// Channels of NCHW tensors whose planes are whole packs: a block has one, and its threads some packs of it.
template <class T, bool kBackward>
__global__ void __launch_bounds__(kHeldThreads<kBackward>) channels_packed(BatchNormParams p) {
  constexpr int kLanes = kPackSize<T>;
  using Pack = typename PackOf<T>::Type;
  __shared__ float2 of_warps[kHeldThreads<kBackward> / 32];
  const std::uint32_t channel = blockIdx.x, plane = p.tile_packs, packs = p.rows * plane;
  const std::uint32_t between =
      p.columns / kLanes - plane;  // packs, from the end of a plane to the next of the channel
  // use(k, offset in packs) for each of the thread's packs
  const auto walk = [&](auto use) {
#pragma unroll
    for (std::uint32_t k = 0; k < kBatchNormHeldPacks; ++k) {
      const std::uint32_t i = k * blockDim.x + threadIdx.x;
      if (i < packs) use(k, channel * plane + i + p.tiles_divisor.quotient(i) * between);
    }
  };
  wait_for_predecessors();

  Pack x[kBatchNormHeldPacks], gradient[kBackward ? kBatchNormHeldPacks : 1];
  walk([&](std::uint32_t k, std::uint32_t at) {
    x[k] = static_cast<const Pack*>(p.in)[at];
    if constexpr (kBackward) gradient[k] = static_cast<const Pack*>(p.gradient)[at];
  });
  const ChannelParameters<kBackward> parameters(p, channel);
  float reference = kBackward ? parameters.mean : first_element<T>(p, channel);
  let_dependents_start();
  const Part all = whole_channel<kBackward>(p.rows * p.plane, reference, true, [&](float around) {
    float2 sums{0, 0};
#pragma unroll
    for (std::uint32_t k = 0; k < kBatchNormHeldPacks; ++k) {
      if (k * blockDim.x + threadIdx.x >= packs) continue;
      float values[kLanes], factors[kLanes];
      unpack(x[k], values);
      if constexpr (kBackward) unpack(gradient[kBackward ? k : 0], factors);
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        const float delta = values[lane] - around;
        const float factor = kBackward ? factors[lane] : delta;
        sums.x += factor, sums.y = __fmaf_rn(factor, delta, sums.y);
      }
    }
    return sums_of_channel(sums, 0, of_warps);
  });
  const Coefficients of = finish_channel(p, channel, parameters, reference, all, threadIdx.x == 0);
  walk([&](std::uint32_t k, std::uint32_t at) {
    float values[kLanes], gradients[kLanes];
    unpack(x[k], values);
    if constexpr (kBackward) unpack(gradient[kBackward ? k : 0], gradients);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      values[lane] = __fmaf_rn(values[lane] - of.x, of.y, of.z);
      if constexpr (kBackward) values[lane] = __fmaf_rn(gradients[lane], of.w, values[lane]);
    }
    Pack result;
    pack_into(result, values);
    static_cast<Pack*>(p.out)[at] = result;
  });
}

template <class T, std::uint32_t kHeld>
BatchNormKernel of_held(BatchNormOp op) {
  constexpr KernelResources kTrain{.registers = 64, .max_threads = kHeldThreads<false>};
  constexpr KernelResources kBackward{.registers = 80, .max_threads = kHeldThreads<true>};
  return op == BatchNormOp::kBackward
             ? make_kernel<channels_held<T, true, kHeld>, resident_on_host<T, true>, kBackward>()
             : make_kernel<channels_held<T, false, kHeld>, resident_on_host<T, false>, kTrain>();
}

}  // namespace

BatchNormKernel resident_batch_norm_kernel(BatchNormOp op, DType type) {
  constexpr KernelResources kResources{.registers = 80, .max_threads = kBatchNormMaxThreads};
  return of_float_type(type, [=]<class T>() {
    return op == BatchNormOp::kBackward
               ? make_kernel<channels_resident<T, true>, resident_on_host<T, true>, kResources>()
               : make_kernel<channels_resident<T, false>, resident_on_host<T, false>, kResources>();
  });
}

BatchNormKernel held_batch_norm_kernel(BatchNormOp op, DType type, std::uint32_t held) {
  return of_float_type(type, [=]<class T>() {
    return held <= kBatchNormFewHeld ? of_held<T, kBatchNormFewHeld>(op) : of_held<T, kBatchNormHeld>(op);
  });
}

BatchNormKernel packed_batch_norm_kernel(BatchNormOp op, DType type) {
  constexpr KernelResources kTrain{.registers = 64, .max_threads = kHeldThreads<false>};
  constexpr KernelResources kBackward{.registers = 80, .max_threads = kHeldThreads<true>};
  return of_float_type(type, [=]<class T>() {
    return op == BatchNormOp::kBackward ? make_kernel<channels_packed<T, true>, resident_on_host<T, true>, kBackward>()
                                        : make_kernel<channels_packed<T, false>, resident_on_host<T, false>, kTrain>();
  });
}

}  // namespace cgrt::kernels
