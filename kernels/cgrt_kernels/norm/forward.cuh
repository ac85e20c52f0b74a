// What a row's forward needs to know of x, and what it makes of it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/common/row/units.cuh"
#include "cgrt_kernels/norm/columns.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {

// A row becomes (x - mean) * scale.
struct RowFacts {
  float mean, scale;
};

// What a row's facts are merged from.
template <NormOp kOp>
using RowPart = std::conditional_t<kOp == NormOp::kRmsNorm, float, Moments>;

// Of what this warp has of a run, in all lanes; rms_norm: of what this thread has. kLanes lanes have all `count`
// elements, where they share a warp with others.
template <NormOp kOp, int kLanes, bool kIsWarp, class Row>
__device__ __forceinline__ RowPart<kOp> part_of(Row& x, const typename Row::Where& place, float count) {
  if constexpr (kOp == NormOp::kRmsNorm) {
    return x.sum(place, [](float value) { return value * value; });
  } else {
    const float sum = x.sum(place, [](float value) { return value; });
    if constexpr (!kIsWarp) count = static_cast<float>(place.of_warp());
    const float mean = __fdividef(reduce_lanes<kLanes>(sum), fmaxf(count, 1.0f));
    x.stay_packed();
    const float squares = x.sum(place, [=](float value) { return (value - mean) * (value - mean); });
    return {count, mean, reduce_lanes<kLanes>(squares)};
  }
}
// Of what this thread has of a run in units, read once: differences from its first value, so that sums are not large
// beside what is wanted.
template <NormOp kOp, class Row>
__device__ __forceinline__ RowPart<kOp> part_of_units(const Row& x, const typename Row::Where& place) {
  if constexpr (kOp == NormOp::kRmsNorm) {
    return x.sum(place, [](float value) { return value * value; });
  } else {
    FirstValue first;
    float sums[2] = {}, squares[2] = {};
    x.each(place, [&]<int kCount>(const float(&values)[kCount], const auto&) {
      first.see(values);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const float away = values[i] - first.value;
        sums[i % 2] += away;
        squares[i % 2] = fmaf(away, away, squares[i % 2]);
      }
    });
    const float sum = sums[0] + sums[1], away = __fdividef(sum, fmaxf(first.count, 1.0f));
    return {first.count, first.value + away, fmaxf(squares[0] + squares[1] - sum * away, 0.0f)};
  }
}
template <class Group>
__device__ __forceinline__ float gather(const Group& group, float part, float) {
  return group.reduce(part);
}
template <class Group>
__device__ __forceinline__ Moments gather(const Group& group, Moments part, float count) {
  return group.join(part, count);
}
__device__ __forceinline__ RowFacts facts_from(float squares, const NormParams& p) {
  return {0.0f, rsqrtf(squares * p.one_of_columns + p.epsilon)};
}
__device__ __forceinline__ RowFacts facts_from(Moments row, const NormParams& p) {
  return {row.mean, rsqrtf(row.squares * p.one_of_columns + p.epsilon)};
}

template <NormOp kOp, class Group, class Row>
__device__ __forceinline__ RowFacts facts_of(const Group& group, Row& x, const typename Row::Where& place,
                                             const NormParams& p) {
  const auto all = static_cast<float>(p.columns);
  return facts_from(gather(group, part_of<kOp, Group::kLanes, Group::kIsWarp>(x, place, all), all), p);
}

template <NormOp kOp, int kCount>
__device__ __forceinline__ void normalize(float (&values)[kCount], const RowFacts& facts) {
#pragma unroll
  for (float& value : values) value = (kOp == NormOp::kLayerNorm ? value - facts.mean : value) * facts.scale;
}
template <int kCount>
__device__ __forceinline__ void multiply(float (&values)[kCount], const float (&others)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] *= others[i];
}
template <int kCount>
__device__ __forceinline__ void add(float (&values)[kCount], const float (&others)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] += others[i];
}
// Values of a run from `offset` on, with weight and bias as far as they are there.
template <Alignment kAlignment, class T, int kCount>
__device__ __forceinline__ void apply_columns(float (&values)[kCount], std::uint64_t offset, const Columns<T>& weight,
                                              const Columns<T>& bias) {
  float others[kCount];
  if (weight.is_there()) {
    load_values<kAlignment>(others, weight.begin, offset, weight.end);
    multiply(values, others);
  }
  if (bias.is_there()) {
    load_values<kAlignment>(others, bias.begin, offset, bias.end);
    add(values, others);
  }
}

// The same with what a thread holds of them.
template <bool kHasBias, int kCount, class Weight, class Bias>
__device__ __forceinline__ void apply_held(float (&values)[kCount], int index, const Weight& weight, const Bias& bias) {
  float others[kCount];
  weight.get(index, others);
  multiply(values, others);
  if constexpr (kHasBias) {
    bias.get(index, others);
    add(values, others);
  }
}

// Columns as registers have them; `otherwise`: of an array that is not there.
template <class Row, class T>
__device__ __forceinline__ void hold(Row& row, const Columns<T>& columns, const typename Row::Where& place,
                                     float otherwise) {
  if (columns.is_there()) {
    row.load(columns.begin, place, columns.end);
  } else {
    row.fill(otherwise);
  }
}

}  // namespace cgrt::kernels
