#include "cgrt_kernels/bias_norm/kernels.h"

#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/block.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/host_row.cuh"
#include "cgrt_kernels/common/row/prefetch.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/norm/columns.cuh"
#include "cgrt_kernels/norm/forward.cuh"
#include "cgrt_kernels/norm/reference.h"

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
                           : kPacks > 4 || kAlignment == Alignment::kUnaligned ? 1
                                                                               : 2;

// Each group of threads takes a row, read once: it is in their registers. Of few elements weight and bias are asked for
// together with the row.
template <NormOp kOp, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads, (kMinBlocks<Group, kPacks, kAlignment>))
    bias_norm(const __grid_constant__ BiasNormParams params) {
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  constexpr bool kIsHeld = Row::kIsAligned && kPacks * Row::kSize <= 8;
  constexpr bool kHasBias = kOp == NormOp::kLayerNorm;
  const NormParams& p = params.norm;
  Group group;
  // Lanes without a row stay with the others of their warp.
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns;
  const T *const in = static_cast<const T*>(p.in), *const residual = static_cast<const T*>(p.residual);
  T* const out = static_cast<T*>(p.out) + first;
  const typename Row::Where place(out, has_row ? run.count : 0, group.thread());
  const Columns<T> in_bias(params.in_bias, run.begin, p.columns), weight(p.weight, run.begin, p.columns),
      bias(kHasBias ? p.bias : nullptr, run.begin, p.columns);
  prefetch_once(params.in_bias, p.columns * sizeof(T));
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

// Of an aligned array of whole packs.
__device__ __forceinline__ void prefetch_whole(const void* array, std::uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(array), "r"(bytes));
#endif
}

// A thread's packs of an aligned array of columns, without a branch for each; `otherwise` where there is nothing.
template <class Row>
__device__ __forceinline__ void ask(Row& row, const typename Row::Element* array, const typename Row::Where& place,
                                    float otherwise) {
  float values[Row::kSize];
#pragma unroll
  for (int i = 0; i < Row::kSize; ++i) values[i] = otherwise;
#pragma unroll
  for (int pack = 0; pack < Row::kPackCount; ++pack) {
    pack_into(row.packs[pack], values);
    if (array != nullptr && place.has(pack)) {
      row.packs[pack] = *reinterpret_cast<const typename Row::Pack*>(array + place.of(pack));
    }
  }
}

// Of few values, in few steps; they are overwritten.
template <int kCount>
__device__ __forceinline__ float sum_of(float (&values)[kCount]) {
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) values[i] += values[i + half];
  }
  return values[0];
}
// The same of what term(value) is of each value that a thread has.
template <class Row, class Term>
__device__ __forceinline__ float sum_of(const Row& x, const typename Row::Where& place, Term term) {
  float sum = 0;
#pragma unroll
  for (int pack = 0; pack < Row::kPackCount; ++pack) {
    float values[Row::kSize];
    unpack(x.packs[pack], values);
#pragma unroll
    for (int i = 0; i < Row::kSize; ++i) values[i] = term(values[i]);
    const float of_pack = sum_of(values);
    sum += place.has(pack) ? of_pack : 0.0f;
  }
  return sum;
}
// As facts_of, without a branch for each pack.
template <NormOp kOp, class Group, class Row>
__device__ __forceinline__ RowFacts held_facts_of(const Group& group, Row& x, const typename Row::Where& place,
                                                  const NormParams& p) {
  const auto all = static_cast<float>(p.columns);
  if constexpr (kOp == NormOp::kRmsNorm) {
    return facts_from(group.reduce(sum_of(x, place, [](float value) { return value * value; })), p);
  } else {
    const float count = Group::kIsWarp ? all : static_cast<float>(place.of_warp());
    const float sum = reduce_lanes(sum_of(x, place, [](float value) { return value; }));
    const float mean = __fdividef(sum, fmaxf(count, 1.0f));
    x.stay_packed();
    const float squares = sum_of(x, place, [=](float value) { return (value - mean) * (value - mean); });
    return facts_from(group.join(Moments{count, mean, reduce_lanes(squares)}, all), p);
  }
}

// 64 registers for a thread.
template <class Group>
constexpr int kHeldMinBlocks = 1024 / Group::kMaxThreads;

// As above, of rows that are aligned. All that a thread needs is asked for at once: a warp for each of 1,024 rows of
// 1,024 halves took 13 % longer on an H100 where it asked for a pack of columns at a time. What is not needed is left
// out, as each instruction is fetched for a row or two.
template <NormOp kOp, class T, class Group, int kPacks>
__global__ void __launch_bounds__(Group::kMaxThreads, (kHeldMinBlocks<Group>))
    bias_norm_held(const __grid_constant__ BiasNormParams params) {
  using Row = Tile<T, kPacks, Group::kLanes, Alignment::kAligned>;
  constexpr bool kHasBias = kOp == NormOp::kLayerNorm;
  const NormParams& p = params.norm;
  const Group group;
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const typename Row::Where place(static_cast<const T*>(nullptr), has_row ? p.columns : 0, group.thread());
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns;
  const T *const in = static_cast<const T*>(p.in) + first, *const residual = static_cast<const T*>(p.residual) + first;
  const T *const in_bias = static_cast<const T*>(params.in_bias), *const weight = static_cast<const T*>(p.weight),
                 *const bias = kHasBias ? static_cast<const T*>(p.bias) : nullptr;
  const std::uint32_t bytes = p.columns * sizeof(T);
  if (group.row() == 0 && group.thread() == 0) {
    prefetch_whole(in_bias, bytes);
    if (weight != nullptr) prefetch_whole(weight, bytes);
    if (bias != nullptr) prefetch_whole(bias, bytes);
  }
  wait_for_predecessors();
  let_dependents_start();
  Row x, added, in_biases, weights, biases;
  x.load(in, place, nullptr);
  added.load(residual, place, nullptr);
  in_biases.load(in_bias, place, nullptr);
  ask(weights, weight, place, 1);
  if constexpr (kHasBias) ask(biases, bias, place, 0);
  if (group.row() + p.rows_ahead < p.rows && group.thread() == 0) {
    const std::uint64_t ahead = std::uint64_t{p.rows_ahead} * p.columns;
    prefetch_whole(in + ahead, bytes);
    prefetch_whole(residual + ahead, bytes);
  }
  x.stay_packed(), added.stay_packed(), in_biases.stay_packed();
#pragma unroll
  for (int pack = 0; pack < kPacks; ++pack) {
    float values[Row::kSize], others[Row::kSize];
    unpack(x.packs[pack], values);
    unpack(in_biases.packs[pack], others);
    add(values, others);
    unpack(added.packs[pack], others);
    add(values, others);
    pack_into(x.packs[pack], values);
  }
  if (p.sum != nullptr) x.store_as_is(static_cast<T*>(p.sum) + first, place);
  x.stay_packed();
  const RowFacts facts = held_facts_of<kOp>(group, x, place, p);
  x.stay_packed(), weights.stay_packed();
  if constexpr (kHasBias) biases.stay_packed();
  x.store(static_cast<T*>(p.out) + first, place, [&](auto& values, std::uint64_t, int pack) {
    constexpr int kCount = sizeof(values) / sizeof(float);
    if constexpr (kCount > 1) {
      float others[kCount];
      normalize<kOp>(values, facts);
      unpack(weights.packs[pack], others);
      multiply(values, others);
      if constexpr (kHasBias) {
        unpack(biases.packs[pack], others);
        add(values, others);
      }
    }
  });
}

template <NormOp kOp, class T>
void bias_norm_on_host(HostGrid, BiasNormParams params) {
  const NormParams& p = params.norm;
  const std::vector<double> in_biases = read_row<T>(params.in_bias, 0, p.columns);
  const std::vector<double> weights = read_row<T>(p.weight, 0, p.columns), biases = read_row<T>(p.bias, 0, p.columns);
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    std::vector<double> values = read_row<T>(p.in, row, p.columns);
    const std::vector<double> added = read_row<T>(p.residual, row, p.columns);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto sum = static_cast<float>(values[i] + in_biases[i] + added[i]);
      values[i] = static_cast<double>(to_float(from_float<T>(sum)));
    }
    if (p.sum != nullptr) write_row<T>(p.sum, row, values);
    norm_reference(kOp, values, weights.empty() ? nullptr : weights.data(), biases.empty() ? nullptr : biases.data(),
                   static_cast<double>(p.epsilon));
    write_row<T>(p.out, row, values);
  }
}

template <NormOp kOp, class T, Alignment kAlignment, class Group, int kPacks>
Kernel<BiasNormParams> of_group() {
  return make_kernel<bias_norm<kOp, T, Group, kPacks, kAlignment>, bias_norm_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kMaxThreads}>();
}

template <NormOp kOp, class T, class Group, int kElements>
Kernel<BiasNormParams> held() {
  return make_kernel<bias_norm_held<kOp, T, Group, kElements / kPackSize<T>>, bias_norm_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = Group::kMaxThreads}>();
}

template <NormOp kOp, class T>
Kernel<BiasNormParams> of_aligned(BiasNormRegime regime) {
  constexpr Alignment kAligned = Alignment::kAligned;
  constexpr int kSize = kPackSize<T>;
  constexpr bool kIsHalf = kSize == 8;
  switch (regime) {
    case BiasNormRegime::kWarpShort: return held<kOp, T, WarpPerRow, 8>();
    case BiasNormRegime::kBlockShort: return held<kOp, T, BlockPerRow<kShortBlockThreads / 32>, 8>();
    case BiasNormRegime::kBlockMiddle: return held<kOp, T, BlockPerRow<kMiddleBlockThreads / 32>, 8>();
    case BiasNormRegime::kBlock:
      if constexpr (kIsHalf) return held<kOp, T, BlockPerRow<kMaxThreads / 32>, 16>();
      break;
    case BiasNormRegime::kClusterShort: return of_group<kOp, T, kAligned, ClusterPerRow<16>, 8 / kSize>();
    case BiasNormRegime::kClusterMiddle:
      if constexpr (!kIsHalf) return of_group<kOp, T, kAligned, ClusterPerRow<16>, 16 / kSize>();
      break;
    case BiasNormRegime::kWarp:
    case BiasNormRegime::kCluster: break;
  }
  return of_group<kOp, T, kAligned, ClusterPerRow<16>, 32 / kSize>();
}

template <NormOp kOp, class T, Alignment kAlignment>
Kernel<BiasNormParams> of_regime(BiasNormRegime regime) {
  if constexpr (kAlignment == Alignment::kAligned) return of_aligned<kOp, T>(regime);
  if (regime == BiasNormRegime::kWarp) return of_group<kOp, T, Alignment::kUnaligned, WarpPerRow, 4>();
  return of_group<kOp, T, Alignment::kUnaligned, ClusterPerRow<16>, 4>();
}

}  // namespace

Kernel<BiasNormParams> bias_norm_kernel(NormOp op, DType type, BiasNormRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? of_regime<NormOp::kLayerNorm, T, kAlignment>(regime)
                                    : of_regime<NormOp::kRmsNorm, T, kAlignment>(regime);
  });
}

}  // namespace cgrt::kernels
