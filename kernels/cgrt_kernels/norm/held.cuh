// The forward of rows of which a thread has few elements. All that it needs is asked for at once: a warp for each of
// 1,024 rows of 1,024 halves took 13 % longer on an H100 where it asked for a pack of columns at a time. What is not
// needed is left out, as each instruction is fetched for a row or two.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/block.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/prefetch.cuh"
#include "cgrt_kernels/common/row/singles.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/norm/forward.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {

// Of an aligned array of whole packs.
__device__ __forceinline__ void prefetch_whole(const void* array, std::uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(array), "r"(bytes));
#endif
}

// A thread's part of an array of columns, without a branch for each pack; `otherwise` where there is nothing.
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

// Of rows that are aligned (Tile), or of any (Singles).
template <NormOp kOp, class Row, class Group, bool kHasInBias, bool kHasResidual>
__global__ void __launch_bounds__(Group::kMaxThreads, (kHeldMinBlocks<Group>))
    norm_held(const __grid_constant__ NormParams p) {
  using T = typename Row::Element;
  constexpr bool kHasBias = kOp == NormOp::kLayerNorm;
  const Group group;
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const typename Row::Where place(static_cast<const T*>(nullptr), has_row ? p.columns : 0, group.thread());
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns;
  const T *const in = static_cast<const T*>(p.in) + first, *const residual = static_cast<const T*>(p.residual) + first;
  const T *const in_bias = static_cast<const T*>(p.in_bias), *const weight = static_cast<const T*>(p.weight),
                 *const bias = kHasBias ? static_cast<const T*>(p.bias) : nullptr;
  const std::uint32_t bytes = p.columns * sizeof(T);
  if (group.row() == 0 && group.thread() == 0) {
    const auto fetch = [=](const T* array) {
      if (array == nullptr) return;
      if constexpr (Row::kIsAligned) {
        prefetch_whole(array, bytes);
      } else {
        prefetch_to_l2(array, bytes);
      }
    };
    if constexpr (kHasInBias) fetch(in_bias);
    fetch(weight);
    if constexpr (kHasBias) fetch(bias);
  }
  wait_for_predecessors();
  let_dependents_start();
  Row x, added, in_biases, weights, biases;
  x.load(in, place, nullptr);
  if constexpr (kHasResidual) added.load(residual, place, nullptr);
  if constexpr (kHasInBias) in_biases.load(in_bias, place, nullptr);
  ask(weights, weight, place, 1);
  if constexpr (kHasBias) ask(biases, bias, place, 0);
  if constexpr (Row::kIsAligned) {
    if (group.row() + p.rows_ahead < p.rows && group.thread() == 0) {
      const std::uint64_t ahead = std::uint64_t{p.rows_ahead} * p.columns;
      prefetch_whole(in + ahead, bytes);
      if constexpr (kHasResidual) prefetch_whole(residual + ahead, bytes);
    }
  }
  x.stay_packed();
  if constexpr (kHasResidual) {
    added.stay_packed();
    if constexpr (kHasInBias) in_biases.stay_packed();
#pragma unroll
    for (int pack = 0; pack < Row::kPackCount; ++pack) {
      float values[Row::kSize], others[Row::kSize];
      unpack(x.packs[pack], values);
      if constexpr (kHasInBias) {
        unpack(in_biases.packs[pack], others);
        add(values, others);
      }
      unpack(added.packs[pack], others);
      add(values, others);
      pack_into(x.packs[pack], values);
    }
    if (p.sum != nullptr) x.store_as_is(static_cast<T*>(p.sum) + first, place);
    x.stay_packed();
  }
  const RowFacts facts = held_facts_of<kOp>(group, x, place, p);
  x.stay_packed(), weights.stay_packed();
  if constexpr (kHasBias) biases.stay_packed();
  x.store(static_cast<T*>(p.out) + first, place, [&](auto& values, std::uint64_t, int pack) {
    if constexpr (sizeof(values) == Row::kSize * sizeof(float)) {  // an aligned row has no single elements
      float others[Row::kSize];
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

template <NormOp kOp, class T, bool kHasInBias, bool kHasResidual>
NormKernel held_kernel(HeldRegime regime) {
  const auto kernel_of = [=]<class Row, class Group>() {
    return make_kernel<norm_held<kOp, Row, Group, kHasInBias, kHasResidual>, norm_on_host<kOp, T>,
                       KernelResources{.registers = 64, .max_threads = Group::kMaxThreads}>();
  };
  const auto of_tile = [&]<class Group, int kElements>() {
    return kernel_of.template operator()<Tile<T, kElements / kPackSize<T>, 32, Alignment::kAligned>, Group>();
  };
  constexpr bool kIsHalf = sizeof(T) == 2;
  constexpr int kMaxElements = kIsHalf ? 16 : 8;
  switch (regime) {
    case HeldRegime::kWarp:
      if constexpr (kHasInBias) return of_tile.template operator()<WarpPerRow, 8>();
      break;
    case HeldRegime::kWarpLong:
      if constexpr (kIsHalf && kHasResidual) return of_tile.template operator()<WarpPerRow, 16>();
      break;
    case HeldRegime::kBlock4: return of_tile.template operator()<BlockPerRow<4>, 8>();
    case HeldRegime::kBlock8: return of_tile.template operator()<BlockPerRow<8>, 8>();
    case HeldRegime::kBlock16: return of_tile.template operator()<BlockPerRow<16>, kMaxElements>();
    case HeldRegime::kSingles8: return kernel_of.template operator()<Singles<T, 4>, BlockPerRow<8>>();
    case HeldRegime::kSingles16: return kernel_of.template operator()<Singles<T, 4>, BlockPerRow<16>>();
    case HeldRegime::kSingles32:
      if constexpr (kIsHalf) {
        return kernel_of.template operator()<Singles<T, held_singles(kHasResidual)>, BlockPerRow<32>>();
      }
      break;
  }
  return {};  // what no plan chooses
}

}  // namespace cgrt::kernels
