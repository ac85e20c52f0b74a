// What atomics add up of 16-bit types: floats that are nothing at first, and become part of the result at the end.
#include <cmath>
#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/index/index_desc.h"
#include "cgrt_kernels/index/pack_if.cuh"

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
template <class T, bool kIsPacked>
__global__ void __launch_bounds__(kIndexBlock)
    add_sums(void* out, const float* sums, float alpha, std::uint64_t count) {
  using Pack = PackIf<T, kIsPacked>;
  constexpr int kCount = kCountIf<T, kIsPacked>;
  const std::uint64_t pack = std::uint64_t{blockIdx.x} * kIndexBlock + threadIdx.x, first = pack * kCount;
  let_dependents_start();
  wait_for_predecessors();
  const auto add = [&](float& value, float sum) {
    const bool has_sum = __float_as_uint(sum) != kBitsOfNothing;
    if (has_sum) value += alpha * sum;
    return has_sum;
  };
  if (first + kCount > count) {
    for (std::uint64_t i = first; i < count; ++i) {
      T& element = static_cast<T*>(out)[i];
      float value = to_float(element);
      if (add(value, sums[i])) element = from_float<T>(value);
    }
    return;
  }
  Pack held = static_cast<Pack*>(out)[pack];
  float values[kCount], added[kCount];
  if constexpr (kIsPacked) {
#pragma unroll
    for (int k = 0; k < kCount; k += 4) {
      const float4 four = *reinterpret_cast<const float4*>(sums + first + k);
      added[k] = four.x, added[k + 1] = four.y, added[k + 2] = four.z, added[k + 3] = four.w;
    }
  } else {
    added[0] = sums[first];
  }
  unpack(held, values);
  bool has_sums = false;
#pragma unroll
  for (int k = 0; k < kCount; ++k) has_sums |= add(values[k], added[k]);
  if (!has_sums) return;
  pack_into(held, values);
  static_cast<Pack*>(out)[pack] = held;
}

void clear_on_host(HostGrid, float* sums, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) sums[i] = kNothing;
}

template <class T>
void add_on_host(HostGrid, void* out, const float* sums, float alpha, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (sums[i] == 0 && std::signbit(sums[i])) continue;
    T& element = static_cast<T*>(out)[i];
    element = from_float<T>(static_cast<float>(static_cast<double>(to_float(element)) +
                                               static_cast<double>(alpha) * static_cast<double>(sums[i])));
  }
}

constexpr KernelResources kResources{.registers = 40, .max_threads = kIndexBlock};

template <class T>
AddSumsKernel add_kernel(bool is_packed) {
  return is_packed ? make_kernel<add_sums<T, true>, add_on_host<T>, kResources>()
                   : make_kernel<add_sums<T, false>, add_on_host<T>, kResources>();
}

}  // namespace

ClearSumsKernel clear_sums_kernel() { return make_kernel<clear_sums, clear_on_host, kResources>(); }

AddSumsKernel add_sums_kernel(DType type, bool is_packed) {
  return type == DType::kFloat16 ? add_kernel<__half>(is_packed) : add_kernel<__nv_bfloat16>(is_packed);
}

}  // namespace cgrt::kernels
