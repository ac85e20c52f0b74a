#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/block.cuh"
#include "cgrt_kernels/common/row/bulk_stream.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/host_row.cuh"
#include "cgrt_kernels/common/row/lanes.cuh"
#include "cgrt_kernels/common/row/prefetch.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/softmax/kernels.h"
#include "cgrt_kernels/softmax/long_rows.cuh"
#include "cgrt_kernels/softmax/reference.h"

namespace cgrt::kernels {
namespace {

// The softmax of a row that is in registers. Powers are kept in place of the elements where that costs no registers;
// 16-bit elements stay packed at the price of a second exponential, so that more rows are worked on at once.
// `after_reduction` is called when all threads have read their elements.
template <SoftmaxOp kOp, class Group, class Row, class T, class Then>
__device__ __forceinline__ void softmax_of(const Group& group, Row& x, T* out, const typename Row::Where& place,
                                           Then after_reduction) {
  constexpr bool kKeepsPowers = kOp == SoftmaxOp::kSoftmax && !Row::kIsHalves;
  MaxSum mine = none(MaxSum{});
  x.each(place, [&](const auto& values, int) {
#pragma unroll
    for (const float value : values) mine.max = fmaxf(mine.max, value);
  });
  x.stay_packed();
  const float base = finite_or_zero(mine.max);
  if constexpr (kKeepsPowers) {
    x.update(place, [&](auto& values) {
      float of_pack = 0;
#pragma unroll
      for (float& value : values) of_pack += value = exp_of(value - base);
      mine.sum += of_pack;
    });
  } else {
    mine.sum = x.sum(place, [=](float value) { return exp_of(value - base); });
  }
  const MaxSum row = group.reduce(mine);
  after_reduction();
  x.stay_packed();
  if constexpr (kKeepsPowers) {
    // What is all -inf here has powers of 0, whose factor would overflow when the maximum of the row is small. Not 0,
    // but 0 or NaN as the sum is.
    const bool is_nothing = mine.max == -INFINITY && row.max != -INFINITY;
    const float factor = is_nothing ? 0.0f * row.sum : __fdividef(exp_of(base - finite_or_zero(row.max)), row.sum);
    x.store(out, place, [=](auto& values, std::uint64_t, int) {
#pragma unroll
      for (float& value : values) value *= factor;
    });
  } else {
    const float log_sum = log_of(row.sum), shift = kOp == SoftmaxOp::kSoftmax ? finite_or_zero(row.max) : row.max;
    x.store(out, place, [=](auto& values, std::uint64_t, int) {
#pragma unroll
      for (float& value : values) {
        value = value - shift - log_sum;
        if constexpr (kOp == SoftmaxOp::kSoftmax) value = exp_of(value);
      }
    });
  }
}

// Each group of threads takes a row, read once: it is in their registers.
template <SoftmaxOp kOp, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads, Group::kIsWarp ? 4 : 2) softmax_in_registers(SoftmaxParams p) {
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  Group group;
  // Lanes without a row stay with the others of their warp.
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  const T* const in = static_cast<const T*>(p.in);
  T* const out = static_cast<T*>(p.out) + first;
  const typename Row::Where place(out, has_row ? run.count : 0, group.thread());
  wait_for_predecessors();
  let_dependents_start();
  Row x;
  x.template load<Row::kFewAtOnce>(in + first, place, in + std::uint64_t{p.rows} * p.columns);
  prefetch_ahead<Row>(group, in, p.rows, p.columns, p.rows_ahead);

  softmax_of<kOp>(group, x, out, place, [] {});
}

// Many short rows that are not aligned pass through shared memory.
template <SoftmaxOp kOp, class Row>
__global__ void __launch_bounds__(kLaneThreads, 6) softmax_staged(SoftmaxParams p) {
  extern __shared__ __align__(128) uint4 stages[];
  using T = typename Row::Element;
  const StagedRows rows(p.rows, p.shares.stages * Row::kStep);
  wait_for_predecessors();
  let_dependents_start();
  if (rows.count == 0) return;
  const auto stage = rows.template stage<T>(stages, p);
  std::uint32_t row = threadIdx.x % 32 / Row::kLanes;
  T* at = stage.begin() + row * p.columns;
  const Row place(at, p.columns);
  typename Row::Values away;
  place.mark(away, 0, -INFINITY);
  stage.wait();
#pragma unroll 1
  for (std::uint32_t i = 0; i < rows.count; i += Row::kStep, row += Row::kStep, at += Row::kStep * p.columns) {
    typename Row::Values values, powers;
    place.get(values, at);
    float max = -INFINITY;
    each_pair(values, away, [&](float& value, float other) { max = fmaxf(max, value += other); });
#pragma unroll
    for (int mask = Row::kLanes / 2; mask > 0; mask /= 2) max = fmaxf(max, shuffle(max, mask));
    const float base = finite_or_zero(max);
    each_pair(powers, values, [=](float& power, float value) { power = exp_of(value - base); });
    const MaxSum all{max, reduce_lanes<Row::kLanes>(sum_of(powers, [](float power) { return power; }))};
    const float factor = factor_of<kOp>(all);
    if constexpr (kOp == SoftmaxOp::kSoftmax) {
      each_pair(values, powers, [=](float& value, float power) { value = power * factor; });
    } else {
      each_pair(values, powers, [=](float& value, float) { value = result_of<kOp>(value, all, factor); });
    }
    if (row < rows.count) place.put(at, values);
  }
  stage.store();
}

// Rows of few elements: a lane takes one at a time. A warp's pass through shared memory together.
template <SoftmaxOp kOp, class T>
__global__ void __launch_bounds__(kLaneThreads, 8) softmax_in_lane(SoftmaxParams p) {
  extern __shared__ __align__(128) uint4 stages[];
  const StagedRows rows(p.rows, p.shares.stages * 32);
  wait_for_predecessors();
  let_dependents_start();
  if (rows.count == 0) return;
  const auto stage = rows.template stage<T>(stages, p);
  stage.wait();
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x % 32; i < rows.count; i += 32) {
    T* const row = stage.begin() + i * p.columns;
    MaxSum all = none(MaxSum{});
#pragma unroll 4
    for (std::uint32_t column = 0; column < p.columns; ++column) all.max = fmaxf(all.max, to_float(row[column]));
    const float base = finite_or_zero(all.max);
#pragma unroll 4
    for (std::uint32_t column = 0; column < p.columns; ++column) all.sum += exp_of(to_float(row[column]) - base);
    const float factor = factor_of<kOp>(all);
#pragma unroll 4
    for (std::uint32_t column = 0; column < p.columns; ++column) {
      row[column] = from_float<T>(result_of<kOp>(to_float(row[column]), all, factor));
    }
  }
  stage.store();
}

// A warp takes a row.
template <SoftmaxOp kOp, class T, int kElements>
__global__ void __launch_bounds__(32) softmax_of_few_rows(SoftmaxParams p) {
  using Row = LaneRow<T, 32, kElements, 1>;
  const typename Row::Where place(p.columns);
  const std::uint64_t first = std::uint64_t{blockIdx.x} * p.columns;
  wait_for_predecessors();
  let_dependents_start();
  Row x;
  x.load(static_cast<const T*>(p.in) + first, place);
  typename Row::Values values, powers;
  x.get(values);
  float max = -INFINITY;
#pragma unroll
  for (int i = 0; i < kElements; ++i) {
    if (!place.has(i)) values[i][0] = -INFINITY;
    max = fmaxf(max, values[i][0]);
  }
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) max = fmaxf(max, shuffle(max, mask));
  const float base = finite_or_zero(max);
  each_pair(powers, values, [=](float& power, float value) { power = exp_of(value - base); });
  const MaxSum all{max, reduce_lanes(sum_of(powers, [](float power) { return power; }))};
  const float factor = factor_of<kOp>(all);
  each_pair(values, powers, [&](float& value, float power) {
    value = kOp == SoftmaxOp::kSoftmax ? power * factor : result_of<kOp>(value, all, factor);
  });
  Row::store(static_cast<T*>(p.out) + first, place, values);
}

// A block, or a cluster, takes a row at a time, through registers.
template <SoftmaxOp kOp, class T, Alignment kAlignment>
__global__ void __launch_bounds__(kMaxThreads, 1) softmax_bulk_streamed(SoftmaxParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) uint4 ring[];
  using Group = ClusterPerRow<16>;
  using Rows = BulkStream<T, Group, kAlignment>;
  using Row = typename Rows::Row;
  Group group;
  Rows rows(p.shares, ring, group, p.rows, p.columns, {p.in});
  T* out = static_cast<T*>(p.out) + std::uint64_t{group.row()} * p.columns + rows.begin;
  const typename Row::Where place(out, rows.count, threadIdx.x);
  wait_for_predecessors();
  rows.start(group.row());
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows(), group.next()) {
    const T* at[1];
    rows.wait(row, at);
    Row x;
    x.load_shared(at[0], place);
    softmax_of<kOp>(group, x, out, place, [&] { rows.next(row); });
    out += std::uint64_t{group.rows()} * p.columns;
  }
#endif
}

template <SoftmaxOp kOp, class T>
void softmax_on_host(HostGrid, SoftmaxParams p) {
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    std::vector<double> values = read_row<T>(p.in, row, p.columns);
    softmax_reference(kOp, values);
    write_row<T>(p.out, row, values);
  }
}

template <SoftmaxOp kOp, class T>
SoftmaxKernel staged(std::uint32_t columns) {
  constexpr auto kHost = softmax_on_host<kOp, T>;
  using Short = ShortStagedRow<T>;
  using Long = LongStagedRow<T>;
  if (columns <= Short::kMaxColumns) return with_host_body<softmax_staged<kOp, Short>, kHost>();
  return with_host_body<softmax_staged<kOp, Long>, kHost>();
}

template <SoftmaxOp kOp, class T, Alignment kAlignment>
SoftmaxKernel of_regime(SoftmaxRegime regime) {
  constexpr auto kHost = softmax_on_host<kOp, T>;
  constexpr int kSize = kPackSize<T>, kPacks = kAlignment == Alignment::kAligned ? 32 / kSize : 4;
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  const auto of_lanes = [=]<int kLanes>() {
    return with_host_body<softmax_in_registers<kOp, T, LanesPerRow<kLanes>, 2, kAlignment>, kHost>();
  };
  switch (regime) {
    case SoftmaxRegime::kFew4: return with_host_body<softmax_of_few_rows<kOp, T, kFewElements / 2>, kHost>();
    case SoftmaxRegime::kFew8: return with_host_body<softmax_of_few_rows<kOp, T, kFewElements>, kHost>();
    case SoftmaxRegime::kLane: return with_host_body<softmax_in_lane<kOp, T>, kHost>();
    case SoftmaxRegime::kLanes2:
      if constexpr (kIsAligned) return of_lanes.template operator()<2>();
      break;
    case SoftmaxRegime::kLanes4:
      if constexpr (kIsAligned) return of_lanes.template operator()<4>();
      break;
    case SoftmaxRegime::kLanes8:
      if constexpr (kIsAligned) return of_lanes.template operator()<8>();
      break;
    case SoftmaxRegime::kLanes16:
      return with_host_body<softmax_in_registers<kOp, T, LanesPerRow<16>, 16 / kSize, kAlignment>, kHost>();
    case SoftmaxRegime::kWarp:
      return with_host_body<softmax_in_registers<kOp, T, WarpPerRow, kPacks, kAlignment>, kHost>();
    case SoftmaxRegime::kBlock:
      return with_host_body<softmax_in_registers<kOp, T, BlockPerRow<16>, 8 / kSize, kAlignment>, kHost>();
    case SoftmaxRegime::kClusterShort:
      return with_host_body<softmax_in_registers<kOp, T, ClusterPerRow<16>, 8 / kSize, kAlignment>, kHost>();
    case SoftmaxRegime::kCluster:
      return with_host_body<softmax_in_registers<kOp, T, ClusterPerRow<16>, kPacks, kAlignment>, kHost>();
    case SoftmaxRegime::kClusterLong:
      return with_host_body<softmax_in_registers<kOp, T, ClusterPerRow<16>, 8, kAlignment>, kHost>();
    case SoftmaxRegime::kBulkStream:
      if constexpr (sizeof(T) == 4) return with_host_body<softmax_bulk_streamed<kOp, T, kAlignment>, kHost>();
      break;
    default: break;
  }
  return of_long_rows<kOp, false, T, kHost>(regime);
}

}  // namespace

SoftmaxKernel softmax_kernel(SoftmaxOp op, DType type, SoftmaxRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == SoftmaxOp::kSoftmax ? of_regime<SoftmaxOp::kSoftmax, T, kAlignment>(regime)
                                     : of_regime<SoftmaxOp::kLogSoftmax, T, kAlignment>(regime);
  });
}

SoftmaxKernel staged_softmax_kernel(SoftmaxOp op, DType type, std::uint32_t columns) {
  return of_float_type(type, Alignment::kUnaligned, [=]<class T, Alignment>() {
    return op == SoftmaxOp::kSoftmax ? staged<SoftmaxOp::kSoftmax, T>(columns)
                                     : staged<SoftmaxOp::kLogSoftmax, T>(columns);
  });
}

}  // namespace cgrt::kernels
