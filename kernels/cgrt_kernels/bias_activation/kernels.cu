#include "cgrt_kernels/bias_activation/kernels.h"

#include <cstdint>

#include "cgrt_kernels/bias_activation/reference.h"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/elementwise/functors.cuh"

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

// A pack of a row with its bias.
template <class Pack, int kSize, class T>
__device__ __forceinline__ void load_biased(float (&values)[kSize], const T* from, const T* bias) {
  const Pack x = *reinterpret_cast<const Pack*>(from), added = *reinterpret_cast<const Pack*>(bias);
  float others[kSize];
  unpack(x, values);
  unpack(added, others);
#pragma unroll
  for (int i = 0; i < kSize; ++i) values[i] += others[i];
}

// Each thread has a pack of the output.
template <BiasActivation kActivation, BiasGate kGate, class T, Alignment kAlignment>
__global__ void __launch_bounds__(kBiasActivationBlock)
    bias_activation(const __grid_constant__ BiasActivationParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kSize = kPackSizeFor<T, kAlignment>;
  constexpr bool kIsGated = kGate == BiasGate::kGated;
  const std::uint64_t at = std::uint64_t{blockIdx.x} * kBiasActivationBlock + threadIdx.x;
  const auto [row, pack] = p.row_packs.divide(at);
  const T* const bias = static_cast<const T*>(p.args.bias) + pack * kSize;
  const T* const a = static_cast<const T*>(p.args.a) + (at + (kIsGated ? row * p.row_packs.value() : 0)) * kSize;
  wait_for_predecessors();
  let_dependents_start();
  if (row >= p.rows) return;

  float values[kSize], others[kSize];
  load_biased<Pack>(values, a, bias);
  if constexpr (kIsGated) load_biased<Pack>(others, a + p.columns, bias + p.columns);
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    values[i] = activated<kActivation, T>(values[i]);
    if constexpr (kIsGated) values[i] *= others[i];
  }
  Pack result;
  pack_into(result, values);
  *reinterpret_cast<Pack*>(static_cast<T*>(p.args.out) + at * kSize) = result;
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
Kernel<BiasActivationParams> of_type(DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return make_kernel<bias_activation<kActivation, kGate, T, kAlignment>,
                       bias_activation_on_host<kActivation, kGate, T>,
                       KernelResources{.registers = 48, .max_threads = kBiasActivationBlock}>();
  });
}

template <BiasActivation kActivation>
Kernel<BiasActivationParams> of_gate(BiasGate gate, DType type, Alignment alignment) {
  return gate == BiasGate::kGated ? of_type<kActivation, BiasGate::kGated>(type, alignment)
                                  : of_type<kActivation, BiasGate::kNone>(type, alignment);
}

}  // namespace

Kernel<BiasActivationParams> bias_activation_kernel(BiasActivation activation, BiasGate gate, DType type,
                                                    Alignment alignment) {
  switch (activation) {
    case BiasActivation::kRelu: return of_gate<BiasActivation::kRelu>(gate, type, alignment);
    case BiasActivation::kSilu: return of_gate<BiasActivation::kSilu>(gate, type, alignment);
    case BiasActivation::kGelu: return of_gate<BiasActivation::kGelu>(gate, type, alignment);
    case BiasActivation::kGeluTanh: break;
  }
  return of_gate<BiasActivation::kGeluTanh>(gate, type, alignment);
}

}  // namespace cgrt::kernels
