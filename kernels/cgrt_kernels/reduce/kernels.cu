#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/reduce/reference.h"
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
  constexpr int kLoads = kWidth == 1 ? 8 : kWidth == 8 && R::kIsArgmax ? 2 : 4;  // or registers would not do
  __shared__ __align__(16) unsigned char bytes[kWidth * kReduceThreads / 2 * sizeof(State)];
  const auto shared = reinterpret_cast<State(*)[kReduceThreads / 2]>(bytes);
  wait_for_predecessors();
  let_dependents_start();
  const std::uint32_t tile = blockIdx.x, part = blockIdx.y;
  const std::uint32_t y = threadIdx.x / lanes, deep = blockDim.x / lanes;
  const std::uint64_t column = (std::uint64_t{tile} * lanes + threadIdx.x % lanes) * kWidth;
  const bool has_columns = column < columns;

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
  const auto reduce_deep = [&] {
    for (std::uint32_t half = deep / 2; half > 0; half /= 2) {
      __syncthreads();
      if (y >= half && y < 2 * half) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) shared[j][threadIdx.x - half * lanes] = states[j];
      }
      __syncthreads();
      if (y < half) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) states[j] = R::merge(states[j], shared[j][threadIdx.x]);
      }
    }
  };

  clear();
  if (has_columns) {
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
    // Those of neighbouring threads beside each other.
    const auto partial = [&](std::uint32_t of_part, int j) -> State& {
      const std::uint64_t line = (std::uint64_t{of_part} * gridDim.x + tile) * kWidth + static_cast<std::uint32_t>(j);
      return static_cast<State*>(workspace)[line * lanes + threadIdx.x % lanes];
    };
    if (y == 0) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) partial(part, j) = states[j];
    }
    if (!is_last_to_arrive(&counters[tile], parts)) return;
    clear();
    for (std::uint32_t p = y; p < parts; p += deep) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) states[j] = R::merge(states[j], partial(p, j));
    }
    reduce_deep();
  }
  if (y == 0 && has_columns) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) R::write(out, column + j, states[j], divisor);
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
