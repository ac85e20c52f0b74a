// The forward of short rows.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/common/row/lanes.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {

// The row is normalized in place. `there`: 1 for what there is of it, 0 elsewhere.
template <NormOp kOp, int kLanes, int kCount, int kSize, int kOfUnit>
__device__ __forceinline__ void normalize(float (&values)[kCount][kSize], const float (&there)[kCount][kOfUnit],
                                          float one_of_columns, float epsilon) {
  if constexpr (kOp == NormOp::kLayerNorm) {
    const float sum = sum_of(values, [](float value) { return value; });
    const float mean = reduce_lanes<kLanes>(sum) * one_of_columns;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int j = 0; j < kSize; ++j) values[i][j] -= mean * there[i][j % kOfUnit];
    }
  }
  const float squares = sum_of(values, [](float value) { return value * value; });
  const float scale = rsqrtf(reduce_lanes<kLanes>(squares) * one_of_columns + epsilon);
#pragma unroll
  for (auto& of_unit : values) {
#pragma unroll
    for (float& value : of_unit) value *= scale;
  }
}

template <int kCount, int kSize>
__device__ __forceinline__ void multiply(float (&values)[kCount][kSize], const float (&others)[kCount][kSize]) {
  each_pair(values, others, [](float& value, float other) { value *= other; });
}
template <int kCount, int kSize>
__device__ __forceinline__ void add(float (&values)[kCount][kSize], const float (&others)[kCount][kSize]) {
  each_pair(values, others, [](float& value, float other) { value += other; });
}

// What a lane has of its rows.
template <NormOp kOp, bool kHasInBias, bool kHasResidual, class T, class Row, int kLanes, int kRows>
__device__ __forceinline__ void norm_of_lane(const NormParams& p, const LaneRows<kLanes, kRows>& rows) {
  typename Row::Where place(p.columns);
  const T* const in = static_cast<const T*>(p.in) + rows.begin();
  T* const out = static_cast<T*>(p.out) + rows.begin();
  Row x[kRows], added[kHasResidual ? kRows : 1], in_bias, weight, bias;
  float there[Row::kCount][1];
#pragma unroll
  for (int i = 0; i < Row::kCount; ++i) there[i][0] = place.has(i) ? 1.0f : 0.0f;
  rows.each([&](int i, std::uint32_t offset, bool) {
    place.forget();
    x[i].load(in + offset, place);
    if constexpr (kHasResidual) added[i].load(static_cast<const T*>(p.residual) + rows.begin() + offset, place);
  });
  if constexpr (kHasInBias) in_bias.load_columns(p.in_bias, place, 0);
  weight.load_columns(p.weight, place, 1);
  if constexpr (kOp == NormOp::kLayerNorm) bias.load_columns(p.bias, place, 0);
  rows.each([&](int i, std::uint32_t offset, bool has_row) {
    place.forget();
    typename Row::Values values, others;
    x[i].get(values);
    if constexpr (kHasInBias) {
      in_bias.get(others);
      add(values, others);
    }
    if constexpr (kHasResidual) {
      added[i].get(others);
      add(values, others);
      x[i].set(values);
      if (p.sum != nullptr && has_row) Row::store(static_cast<T*>(p.sum) + rows.begin() + offset, place, values);
      x[i].get(values);
    }
    normalize<kOp, kLanes>(values, there, p.one_of_columns, p.epsilon);
    weight.get(others);
    multiply(values, others);
    if constexpr (kOp == NormOp::kLayerNorm) {
      bias.get(others);
      add(values, others);
    }
    if (has_row) Row::store(out + offset, place, values);
  });
}

// Whether all rows of all arrays are words of two halves.
__device__ __forceinline__ bool are_words(const NormParams& p) {
  const auto beyond = [](const auto*... arrays) { return (reinterpret_cast<std::uintptr_t>(arrays) | ...) % 4; };
  return p.columns % 2 == 0 && beyond(p.out, p.in, p.weight, p.bias, p.sum, p.residual, p.in_bias) == 0;
}

template <NormOp kOp, bool kHasInBias, bool kHasResidual, class T, int kLanes, int kElements, int kRows,
          Alignment kAlignment>
__global__ void __launch_bounds__(kLaneThreads, 4) norm_by_lanes(NormParams p) {
  const LaneRows<kLanes, kRows> rows(p.rows, p.columns);
  wait_for_predecessors();
  let_dependents_start();
  if (rows.count == 0) return;
  const auto take = [&]<int kOfUnit>() {
    norm_of_lane<kOp, kHasInBias, kHasResidual, T, LaneRow<T, kLanes, kElements, kOfUnit>>(p, rows);
  };
  if constexpr (kAlignment == Alignment::kAligned) {
    take.template operator()<kPackSize<T>>();
  } else if constexpr (sizeof(T) == 2) {
    if (are_words(p)) {
      take.template operator()<2>();
    } else {
      take.template operator()<1>();
    }
  } else {
    take.template operator()<1>();
  }
}

// Of rows of so many columns.
template <NormOp kOp, bool kHasInBias, bool kHasResidual, class T, Alignment kAlignment>
NormKernel lanes_kernel(std::uint32_t columns) {
  const auto kernel_of = [=]<int kLanes, int kElements>() {
    constexpr int kRows = norm_lane_rows(sizeof(T), kHasResidual ? 2 : 1, kAlignment, kElements);
    return make_kernel<norm_by_lanes<kOp, kHasInBias, kHasResidual, T, kLanes, kElements, kRows, kAlignment>,
                       norm_on_host<kOp, T>, KernelResources{.registers = 96, .max_threads = kLaneThreads}>();
  };
  const NormLanes of = norm_lanes(columns, kAlignment);
  if constexpr (kAlignment == Alignment::kAligned) {
    if (of.lanes == 4) return kernel_of.template operator()<4, 16>();
    if (of.lanes == 8) return kernel_of.template operator()<8, 16>();
    if constexpr (!kHasInBias) return kernel_of.template operator()<16, 16>();
    return {};  // what no plan chooses
  } else {
    if (of.elements == 4) return kernel_of.template operator()<16, 4>();
    return of.lanes == 16 ? kernel_of.template operator()<16, 8>() : kernel_of.template operator()<32, 8>();
  }
}

}  // namespace cgrt::kernels
