#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/bulk_stream.cuh"
#include "cgrt_kernels/common/row/chunks.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/host_row.cuh"
#include "cgrt_kernels/common/row/lanes.cuh"
#include "cgrt_kernels/common/row/prefetch.cuh"
#include "cgrt_kernels/common/row/slices.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/softmax/kernels.h"
#include "cgrt_kernels/softmax/masked_row.cuh"
#include "cgrt_kernels/softmax/reference.h"

namespace cgrt::kernels {
namespace {

// What each element becomes, once the row is known.
template <SoftmaxOp kOp>
__device__ __forceinline__ float result_of(float value, MaxSum row, float factor) {
  // log_softmax: a large maximum would swallow the logarithm, which comes after the maximum is gone.
  return kOp == SoftmaxOp::kSoftmax ? exp_of(value - finite_or_zero(row.max)) * factor : value - row.max + factor;
}
template <SoftmaxOp kOp>
__device__ __forceinline__ float factor_of(MaxSum row) {
  return kOp == SoftmaxOp::kSoftmax ? 1 / row.sum : -logf(row.sum);
}

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
    const float factor = is_nothing ? 0.0f * row.sum : exp_of(base - finite_or_zero(row.max)) / row.sum;
    x.store(out, place, [=](auto& values, std::uint64_t, int) {
#pragma unroll
      for (float& value : values) value *= factor;
    });
  } else {
    const float log_sum = logf(row.sum), shift = kOp == SoftmaxOp::kSoftmax ? finite_or_zero(row.max) : row.max;
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
  x.load(in + first, place, in + std::uint64_t{p.rows} * p.columns);
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

// A warp takes a row.
template <SoftmaxOp kOp, class T, int kElements>
__global__ void __launch_bounds__(32) softmax_of_few_rows(SoftmaxParams p) {
  using Row = LaneRow<T, 32, kElements, Alignment::kUnaligned>;
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

// Rows in slices of groups of blocks, or in chunks.
template <SoftmaxOp kOp, bool kIsMasked, class Rows>
__global__ void __launch_bounds__(Rows::kThreads, Rows::kMinBlocks) softmax_of_long_rows(SoftmaxParams p) {
  extern __shared__ __align__(128) uint4 landing[];
  using T = typename Rows::Element;
  using Place = typename Rows::Place;
  using Work = typename Rows::Work;
  using Array = typename Rows::Array;
  Rows rows(p.slices, p.rows, p.columns, p.workspace, landing, {p.in}, p.out);
  // visit(values, at) of elements as they enter the softmax.
  const auto each = [&](const Place& place, const Work& work, const Array& in, auto visit) {
    const UnitRow<T, Place> x{in};
    if constexpr (kIsMasked) {
      const MaskedRow<T> masked(p, work.row);
      const UnitArray<const T, Place> mask(masked.mask + work.begin, place);
      x.each(place, [&]<int kCount>(float(&values)[kCount], const auto& at) {
        float added[kCount] = {};
        if (masked.mask != nullptr) mask.load(at, added);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          const bool is_seen = work.begin + place.of(at, i) < masked.seen;
          values[i] = is_seen ? values[i] * p.scale + added[i] : -INFINITY;
        }
        visit(values, at);
      });
    } else {
      x.each(place, visit);
    }
  };
  rows.run(
      [&](const Place& place, const Work& work, const Array& in) {
        MaxSum mine = none(MaxSum{});
        each(place, work, in, [&]<int kCount>(const float(&values)[kCount], const auto&) {
          float max = mine.max;
#pragma unroll
          for (const float value : values) max = fmaxf(max, value);
          const float base = finite_or_zero(max);
          float sums[2] = {mine.sum * exp_of(mine.max - base), 0};
#pragma unroll
          for (int i = 0; i < kCount; ++i) sums[i % 2] += exp_of(values[i] - base);
          mine = {max, sums[0] + sums[1]};
        });
        return mine;
      },
      [&](const Place& place, const Work& work, const MaxSum& all, const Array& in) {
        const UnitOutput<T, Place> out(static_cast<T*>(p.out) + work.first, place);
        // A masked row may see nothing, or a NaN that the rest of it must not become.
        const float factor = kIsMasked ? (all.sum == 0 ? 0 : 1 / all.sum) : factor_of<kOp>(all);
        const std::uint32_t seen = kIsMasked ? MaskedRow<T>(p, work.row).seen : p.columns;
        each(place, work, in, [&]<int kCount>(float(&values)[kCount], const auto& at) {
#pragma unroll
          for (int i = 0; i < kCount; ++i) {
            const bool is_seen = !kIsMasked || work.begin + place.of(at, i) < seen;
            values[i] = is_seen ? result_of<kOp>(values[i], all, factor) : 0.0f;
          }
          out.store(at, values);
        });
      });
}

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

template <SoftmaxOp kOp, class T>
void softmax_on_host(HostGrid, SoftmaxParams p) {
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    std::vector<double> values = read_row<T>(p.in, row, p.columns);
    softmax_reference(kOp, values);
    write_row<T>(p.out, row, values);
  }
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

template <auto kKernel, auto kHost, std::uint32_t kThreads = kMaxThreads>
SoftmaxKernel with_host_body() {
  return make_kernel<kKernel, kHost, KernelResources{.registers = 64, .max_threads = kThreads}>();
}

template <SoftmaxOp kOp, bool kIsMasked, auto kHost, class Rows>
SoftmaxKernel of_long_rows() {
  constexpr auto kOnHost = Rows::kWrites ? kHost : nothing_on_host<SoftmaxParams>;
  return with_host_body<softmax_of_long_rows<kOp, kIsMasked, Rows>, kOnHost, Rows::kThreads>();
}
template <SoftmaxOp kOp, bool kIsMasked, class T, auto kHost>
SoftmaxKernel of_long_rows(SoftmaxRegime regime) {
  if (regime == SoftmaxRegime::kSlices) return of_long_rows<kOp, kIsMasked, kHost, SlicedRows<T, MaxSum, 1>>();
  return regime == SoftmaxRegime::kFindInChunks
             ? of_long_rows<kOp, kIsMasked, kHost, ChunkedRows<T, MaxSum, 1, ChunkPass::kFind>>()
             : of_long_rows<kOp, kIsMasked, kHost, ChunkedRows<T, MaxSum, 1, ChunkPass::kWrite>>();
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
    case SoftmaxRegime::kClusterShort:
      return with_host_body<softmax_in_registers<kOp, T, ClusterPerRow<16>, 8 / kSize, kAlignment>, kHost>();
    case SoftmaxRegime::kCluster:
      return with_host_body<softmax_in_registers<kOp, T, ClusterPerRow<16>, kPacks, kAlignment>, kHost>();
    case SoftmaxRegime::kClusterLong:
      if constexpr (kIsAligned && sizeof(T) == 2) {
        return with_host_body<softmax_in_registers<kOp, T, ClusterPerRow<16>, 64 / kSize, kAlignment>, kHost>();
      }
      break;
    case SoftmaxRegime::kBulkStream: return with_host_body<softmax_bulk_streamed<kOp, T, kAlignment>, kHost>();
    default: break;
  }
  return of_long_rows<kOp, false, T, kHost>(regime);
}

template <class T, Alignment kAlignment>
SoftmaxKernel masked_of_regime(SoftmaxRegime regime) {
  constexpr auto kHost = masked_on_host<T>;
  constexpr int kSize = kPackSize<T>;
  constexpr SoftmaxOp kOp = SoftmaxOp::kSoftmax;
  switch (regime) {
    case SoftmaxRegime::kFew4:
    case SoftmaxRegime::kFew8:
    case SoftmaxRegime::kLanes2:
    case SoftmaxRegime::kLanes4:
    case SoftmaxRegime::kLanes8:
    case SoftmaxRegime::kLanes16:
      return with_host_body<masked_in_registers<T, WarpPerRow, 8 / kSize, kAlignment>, kHost>();
    case SoftmaxRegime::kWarp:
      return with_host_body<
          masked_in_registers<T, WarpPerRow, kAlignment == Alignment::kAligned ? 32 / kSize : 4, kAlignment>, kHost>();
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

SoftmaxKernel masked_softmax_kernel(DType type, SoftmaxRegime regime, Alignment alignment) {
  return of_float_type(type, alignment,
                       [=]<class T, Alignment kAlignment>() { return masked_of_regime<T, kAlignment>(regime); });
}

}  // namespace cgrt::kernels
