// Tensors that are read twice: each block's share of the sums, the sums of a channel, each element.
#include <cstdint>
#include <cstring>

#include "cgrt_kernels/batch_norm/channel.cuh"
#include "cgrt_kernels/batch_norm/host_body.cuh"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/elementwise/map.cuh"

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

  __device__ __forceinline__ Share(const BatchNormParams& p, std::uint32_t block) {
    const std::uint32_t packs = p.columns / kLanes;
    tile = block % p.tiles, split = block / p.tiles;
    const std::uint32_t pack = tile * p.tile_packs + threadIdx.x % p.tile_packs;
    const std::uint32_t in_tile = min(p.tile_packs, packs - tile * p.tile_packs);
    tile_begin = tile * p.tile_packs * kLanes, tile_columns = in_tile * kLanes;
    height = blockDim.x / p.tile_packs;
    column = min(pack, packs - 1) * kLanes;
    const std::uint32_t row = split * height + threadIdx.x / p.tile_packs, next = p.splits * height;
    const bool has_rows = pack < packs && threadIdx.x < height * p.tile_packs && row < p.rows;
    rows = has_rows ? (p.rows - row - 1) / next + 1 : 0;
    first = std::uint64_t{row} * packs + pack, step = std::uint64_t{next} * packs;
  }
};

// Packs of each array that a thread has in flight at once: with 1024 threads on a multiprocessor,
// 64 KB of 16-byte packs.
template <int kLanes, bool kBackward>
constexpr int kUnroll = (kLanes == 1 ? 8 : 4) / (kBackward ? 2 : 1);

// Channels that no cluster holds: a channel of 256 planes of 112 x 112 halves is 6.4 MB, and clusters for
// 16 of them at once would read more than the second-level cache has. So all is read twice, the second
// time from its end. The last three times that a thread has kInFlight packs in flight are 25 MB on an H200, which the
// cache still has then, as it drops first what came before. Each block leaves what it knows of its channels in their
// slots: tile by tile, split by split.
template <class T, int kLanes, bool kBackward>
__global__ void __launch_bounds__(kBatchNormThreads, 4) channel_statistics(BatchNormParams p) {
  using Pack = LanesOf<T, kLanes>;
  constexpr int kInFlight = kUnroll<kLanes, kBackward>;
  const Share<kLanes> share(p, blockIdx.x);
  const PartsInShared<kLanes> parts{reinterpret_cast<float*>(batch_norm_shared)};
  wait_for_predecessors();

  LaneSums<kLanes, kBackward> sums;
  const Pack* const x = static_cast<const Pack*>(p.in);
  const Pack* const gradient = static_cast<const Pack*>(p.gradient);
  std::uint64_t at = share.first;
  if constexpr (kBackward) {
    for_each_lane<kLanes>(share.column / p.plane, share.column, p.plane,
                          [&](int lane, std::uint32_t channel) { sums.shift[lane] = p.mean[channel]; });
  } else {
    if (share.rows != 0) unpack(x[at], sums.shift);
  }
  // In flight early, when the first rows are in the cache.
  float references[kLanes];
  for_each_lane<kLanes>(share.column / p.plane, share.column, p.plane, [&](int lane, std::uint32_t channel) {
    references[lane] = kBackward ? 0 : first_element<T>(p, channel);
  });
  std::uint32_t left = share.rows;
  const auto add_all_but = [&](std::uint32_t last, auto load) {
    for (; left >= last + kInFlight; left -= kInFlight) {
      Pack values[kInFlight], gradients[kBackward ? kInFlight : 1];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        values[i] = load(x + at);
        if constexpr (kBackward) gradients[i] = load(gradient + at);
        at += share.step;
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) sums.add(values[i], gradients[kBackward ? i : 0]);
    }
  };
  add_all_but(3 * kInFlight, load_last<Pack>);
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
  put_parts(sums, share.rows, share.column, p.plane, parts);
  __syncthreads();
  const std::uint32_t first = share.tile_begin / p.plane, tile_columns = p.tile_packs * kLanes;
  const Footprint footprint{p.tile_packs, share.height, p.plane, share.tile_begin, share.tile_columns};
  reduce_channels<kLanes, kBackward>(parts, footprint, [&](std::uint32_t i, const Part& part) {
    const std::uint32_t channel = first + i, first_tile = channel * p.plane / tile_columns;
    const std::uint64_t slot = std::uint64_t{channel} * p.slots + (share.tile - first_tile) * p.splits + share.split;
    static_cast<float4*>(p.partials)[slot] = {part.a, part.b, part.count, 0};
  });
}

// A block has a channel, or several of few slots.
template <class T, int kLanes, bool kBackward>
__global__ void __launch_bounds__(kBatchNormThreads) channel_finish(BatchNormParams p) {
  __shared__ Merged<kBackward> of_warps[kBatchNormThreads / 32];
  const std::uint32_t warps = p.finish_warps, warp = threadIdx.x / 32, in_block = warp / warps;
  const std::uint32_t all_channels = p.columns / p.plane, tile_columns = p.tile_packs * kLanes;
  const std::uint32_t some = blockIdx.x * (blockDim.x / 32 / warps) + in_block, channel = min(some, all_channels - 1);
  const std::uint32_t tiles = ((channel + 1) * p.plane - 1) / tile_columns - channel * p.plane / tile_columns + 1;
  const float4* const slots = static_cast<const float4*>(p.partials) + std::uint64_t{channel} * p.slots;
  let_dependents_start();
  wait_for_predecessors();

  // All that comes from memory is in flight at once.
  const ChannelParameters<kBackward> parameters(p, channel);
  const float first = kBackward ? 0 : first_element<T>(p, channel);
  Merged<kBackward> merged;
  merged.reference = slots[0].x;
  const std::uint32_t count = tiles * p.splits;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x - in_block * warps * 32; i < count; i += warps * 32) {
    const float4 slot = slots[i];
    merged.add({slot.x, slot.y, slot.z});
  }
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    merged.add_shuffled([mask](float value) { return __shfl_xor_sync(0xffffffff, value, mask); });
  }
  if (threadIdx.x % 32 == 0) of_warps[warp] = merged;
  __syncthreads();
  if (threadIdx.x % (warps * 32) != 0 || some != channel) return;
  for (std::uint32_t other = 1; other < warps; ++other) {
    const Merged<kBackward>& of_other = of_warps[warp + other];
    merged.a += of_other.a, merged.b += of_other.b, merged.count += of_other.count;
  }
  static_cast<Coefficients*>(p.coefficients)[channel] =
      finish_channel(p, channel, parameters, first, merged.part(), true);
}

// What an operation applies to the elements of a channel: its parameters are loaded, then made into coefficients.
template <BatchNormOp kOp>
struct CoefficientsOf {
  const BatchNormParams& p;

  __device__ __forceinline__ Coefficients load(std::uint32_t channel) const {
    if constexpr (kOp != BatchNormOp::kInfer) return static_cast<const Coefficients*>(p.coefficients)[channel];
    return {p.mean[channel], p.spread[channel], p.bias != nullptr ? p.bias[channel] : 0,
            p.weight != nullptr ? p.weight[channel] : 1};
  }
  __device__ __forceinline__ Coefficients convert(const Coefficients& loaded) const {
    if constexpr (kOp != BatchNormOp::kInfer) return loaded;
    return {loaded.x, loaded.w * rsqrtf(loaded.y + p.epsilon), loaded.z, 0};
  }
};

// A block has split_rows rows of a tile, and its threads a column of packs: a few persistent blocks would wait for
// those on the slowest multiprocessor. The first blocks have the rows that were read last. kIsOnce: split_rows is
// blockDim.y, which takes little code.
template <class T, int kLanes, BatchNormOp kOp, bool kIsOnce = false>
__global__ void __launch_bounds__(kBatchNormThreads, kLanes == 1 ? 8 : 4) channel_apply(BatchNormParams p) {
  using Pack = LanesOf<T, kLanes>;
  constexpr bool kBackward = kOp == BatchNormOp::kBackward, kInfer = kOp == BatchNormOp::kInfer;
  constexpr int kInFlight = kIsOnce ? 1 : kUnroll<kLanes, kBackward>;
  const std::uint32_t packs = p.columns / kLanes, height = blockDim.y, block = gridDim.x - 1 - blockIdx.x;
  const std::uint32_t split = p.tiles_divisor.quotient(block), tile = block - split * p.tiles;
  const std::uint32_t pack = tile * p.tile_packs + threadIdx.x, first = split * p.split_rows;
  const std::uint32_t end = min(first + p.split_rows, p.rows);
  std::uint32_t row = first + threadIdx.y;
  const Pack* const x = static_cast<const Pack*>(p.in);
  const Pack* const gradient = static_cast<const Pack*>(p.gradient);
  Pack* const out = static_cast<Pack*>(p.out);
  const std::uint64_t step = std::uint64_t{height} * packs;
  std::uint64_t at = std::uint64_t{row} * packs + pack;
  let_dependents_start();
  wait_for_predecessors();
  if (pack >= packs) row = end;

  Pack values[kInFlight], gradients[kBackward ? kInFlight : 1];
  const auto load_rows = [&] {
#pragma unroll
    for (std::uint32_t i = 0; i < kInFlight; ++i) {
      if (row + i * height >= end) continue;
      values[i] = x[at + i * step];
      if constexpr (kBackward) gradients[i] = gradient[at + i * step];
    }
  };
  load_rows();
  if (row >= end) return;
  const CoefficientsOf<kOp> of{p};
  const LaneCoefficients<kLanes, kBackward, kInfer> apply(
      p.plane_divisor.quotient(pack * kLanes), pack * kLanes, p.plane,
      [&](std::uint32_t channel) { return of.load(channel); },
      [&](const Coefficients& loaded) { return of.convert(loaded); });
  while (true) {
#pragma unroll
    for (std::uint32_t i = 0; i < kInFlight; ++i) {
      if (row + i * height >= end) continue;
      out[at + i * step] = apply.apply(values[i], gradients[kBackward ? i : 0]);
    }
    row += kInFlight * height, at += kInFlight * step;
    if (kIsOnce || row >= end) return;
    load_rows();
  }
}

// Rows that are no whole packs, or arrays that begin anywhere: a thread has a pack that is aligned in the output, and
// the two that one of an input lies in, but for one at either end, so that these are inside of it. What is before and
// behind, the threads of a block have, element by element.
template <class T, BatchNormOp kOp>
__global__ void __launch_bounds__(kBatchNormThreads, 4) channel_apply_shifted(BatchNormParams p) {
  constexpr int kPack = kPackSize<T>;
  constexpr bool kBackward = kOp == BatchNormOp::kBackward;
  using Lanes = typename PackOf<T>::Type;
  using Shifted = internal::ShiftedPack<T, kPack>;
  const T *const x = static_cast<const T*>(p.in), *const gradient = static_cast<const T*>(p.gradient);
  T* const out = static_cast<T*>(p.out);
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns;
  const std::uint32_t begin = internal::begin_of_packs<kPack>(out, true), block = gridDim.x - 1 - blockIdx.x;
  const std::uint64_t packs = count < begin + kPack ? 0 : (count - begin - kPack) / kPack;
  const std::uint64_t pack = std::uint64_t{block} * kBatchNormThreads + threadIdx.x;
  const CoefficientsOf<kOp> of{p};
  // Behind the last channel of a row the first one of the next.
  const auto load = [&](std::uint32_t channel) {
    const std::uint32_t channels = p.channels;
    while (channel >= channels) channel -= channels;
    return of.load(channel);
  };
  const auto convert = [&](const Coefficients& loaded) { return of.convert(loaded); };
  let_dependents_start();
  wait_for_predecessors();
  if (block == 0 && threadIdx.x < count - packs * kPack) {
    const std::uint64_t at = threadIdx.x < begin ? threadIdx.x : packs * kPack + threadIdx.x;
    const std::uint32_t column = p.columns_divisor.divide(at).remainder;
    const LaneCoefficients<1, kBackward, true> apply(p.plane_divisor.quotient(column), column, p.plane, load, convert);
    out[at] = apply.apply(x[at], kBackward ? gradient[at] : x[at]);
  }
  if (pack >= packs) return;
  const std::uint64_t at = begin + pack * kPack;
  const Shifted of_x(x + at), of_gradient((kBackward ? gradient : x) + at);
  const std::uint32_t column = p.columns_divisor.divide(at).remainder, channel = p.plane_divisor.quotient(column);
  const auto store = [&](const auto& apply) {
    const auto lanes = [](const Shifted& shifted) {
      const Pack<T, kPack> taken = shifted.take();
      Lanes result;
      memcpy(&result, &taken, sizeof(result));
      return result;
    };
    const Lanes applied = apply.apply(lanes(of_x), lanes(of_gradient));
    *reinterpret_cast<Lanes*>(out + at) = applied;
  };
  if (sizeof(T) == 2 || p.plane >= kPack) {
    const std::uint32_t end = (channel + 1) * p.plane;
    store(LaneCoefficients<kPack, kBackward, true>(end - column, convert(load(channel)), convert(load(channel + 1))));
  } else {
    store(LaneCoefficients<kPack, kBackward, true>(channel, column, p.plane, load, convert));
  }
}

template <class T, int kLanes, BatchNormOp kOp>
BatchNormKernel of_step(BatchNormStep step) {
  constexpr bool kBackward = kOp == BatchNormOp::kBackward;
  constexpr KernelResources kResources{.registers = 64, .max_threads = kBatchNormThreads};
  switch (step) {
    case BatchNormStep::kStatistics:
      return make_kernel<channel_statistics<T, kLanes, kBackward>, statistics_on_host<T, kBackward>, kResources>();
    case BatchNormStep::kFinish:
      return make_kernel<channel_finish<T, kLanes, kBackward>, finish_steps_on_host<kBackward>, kResources>();
    case BatchNormStep::kApplyShifted:
      return make_kernel<channel_apply_shifted<T, kOp>, apply_on_host<T, kBackward>, kResources>();
    case BatchNormStep::kApplyOnce:
      if constexpr (kOp == BatchNormOp::kInfer) {
        return make_kernel<channel_apply<T, kLanes, kOp, true>, apply_on_host<T, kBackward>, kResources>();
      }
      break;
    case BatchNormStep::kApply: break;
  }
  return make_kernel<channel_apply<T, kLanes, kOp>, apply_on_host<T, kBackward>, kResources>();
}

}  // namespace

BatchNormKernel streamed_batch_norm_kernel(BatchNormOp op, DType type, BatchNormStep step, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    constexpr int kLanes = kAlignment == Alignment::kAligned ? kPackSize<T> : 1;
    switch (op) {
      case BatchNormOp::kTrain: return of_step<T, kLanes, BatchNormOp::kTrain>(step);
      case BatchNormOp::kInfer: return of_step<T, kLanes, BatchNormOp::kInfer>(step);
      case BatchNormOp::kBackward: break;
    }
    return of_step<T, kLanes, BatchNormOp::kBackward>(step);
  });
}

}  // namespace cgrt::kernels
