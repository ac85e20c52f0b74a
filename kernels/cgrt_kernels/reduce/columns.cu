// Reductions of columns.
#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/reduce/reduce.cuh"

namespace cgrt::kernels {
namespace {

// What a thread loads of a row.
template <class T>
struct SpreadElements {
  T elements[kReduceSpread];
};
template <class T, ReduceColumns kColumns>
using LoadedFrom = std::conditional_t<
    kColumns == ReduceColumns::kSingle, T,
    std::conditional_t<kColumns == ReduceColumns::kSpread, SpreadElements<T>, typename ReduceInput<T>::Pack>>;

// The columns of a thread, kWidth of them, where `lanes` threads stand side by side from the column `begin` on. Those
// of kSpread that the matrix does not have are its last.
template <class T, ReduceColumns kColumns>
struct ThreadColumns {
  using Loaded = LoadedFrom<T, kColumns>;
  static constexpr bool kIsSpread = kColumns == ReduceColumns::kSpread;
  static constexpr int kWidth = sizeof(Loaded) / sizeof(T);
  std::uint64_t first;
  std::uint32_t further[kIsSpread ? kWidth : 1];

  __device__ __forceinline__ ThreadColumns(std::uint64_t begin, std::uint32_t lane, std::uint32_t lanes,
                                           std::uint64_t columns)
      : first(begin + (kIsSpread ? lane : lane * kWidth)) {
    if constexpr (kIsSpread) {
      first = first < columns ? first : columns - 1;
      const auto last = static_cast<std::uint32_t>(columns - 1 - first);
#pragma unroll
      for (std::uint32_t j = 0; j < kWidth; ++j) further[j] = min(j * lanes, last);
    }
  }
  // From where the row's columns of this thread begin.
  __device__ __forceinline__ Loaded load(const T* from) const {
    if constexpr (kIsSpread) {
      Loaded loaded;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) loaded.elements[j] = from[further[j]];
      return loaded;
    } else {
      return *reinterpret_cast<const Loaded*>(from);
    }
  }
  // Column j of thread `lane`, behind `begin`.
  static __device__ __forceinline__ std::uint32_t at(std::uint32_t lane, std::uint32_t j, std::uint32_t lanes) {
    return kIsSpread ? j * lanes + lane : lane * kWidth + j;
  }
};

// Of a later row than all before.
template <class R, int kWidth, class Loaded>
__device__ __forceinline__ void append_columns(typename R::State (&states)[kWidth], const Loaded& loaded,
                                               std::uint32_t row) {
  typename R::Input elements[kWidth];
  if constexpr (requires { loaded.elements; }) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) elements[j] = to_value(loaded.elements[j]);
  } else if constexpr (kWidth == 1) {
    elements[0] = to_value(loaded);
  } else {
    unpack(loaded, elements);
  }
#pragma unroll
  for (int j = 0; j < kWidth; ++j) states[j] = R::append(states[j], R::at(R::take(elements[j]), row));
}

// The threads of a block stand in rows of `lanes`, a power of 2. Each has some columns and reads
// every so many rows of them. Columns for each blockIdx.x; `parts` blocks share their rows.
template <ReduceOp kOp, class T, ReduceColumns kColumns>
__global__ void __launch_bounds__(kReduceThreads, 2) reduce_columns(const __grid_constant__ ReduceParams p) {
  using R = Reduction<kOp, T>;
  using State = typename R::State;
  using Columns = ThreadColumns<T, kColumns>;
  using Loaded = typename Columns::Loaded;
  constexpr int kWidth = Columns::kWidth;
  constexpr bool kIsSpread = Columns::kIsSpread;
  // Rows in flight; or registers would not do.
  constexpr int kLoads = (!R::kIsArgmax ? 8 : kWidth == 8 ? 2 : 4) / (kIsSpread ? 2 : 1);
  // Columns of a thread that go through shared memory at once.
  constexpr int kWarps = kReduceThreads / 32, kEach = kWidth < 64 / sizeof(State) ? kWidth : 64 / sizeof(State);
  constexpr int kRounds = kWidth / kEach;
  __shared__ __align__(16) unsigned char bytes[kWarps * 32 * kEach * sizeof(State)];
  const auto shared = reinterpret_cast<State(*)[32 * kEach]>(bytes);
  wait_for_predecessors();
  let_dependents_start();
  const std::uint32_t tile = blockIdx.x, part = blockIdx.y;
  const std::uint32_t lane = threadIdx.x % p.lanes, y = threadIdx.x / p.lanes, deep = blockDim.x / p.lanes;
  const std::uint64_t begin = std::uint64_t{tile} * (p.lanes * kWidth);
  const Columns columns(begin, lane, p.lanes, p.columns);

  State states[kWidth];
  const auto clear = [&] {
#pragma unroll
    for (State& state : states) state = R::at(R::no_value(), 0);
  };
  const auto load = [&](std::uint32_t row) {
    return columns.load(static_cast<const T*>(p.in) + row * p.columns + columns.first);
  };
  const auto add = [&](const Loaded& loaded, std::uint32_t row) { append_columns<R>(states, loaded, row); };
  // Of all threads, for column `of_thread(round)` of thread `threadIdx.x / kEach` in the first lanes * kEach threads.
  State totals[kRounds];
  const bool has_total = threadIdx.x < p.lanes * kEach;
  const auto of_thread = [&](int round) { return static_cast<std::uint32_t>(round * kEach) + threadIdx.x % kEach; };
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
  if (columns.first < p.columns) {
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
    State* const of_tiles = static_cast<State*>(p.partials) + begin;
    const std::uint64_t of_part = std::uint64_t{gridDim.x} * (p.lanes * kWidth);
    if (has_total) {
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        of_tiles[part * of_part + threadIdx.x / kEach * kWidth + of_thread(round)] = totals[round];
      }
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
    const std::uint64_t at = begin + Columns::at(threadIdx.x / kEach, of_thread(round), p.lanes);
    if (at < p.columns) R::write(p.out, at, totals[round], p.divisor);
  }
}

// Few rows: a thread has some columns, and needs no other's. A small launch waits for what code it has to fetch, so
// there is little.
template <ReduceOp kOp, class T, ReduceColumns kColumns>
__global__ void __launch_bounds__(kReduceFewBlock) reduce_few_rows(const __grid_constant__ ReduceParams p) {
  using R = Reduction<kOp, T>;
  using Columns = ThreadColumns<T, kColumns>;
  constexpr int kWidth = Columns::kWidth;
  constexpr std::uint32_t kLoads = (R::kIsArgmax && kWidth > 1) || Columns::kIsSpread ? 4 : 8;
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * (kReduceFewBlock * kWidth);
  const Columns columns(begin, threadIdx.x, kReduceFewBlock, p.columns);
  const auto rows = static_cast<std::uint32_t>(p.rows);
  wait_for_predecessors();
  let_dependents_start();
  if (columns.first >= p.columns) return;
  const T* from = static_cast<const T*>(p.in) + columns.first;
  typename R::State states[kWidth];
#pragma unroll
  for (auto& state : states) state = R::at(R::no_value(), 0);
#pragma unroll 1
  for (std::uint32_t row = 0; row < rows; row += kLoads) {
    typename Columns::Loaded loaded[kLoads];
#pragma unroll
    for (std::uint32_t k = 0; k < kLoads; ++k) {
      if (row + k < rows) loaded[k] = columns.load(from);
      from += p.columns;
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kLoads; ++k) {
      if (row + k < rows) append_columns<R>(states, loaded[k], row + k);
    }
  }
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    const std::uint64_t at = begin + Columns::at(threadIdx.x, j, kReduceFewBlock);
    if (!Columns::kIsSpread || at < p.columns) R::write(p.out, at, states[j], p.divisor);
  }
}

}  // namespace

ReduceKernel reduce_few_rows_kernel(ReduceOp op, DType type, ReduceColumns columns) {
  return of_reduction(op, type, [=]<ReduceOp kOp, class T>() -> ReduceKernel {
    constexpr ReduceOp kPlanned = kOp == ReduceOp::kDot ? ReduceOp::kSum : kOp;  // a dot is not planned for columns
    constexpr auto on_host = reduce_on_host<kPlanned, T, true>;
    const auto with = [=]<ReduceColumns kColumns>() {
      return make_kernel<reduce_few_rows<kPlanned, T, kColumns>, on_host, kReduceResources>();
    };
    if (columns == ReduceColumns::kPack) return with.template operator()<ReduceColumns::kPack>();
    if constexpr (sizeof(T) == 2) {  // wider ones are as fast one by one
      if (columns == ReduceColumns::kSpread) return with.template operator()<ReduceColumns::kSpread>();
    }
    return with.template operator()<ReduceColumns::kSingle>();
  });
}

ReduceKernel reduce_columns_kernel(ReduceOp op, DType type, ReduceColumns columns) {
  return of_reduction(op, type, [=]<ReduceOp kOp, class T>() -> ReduceKernel {
    constexpr ReduceOp kPlanned = kOp == ReduceOp::kDot ? ReduceOp::kSum : kOp;
    constexpr auto on_host = reduce_on_host<kPlanned, T, true>;
    constexpr auto kUnaligned = kPlanned == ReduceOp::kArgmax ? ReduceColumns::kSingle : ReduceColumns::kSpread;
    return columns == ReduceColumns::kPack
               ? make_kernel<reduce_columns<kPlanned, T, ReduceColumns::kPack>, on_host, kReduceResources>()
               : make_kernel<reduce_columns<kPlanned, T, kUnaligned>, on_host, kReduceResources>();
  });
}

}  // namespace cgrt::kernels
