#include "cgrt_kernels/bias_norm/kernels.h"

#include <algorithm>
#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/prefetch.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/norm/columns.cuh"
#include "cgrt_kernels/norm/forward.cuh"
#include "cgrt_kernels/norm/held.cuh"
#include "cgrt_kernels/norm/lanes.cuh"

namespace cgrt::kernels {
namespace {

// x becomes x + bias + residual, rounded once. A pack at a time, as the bias is not in registers.
template <Alignment kAlignment, class T, class Row>
__device__ __forceinline__ void add_both(Row& x, const Row& residual, const Columns<T>& bias,
                                         const typename Row::Where& place) {
#pragma unroll
  for (int pack = 0; pack < Row::kPackCount; ++pack) {
    if (!place.has(pack)) continue;
    float values[Row::kSize], others[Row::kSize];
    unpack(x.packs[pack], values);
    load_values<kAlignment>(others, bias.begin, place.of(pack), bias.end);
    add(values, others);
    unpack(residual.packs[pack], others);
    add(values, others);
    pack_into(x.packs[pack], values);
  }
  if constexpr (!Row::kIsAligned) {
    if (!place.has_single()) return;
    x.single = from_float<T>(to_float(x.single) + to_float(bias.begin[place.single]) + to_float(residual.single));
  }
}

template <class Group, int kPacks, Alignment kAlignment>
constexpr int kMinBlocks = Group::kIsWarp                                      ? 4
                           : Group::kMaxThreads > kMaxThreads                  ? 1
                           : kPacks > 4 || kAlignment == Alignment::kUnaligned ? 1
                                                                               : 2;

// Each group of threads takes a row, read once: it is in their registers. Of few elements weight and bias are asked for
// together with the row.
template <NormOp kOp, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads, (kMinBlocks<Group, kPacks, kAlignment>))
    bias_norm(const __grid_constant__ NormParams p) {
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  constexpr bool kIsHeld = Row::kIsAligned && kPacks * Row::kSize <= 8;
  constexpr bool kHasBias = kOp == NormOp::kLayerNorm;
  Group group;
  // Lanes without a row stay with the others of their warp.
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns;
  const T *const in = static_cast<const T*>(p.in), *const residual = static_cast<const T*>(p.residual);
  T* const out = static_cast<T*>(p.out) + first;
  const typename Row::Where place(out, has_row ? run.count : 0, group.thread());
  const Columns<T> in_bias(p.in_bias, run.begin, p.columns), weight(p.weight, run.begin, p.columns),
      bias(kHasBias ? p.bias : nullptr, run.begin, p.columns);
  prefetch_once(p.in_bias, p.columns * sizeof(T));
  prefetch_once(p.weight, p.columns * sizeof(T));
  if constexpr (kHasBias) prefetch_once(p.bias, p.columns * sizeof(T));
  wait_for_predecessors();
  let_dependents_start();
  Row x, added, weights, biases;
  if constexpr (kIsHeld) hold(weights, weight, place, 1);
  if constexpr (kIsHeld && kHasBias) hold(biases, bias, place, 0);
  x.load(in + first, place, in + count);
  added.load(residual + first, place, residual + count);
  prefetch_ahead<Row>(group, in, p.rows, p.columns, p.rows_ahead);
  prefetch_ahead<Row>(group, residual, p.rows, p.columns, p.rows_ahead);
  add_both<kAlignment>(x, added, in_bias, place);
  if (p.sum != nullptr) x.store_as_is(static_cast<T*>(p.sum) + first, place);
  x.stay_packed();
  const RowFacts facts = facts_of<kOp>(group, x, place, p);
  x.stay_packed();
  if constexpr (kIsHeld) weights.stay_packed();
  if constexpr (kIsHeld && kHasBias) biases.stay_packed();
  x.store(out, place, [&](auto& values, std::uint64_t offset, int pack) {
    normalize<kOp>(values, facts);
    if constexpr (kIsHeld) {
      float others[sizeof(values) / sizeof(float)];
      unpack(weights.packs[pack], others);
      multiply(values, others);
      if constexpr (kHasBias) {
        unpack(biases.packs[pack], others);
        add(values, others);
      }
    } else {
      apply_columns<kAlignment>(values, offset, weight, bias);
    }
  });
}

template <NormOp kOp, class T, Alignment kAlignment, class Group, int kPacks>
NormKernel of_group() {
  constexpr std::uint32_t kThreads = std::max<std::uint32_t>(Group::kMaxThreads, kMaxThreads);
  return make_kernel<bias_norm<kOp, T, Group, kPacks, kAlignment>, norm_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kThreads}>();
}

template <NormOp kOp, class T>
NormKernel of_aligned(BiasNormRegime regime) {
  constexpr Alignment kAligned = Alignment::kAligned;
  constexpr int kSize = kPackSize<T>;
  constexpr bool kIsHalf = kSize == 8;
  switch (regime) {
    case BiasNormRegime::kClusterShort: return of_group<kOp, T, kAligned, ClusterPerRow<16>, 8 / kSize>();
    case BiasNormRegime::kClusterMiddle:
      if constexpr (!kIsHalf) return of_group<kOp, T, kAligned, ClusterPerRow<16>, 16 / kSize>();
      break;
    case BiasNormRegime::kWideBlock:
      return of_group<kOp, T, kAligned, ClusterPerRow<kMaxWideThreads / 32>, kWidePacks>();
    case BiasNormRegime::kWarp:
    case BiasNormRegime::kCluster: break;
  }
  return of_group<kOp, T, kAligned, ClusterPerRow<16>, 32 / kSize>();
}

template <NormOp kOp, class T, Alignment kAlignment>
NormKernel of_regime(BiasNormRegime regime) {
  if constexpr (kAlignment == Alignment::kAligned) return of_aligned<kOp, T>(regime);
  if (regime == BiasNormRegime::kWarp) return of_group<kOp, T, Alignment::kUnaligned, WarpPerRow, 4>();
  return of_group<kOp, T, Alignment::kUnaligned, ClusterPerRow<16>, 4>();
}

}  // namespace

NormKernel bias_norm_lanes_kernel(NormOp op, DType type, Alignment alignment, std::uint32_t columns) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? lanes_kernel<NormOp::kLayerNorm, true, true, T, kAlignment>(columns)
                                    : lanes_kernel<NormOp::kRmsNorm, true, true, T, kAlignment>(columns);
  });
}

NormKernel bias_norm_held_kernel(NormOp op, DType type, HeldRegime regime) {
  return of_float_type(type, [=]<class T>() {
    return op == NormOp::kLayerNorm ? held_kernel<NormOp::kLayerNorm, T, true, true>(regime)
                                    : held_kernel<NormOp::kRmsNorm, T, true, true>(regime);
  });
}

NormKernel bias_norm_kernel(NormOp op, DType type, BiasNormRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? of_regime<NormOp::kLayerNorm, T, kAlignment>(regime)
                                    : of_regime<NormOp::kRmsNorm, T, kAlignment>(regime);
  });
}

}  // namespace cgrt::kernels
