// Long rows of a softmax, masked or not, in slices of groups of blocks or in chunks; and how its kernels are made.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/common/row/chunks.cuh"
#include "cgrt_kernels/common/row/host_row.cuh"
#include "cgrt_kernels/common/row/slices.cuh"
#include "cgrt_kernels/common/row/units.cuh"
#include "cgrt_kernels/softmax/kernels.h"
#include "cgrt_kernels/softmax/masked_row.cuh"

namespace cgrt::kernels {

// From 1 on to an error of 2^-22, or of 2^-22 of the result, in two instructions: a small launch waits for what code it
// has to fetch.
__device__ __forceinline__ float log_of(float x) {
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result * 0.6931471805599453f;
}

// What each element becomes, once the row is known.
template <SoftmaxOp kOp>
__device__ __forceinline__ float result_of(float value, MaxSum row, float factor) {
  // log_softmax: a large maximum would swallow the logarithm, which comes after the maximum is gone.
  return kOp == SoftmaxOp::kSoftmax ? exp_of(value - finite_or_zero(row.max)) * factor : value - row.max + factor;
}
template <SoftmaxOp kOp>
__device__ __forceinline__ float factor_of(MaxSum row) {
  return kOp == SoftmaxOp::kSoftmax ? 1 / row.sum : -log_of(row.sum);
}

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

}  // namespace cgrt::kernels
