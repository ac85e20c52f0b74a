#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/bulk_stream.cuh"
#include "cgrt_kernels/common/row/chunks.cuh"
#include "cgrt_kernels/common/row/dispatch.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/norm/backward.cuh"
#include "cgrt_kernels/norm/column_sums.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {
namespace {

// dx of a run; visit(offset, dy, normalized x) of each element.
template <class Row, class Weights, class Visit>
__device__ __forceinline__ void write_gradient(const Row& x, const Row& dy, typename Row::Element* dx,
                                               const Weights& weights, const typename Row::Where& place,
                                               const GradientFacts& facts, Visit visit) {
  x.store(dx, place, [&](auto& values, std::uint64_t offset, int pack) {
    constexpr int kCount = sizeof(values) / sizeof(float);
    float gradients[kCount], weight[kCount];
    dy.get(pack, gradients);
    weights.get(pack, offset, weight);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      float normalized;
      values[i] = gradient_of(facts, values[i], gradients[i], weight[i], normalized);
      visit(offset + i, gradients[i], normalized);
    }
  });
}

// What a warp has, from what its lanes have; rms_norm: as it is.
__device__ __forceinline__ Products of_lanes(Products part) { return part; }
__device__ __forceinline__ Comoments of_lanes(Comoments part) { return join_warp(part, reduce_lanes(part.count)); }

// Each group of threads takes a row, read once: x and dy are in their registers.
template <NormOp kOp, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads,
                                  Group::kIsWarp                                                             ? 4
                                  : kPacks* kPackSize<T> * sizeof(T) < (kOp == NormOp::kLayerNorm ? 64 : 65) ? 2
                                                                                                             : 1)
    norm_backward_in_registers(NormBackwardParams p) {
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  constexpr bool kIsHeld = Row::kIsHalves && kPacks <= 2;
  Group group;
  // Lanes without a row stay with the others of their warp.
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns;
  const T *const from_x = static_cast<const T*>(p.x), *const from_dy = static_cast<const T*>(p.dy);
  T* const dx = static_cast<T*>(p.dx) + first;
  const typename Row::Where place(dx, has_row ? run.count : 0, group.thread());
  wait_for_predecessors();
  let_dependents_start();
  Row x, dy;
  x.load(from_x + first, place, from_x + count);
  dy.load(from_dy + first, place, from_dy + count);
  RowWeights<Row, kIsHeld, kAlignment> weights(Columns<T>(p.weight, run.begin, p.columns), place);
  const GradientFacts facts = facts_of<kOp>(group, x, dy, weights, place, p.epsilon, p.columns);
  x.stay_packed();
  dy.stay_packed();
  weights.stay_packed();
  write_gradient(x, dy, dx, weights, place, facts, [](std::uint64_t, float, float) {});
}

// A block, or a cluster, takes a row at a time, through registers; the weights are in shared memory. Rows that are not
// aligned.
template <NormOp kOp, class T, int kElements>
__global__ void __launch_bounds__(kElements <= 16 ? kBulkThreads : kMaxThreads, kElements <= 16 ? 2 : 1)
    norm_backward_bulk_streamed(NormBackwardParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) uint4 ring[];
  using Group = ClusterPerRow<16>;
  using Row = Scalars<T, kElements>;
  constexpr Alignment kUnaligned = Alignment::kUnaligned;
  Group group;
  BulkStream<T, Group, kUnaligned, 2> rows(p.shares, ring, group, p.rows, p.columns, {p.x, p.dy});
  wait_for_predecessors();
  rows.start(group.row());
  Columns<T> weight(p.weight, rows.begin, p.columns);
  weight.template hold<kUnaligned>(rows.behind(), rows.count);
  __syncthreads();
  const typename Row::Where place(p.dx, rows.count, threadIdx.x);
  const RowWeights<Row, false, kUnaligned> weights(weight, place);
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows(), group.next()) {
    const T* at[2];
    rows.wait(row, at);
    Row x, dy;
    x.load_shared(at[0], place);
    dy.load_shared(at[1], place);
    const GradientFacts facts = facts_of<kOp>(group, x, dy, weights, place, p.epsilon, p.columns);
    rows.next(row);
    write_gradient(x, dy, static_cast<T*>(p.dx) + row * p.columns + rows.begin, weights, place, facts,
                   [](std::uint64_t, float, float) {});
  }
#endif
}

// Rows in chunks, for blocks of the whole device. What all rows need of a chunk's columns is in shared memory for a
// group of rows: the weights and, with kIsSummed, sums of the columns.
template <NormOp kOp, bool kIsSummed, class T, Alignment kAlignment>
__global__ void __launch_bounds__(kChunkThreads, 2) norm_backward_in_chunks(NormBackwardParams p) {
  extern __shared__ uint4 held[];
  using Row = Tile<T, kChunkPacks, 32, kAlignment>;
  using Part = GradientPart<kOp>;
  ClusterPerRow<kChunkThreads / 32> group;
  const T *const from_x = static_cast<const T*>(p.x), *const from_dy = static_cast<const T*>(p.dy);
  const std::uint64_t all = std::uint64_t{p.rows} * p.columns;
  constexpr int kPlanes = kOp == NormOp::kLayerNorm ? 2 : 1;
  wait_for_predecessors();
  let_dependents_start();
  for (ChunkedRows<Part> rows(p.chunks, p.rows, p.columns, p.workspace); rows.next(); group.next()) {
    Columns<T> weight(p.weight, rows.begin, p.columns);
    ColumnSums sums[kPlanes];
    if (rows.is_to_write) {
      T* const behind = weight.template hold<kAlignment>(reinterpret_cast<T*>(held), rows.count);
      if constexpr (kIsSummed) {
        const std::uint64_t of_group = std::uint64_t{rows.row / p.chunks.rows} * p.columns + rows.begin;
        for (int i = 0; i < kPlanes; ++i) {
          float* const to = p.partials + std::uint64_t{p.groups} * p.columns * static_cast<std::uint32_t>(i);
          sums[i] = ColumnSums(to + of_group, reinterpret_cast<float*>(behind), i, rows.count);
        }
      }
    }
    for (std::uint32_t row = rows.row; row < rows.end(); ++row) {
      const std::uint64_t first = std::uint64_t{row} * p.columns + rows.begin;
      T* const dx = static_cast<T*>(p.dx) + first;
      const typename Row::Where place(dx, rows.count, threadIdx.x);
      const RowWeights<Row, false, kAlignment> weights(weight, place);
      Row x, dy;
      x.load(from_x + first, place, from_x + all);
      dy.load(from_dy + first, place, from_dy + all);
      if (!rows.is_to_write) {
        const auto of_block = [&](Part part, float count) {
          const Part gathered = gather(group, part, count);
          group.next();
          return gathered;
        };
        const auto count = static_cast<float>(rows.count);
        rows.put(of_block(part_of<kOp, 32, false>(x, dy, weights, place, count), count), none(Part{}),
                 [&](Part of_thread) { return of_block(of_lanes(of_thread), static_cast<float>(p.columns)); });
        continue;
      }
      const GradientFacts facts = gradient_facts(rows.facts_of(row), static_cast<float>(p.columns), p.epsilon);
      write_gradient(x, dy, dx, weights, place, facts, [&](std::uint64_t column, float gradient, float normalized) {
        if constexpr (kIsSummed) {
          sums[0].add(column, gradient * normalized);
          if constexpr (kPlanes == 2) sums[1].add(column, gradient);
        }
      });
    }
    if (kIsSummed && rows.is_to_write) {
      __syncthreads();
      for (const ColumnSums& of_plane : sums) of_plane.leave();
    }
  }
}

template <auto kKernel, NormOp kOp, class T>
NormBackwardKernel with_host_body() {
  return make_kernel<kKernel, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kMaxThreads}>();
}

template <NormOp kOp, class T, Alignment kAlignment, class Group, int kPacks>
NormBackwardKernel in_registers() {
  return with_host_body<norm_backward_in_registers<kOp, T, Group, kPacks, kAlignment>, kOp, T>();
}

template <NormOp kOp, class T, Alignment kAlignment>
NormBackwardKernel of_regime(NormRegime regime) {
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  constexpr int kSize = kPackSize<T>, kPacks = kIsAligned ? 32 / kSize : 2;
  switch (regime) {
    case NormRegime::kLanes4:
      if constexpr (kIsAligned) return in_registers<kOp, T, kAlignment, LanesPerRow<4>, 16 / kSize>();
      break;
    case NormRegime::kLanes16: return in_registers<kOp, T, kAlignment, LanesPerRow<16>, 16 / kSize>();
    case NormRegime::kWarp: return in_registers < kOp, T, kAlignment, WarpPerRow, kIsAligned ? 32 / kSize : 4 > ();
    case NormRegime::kClusterShort:
      if constexpr (kIsAligned) return in_registers<kOp, T, kAlignment, ClusterPerRow<16>, 8 / kSize>();
      break;
    case NormRegime::kClusterMiddle:
      if constexpr (kIsAligned) return in_registers<kOp, T, kAlignment, ClusterPerRow<16>, 16 / kSize>();
      break;
    case NormRegime::kCluster:
    case NormRegime::kClusterLong: return in_registers<kOp, T, kAlignment, ClusterPerRow<16>, kPacks>();
    case NormRegime::kBulkStream:
      if constexpr (!kIsAligned) return with_host_body<norm_backward_bulk_streamed<kOp, T, kBulkElements>, kOp, T>();
      break;
    case NormRegime::kBulkStreamLong:
      if constexpr (!kIsAligned)
        return with_host_body<norm_backward_bulk_streamed<kOp, T, long_bulk_elements(3 * sizeof(T))>, kOp, T>();
      break;
    case NormRegime::kChunks: break;
  }
  return with_host_body<norm_backward_in_chunks<kOp, false, T, kAlignment>, kOp, T>();
}

}  // namespace

NormBackwardKernel norm_backward_kernel(NormOp op, DType type, NormRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? of_regime<NormOp::kLayerNorm, T, kAlignment>(regime)
                                    : of_regime<NormOp::kRmsNorm, T, kAlignment>(regime);
  });
}

NormBackwardKernel norm_summed_chunks(NormOp op, DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    constexpr auto kLayerNorm = NormOp::kLayerNorm, kRmsNorm = NormOp::kRmsNorm;
    return op == kLayerNorm ? with_host_body<norm_backward_in_chunks<kLayerNorm, true, T, kAlignment>, kLayerNorm, T>()
                            : with_host_body<norm_backward_in_chunks<kRmsNorm, true, T, kAlignment>, kRmsNorm, T>();
  });
}

}  // namespace cgrt::kernels
