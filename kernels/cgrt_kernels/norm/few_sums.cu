// dx and the sums of columns of few rows. A first kernel leaves what it has found about each row, a second one writes:
// two launches of little code, with work for more multiprocessors than there are rows.
#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/chunks.cuh"
#include "cgrt_kernels/common/row/singles.cuh"
#include "cgrt_kernels/norm/backward.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {
namespace {

// A block takes a row.
template <NormOp kOp, class T, int kElements, int kMaxWarps>
__global__ void __launch_bounds__(32 * kMaxWarps) norm_backward_find_in_rows(NormBackwardParams p) {
  using Row = Singles<T, kElements>;
  using Part = GradientPart<kOp>;
  const typename Row::Where place(nullptr, p.columns, threadIdx.x);
  const std::uint64_t first = std::uint64_t{blockIdx.x} * p.columns;
  wait_for_predecessors();
  let_dependents_start();
  Row of_x, of_dy, of_weight;
  of_x.load(static_cast<const T*>(p.x) + first, place, nullptr);
  of_dy.load(static_cast<const T*>(p.dy) + first, place, nullptr);
  if (p.weight != nullptr) of_weight.load(static_cast<const T*>(p.weight), place, nullptr);
  float x[kElements], g[kElements];
#pragma unroll
  for (int i = 0; i < kElements; ++i) {
    x[i] = to_float(of_x.packs[i]);
    g[i] = to_float(of_dy.packs[i]) * (p.weight != nullptr ? to_float(of_weight.packs[i]) : 1.0f);
  }
  float squares = 0, product = 0;
  Part part;
  if constexpr (kOp == NormOp::kLayerNorm) {
    const auto count = static_cast<float>(place.of_warp());
    float sum_of_x = 0, sum = 0;
#pragma unroll
    for (int i = 0; i < kElements; ++i) sum_of_x += x[i], sum += g[i];
    const float mean = __fdividef(reduce_lanes(sum_of_x), fmaxf(count, 1.0f));
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const float away = place.has(i) ? x[i] - mean : 0.0f;
      squares = fmaf(away, away, squares), product = fmaf(g[i], away, product);
    }
    part = {count, mean, reduce_lanes(squares), reduce_lanes(sum), reduce_lanes(product)};
  } else {
#pragma unroll
    for (int i = 0; i < kElements; ++i) squares = fmaf(x[i], x[i], squares), product = fmaf(g[i], x[i], product);
    part = reduce_lanes(Part{squares, product});
  }
  __shared__ Part of_warps[kMaxWarps];
  const std::uint32_t lane = threadIdx.x % 32;
  if (lane == 0) of_warps[threadIdx.x / 32] = part;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  part = join_lanes(lane < blockDim.x / 32 ? of_warps[lane] : none(Part{}));
  if (lane == 0) chunk_parts<Part>(p.workspace)[blockIdx.x] = part;
}

// Of a warp in flight. On other architectures 64 registers for each of 1,024 threads do not suffice for more.
#if __CUDA_ARCH__ == 900
constexpr int kRowsInFlight = 4;
#else
constexpr int kRowsInFlight = 2;
#endif

// A block has 32 columns of all rows, which its warps take in turn.
template <NormOp kOp, class T>
__global__ void __launch_bounds__(32 * kMaxSumWarps) norm_backward_columns_of_few_rows(NormBackwardParams p) {
  constexpr int kRows = kRowsInFlight;
  constexpr bool kIsLayer = kOp == NormOp::kLayerNorm;
  const std::uint32_t lane = threadIdx.x, warp = threadIdx.y, step = blockDim.y, column = blockIdx.x * 32 + lane;
  const bool is_there = column < p.columns;
  T x[kRows], dy[kRows];
  const auto load = [&](std::uint32_t row, int r) {
    if (row >= p.rows || !is_there) return;
    const std::uint64_t at = std::uint64_t{row} * p.columns + column;
    x[r] = static_cast<const T*>(p.x)[at], dy[r] = static_cast<const T*>(p.dy)[at];
  };
#pragma unroll
  for (int r = 0; r < kRows; ++r) load(warp + r * step, r);
  const float weight = p.weight != nullptr && is_there ? to_float(static_cast<const T*>(p.weight)[column]) : 1.0f;
  wait_for_predecessors();
  let_dependents_start();
  using Part = GradientPart<kOp>;
  const Part* const parts = chunk_parts<const Part>(p.workspace);
  const std::uint32_t chunks = p.slices.chunks;
  float of_weight = 0, of_bias = 0;
#pragma unroll 1
  for (std::uint32_t first = warp; first < p.rows; first += kRows * step) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::uint32_t row = first + r * step;
      if (row >= p.rows) break;
      Part all = none(Part{});
      if (chunks == 1) {
        all = parts[row];
      } else {
        for (std::uint32_t i = lane; i < chunks; i += 32) all = merge(all, parts[std::uint64_t{row} * chunks + i]);
        all = join_lanes(all);
      }
      const GradientFacts facts = gradient_facts(all, static_cast<float>(p.columns), p.epsilon);
      if (is_there) {
        const float gradient = to_float(dy[r]);
        float normalized;
        const float value = gradient_of(facts, to_float(x[r]), gradient, weight, normalized);
        of_weight = fmaf(gradient, normalized, of_weight);
        of_bias += gradient;
        static_cast<T*>(p.dx)[std::uint64_t{row} * p.columns + column] = from_float<T>(value);
      }
      load(row + kRows * step, r);
    }
  }
  __shared__ float sums[kIsLayer ? 2 : 1][kMaxSumWarps][32];
  sums[0][warp][lane] = of_weight;
  if constexpr (kIsLayer) sums[1][warp][lane] = of_bias;
  __syncthreads();
  for (std::uint32_t plane = warp; plane < (kIsLayer ? 2 : 1); plane += step) {
    T* const out = static_cast<T*>(plane == 0 ? p.dweight : p.dbias);
    if (out == nullptr || !is_there) continue;
    float sum = 0;
#pragma unroll 8
    for (std::uint32_t i = 0; i < step; ++i) sum += sums[plane][i][lane];
    out[column] = from_float<T>(sum);
  }
}

template <NormOp kOp, class T, int kElements, int kMaxWarps>
NormBackwardKernel find() {
  return make_kernel<norm_backward_find_in_rows<kOp, T, kElements, kMaxWarps>, nothing_on_host<NormBackwardParams>,
                     KernelResources{.registers = 64, .max_threads = 32 * kMaxWarps}>();
}
template <NormOp kOp, class T>
NormBackwardKernel of_columns() {
  return make_kernel<norm_backward_columns_of_few_rows<kOp, T>, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = 32 * kMaxSumWarps}>();
}

}  // namespace

NormBackwardKernel norm_find_in_rows(NormOp op, DType type, std::uint32_t columns) {
  return of_float_type(type, [=]<class T>() {
    const auto of_op = [=]<NormOp kOp>() {
      return found_of_thread(columns) == 4 ? find<kOp, T, 4, 8>() : find<kOp, T, 8, 16>();
    };
    return op == NormOp::kLayerNorm ? of_op.template operator()<NormOp::kLayerNorm>()
                                    : of_op.template operator()<NormOp::kRmsNorm>();
  });
}

NormBackwardKernel norm_summed_few_rows(NormOp op, DType type) {
  return of_float_type(type, [=]<class T>() {
    return op == NormOp::kLayerNorm ? of_columns<NormOp::kLayerNorm, T>() : of_columns<NormOp::kRmsNorm, T>();
  });
}

}  // namespace cgrt::kernels
