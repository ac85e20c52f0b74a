#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/reduce/reduce.cuh"
#include "cgrt_kernels/reduce/reference.h"

namespace cgrt::kernels {
namespace {

template <class Pack, bool kTwo>
struct Operands {
  Pack x;
};
template <class Pack>
struct Operands<Pack, true> {
  Pack x, y;
};

template <class R, class T, class Loaded>
__device__ __forceinline__ typename R::Value reduce_pack(const Loaded& loaded) {
  constexpr int kSize = kPackSize<T>;
  typename R::Input elements[kSize];
  typename R::Value values[kSize];
  unpack(loaded.x, elements);
  if constexpr (R::kIsDot) {
    typename R::Input others[kSize];
    unpack(loaded.y, others);
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] = elements[i] * others[i];
  } else {
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] = R::take(elements[i]);
  }
#pragma unroll
  for (int half = kSize / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) values[i] = R::combine(values[i], values[i + half]);
  }
  return values[0];
}

template <class R, class T>
__device__ __forceinline__ typename R::Value reduce_element(const T* x, const T* y, std::uint64_t i) {
  if constexpr (R::kIsDot) {
    return to_value(x[i]) * to_value(y[i]);
  } else {
    return R::take(to_value(x[i]));
  }
}

__device__ __forceinline__ std::uint32_t beyond_pack(const void* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer) % 16);
}

// What thread `thread` of `threads` makes of a row: of every threads-th pack of 16 bytes, 64 bytes in
// flight at a time, and of the elements before the first and behind the last of them. The index of a
// State is then the pack's: see position.
template <class R, class T>
__device__ __forceinline__ typename R::State reduce_row(const T* x, const T* y, std::uint64_t columns,
                                                        std::uint64_t thread, std::uint64_t threads) {
  constexpr int kSize = kPackSize<T>, kLoads = R::kIsDot ? 2 : 4;
  using Pack = typename ReduceInput<T>::Pack;
  using Loaded = Operands<Pack, R::kIsDot>;
  typename R::State state = R::none();
  if constexpr (R::kIsDot) {
    if (beyond_pack(x) != beyond_pack(y)) {
#pragma unroll 8
      for (std::uint64_t i = thread; i < columns; i += threads) state += reduce_element<R>(x, y, i);
      return state;
    }
  }
  const std::uint64_t lead = min(std::uint64_t{(16 - beyond_pack(x)) % 16 / sizeof(T)}, columns);
  const std::uint64_t packs = (columns - lead) / kSize, ends = columns - packs * kSize;
  const auto load = [&](std::uint64_t i) {
    Loaded loaded;
    loaded.x = reinterpret_cast<const Pack*>(x + lead)[i];
    if constexpr (R::kIsDot) loaded.y = reinterpret_cast<const Pack*>(y + lead)[i];
    return loaded;
  };
  const auto add = [&](const Loaded& loaded, std::uint64_t i) {
    state = R::merge(state, R::at(reduce_pack<R, T>(loaded), lead + i * kSize));
  };

  std::uint64_t i = thread;
  for (; i + (kLoads - 1) * threads < packs; i += kLoads * threads) {
    Loaded loaded[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) loaded[k] = load(i + k * threads);
#pragma unroll
    for (int k = 0; k < kLoads; ++k) add(loaded[k], i + k * threads);
  }
  if (i < packs) {  // fewer than kLoads, also in flight together
    Loaded loaded[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads - 1; ++k) loaded[k] = i + k * threads < packs ? load(i + k * threads) : Loaded{};
#pragma unroll
    for (int k = 0; k < kLoads - 1; ++k) {
      if (i + k * threads < packs) add(loaded[k], i + k * threads);
    }
  }
  for (i = thread; i < ends; i += threads) {
    const std::uint64_t at = i < lead ? i : i + packs * kSize;
    state = R::merge(state, R::at(reduce_element<R>(x, y, at), at));
  }
  return state;
}

// Where in its pack a maximum is. Only the one that is found is looked for.
template <class R, class T>
__device__ __forceinline__ typename R::State position(const T* x, typename R::State state) {
  if constexpr (R::kIsArgmax) {
    while (!is_same(to_value(x[state.index]), state.value)) ++state.index;
  }
  return state;
}

// `lanes` threads of a warp, a power of 2, share a row. 8 blocks on a multiprocessor: left to itself the compiler
// makes do with fewer registers, and rows take 2 to 6 % longer.
template <ReduceOp kOp, class T>
__global__ void __launch_bounds__(128, 8)
    reduce_lanes(void* out, const void* in, const void* other, std::uint32_t*, void*, std::uint64_t rows,
                 std::uint64_t columns, std::uint32_t lanes, std::uint32_t, double divisor) {
  using R = Reduction<kOp, T>;
  wait_for_predecessors();
  let_dependents_start();
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t row = thread >> (31 - __clz(static_cast<int>(lanes)));
  const std::uint32_t lane = threadIdx.x & (lanes - 1);
  const T* const x = static_cast<const T*>(in) + row * columns;
  const T* const y = static_cast<const T*>(other) + row * columns;
  typename R::State state = R::none();
  if (row < rows) state = reduce_row<R>(x, y, columns, lane, lanes);
  for (std::uint32_t mask = lanes / 2; mask > 0; mask /= 2) {
    state = R::merge(state, shuffle(state, static_cast<int>(mask)));
  }
  if (lane == 0 && row < rows) R::write(out, row, position<R>(x, state), divisor);
}

// Short rows, wherever they begin: a block brings `each` rows for each of its threads into shared memory. Behind each
// 32 words there is a gap of 4, so that threads with a row each do not meet in a bank.
template <ReduceOp kOp, class T>
__global__ void __launch_bounds__(kReduceShortBlock)
    reduce_short(void* out, const void* in, const void*, std::uint32_t*, void*, std::uint64_t rows,
                 std::uint64_t columns, std::uint32_t, std::uint32_t each, double divisor) {
  using R = Reduction<kOp, T>;
  using Pack = typename ReduceInput<T>::Pack;
  constexpr std::uint32_t kSize = sizeof(T), kWords = kReduceShortBytes / 4 + 4;  // those before the first element, too
  __shared__ __align__(16) std::uint32_t words[kWords + kWords / 32 * 4 + 4];
  const std::uint32_t of_block = kReduceShortBlock * each;
  const auto length = static_cast<std::uint32_t>(columns);
  const std::uint64_t first = std::uint64_t{blockIdx.x} * of_block;
  const auto here = static_cast<std::uint32_t>(min(std::uint64_t{of_block}, rows - first));
  wait_for_predecessors();
  let_dependents_start();

  // Bytes count from the 16 in which the block's rows begin: they end before `end`.
  const T* const from = static_cast<const T*>(in) + first * columns;
  const std::uint32_t begin = beyond_pack(from), end = begin + here * length * kSize;
  const auto* const base = reinterpret_cast<const unsigned char*>(from) - begin;
  const auto place = [&](std::uint32_t byte) {
    return reinterpret_cast<unsigned char*>(words) + (byte + byte / 128 * 16);
  };
  for (std::uint32_t at = (threadIdx.x + (begin != 0 ? 1 : 0)) * 16; at + 16 <= end; at += kReduceShortBlock * 16) {
    copy_asynchronously(place(at), base + at);
  }
  // Those of the first and the last 16 bytes that are not all of the block.
  if (threadIdx.x < 64) {
    const bool is_first = threadIdx.x < 32;
    const std::uint32_t at = (is_first ? 0 : end / 16 * 16) + threadIdx.x % 32 * kSize;
    if (threadIdx.x % 32 * kSize < 16 && at >= begin && at < end && (is_first ? begin != 0 : end >= 16 || begin == 0)) {
      *reinterpret_cast<T*>(place(at)) = *reinterpret_cast<const T*>(base + at);
    }
  }
  end_copy_group();
  wait_for_copies<0>();
  __syncthreads();

  const auto element = [&](std::uint32_t byte) { return R::take(to_value(*reinterpret_cast<const T*>(place(byte)))); };
  const bool has_packs = begin == 0 && length * kSize % 16 == 0;
  for (std::uint32_t row = threadIdx.x; row < here; row += kReduceShortBlock) {
    typename R::State state = R::at(R::no_value(), 0);
    const std::uint32_t row_begin = begin + row * length * kSize;
    if (has_packs) {
      for (std::uint32_t at = 0; at < length * kSize; at += 16) {
        const Operands<Pack, false> pack{*reinterpret_cast<const Pack*>(place(row_begin + at))};
        state = R::merge(state, R::at(reduce_pack<R, T>(pack), at / kSize));
      }
      if constexpr (R::kIsArgmax) {  // where in its pack
        const std::uint64_t end_of_pack = state.index + 16 / kSize;
        for (; state.index + 1 < end_of_pack; ++state.index) {
          const auto at = static_cast<std::uint32_t>(state.index) * kSize;
          if (is_same(element(row_begin + at), state.value)) break;
        }
      }
    } else {
#pragma unroll 4
      for (std::uint32_t c = 0; c < length; ++c) {
        state = R::append(state, R::at(element(row_begin + c * kSize), c));
      }
    }
    R::write(out, first + row, state, divisor);
  }
}

// A row for each blockIdx.x; `parts` blocks share it. The last of them to begin, when all are under way, takes the
// parts. These say themselves whether they are there: sooner than a fence and a count of those that are done.
template <ReduceOp kOp, class T>
__global__ void __launch_bounds__(kReduceThreads, 3)
    reduce_blocks(void* out, const void* in, const void* other, std::uint32_t* counters, void* workspace, std::uint64_t,
                  std::uint64_t columns, std::uint32_t, std::uint32_t parts, double divisor) {
  using R = Reduction<kOp, T>;
  using State = typename R::State;
  wait_for_predecessors();
  let_dependents_start();
  const std::uint32_t row = blockIdx.x, part = blockIdx.y;
  Published<State>* const published = static_cast<Published<State>*>(workspace) + std::uint64_t{row} * parts;
  std::uint32_t begun_before = 0;
  if (parts > 1 && threadIdx.x == 0) {
    begun_before = arrive(&counters[row], parts);
    // Or the rest of a sector of the cache would be fetched only when this part is taken.
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(published + part)));
  }
  const T* const x = static_cast<const T*>(in) + row * columns;
  const T* const y = static_cast<const T*>(other) + row * columns;
  State state =
      reduce_block<R>(reduce_row<R>(x, y, columns, part * blockDim.x + threadIdx.x, std::uint64_t{parts} * blockDim.x));
  if (parts > 1) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
      publish(published + part, state, kPartTag);
      is_last = begun_before == parts - 1;
    }
    __syncthreads();
    if (!is_last) return;
    state = R::none();
    for (std::uint32_t i = threadIdx.x; i < parts; i += blockDim.x) state = R::merge(state, take_part(published + i));
    state = reduce_block<R>(state);
  }
  if (threadIdx.x == 0) R::write(out, row, position<R>(x, state), divisor);
}

// The threads of a block stand in rows of `lanes`, a power of 2. Each has kWidth columns and reads
// every so many rows of them. Columns for each blockIdx.x; `parts` blocks share their rows.
template <ReduceOp kOp, class T, int kWidth>
__global__ void __launch_bounds__(kReduceThreads, 2)
    reduce_columns(void* out, const void* in, const void*, std::uint32_t* counters, void* workspace, std::uint64_t rows,
                   std::uint64_t columns, std::uint32_t lanes, std::uint32_t parts, double divisor) {
  using R = Reduction<kOp, T>;
  using State = typename R::State;
  using Loaded = std::conditional_t<kWidth == 1, T, typename ReduceInput<T>::Pack>;
  constexpr int kLoads = !R::kIsArgmax ? 8 : kWidth == 8 ? 2 : 4;  // or registers would not do
  // Columns of a thread that go through shared memory at once.
  constexpr int kWarps = kReduceThreads / 32, kEach = kWidth < 64 / sizeof(State) ? kWidth : 64 / sizeof(State);
  constexpr int kRounds = kWidth / kEach;
  __shared__ __align__(16) unsigned char bytes[kWarps * 32 * kEach * sizeof(State)];
  const auto shared = reinterpret_cast<State(*)[32 * kEach]>(bytes);
  wait_for_predecessors();
  let_dependents_start();
  const std::uint32_t tile = blockIdx.x, part = blockIdx.y;
  const std::uint32_t lane = threadIdx.x % lanes, y = threadIdx.x / lanes, deep = blockDim.x / lanes;
  const std::uint64_t column = (std::uint64_t{tile} * lanes + lane) * kWidth;

  State states[kWidth];
  const auto clear = [&] {
#pragma unroll
    for (State& state : states) state = R::at(R::no_value(), 0);
  };
  const auto load = [&](std::uint32_t row) {
    return *reinterpret_cast<const Loaded*>(static_cast<const T*>(in) + row * columns + column);
  };
  const auto add = [&](const Loaded& loaded, std::uint32_t row) {
    typename R::Input elements[kWidth];
    if constexpr (kWidth == 1) {
      elements[0] = to_value(loaded);
    } else {
      unpack(loaded, elements);
    }
#pragma unroll
    for (int j = 0; j < kWidth; ++j) states[j] = R::append(states[j], R::at(R::take(elements[j]), row));
  };
  // Of all threads, for the column `of_tile(round)` in the first lanes * kEach threads.
  State totals[kRounds];
  const bool has_total = threadIdx.x < lanes * kEach;
  const auto of_tile = [&](int round) {
    return threadIdx.x / kEach * kWidth + static_cast<std::uint32_t>(round * kEach) + threadIdx.x % kEach;
  };
  const auto reduce_deep = [&] {
    for (std::uint32_t mask = 16; mask >= lanes; mask /= 2) {
#pragma unroll
      for (State& state : states) state = R::merge(state, shuffle(state, static_cast<int>(mask)));
    }
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      __syncthreads();
      if (threadIdx.x % 32 < lanes) {
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
  if (column < columns) {
    const std::uint32_t stride = parts * deep;
    std::uint32_t row = part * deep + y;
    for (; row + (kLoads - 1) * stride < rows; row += kLoads * stride) {
      Loaded loaded[kLoads];
#pragma unroll
      for (int k = 0; k < kLoads; ++k) loaded[k] = load(row + k * stride);
#pragma unroll
      for (int k = 0; k < kLoads; ++k) add(loaded[k], row + k * stride);
    }
    if (row < rows) {
      Loaded loaded[kLoads];
#pragma unroll
      for (int k = 0; k < kLoads - 1; ++k) loaded[k] = row + k * stride < rows ? load(row + k * stride) : Loaded{};
#pragma unroll
      for (int k = 0; k < kLoads - 1; ++k) {
        if (row + k * stride < rows) add(loaded[k], row + k * stride);
      }
    }
  }
  reduce_deep();
  if (parts > 1) {
    // Those of a thread's columns side by side.
    State* const partials = static_cast<State*>(workspace) + std::uint64_t{tile} * (lanes * kWidth);
    const std::uint64_t of_part = std::uint64_t{gridDim.x} * (lanes * kWidth);
    if (has_total) {
#pragma unroll
      for (int round = 0; round < kRounds; ++round) partials[part * of_part + of_tile(round)] = totals[round];
    }
    if (!is_last_to_arrive(&counters[tile], parts)) return;
    clear();
    struct alignas(kWidth * sizeof(State) < 16 ? sizeof(State) : 16) Partial {
      State states[kWidth];
    };
    const auto partial = [&](std::uint32_t p) -> const Partial& {
      return *reinterpret_cast<const Partial*>(partials + p * of_part + lane * kWidth);
    };
    if constexpr (sizeof(Partial) >= 128) {  // registers have no room for another
#pragma unroll 1
      for (std::uint32_t p = y; p < parts; p += deep) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) states[j] = R::merge(states[j], partial(p).states[j]);
      }
    } else {
      constexpr int kBatch = sizeof(Partial) <= 16 ? 8 : 128 / sizeof(Partial);
#pragma unroll 1
      for (std::uint32_t p = y; p < parts; p += kBatch * deep) {
        Partial held[kBatch];
#pragma unroll
        for (int k = 0; k < kBatch; ++k) held[k] = partial(min(p + k * deep, parts - 1));
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          if (p + k * deep >= parts) break;
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
    const std::uint64_t at = std::uint64_t{tile} * (lanes * kWidth) + of_tile(round);
    if (at < columns) R::write(out, at, totals[round], divisor);
  }
}

template <ReduceOp kOp, class T, bool kOfColumns>
void reduce_on_host(HostGrid, void* out, const void* in, const void* other, std::uint32_t*, void*, std::uint64_t rows,
                    std::uint64_t columns, std::uint32_t, std::uint32_t, double divisor) {
  using Result = typename Reduction<kOp, T>::Result;
  using Exact = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  const auto element = [](const void* from, std::uint64_t i) {
    return static_cast<Exact>(to_value(static_cast<const T*>(from)[i]));
  };
  for (std::uint64_t r = 0; r < (kOfColumns ? columns : rows); ++r) {
    const Exact exact = reduce_reference(kOp, kOfColumns ? rows : columns, [&](std::uint64_t i) {
      const std::uint64_t at = kOfColumns ? i * columns + r : r * columns + i;
      return kOp == ReduceOp::kDot ? element(in, at) * element(other, at) : element(in, at);
    });
    auto* const result = static_cast<Result*>(out) + r;
    if constexpr (std::is_same_v<Result, __half> || std::is_same_v<Result, __nv_bfloat16>) {
      *result = from_float<Result>(static_cast<float>(exact));
    } else if constexpr (std::is_floating_point_v<Result>) {
      *result = static_cast<Result>(exact / divisor);
    } else {
      *result = static_cast<Result>(exact);
    }
  }
}

template <ReduceOp kOp, DType kType, class T>
ReduceKernel of_regime(ReduceRegime regime) {
  static_assert(sizeof(typename Reduction<kOp, T>::State) == partial_bytes(kOp, kType));
  constexpr auto rows_on_host = reduce_on_host<kOp, T, false>, columns_on_host = reduce_on_host<kOp, T, true>;
  constexpr KernelResources kResources{.registers = 64, .max_threads = kReduceThreads};
  if constexpr (kOp != ReduceOp::kDot) {
    switch (regime) {
      case ReduceRegime::kLanes: return make_kernel<reduce_lanes<kOp, T>, rows_on_host, kResources>();
      case ReduceRegime::kShort: return make_kernel<reduce_short<kOp, T>, rows_on_host, kResources>();
      case ReduceRegime::kColumns:
        return make_kernel<reduce_columns<kOp, T, kPackSize<T>>, columns_on_host, kResources>();
      case ReduceRegime::kSingleColumns: return make_kernel<reduce_columns<kOp, T, 1>, columns_on_host, kResources>();
      case ReduceRegime::kBlocks: break;
    }
  }
  return make_kernel<reduce_blocks<kOp, T>, rows_on_host, kResources>();
}

template <ReduceOp kOp>
ReduceKernel of_type(DType type, ReduceRegime regime) {
  switch (type) {
    case DType::kFloat16: return of_regime<kOp, DType::kFloat16, __half>(regime);
    case DType::kBFloat16: return of_regime<kOp, DType::kBFloat16, __nv_bfloat16>(regime);
    case DType::kFloat64: return of_regime<kOp, DType::kFloat64, double>(regime);
    default: break;
  }
  if constexpr (kOp == ReduceOp::kSum || kOp == ReduceOp::kMin || kOp == ReduceOp::kMax) {
    if (type == DType::kInt32) return of_regime<kOp, DType::kInt32, std::int32_t>(regime);
    if (type == DType::kInt64) return of_regime<kOp, DType::kInt64, std::int64_t>(regime);
  }
  return of_regime<kOp, DType::kFloat32, float>(regime);  // plan_reduce lets no other pass
}

}  // namespace

ReduceKernel reduce_kernel(ReduceOp op, DType type, ReduceRegime regime) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return of_type<ReduceOp::kSum>(type, regime);
    case ReduceOp::kSumOfSquares: return of_type<ReduceOp::kSumOfSquares>(type, regime);
    case ReduceOp::kMin: return of_type<ReduceOp::kMin>(type, regime);
    case ReduceOp::kMax: return of_type<ReduceOp::kMax>(type, regime);
    case ReduceOp::kArgmax: return of_type<ReduceOp::kArgmax>(type, regime);
    case ReduceOp::kDot: break;
  }
  return of_type<ReduceOp::kDot>(type, regime);
}

}  // namespace cgrt::kernels
