// What atomics add up of 16-bit types: floats that are nothing at first, and become part of the result at the end.
#include <cmath>
#include <cstdint>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/index/kernels.h"

namespace cgrt::kernels {
namespace {

// The sum of nothing: any number is the same after it was added, and no other sum is -0 but those of -0.
constexpr float kNothing = -0.0f;
constexpr std::uint32_t kBitsOfNothing = 0x80000000u;

// Whole 16 bytes, as many as the workspace has room for.
__global__ void __launch_bounds__(kIndexBlock) clear_sums(float* sums, std::uint64_t count) {
  const std::uint64_t first = (std::uint64_t{blockIdx.x} * kIndexBlock + threadIdx.x) * 4;
  let_dependents_start();
  wait_for_predecessors();
  if (first < count) *reinterpret_cast<float4*>(sums + first) = {kNothing, kNothing, kNothing, kNothing};
}

// Elements to which nothing was added stay as they are, whatever alpha is.
template <class T, Alignment kAlignment>
__global__ void __launch_bounds__(kIndexBlock) add_sums(AddSumsParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kCount = kPackSizeFor<T, kAlignment>;
  const std::uint64_t pack = std::uint64_t{blockIdx.x} * kIndexBlock + threadIdx.x, first = pack * kCount;
  let_dependents_start();
  wait_for_predecessors();
  const auto add = [&](float& value, float sum) {
    const bool has_sum = __float_as_uint(sum) != kBitsOfNothing;
    if (has_sum) value += p.alpha * sum;
    return has_sum;
  };
  if (first + kCount > p.count) {
    for (std::uint64_t i = first; i < p.count; ++i) {
      T& element = static_cast<T*>(p.out)[i];
      float value = to_float(element);
      if (add(value, p.sums[i])) element = from_float<T>(value);
    }
    return;
  }
  Pack held = static_cast<Pack*>(p.out)[pack];
  float values[kCount], added[kCount];
  if constexpr (kAlignment == Alignment::kAligned) {
#pragma unroll
    for (int k = 0; k < kCount; k += 4) {
      const float4 four = *reinterpret_cast<const float4*>(p.sums + first + k);
      added[k] = four.x, added[k + 1] = four.y, added[k + 2] = four.z, added[k + 3] = four.w;
    }
  } else {
    added[0] = p.sums[first];
  }
  unpack(held, values);
  bool has_sums = false;
#pragma unroll
  for (int k = 0; k < kCount; ++k) has_sums |= add(values[k], added[k]);
  if (!has_sums) return;
  pack_into(held, values);
  static_cast<Pack*>(p.out)[pack] = held;
}

void clear_on_host(HostGrid, float* sums, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) sums[i] = kNothing;
}

template <class T>
void add_on_host(HostGrid, AddSumsParams p) {
  for (std::uint64_t i = 0; i < p.count; ++i) {
    if (p.sums[i] == 0 && std::signbit(p.sums[i])) continue;
    T& element = static_cast<T*>(p.out)[i];
    element = from_float<T>(static_cast<float>(static_cast<double>(to_float(element)) +
                                               static_cast<double>(p.alpha) * static_cast<double>(p.sums[i])));
  }
}

constexpr KernelResources kResources{.registers = 40, .max_threads = kIndexBlock};

template <class T>
AddSumsKernel of_type(Alignment alignment) {
  return alignment == Alignment::kAligned
             ? make_kernel<add_sums<T, Alignment::kAligned>, add_on_host<T>, kResources>()
             : make_kernel<add_sums<T, Alignment::kUnaligned>, add_on_host<T>, kResources>();
}

}  // namespace

ClearSumsKernel clear_sums_kernel() { return make_kernel<clear_sums, clear_on_host, kResources>(); }

AddSumsKernel add_sums_kernel(DType type, Alignment alignment) {
  return type == DType::kFloat16 ? of_type<__half>(alignment) : of_type<__nv_bfloat16>(alignment);
}

}  // namespace cgrt::kernels
