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

// What a thread has of a row, and of the bias.
template <class Pack>
struct Biased {
  Pack x, bias;

  __device__ __forceinline__ void load(const void* from, std::uint64_t at, const void* biases, std::uint32_t pack) {
    x = static_cast<const Pack*>(from)[at];
    bias = static_cast<const Pack*>(biases)[pack];
  }
  template <int kSize>
  __device__ __forceinline__ void sum(float (&values)[kSize]) const {
    float others[kSize];
    unpack(x, values);
    unpack(bias, others);
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] += others[i];
  }
};

// Each thread has packs of the output, a block's threads apart. The other half of a gate is row_packs behind.
template <BiasActivation kActivation, BiasGate kGate, class T, Alignment kAlignment>
__global__ void __launch_bounds__(kBiasActivationBlock)
    bias_activation(const __grid_constant__ BiasActivationParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kSize = kPackSizeFor<T, kAlignment>;
  constexpr std::uint32_t kPacks = kAlignment == Alignment::kAligned ? kBiasActivationPacks : kBiasActivationElements;
  constexpr bool kIsGated = kGate == BiasGate::kGated;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * (kBiasActivationBlock * kPacks) + threadIdx.x;
  const std::uint32_t row_packs = p.row_packs.value();
  auto [row, pack] = p.row_packs.divide(first);
  wait_for_predecessors();
  let_dependents_start();
  Biased<Pack> biased[kPacks], others[kIsGated ? kPacks : 1];
  std::uint32_t count = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < kPacks; ++i) {
    if (row < p.rows) {
      const std::uint64_t at = (kIsGated ? 2 * row : row) * row_packs + pack;
      biased[i].load(p.args.a, at, p.args.bias, pack);
      if constexpr (kIsGated) others[i].load(p.args.a, at + row_packs, p.args.bias, pack + row_packs);
      count = i + 1;
    }
    row += p.step_rows, pack += p.step_packs;
    if (pack >= row_packs) pack -= row_packs, ++row;
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kPacks; ++i) {
    if (i >= count) return;
    float values[kSize], factors[kSize];
    biased[i].sum(values);
    if constexpr (kIsGated) others[i].sum(factors);
#pragma unroll
    for (int k = 0; k < kSize; ++k) {
      values[k] = activated<kActivation, T>(values[k]);
      if constexpr (kIsGated) values[k] *= factors[k];
    }
    Pack result;
    pack_into(result, values);
    static_cast<Pack*>(p.args.out)[first + i * kBiasActivationBlock] = result;
  }
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
