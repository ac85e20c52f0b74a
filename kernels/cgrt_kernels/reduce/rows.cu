// Reductions of rows, and of whole arrays.
#include <cstdint>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/reduce/reduce.cuh"

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

  // A thread's first element of those at the ends is asked for before the packs; of two arrays it would take too many
  // registers.
  const auto end_at = [=](std::uint64_t i) { return i < lead ? i : i + packs * kSize; };
  const bool has_end = !R::kIsDot && thread < ends;
  const T end = has_end ? x[end_at(thread)] : T{};
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
  if (has_end) state = R::merge(state, R::at(reduce_element<R>(&end, y, 0), end_at(thread)));
  for (i = R::kIsDot ? thread : thread + threads; i < ends; i += threads) {
    state = R::merge(state, R::at(reduce_element<R>(x, y, end_at(i)), end_at(i)));
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
__global__ void __launch_bounds__(128, 8) reduce_lanes(const __grid_constant__ ReduceParams p) {
  using R = Reduction<kOp, T>;
  wait_for_predecessors();
  let_dependents_start();
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t row = thread >> (31 - __clz(static_cast<int>(p.lanes)));
  const std::uint32_t lane = threadIdx.x & (p.lanes - 1);
  const T* const x = static_cast<const T*>(p.in) + row * p.columns;
  const T* const y = static_cast<const T*>(p.other) + row * p.columns;
  typename R::State state = R::none();
  if (row < p.rows) state = reduce_row<R>(x, y, p.columns, lane, p.lanes);
  for (std::uint32_t mask = p.lanes / 2; mask > 0; mask /= 2) {
    state = R::merge(state, shuffle(state, static_cast<int>(mask)));
  }
  if (lane == 0 && row < p.rows) R::write(p.out, row, position<R>(x, state), p.divisor);
}

template <class R, class T>
__device__ __forceinline__ void write_single(void* out, std::uint64_t at, T element, double divisor) {
  R::write(out, at, R::append(R::at(R::no_value(), 0), R::at(R::take(to_value(element)), 0)), divisor);
}

// Rows of one element: each thread has 16 bytes of them, or of their results.
template <ReduceOp kOp, class T>
__global__ void __launch_bounds__(kReduceSingleBlock) reduce_single(const __grid_constant__ ReduceParams p) {
  using R = Reduction<kOp, T>;
  using Result = typename R::Result;
  constexpr std::uint32_t kEach = 16 / (sizeof(T) > sizeof(Result) ? sizeof(T) : sizeof(Result));
  struct alignas(kEach * sizeof(T)) Elements {
    T values[kEach];
  };
  struct alignas(kEach * sizeof(Result)) Results {
    Result values[kEach];
  };
  const auto* const in = static_cast<const T*>(p.in);
  const std::uint64_t first = (std::uint64_t{blockIdx.x} * kReduceSingleBlock + threadIdx.x) * kEach;
  wait_for_predecessors();
  let_dependents_start();
  if (first + kEach > p.rows) {
    for (std::uint64_t row = first; row < p.rows; ++row) write_single<R>(p.out, row, in[row], p.divisor);
    return;
  }
  const Elements elements = *reinterpret_cast<const Elements*>(in + first);
  Results results;
#pragma unroll
  for (std::uint32_t k = 0; k < kEach; ++k) write_single<R>(results.values, k, elements.values[k], p.divisor);
  *reinterpret_cast<Results*>(static_cast<Result*>(p.out) + first) = results;
}

// Short rows, wherever they begin: a block brings `each` rows for each of its threads into shared memory. Behind each
// 32 words there is a gap of 4, so that threads with a row each do not meet in a bank.
template <ReduceOp kOp, class T>
__global__ void __launch_bounds__(kReduceShortBlock) reduce_short(const __grid_constant__ ReduceParams p) {
  using R = Reduction<kOp, T>;
  using Pack = typename ReduceInput<T>::Pack;
  constexpr std::uint32_t kSize = sizeof(T), kWords = kReduceShortBytes / 4 + 4;  // those before the first element, too
  __shared__ __align__(16) std::uint32_t words[kWords + kWords / 32 * 4 + 4];
  const std::uint32_t of_block = kReduceShortBlock * p.each;
  const auto length = static_cast<std::uint32_t>(p.columns);
  const std::uint64_t first = std::uint64_t{blockIdx.x} * of_block;
  const auto here = static_cast<std::uint32_t>(min(std::uint64_t{of_block}, p.rows - first));
  wait_for_predecessors();
  let_dependents_start();

  // Bytes count from the 16 in which the block's rows begin: they end before `end`.
  const T* const from = static_cast<const T*>(p.in) + first * p.columns;
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
    R::write(p.out, first + row, state, p.divisor);
  }
}

// A row for each blockIdx.x; `parts` blocks share it. The last of them to begin, when all are under way, takes the
// parts. These say themselves whether they are there: sooner than a fence and a count of those that are done.
template <ReduceOp kOp, class T>
__global__ void __launch_bounds__(kReduceThreads, 3) reduce_blocks(const __grid_constant__ ReduceParams p) {
  using R = Reduction<kOp, T>;
  using State = typename R::State;
  wait_for_predecessors();
  let_dependents_start();
  const std::uint32_t row = blockIdx.x, part = blockIdx.y;
  Published<State>* const published = static_cast<Published<State>*>(p.partials) + std::uint64_t{row} * p.parts;
  std::uint32_t begun_before = 0;
  if (p.parts > 1 && threadIdx.x == 0) {
    begun_before = arrive(&p.counters[row], p.parts);
    // Or the rest of a sector of the cache would be fetched only when this part is taken.
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(published + part)));
  }
  const T* const x = static_cast<const T*>(p.in) + row * p.columns;
  const T* const y = static_cast<const T*>(p.other) + row * p.columns;
  State state = reduce_block<R>(
      reduce_row<R>(x, y, p.columns, part * blockDim.x + threadIdx.x, std::uint64_t{p.parts} * blockDim.x));
  if (p.parts > 1) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
      publish(published + part, state, kPartTag);
      is_last = begun_before == p.parts - 1;
    }
    __syncthreads();
    if (!is_last) return;
    state = R::none();
    for (std::uint32_t i = threadIdx.x; i < p.parts; i += blockDim.x) state = R::merge(state, take_part(published + i));
    state = reduce_block<R>(state);
  }
  if (threadIdx.x == 0) R::write(p.out, row, position<R>(x, state), p.divisor);
}

}  // namespace

ReduceKernel reduce_rows_kernel(ReduceOp op, DType type, ReduceRegime regime) {
  return of_reduction(op, type, [=]<ReduceOp kOp, class T>() {
    constexpr auto on_host = reduce_on_host<kOp, T, false>;
    if constexpr (kOp != ReduceOp::kDot) {
      switch (regime) {
        case ReduceRegime::kSingle: return make_kernel<reduce_single<kOp, T>, on_host, kReduceResources>();
        case ReduceRegime::kLanes: return make_kernel<reduce_lanes<kOp, T>, on_host, kReduceResources>();
        case ReduceRegime::kShort: return make_kernel<reduce_short<kOp, T>, on_host, kReduceResources>();
        case ReduceRegime::kBlocks: break;
      }
    }
    return make_kernel<reduce_blocks<kOp, T>, on_host, kReduceResources>();
  });
}

}  // namespace cgrt::kernels
