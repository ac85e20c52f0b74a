#include "cgrt_kernels/bias_activation/kernels.h"

#include <cstdint>
#include <cstring>

#include "cgrt_kernels/bias_activation/reference.h"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/word.cuh"
#include "cgrt_kernels/elementwise/functors.cuh"
#include "cgrt_kernels/elementwise/map.cuh"

namespace cgrt::kernels {
namespace {

// For results of the type T.
template <BiasActivation kActivation, class T>
__device__ __forceinline__ float activated(float x) {
  if constexpr (kActivation == BiasActivation::kRelu) {
    return x < 0 ? 0 : x;
  } else if constexpr (kActivation == BiasActivation::kSilu) {
    return silu_of(x);
  } else if constexpr (kActivation == BiasActivation::kGelu) {
    return sizeof(T) == 2 ? short_gelu_of(x) : gelu_of(x);
  } else {
    return gelu_tanh_of(x);
  }
}

template <int kSize>
__device__ __forceinline__ void add(float (&values)[kSize], const float (&others)[kSize]) {
#pragma unroll
  for (int i = 0; i < kSize; ++i) values[i] += others[i];
}

// kBytes of an aligned array, 4 to 16, as floats.
template <class T, int kBytes>
struct Elements {
  static constexpr int kWords = kBytes / 4, kSize = kBytes / sizeof(T), kWordSize = Word<T>::kSize;
  using Bits = typename internal::BitsOf<kBytes>::Type;
  float of[kSize];

  __device__ __forceinline__ explicit Elements(const Bits& bits) {
    std::uint32_t words[kWords];
    std::memcpy(words, &bits, kBytes);
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      Word<T>::unpack(words[i], reinterpret_cast<float(&)[kWordSize]>(of[i * kWordSize]));
    }
  }
  __device__ __forceinline__ Bits bits() const {
    std::uint32_t words[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      words[i] = Word<T>::pack(reinterpret_cast<const float(&)[kWordSize]>(of[i * kWordSize]));
    }
    Bits bits;
    std::memcpy(&bits, words, kBytes);
    return bits;
  }
};

// Each thread has a pack of the output, of kBytes. The other half of a gate is a row of the output behind.
template <BiasActivation kActivation, BiasGate kGate, class T, int kBytes>
__global__ void __launch_bounds__(kBiasActivationBlock)
    bias_activation(const __grid_constant__ BiasActivationParams p) {
  using Packed = Elements<T, kBytes>;
  using Bits = typename Packed::Bits;
  constexpr bool kIsGated = kGate == BiasGate::kGated;
  const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint32_t row_packs = p.row_items.value();
  const auto [row, pack] = p.row_items.divide(at);
  const Bits* const a = static_cast<const Bits*>(p.args.a) + at + (kIsGated ? row * row_packs : 0);
  const Bits* const bias = static_cast<const Bits*>(p.args.bias) + pack;
  wait_for_predecessors();
  let_dependents_start();
  if (row >= p.rows) return;

  const Bits x = *a, x_bias = *bias;
  Bits y, y_bias;
  if constexpr (kIsGated) y = a[row_packs], y_bias = bias[row_packs];
  Packed values(x);
  add(values.of, Packed(x_bias).of);
#pragma unroll
  for (float& value : values.of) value = activated<kActivation, T>(value);
  if constexpr (kIsGated) {
    Packed factors(y);
    add(factors.of, Packed(y_bias).of);
#pragma unroll
    for (int i = 0; i < Packed::kSize; ++i) values.of[i] *= factors.of[i];
  }
  static_cast<Bits*>(p.args.out)[at] = values.bits();
}

template <BiasActivation kActivation, BiasGate kGate, class T>
struct Unaligned {
  static constexpr int kPack = kPackSize<T>;
  using Shifted = internal::ShiftedPack<T, kPack>;
  const T *a, *bias;
  std::uint32_t columns;

  __device__ __forceinline__ const T* row_at(std::uint64_t row) const {
    return a + row * columns * (kGate == BiasGate::kGated ? 2 : 1);
  }
  __device__ __forceinline__ T of_element(std::uint64_t row, std::uint32_t column) const {
    const T* const from = row_at(row) + column;
    float value = activated<kActivation, T>(to_float(*from) + to_float(bias[column]));
    if constexpr (kGate == BiasGate::kGated) value *= to_float(from[columns]) + to_float(bias[columns + column]);
    return from_float<T>(value);
  }
  // Of a pack of a row, with one more behind it in the row: no read reaches behind the arrays.
  __device__ __forceinline__ Pack<T, kPack> of_pack(std::uint64_t row, std::uint32_t column) const {
    const T* const from = row_at(row) + column;
    const Shifted x(from), x_bias(bias + column);
    Pack<T, kPack> result;
    if constexpr (kGate == BiasGate::kGated) {
      const Shifted y(from + columns), y_bias(bias + columns + column);
      const Pack<T, kPack> first = x.take(), added = x_bias.take(), second = y.take(), second_added = y_bias.take();
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        const float value = activated<kActivation, T>(to_float(first.of[i]) + to_float(added.of[i]));
        result.of[i] = from_float<T>(value * (to_float(second.of[i]) + to_float(second_added.of[i])));
      }
    } else {
      const Pack<T, kPack> first = x.take(), added = x_bias.take();
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        result.of[i] = from_float<T>(activated<kActivation, T>(to_float(first.of[i]) + to_float(added.of[i])));
      }
    }
    return result;
  }
};

// Packs that are aligned in the output, but for one at either end, so that the two that one of an input lies in are
// inside of it. What is before and behind, the threads of the last block have, element by element.
template <BiasActivation kActivation, BiasGate kGate, class T>
__global__ void __launch_bounds__(kBiasActivationBlock)
    bias_activation_unaligned(const __grid_constant__ BiasActivationParams p) {
  constexpr int kPack = kPackSize<T>;
  const Unaligned<kActivation, kGate, T> in{static_cast<const T*>(p.args.a), static_cast<const T*>(p.args.bias),
                                            p.columns};
  T* const out = static_cast<T*>(p.args.out);
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns;
  const std::uint32_t begin = internal::begin_of_packs<kPack>(out, true);
  const std::uint64_t packs = count < begin + kPack ? 0 : (count - begin - kPack) / kPack;
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  wait_for_predecessors();
  let_dependents_start();
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x < count - packs * kPack) {
    const std::uint64_t edge = threadIdx.x < begin ? threadIdx.x : packs * kPack + threadIdx.x;
    const auto [row, column] = p.row_items.divide(edge);
    out[edge] = in.of_element(row, column);
  }
  if (i >= packs) return;
  auto [row, column] = p.row_items.divide(begin + i * kPack);
  Pack<T, kPack> result;
  if (column + 2 * kPack <= p.columns) {
    result = in.of_pack(row, column);
  } else {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      result.of[k] = in.of_element(row, column);
      if (++column == p.columns) column = 0, ++row;
    }
  }
  internal::store_whole_pack(out + begin + i * kPack, result);
}

// An element for each thread: few of them are over sooner so than with packs, whose threads have more to do and to
// fetch.
template <BiasActivation kActivation, BiasGate kGate, class T>
__global__ void __launch_bounds__(kBiasActivationBlock)
    bias_activation_elements(const __grid_constant__ BiasActivationParams p) {
  const Unaligned<kActivation, kGate, T> in{static_cast<const T*>(p.args.a), static_cast<const T*>(p.args.bias),
                                            p.columns};
  const std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  const auto [row, column] = p.row_items.divide(at);
  wait_for_predecessors();
  let_dependents_start();
  if (row < p.rows) static_cast<T*>(p.args.out)[at] = in.of_element(row, column);
}

template <BiasActivation kActivation, BiasGate kGate, class T>
void bias_activation_on_host(HostGrid, BiasActivationParams p) {
  const auto *const a = static_cast<const T*>(p.args.a), *const bias = static_cast<const T*>(p.args.bias);
  auto* const out = static_cast<T*>(p.args.out);
  const std::uint64_t columns = p.columns, stride = kGate == BiasGate::kGated ? 2 * columns : columns;
  const auto biased = [&](std::uint64_t row, std::uint64_t column) {
    return static_cast<double>(to_float(a[row * stride + column])) + static_cast<double>(to_float(bias[column]));
  };
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column) {
      double value = bias_activation_reference(kActivation, biased(row, column));
      if (kGate == BiasGate::kGated) value *= biased(row, columns + column);
      out[row * columns + column] = from_float<T>(static_cast<float>(value));
    }
  }
}

template <BiasActivation kActivation, BiasGate kGate>
Kernel<BiasActivationParams> of_type(DType type, Alignment alignment, std::uint32_t bytes) {
  constexpr KernelResources kResources{.registers = 48, .max_threads = kBiasActivationBlock};
  return of_float_type(type, [=]<class T>() {
    constexpr auto kOnHost = bias_activation_on_host<kActivation, kGate, T>;
    if (bytes == sizeof(T)) return make_kernel<bias_activation_elements<kActivation, kGate, T>, kOnHost, kResources>();
    if (alignment == Alignment::kUnaligned) {
      return make_kernel<bias_activation_unaligned<kActivation, kGate, T>, kOnHost, kResources>();
    }
    if constexpr (sizeof(T) < 4) {
      if (bytes == 4) return make_kernel<bias_activation<kActivation, kGate, T, 4>, kOnHost, kResources>();
    }
    return bytes == 16 ? make_kernel<bias_activation<kActivation, kGate, T, 16>, kOnHost, kResources>()
                       : make_kernel<bias_activation<kActivation, kGate, T, 8>, kOnHost, kResources>();
  });
}

template <BiasActivation kActivation>
Kernel<BiasActivationParams> of_gate(BiasGate gate, DType type, Alignment alignment, std::uint32_t bytes) {
  return gate == BiasGate::kGated ? of_type<kActivation, BiasGate::kGated>(type, alignment, bytes)
                                  : of_type<kActivation, BiasGate::kNone>(type, alignment, bytes);
}

}  // namespace

Kernel<BiasActivationParams> bias_activation_kernel(BiasActivation activation, BiasGate gate, DType type,
                                                    Alignment alignment, std::uint32_t bytes) {
  switch (activation) {
    case BiasActivation::kRelu: return of_gate<BiasActivation::kRelu>(gate, type, alignment, bytes);
    case BiasActivation::kSilu: return of_gate<BiasActivation::kSilu>(gate, type, alignment, bytes);
    case BiasActivation::kGelu: return of_gate<BiasActivation::kGelu>(gate, type, alignment, bytes);
    case BiasActivation::kGeluTanh: break;
  }
  return of_gate<BiasActivation::kGeluTanh>(gate, type, alignment, bytes);
}

}  // namespace cgrt::kernels
