// The softmax of rows that are scaled and masked.
#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/host_row.cuh"
#include "cgrt_kernels/common/row/lanes.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/softmax/kernels.h"
#include "cgrt_kernels/softmax/long_rows.cuh"
#include "cgrt_kernels/softmax/masked_row.cuh"
#include "cgrt_kernels/softmax/reference.h"

namespace cgrt::kernels {
namespace {

// Of a row that sees a NaN: all that it sees is one, the rest 0, and no longer a product. Finds its way anew, so that
// the others keep nothing in registers for it.
template <class Row>
__device__ __noinline__ void write_nan(SoftmaxParams p, std::uint32_t row, std::uint32_t blocks, std::uint32_t block,
                                       std::uint32_t thread, float nan) {
  using T = typename Row::Element;
  const MaskedRow<T> masked(p, row);
  const RowRun run(p.columns, blocks, block, Row::kSize);
  T* const out = static_cast<T*>(p.out) + std::uint64_t{row} * p.columns + run.begin;
  const typename Row::Where place(out, run.count, thread);
  const auto value_of = [&](std::uint64_t offset) {
    return from_float<T>(run.begin + offset < masked.seen ? nan : 0.0f);
  };
#pragma unroll 1
  for (int pack = 0; pack < Row::kPackCount; ++pack) {
    if (!place.has(pack)) continue;
#pragma unroll 1
    for (int i = 0; i < Row::kSize; ++i) out[place.of(pack) + i] = value_of(place.of(pack) + i);
  }
  if (place.has_single()) out[place.single] = value_of(place.single);
}

// On other architectures 64 registers for each of 1,024 threads do not suffice.
#if __CUDA_ARCH__ > 900
constexpr int kMaskedBlocks = 1;
#else
constexpr int kMaskedBlocks = 2;
#endif

// As softmax_in_registers, of rows that are scaled and masked: values stay in registers as floats.
template <class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads, Group::kIsWarp ? 6 : kMaskedBlocks)
    masked_in_registers(SoftmaxParams p) {
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  Group group;
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const std::uint32_t row_index = has_row ? group.row() : 0;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const std::uint64_t first = std::uint64_t{row_index} * p.columns + run.begin;
  const T* const in = static_cast<const T*>(p.in);
  T* const out = static_cast<T*>(p.out) + first;
  const typename Row::Where place(out, has_row ? run.count : 0, group.thread());
  wait_for_predecessors();
  let_dependents_start();
  const MaskedRow<T> masked(p, row_index);
  const std::uint32_t seen = masked.seen > run.begin ? masked.seen - run.begin : 0;
  const typename Row::Where seen_place = place.up_to(seen);
  Row x, mask;
  x.load(in + first, seen_place, in + std::uint64_t{p.rows} * p.columns);
  if (masked.mask != nullptr) {
    mask.load(masked.mask + run.begin, seen_place, masked.end);
  } else {
    mask.fill(0);
  }
  float values[kPacks][Row::kSize] = {}, single[1] = {}, max = -INFINITY;
  const auto apply = [&](auto& to, const auto& from, const auto& add, std::uint64_t offset) {
    unpack(from, to);
    float added[sizeof(to) / sizeof(float)];
    unpack(add, added);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(to) / sizeof(float)); ++i) {
      to[i] = offset + i < seen ? to[i] * p.scale + added[i] : -INFINITY;
      max = fmaxf(max, to[i]);
    }
  };
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (seen_place.has(i)) apply(values[i], x.packs[i], mask.packs[i], place.of(i));
  }
  if constexpr (!Row::kIsAligned) {
    if (seen_place.has_single()) apply(single, x.single, mask.single, place.single);
  }
  MaxSum mine{max, 0.0f};
  const float base = finite_or_zero(max);
  const auto power = [&](auto& of_pack) {
#pragma unroll
    for (float& value : of_pack) mine.sum += value = exp_of(value - base);
  };
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (seen_place.has(i)) power(values[i]);
  }
  if constexpr (!Row::kIsAligned) {
    if (seen_place.has_single()) power(single);
  }
  const MaxSum all = group.reduce(mine);
  // 0 for what has seen nothing, or NaN as the sum is: its powers are 0, and may not be multiplied by infinity.
  const float factor = max == -INFINITY || all.sum == 0 ? 0 * all.sum : exp_of(max - all.max) / all.sum;
  if (!has_row) return;
  if (factor != factor) {
    return write_nan<Row>(p, group.row(), group.blocks(), group.block(), group.thread(), factor);
  }
  const auto write = [&](auto& of_pack, T* to) {
#pragma unroll
    for (float& value : of_pack) value *= factor;
    store_values(to, of_pack);
  };
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (place.has(i)) write(values[i], out + place.of(i));
  }
  if constexpr (!Row::kIsAligned) {
    if (place.has_single()) write(single, out + place.single);
  }
}

// Rows of few elements: a lane takes one at a time. A warp's pass through shared memory together.
template <class T>
__global__ void __launch_bounds__(kLaneThreads, 8) masked_in_lane(SoftmaxParams p) {
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
    const MaskedRow<T> masked(p, rows.first + i);
    const auto value_of = [&](std::uint32_t column) {
      return to_float(row[column]) * p.scale + (masked.mask != nullptr ? to_float(masked.mask[column]) : 0.0f);
    };
    MaxSum all = none(MaxSum{});
#pragma unroll 4
    for (std::uint32_t column = 0; column < masked.seen; ++column) all.max = fmaxf(all.max, value_of(column));
    const float base = finite_or_zero(all.max);
#pragma unroll 4
    for (std::uint32_t column = 0; column < masked.seen; ++column) all.sum += exp_of(value_of(column) - base);
    const float factor = all.sum == 0 ? 0 : 1 / all.sum;
#pragma unroll 4
    for (std::uint32_t column = 0; column < p.columns; ++column) {
      const float value = column < masked.seen ? result_of<SoftmaxOp::kSoftmax>(value_of(column), all, factor) : 0.0f;
      row[column] = from_float<T>(value);
    }
  }
  stage.store();
}

template <class T>
void masked_on_host(HostGrid, SoftmaxParams p) {
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    const std::uint64_t matrix = row / p.rows_of_matrix, in_matrix = row % p.rows_of_matrix;
    const std::uint64_t set = matrix / p.matrices_of_mask;
    std::vector<double> values = read_row<T>(p.in, row, p.columns), mask;
    if (p.mask != nullptr) {
      mask = read_row<T>(p.mask, set * p.mask_rows + (p.mask_rows == 1 ? 0 : in_matrix), p.columns);
    }
    const std::int64_t seen = seen_columns(static_cast<std::int64_t>(in_matrix), p.rows_of_matrix, p.columns,
                                           p.is_causal != 0, p.lengths != nullptr ? p.lengths + set : nullptr);
    masked_softmax_reference(values, static_cast<double>(p.scale), p.mask != nullptr ? mask.data() : nullptr, seen);
    write_row<T>(p.out, row, values);
  }
}

template <class T, Alignment kAlignment>
SoftmaxKernel masked_of_regime(SoftmaxRegime regime) {
  constexpr auto kHost = masked_on_host<T>;
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  constexpr int kSize = kPackSize<T>;
  constexpr SoftmaxOp kOp = SoftmaxOp::kSoftmax;
  const auto of_lanes = [=]<int kLanes>() {
    return with_host_body<masked_in_registers<T, LanesPerRow<kLanes>, 2, kAlignment>, kHost>();
  };
  switch (regime) {
    case SoftmaxRegime::kLane: return with_host_body<masked_in_lane<T>, kHost>();
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
      return with_host_body<masked_in_registers<T, LanesPerRow<16>, 16 / kSize, kAlignment>, kHost>();
    case SoftmaxRegime::kFew8:
      return with_host_body<masked_in_registers<T, WarpPerRow, 8 / kSize, kAlignment>, kHost>();
    case SoftmaxRegime::kWarp:
      return with_host_body<masked_in_registers<T, WarpPerRow, kIsAligned ? 32 / kSize : 4, kAlignment>, kHost>();
    case SoftmaxRegime::kClusterShort:
      return with_host_body<masked_in_registers<T, ClusterPerRow<16>, 8 / kSize, kAlignment>, kHost>();
    case SoftmaxRegime::kCluster:
    case SoftmaxRegime::kClusterLong:
    case SoftmaxRegime::kBulkStream:
      return with_host_body<masked_in_registers<T, ClusterPerRow<16>, 16 / kSize, kAlignment>, kHost>();
    default: break;
  }
  return of_long_rows<kOp, true, T, kHost>(regime);
}

}  // namespace

SoftmaxKernel masked_softmax_kernel(DType type, SoftmaxRegime regime, Alignment alignment) {
  return of_float_type(type, alignment,
                       [=]<class T, Alignment kAlignment>() { return masked_of_regime<T, kAlignment>(regime); });
}

}  // namespace cgrt::kernels
