#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/dispatch.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/stream.cuh"
#include "cgrt_kernels/norm/backward.cuh"
#include "cgrt_kernels/norm/column_sums.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {
namespace {

// Each group of threads takes a row, read once: x and dy are in their registers.
template <NormOp kOp, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads,
                                  Group::kIsWarp                                                             ? 4
                                  : kPacks* kPackSize<T> * sizeof(T) < (kOp == NormOp::kLayerNorm ? 64 : 65) ? 2
                                                                                                             : 1)
    norm_backward_in_registers(NormBackwardParams p) {
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  constexpr bool kIsHeld = Row::kIsHalves && kPacks <= 2;
  Group group;
  // Lanes without a row stay with the others of their warp.
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns;
  const T *const from_x = static_cast<const T*>(p.x), *const from_dy = static_cast<const T*>(p.dy);
  T* const dx = static_cast<T*>(p.dx) + first;
  const typename Row::Where place(dx, has_row ? run.count : 0, group.thread());
  wait_for_predecessors();
  let_dependents_start();
  Row x, dy;
  x.load(from_x + first, place, from_x + count);
  dy.load(from_dy + first, place, from_dy + count);
  RowWeights<Row, kIsHeld, kAlignment> weights(Columns<T>(p.weight, run.begin, p.columns), place);
  const GradientFacts facts = facts_of<kOp>(group, x, dy, weights, place, p.epsilon, p.columns);
  x.stay_packed();
  dy.stay_packed();
  weights.stay_packed();
  x.store(dx, place, [&](auto& values, std::uint64_t offset, int pack) {
    constexpr int kCount = sizeof(values) / sizeof(float);
    float gradients[kCount], weight[kCount], normalized;
    if constexpr (kCount == 1) {
      unpack(dy.single, gradients);
    } else {
      unpack(dy.packs[pack], gradients);
    }
    weights.get(pack, offset, weight);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = gradient_of(facts, values[i], gradients[i], weight[i], normalized);
  });
}

// Each group of blocks takes a row at a time, its share in shared memory; with kIsSummed the sums of its columns, too.
template <NormOp kOp, bool kIsSummed, class T, class Group, Alignment kAlignment>
__global__ void __launch_bounds__(kMaxThreads, 1) norm_backward_streamed(NormBackwardParams p) {
  extern __shared__ uint4 ring[];
  Group group;
  const void* const arrays[] = {p.x, p.dy};
  Stream<T, kAlignment, 2> stream(p.shares, ring, group.block(), p.rows, p.columns, p.dx, arrays);
  wait_for_predecessors();
  for (std::uint32_t s = 0; s < p.shares.stages; ++s) stream.fetch(s, group.row() + std::uint64_t{s} * group.rows());
  Columns<T> weight(p.weight, stream.begin, p.columns);
  T* free = reinterpret_cast<T*>(ring + std::uint64_t{p.shares.stages} * 2 * p.shares.held);
  if (p.shares.holds_columns != 0) free = weight.template hold<kAlignment>(free, stream.count);
  // Of columns in shared memory, or in the group's part of `partials` where they do not fit.
  ColumnSums sums[2];
  if constexpr (kIsSummed) {
    float* const mine = p.partials + std::uint64_t{group.row()} * p.columns + stream.begin;
    const std::uint64_t plane = std::uint64_t{p.groups} * p.columns;
    for (int i = 0; i < (kOp == NormOp::kLayerNorm ? 2 : 1); ++i) {
      sums[i] =
          ColumnSums(mine + i * plane, reinterpret_cast<float*>(free), i, stream.count, p.shares.holds_columns != 0);
    }
  }
  __syncthreads();
  const float all = static_cast<float>(p.columns);
  std::uint32_t stage = 0;
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows()) {
    stream.wait();
    const auto weights_at = [&](auto& weights, std::uint64_t offset) {
      if (weight.is_there()) {
        load_values<kAlignment>(weights, weight.begin, offset, weight.end);
      } else {
#pragma unroll
        for (float& value : weights) value = 1;
      }
    };
    float mean = 0;
    if constexpr (kOp == NormOp::kLayerNorm) {
      float sum = 0;
      stream.each(stage, row, [&](const auto& values, std::uint64_t) {
#pragma unroll
        for (const float value : values[0]) sum += value;
      });
      mean = reduce_lanes(sum) / fmaxf(stream.of_warp(row), 1.0f);
    }
    float squares = 0, sum = 0, product = 0;
    stream.each(stage, row, [&](const auto& values, std::uint64_t offset) {
      constexpr int kCount = sizeof(values[0]) / sizeof(float);
      float weights[kCount], of_pack = 0;
      weights_at(weights, offset);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const float centered = values[0][i] - mean, g = values[1][i] * weights[i];
        of_pack += centered * centered;
        sum += g;
        product += g * centered;
      }
      squares += of_pack;
    });
    GradientFacts facts;
    if constexpr (kOp == NormOp::kLayerNorm) {
      facts = gradient_facts(group.join(Comoments{stream.of_warp(row), mean, reduce_lanes(squares), reduce_lanes(sum),
                                                  reduce_lanes(product)},
                                        all),
                             all, p.epsilon);
    } else {
      facts = gradient_facts(group.reduce(Products{squares, product}), all, p.epsilon);
    }
    group.next();
    T* const dx = stream.out(row);
    stream.each(stage, row, [&](auto& values, std::uint64_t offset) {
      constexpr int kCount = sizeof(values[0]) / sizeof(float);
      float weights[kCount];
      weights_at(weights, offset);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        float normalized;
        values[0][i] = gradient_of(facts, values[0][i], values[1][i], weights[i], normalized);
        if constexpr (kIsSummed) {
          sums[0].add(offset + i, values[1][i] * normalized);
          if constexpr (kOp == NormOp::kLayerNorm) sums[1].add(offset + i, values[1][i]);
        }
      }
      store_values(dx + offset, values[0]);
    });
    stream.fetch(stage, row + std::uint64_t{p.shares.stages} * group.rows());
    stage = stage + 1 == p.shares.stages ? 0 : stage + 1;
  }
  if constexpr (kIsSummed) {
    __syncthreads();
    for (int i = 0; i < (kOp == NormOp::kLayerNorm ? 2 : 1); ++i) sums[i].leave();
  }
}

template <auto kKernel, NormOp kOp, class T>
NormBackwardKernel with_host_body() {
  return make_kernel<kKernel, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kMaxThreads}>();
}

template <NormOp kOp, class T, Alignment kAlignment, class Group, int kPacks>
NormBackwardKernel in_registers() {
  return with_host_body<norm_backward_in_registers<kOp, T, Group, kPacks, kAlignment>, kOp, T>();
}

template <NormOp kOp, class T, Alignment kAlignment>
NormBackwardKernel of_regime(NormRegime regime) {
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  constexpr int kSize = kPackSize<T>, kPacks = kIsAligned ? 32 / kSize : 2;
  switch (regime) {
    case NormRegime::kLanes4:
      if constexpr (kIsAligned) return in_registers<kOp, T, kAlignment, LanesPerRow<4>, 16 / kSize>();
      break;
    case NormRegime::kLanes16: return in_registers<kOp, T, kAlignment, LanesPerRow<16>, 16 / kSize>();
    case NormRegime::kWarp: return in_registers < kOp, T, kAlignment, WarpPerRow, kIsAligned ? 32 / kSize : 4 > ();
    case NormRegime::kClusterShort:
      if constexpr (kIsAligned) return in_registers<kOp, T, kAlignment, ClusterPerRow<16>, 8 / kSize>();
      break;
    case NormRegime::kClusterMiddle:
      if constexpr (kIsAligned) return in_registers<kOp, T, kAlignment, ClusterPerRow<16>, 16 / kSize>();
      break;
    case NormRegime::kCluster:
    case NormRegime::kBulkStream:
    case NormRegime::kClusterLong: return in_registers<kOp, T, kAlignment, ClusterPerRow<16>, kPacks>();
    case NormRegime::kClusterStream: break;
  }
  return with_host_body<norm_backward_streamed<kOp, false, T, ClusterPerRow<16>, kAlignment>, kOp, T>();
}

}  // namespace

NormBackwardKernel norm_backward_kernel(NormOp op, DType type, NormRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? of_regime<NormOp::kLayerNorm, T, kAlignment>(regime)
                                    : of_regime<NormOp::kRmsNorm, T, kAlignment>(regime);
  });
}

NormBackwardKernel norm_summed_stream(NormOp op, DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    using Group = ClusterPerRow<16>;
    constexpr auto kLayerNorm = NormOp::kLayerNorm, kRmsNorm = NormOp::kRmsNorm;
    return op == kLayerNorm
               ? with_host_body<norm_backward_streamed<kLayerNorm, true, T, Group, kAlignment>, kLayerNorm, T>()
               : with_host_body<norm_backward_streamed<kRmsNorm, true, T, Group, kAlignment>, kRmsNorm, T>();
  });
}

}  // namespace cgrt::kernels
