// The arithmetic of a norm's backward on a row that is in registers.
#pragma once

#include <type_traits>

#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/norm/columns.cuh"
#include "cgrt_kernels/norm/comoments.cuh"
#include "cgrt_kernels/norm/norm_desc.h"

namespace cgrt::kernels {

// Weights of a run, in registers or read where they are each time. Ones when there are none.
template <class Row, bool kIsHeld, Alignment kAlignment>
class RowWeights {
 public:
  using T = typename Row::Element;
  __device__ __forceinline__ RowWeights(const Columns<T>& from, const typename Row::Where& place) : from_(from) {
    if constexpr (kIsHeld) {
      if (from.is_there()) {
        held_.load(from.begin, place, from.end);
      } else {
        held_.fill(1);
      }
    }
  }
  // Of the pack, or the single element, at `offset` in the run.
  template <int kCount>
  __device__ __forceinline__ void get(int pack, std::uint64_t offset, float (&values)[kCount]) const {
    if constexpr (kIsHeld) {
      held_.get(pack, values);
    } else if (from_.is_there()) {
      load_values<kAlignment>(values, from_.begin, offset, from_.end);
    } else {
#pragma unroll
      for (float& value : values) value = 1;
    }
  }
  __device__ __forceinline__ void stay_packed() {
    if constexpr (kIsHeld) held_.stay_packed();
  }

 private:
  const Columns<T> from_;
  Row held_;
};

// visit(x, dy, weight) of each pack and of the single element.
template <class Row, class Weights, class Visit>
__device__ __forceinline__ void each_gradient(const Row& x, const Row& dy, const Weights& weights,
                                              const typename Row::Where& place, Visit visit) {
  x.each(place, [&](const auto& values, const auto& pack) {
    constexpr int kCount = sizeof(values) / sizeof(float);
    float gradients[kCount], weight[kCount];
    dy.get(pack, gradients);
    weights.get(pack, place.of(pack), weight);
    visit(values, gradients, weight);
  });
}

// What a row's facts are merged from.
template <NormOp kOp>
using GradientPart = std::conditional_t<kOp == NormOp::kLayerNorm, Comoments, Products>;

// Of what this warp has of a run, in all lanes; rms_norm: of what this thread has. kLanes lanes have all `count`
// elements, where they share a warp with others.
template <NormOp kOp, int kLanes, bool kIsWarp, class Row, class Weights>
__device__ __forceinline__ GradientPart<kOp> part_of(Row& x, Row& dy, const Weights& weights,
                                                     const typename Row::Where& place, float count) {
  float mean = 0;
  if constexpr (kOp == NormOp::kLayerNorm) {
    const float sum = x.sum(place, [](float value) { return value; });
    if constexpr (!kIsWarp) count = static_cast<float>(place.of_warp());
    mean = __fdividef(reduce_lanes<kLanes>(sum), fmaxf(count, 1.0f));
    x.stay_packed();
  }
  float squares = 0, sum = 0, product = 0;
  each_gradient(x, dy, weights, place, [&](const auto& values, const auto& gradients, const auto& weight) {
    float of_pack = 0;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(values) / sizeof(float)); ++i) {
      const float centered = values[i] - mean, g = gradients[i] * weight[i];
      of_pack += centered * centered;
      sum += g;
      product += g * centered;
    }
    squares += of_pack;
  });
  if constexpr (kOp == NormOp::kLayerNorm) {
    const auto all_lanes = [](float value) { return reduce_lanes<kLanes>(value); };
    return {count, mean, all_lanes(squares), all_lanes(sum), all_lanes(product)};
  } else {
    return {squares, product};
  }
}
// Of what this thread has of a run in units, read once: x as differences from its first value, so that sums are not
// large beside what is wanted.
template <NormOp kOp, class Row, class Weights>
__device__ __forceinline__ GradientPart<kOp> part_of_units(const Row& x, const Row& dy, const Weights& weights,
                                                           const typename Row::Where& place) {
  FirstValue first;
  float away_sum = 0, squares = 0, sum = 0, product = 0;
  each_gradient(x, dy, weights, place, [&](const auto& values, const auto& gradients, const auto& weight) {
    if constexpr (kOp == NormOp::kLayerNorm) first.see(values);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(values) / sizeof(float)); ++i) {
      const float away = values[i] - first.value, g = gradients[i] * weight[i];
      away_sum += away;
      squares = fmaf(away, away, squares);
      sum += g;
      product = fmaf(g, away, product);
    }
  });
  if constexpr (kOp == NormOp::kLayerNorm) {
    const float away = __fdividef(away_sum, fmaxf(first.count, 1.0f));
    return {first.count, first.value + away, fmaxf(squares - away_sum * away, 0.0f), sum, product - sum * away};
  } else {
    return {squares, product};
  }
}
template <class Group>
__device__ __forceinline__ Products gather(const Group& group, Products part, float) {
  return group.reduce(part);
}
template <class Group>
__device__ __forceinline__ Comoments gather(const Group& group, Comoments part, float count) {
  return group.join(part, count);
}

template <NormOp kOp, class Group, class Row, class Weights>
__device__ __forceinline__ GradientFacts facts_of(const Group& group, Row& x, Row& dy, const Weights& weights,
                                                  const typename Row::Where& place, float epsilon,
                                                  std::uint32_t columns) {
  const auto all = static_cast<float>(columns);
  return gradient_facts(gather(group, part_of<kOp, Group::kLanes, Group::kIsWarp>(x, dy, weights, place, all), all),
                        all, epsilon);
}

// dx of one value; `normalized` is what the value became in the forward.
__device__ __forceinline__ float gradient_of(const GradientFacts& facts, float value, float dy, float weight,
                                             float& normalized) {
  const float centered = value - facts.mean;
  normalized = centered * facts.scale;
  return facts.scale * (dy * weight - facts.sum - centered * facts.product);
}

}  // namespace cgrt::kernels
