// Reductions of columns.
#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/reduce/reduce.cuh"

namespace cgrt::kernels {
namespace {

// An element, or 16 bytes of them.
template <class T, int kWidth>
using ColumnsOf = std::conditional_t<kWidth == 1, T, typename ReduceInput<T>::Pack>;

// Of a later row than all before.
template <class R, int kWidth, class Loaded>
__device__ __forceinline__ void append_columns(typename R::State (&states)[kWidth], const Loaded& loaded,
                                               std::uint32_t row) {
  typename R::Input elements[kWidth];
  if constexpr (kWidth == 1) {
    elements[0] = to_value(loaded);
  } else {
    unpack(loaded, elements);
  }
#pragma unroll
  for (int j = 0; j < kWidth; ++j) states[j] = R::append(states[j], R::at(R::take(elements[j]), row));
}

// The threads of a block stand in rows of `lanes`, a power of 2. Each has kWidth columns and reads
// every so many rows of them. Columns for each blockIdx.x; `parts` blocks share their rows.
template <ReduceOp kOp, class T, int kWidth>
__global__ void __launch_bounds__(kReduceThreads, 2) reduce_columns(const __grid_constant__ ReduceParams p) {
  using R = Reduction<kOp, T>;
  using State = typename R::State;
  using Loaded = ColumnsOf<T, kWidth>;
  constexpr int kLoads = !R::kIsArgmax ? 8 : kWidth == 8 ? 2 : 4;  // or registers would not do
  // Columns of a thread that go through shared memory at once.
  constexpr int kWarps = kReduceThreads / 32, kEach = kWidth < 64 / sizeof(State) ? kWidth : 64 / sizeof(State);
  constexpr int kRounds = kWidth / kEach;
  __shared__ __align__(16) unsigned char bytes[kWarps * 32 * kEach * sizeof(State)];
  const auto shared = reinterpret_cast<State(*)[32 * kEach]>(bytes);
  wait_for_predecessors();
  let_dependents_start();
  const std::uint32_t tile = blockIdx.x, part = blockIdx.y;
  const std::uint32_t lane = threadIdx.x % p.lanes, y = threadIdx.x / p.lanes, deep = blockDim.x / p.lanes;
  const std::uint64_t column = (std::uint64_t{tile} * p.lanes + lane) * kWidth;

  State states[kWidth];
  const auto clear = [&] {
#pragma unroll
    for (State& state : states) state = R::at(R::no_value(), 0);
  };
  const auto load = [&](std::uint32_t row) {
    return *reinterpret_cast<const Loaded*>(static_cast<const T*>(p.in) + row * p.columns + column);
  };
  const auto add = [&](const Loaded& loaded, std::uint32_t row) { append_columns<R>(states, loaded, row); };
  // Of all threads, for the column `of_tile(round)` in the first lanes * kEach threads.
  State totals[kRounds];
  const bool has_total = threadIdx.x < p.lanes * kEach;
  const auto of_tile = [&](int round) {
    return threadIdx.x / kEach * kWidth + static_cast<std::uint32_t>(round * kEach) + threadIdx.x % kEach;
  };
  const auto reduce_deep = [&] {
    for (std::uint32_t mask = 16; mask >= p.lanes; mask /= 2) {
#pragma unroll
      for (State& state : states) state = R::merge(state, shuffle(state, static_cast<int>(mask)));
    }
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      __syncthreads();
      if (threadIdx.x % 32 < p.lanes) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) shared[threadIdx.x / 32][lane * kEach + j] = states[round * kEach + j];
      }
      __syncthreads();
      if (!has_total) continue;
      totals[round] = shared[0][threadIdx.x];
#pragma unroll
      for (int warp = 1; warp < kWarps; ++warp) totals[round] = R::merge(totals[round], shared[warp][threadIdx.x]);
    }
  };

  clear();
  if (column < p.columns) {
    const std::uint32_t stride = p.parts * deep;
    std::uint32_t row = part * deep + y;
    for (; row + (kLoads - 1) * stride < p.rows; row += kLoads * stride) {
      Loaded loaded[kLoads];
#pragma unroll
      for (int k = 0; k < kLoads; ++k) loaded[k] = load(row + k * stride);
#pragma unroll
      for (int k = 0; k < kLoads; ++k) add(loaded[k], row + k * stride);
    }
    if (row < p.rows) {
      Loaded loaded[kLoads];
#pragma unroll
      for (int k = 0; k < kLoads - 1; ++k) loaded[k] = row + k * stride < p.rows ? load(row + k * stride) : Loaded{};
#pragma unroll
      for (int k = 0; k < kLoads - 1; ++k) {
        if (row + k * stride < p.rows) add(loaded[k], row + k * stride);
      }
    }
  }
  reduce_deep();
  if (p.parts > 1) {
    // Those of a thread's columns side by side.
    State* const of_tiles = static_cast<State*>(p.partials) + std::uint64_t{tile} * (p.lanes * kWidth);
    const std::uint64_t of_part = std::uint64_t{gridDim.x} * (p.lanes * kWidth);
    if (has_total) {
#pragma unroll
      for (int round = 0; round < kRounds; ++round) of_tiles[part * of_part + of_tile(round)] = totals[round];
    }
    if (!is_last_to_arrive(&p.counters[tile], p.parts)) return;
    clear();
    struct alignas(kWidth * sizeof(State) < 16 ? sizeof(State) : 16) Partial {
      State states[kWidth];
    };
    const auto partial = [&](std::uint32_t i) -> const Partial& {
      return *reinterpret_cast<const Partial*>(of_tiles + i * of_part + lane * kWidth);
    };
    if constexpr (sizeof(Partial) >= 128) {  // registers have no room for another
#pragma unroll 1
      for (std::uint32_t i = y; i < p.parts; i += deep) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) states[j] = R::merge(states[j], partial(i).states[j]);
      }
    } else {
      constexpr int kBatch = sizeof(Partial) <= 16 ? 8 : 128 / sizeof(Partial);
#pragma unroll 1
      for (std::uint32_t i = y; i < p.parts; i += kBatch * deep) {
        Partial held[kBatch];
#pragma unroll
        for (int k = 0; k < kBatch; ++k) held[k] = partial(min(i + k * deep, p.parts - 1));
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          if (i + k * deep >= p.parts) break;
#pragma unroll
          for (int j = 0; j < kWidth; ++j) states[j] = R::merge(states[j], held[k].states[j]);
        }
      }
    }
    reduce_deep();
  }
  if (!has_total) return;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t at = std::uint64_t{tile} * (p.lanes * kWidth) + of_tile(round);
    if (at < p.columns) R::write(p.out, at, totals[round], p.divisor);
  }
}

// Few rows: a thread has kWidth columns, and needs no other's. A small launch waits for what code it has to fetch, so
// there is little.
template <ReduceOp kOp, class T, int kWidth>
__global__ void __launch_bounds__(kReduceFewBlock) reduce_few_rows(const __grid_constant__ ReduceParams p) {
  using R = Reduction<kOp, T>;
  using Loaded = ColumnsOf<T, kWidth>;
  constexpr std::uint32_t kLoads = R::kIsArgmax && kWidth > 1 ? 4 : 8;
  const std::uint64_t column = (std::uint64_t{blockIdx.x} * kReduceFewBlock + threadIdx.x) * kWidth;
  const auto rows = static_cast<std::uint32_t>(p.rows);
  wait_for_predecessors();
  let_dependents_start();
  if (column >= p.columns) return;
  const T* from = static_cast<const T*>(p.in) + column;
  typename R::State states[kWidth];
#pragma unroll
  for (auto& state : states) state = R::at(R::no_value(), 0);
#pragma unroll 1
  for (std::uint32_t row = 0; row < rows; row += kLoads) {
    Loaded loaded[kLoads];
#pragma unroll
    for (std::uint32_t k = 0; k < kLoads; ++k) {
      if (row + k < rows) loaded[k] = *reinterpret_cast<const Loaded*>(from);
      from += p.columns;
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kLoads; ++k) {
      if (row + k < rows) append_columns<R>(states, loaded[k], row + k);
    }
  }
#pragma unroll
  for (int j = 0; j < kWidth; ++j) R::write(p.out, column + j, states[j], p.divisor);
}

}  // namespace

ReduceKernel reduce_few_rows_kernel(ReduceOp op, DType type, Alignment alignment) {
  return of_reduction(op, type, [=]<ReduceOp kOp, class T>() -> ReduceKernel {
    constexpr ReduceOp kPlanned = kOp == ReduceOp::kDot ? ReduceOp::kSum : kOp;  // a dot is not planned for columns
    constexpr auto on_host = reduce_on_host<kPlanned, T, true>;
    return alignment == Alignment::kAligned
               ? make_kernel<reduce_few_rows<kPlanned, T, kPackSize<T>>, on_host, kReduceResources>()
               : make_kernel<reduce_few_rows<kPlanned, T, 1>, on_host, kReduceResources>();
  });
}

ReduceKernel reduce_columns_kernel(ReduceOp op, DType type, Alignment alignment) {
  return of_reduction(op, type, [=]<ReduceOp kOp, class T>() -> ReduceKernel {
    constexpr auto on_host = reduce_on_host<kOp, T, true>;
    if constexpr (kOp == ReduceOp::kDot) {  // is not planned for columns
      return make_kernel<reduce_columns<ReduceOp::kSum, T, 1>, on_host, kReduceResources>();
    } else if (alignment == Alignment::kAligned) {
      return make_kernel<reduce_columns<kOp, T, kPackSize<T>>, on_host, kReduceResources>();
    } else {
      return make_kernel<reduce_columns<kOp, T, 1>, on_host, kReduceResources>();
    }
  });
}

}  // namespace cgrt::kernels
