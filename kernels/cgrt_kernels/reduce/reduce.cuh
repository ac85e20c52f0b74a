// What the reduction kernels share: the arithmetic of an operation, and reductions among threads.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/arrival.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/published.cuh"
#include "cgrt_kernels/reduce/kernels.h"
#include "cgrt_kernels/reduce/reference.h"

namespace cgrt::kernels {

// 16 bytes of elements, and the type that they are computed on in.
template <class T>
struct ReduceInput {
  using Pack = typename PackOf<T>::Type;
  using Value = float;
};
template <>
struct ReduceInput<double> {
  using Pack = double2;
  using Value = double;
};
template <>
struct ReduceInput<std::int32_t> {
  using Pack = int4;
  using Value = std::int32_t;
};
template <>
struct ReduceInput<std::int64_t> {
  using Pack = longlong2;
  using Value = std::int64_t;
};

__device__ __forceinline__ void unpack(const double2& pack, double (&values)[2]) {
  values[0] = pack.x, values[1] = pack.y;
}
__device__ __forceinline__ void unpack(const int4& pack, std::int32_t (&values)[4]) {
  values[0] = pack.x, values[1] = pack.y, values[2] = pack.z, values[3] = pack.w;
}
__device__ __forceinline__ void unpack(const longlong2& pack, std::int64_t (&values)[2]) {
  values[0] = pack.x, values[1] = pack.y;
}

template <class T>
__host__ __device__ typename ReduceInput<T>::Value to_value(T element) {
  if constexpr (std::is_arithmetic_v<T>) {
    return element;
  } else {
    return to_float(element);
  }
}

// A maximum and where it is: the first of equals.
template <class V>
struct Found {
  V value;
  std::uint64_t index;
};

template <class V>
__device__ __forceinline__ bool is_same(V a, V b) {
  return a == b || (a != a && b != b);
}
// a would be found instead of b.
template <class V>
__device__ __forceinline__ bool is_beyond(V a, V b) {
  return a > b || (a != a && b == b);
}

__device__ __forceinline__ float max_or_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
__device__ __forceinline__ float min_or_nan(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
template <class V>
__device__ __forceinline__ V max_or_nan(V a, V b) {
  return a > b || a != a ? a : b;
}
template <class V>
__device__ __forceinline__ V min_or_nan(V a, V b) {
  return a < b || a != a ? a : b;
}

template <class V>
__device__ __forceinline__ V lowest() {
  if constexpr (std::is_floating_point_v<V>) return -static_cast<V>(INFINITY);
  if constexpr (sizeof(V) == 4 && std::is_integral_v<V>) return INT32_MIN;
  if constexpr (sizeof(V) == 8 && std::is_integral_v<V>) return INT64_MIN;
}
template <class V>
__device__ __forceinline__ V highest() {
  if constexpr (std::is_floating_point_v<V>) return static_cast<V>(INFINITY);
  if constexpr (sizeof(V) == 4 && std::is_integral_v<V>) return INT32_MAX;
  if constexpr (sizeof(V) == 8 && std::is_integral_v<V>) return INT64_MAX;
}

// kOp on elements of T. A Value is made of elements, a State of Values: they differ for argmax only.
template <ReduceOp kOp, class T>
struct Reduction {
  using Input = typename ReduceInput<T>::Value;
  static constexpr bool kIsArgmax = kOp == ReduceOp::kArgmax;
  static constexpr bool kIsExtreme = kIsArgmax || kOp == ReduceOp::kMin || kOp == ReduceOp::kMax;
  static constexpr bool kIsDot = kOp == ReduceOp::kDot;
  using Value = std::conditional_t<!kIsExtreme && std::is_integral_v<T>, std::int64_t, Input>;
  using State = std::conditional_t<kIsArgmax, Found<Value>, Value>;
  using Result = std::conditional_t<kIsArgmax, std::int64_t, std::conditional_t<kIsExtreme, T, Value>>;

  static __device__ __forceinline__ Value take(Input element) {
    const auto value = static_cast<Value>(element);
    return kOp == ReduceOp::kSumOfSquares ? value * value : value;
  }
  static __device__ __forceinline__ Value combine(Value a, Value b) {
    if constexpr (kOp == ReduceOp::kMin) return min_or_nan(a, b);
    if constexpr (kOp == ReduceOp::kMax || kIsArgmax) return max_or_nan(a, b);
    if constexpr (!kIsExtreme) return a + b;
  }

  static __device__ __forceinline__ Value no_value() {
    if constexpr (kOp == ReduceOp::kMin) return highest<Value>();
    if constexpr (kOp == ReduceOp::kMax || kIsArgmax) return lowest<Value>();
    if constexpr (!kIsExtreme) return 0;
  }
  // Of values that begin at `index`.
  static __device__ __forceinline__ State at(Value value, std::uint64_t index) {
    if constexpr (kIsArgmax) {
      return {value, index};
    } else {
      return value;
    }
  }
  static __device__ __forceinline__ State none() { return at(no_value(), ~std::uint64_t{0}); }

  static __device__ __forceinline__ State merge(State a, State b) {
    if constexpr (kIsArgmax) {
      const bool is_b = is_beyond(b.value, a.value) || (is_same(b.value, a.value) && b.index < a.index);
      return is_b ? b : a;
    } else {
      return combine(a, b);
    }
  }
  // The same where b has the larger index.
  static __device__ __forceinline__ State append(State a, State b) {
    if constexpr (kIsArgmax) {
      return is_beyond(b.value, a.value) ? b : a;
    } else {
      return combine(a, b);
    }
  }

  static __device__ __forceinline__ void write(void* out, std::uint64_t at, State state, double divisor) {
    auto* const results = static_cast<Result*>(out);
    if constexpr (kIsArgmax) {
      results[at] = static_cast<std::int64_t>(state.index);
    } else if constexpr (std::is_integral_v<T>) {
      results[at] = state;
    } else if constexpr (kIsExtreme) {
      if constexpr (std::is_same_v<T, double>) {
        results[at] = state;
      } else {
        results[at] = from_float<T>(state);
      }
    } else {
      results[at] = divisor == 1 ? state : state / static_cast<Value>(divisor);
    }
  }
};

__device__ __forceinline__ float shuffle(float value, int mask) { return __shfl_xor_sync(~0u, value, mask); }
__device__ __forceinline__ double shuffle(double value, int mask) { return __shfl_xor_sync(~0u, value, mask); }
__device__ __forceinline__ std::int32_t shuffle(std::int32_t value, int mask) {
  return __shfl_xor_sync(~0u, value, mask);
}
__device__ __forceinline__ std::int64_t shuffle(std::int64_t value, int mask) {
  return __shfl_xor_sync(~0u, value, mask);
}
template <class V>
__device__ __forceinline__ Found<V> shuffle(Found<V> place, int mask) {
  const auto index = __shfl_xor_sync(~0u, static_cast<unsigned long long>(place.index), mask);
  return {shuffle(place.value, mask), static_cast<std::uint64_t>(index)};
}

inline constexpr std::uint32_t kReduceThreads = 512;  // of the largest block

// The result is in the first thread.
template <class R>
__device__ __forceinline__ typename R::State reduce_block(typename R::State state) {
  using State = typename R::State;
  __shared__ __align__(16) unsigned char bytes[kReduceThreads / 32 * sizeof(State)];
  auto* const partials = reinterpret_cast<State*>(bytes);
  const std::uint32_t lane = threadIdx.x % 32, warps = blockDim.x / 32;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) state = R::merge(state, shuffle(state, mask));
  if (lane == 0) partials[threadIdx.x / 32] = state;
  __syncthreads();
  if (threadIdx.x >= 32) return state;
  state = lane < warps ? partials[lane] : R::none();
#pragma unroll
  for (int mask = kReduceThreads / 64; mask > 0; mask /= 2) state = R::merge(state, shuffle(state, mask));
  return state;
}

// The tag of a part of a result from when it is published until it is taken; else its words are zero.
inline constexpr std::uint32_t kPartTag = 1;

// Waits until it was published.
template <class State>
__device__ __forceinline__ State take_part(Published<State>* part) {
  Published<State> published;
  do load_published(published, part);
  while (!published.is_there(kPartTag));
#pragma unroll
  for (std::uint64_t& word : part->words) store_word(&word, 0);
  return published.value();
}

template <ReduceOp kOp, class T, bool kOfColumns>
void reduce_on_host(HostGrid, ReduceParams p) {
  using Result = typename Reduction<kOp, T>::Result;
  using Exact = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  const auto element = [](const void* from, std::uint64_t i) {
    return static_cast<Exact>(to_value(static_cast<const T*>(from)[i]));
  };
  for (std::uint64_t r = 0; r < (kOfColumns ? p.columns : p.rows); ++r) {
    const Exact exact = reduce_reference(kOp, kOfColumns ? p.rows : p.columns, [&](std::uint64_t i) {
      const std::uint64_t at = kOfColumns ? i * p.columns + r : r * p.columns + i;
      return kOp == ReduceOp::kDot ? element(p.in, at) * element(p.other, at) : element(p.in, at);
    });
    auto* const result = static_cast<Result*>(p.out) + r;
    if constexpr (std::is_same_v<Result, __half> || std::is_same_v<Result, __nv_bfloat16>) {
      *result = from_float<Result>(static_cast<float>(exact));
    } else if constexpr (std::is_floating_point_v<Result>) {
      *result = static_cast<Result>(exact / p.divisor);
    } else {
      *result = static_cast<Result>(exact);
    }
  }
}

inline constexpr KernelResources kReduceResources{.registers = 64, .max_threads = kReduceThreads};

// get<kOp, T>() of the types that an operation has; plan_reduce lets no other pass. The mean is a sum with a divisor.
template <class Get>
ReduceKernel of_reduction(ReduceOp op, DType type, Get get) {
  const auto of_type = [=]<ReduceOp kOp>() {
    switch (type) {
      case DType::kFloat16: return get.template operator()<kOp, __half>();
      case DType::kBFloat16: return get.template operator()<kOp, __nv_bfloat16>();
      case DType::kFloat64: return get.template operator()<kOp, double>();
      default: break;
    }
    if constexpr (kOp == ReduceOp::kSum || kOp == ReduceOp::kMin || kOp == ReduceOp::kMax) {
      if (type == DType::kInt32) return get.template operator()<kOp, std::int32_t>();
      if (type == DType::kInt64) return get.template operator()<kOp, std::int64_t>();
    }
    return get.template operator()<kOp, float>();
  };
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return of_type.template operator()<ReduceOp::kSum>();
    case ReduceOp::kSumOfSquares: return of_type.template operator()<ReduceOp::kSumOfSquares>();
    case ReduceOp::kMin: return of_type.template operator()<ReduceOp::kMin>();
    case ReduceOp::kMax: return of_type.template operator()<ReduceOp::kMax>();
    case ReduceOp::kArgmax: return of_type.template operator()<ReduceOp::kArgmax>();
    case ReduceOp::kDot: break;
  }
  return of_type.template operator()<ReduceOp::kDot>();
}

}  // namespace cgrt::kernels
