// What atomics add up of 16-bit types: floats that are nothing at first, and become part of the result at the end. One
// for each element of the result, or where few indices name many rows, a row of them for each index.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/index/kernels.h"
#include "cgrt_kernels/index/row_at.cuh"

namespace cgrt::kernels {
namespace {

// The sum of nothing: any number is the same after it was added, and no other sum is -0 but those of -0.
constexpr float kNothing = -0.0f;
constexpr std::uint32_t kBitsOfNothing = 0x80000000u;

template <Alignment kAlignment, int kCount>
__device__ __forceinline__ void load_sums(const float* sums, float (&values)[kCount]) {
  if constexpr (kAlignment == Alignment::kAligned) {
#pragma unroll
    for (int k = 0; k < kCount; k += 4) {
      const float4 four = *reinterpret_cast<const float4*>(sums + k);
      values[k] = four.x, values[k + 1] = four.y, values[k + 2] = four.z, values[k + 3] = four.w;
    }
  } else {
    values[0] = sums[0];
  }
}

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
  const Pack held = static_cast<Pack*>(p.out)[pack];
  float values[kCount], added[kCount];
  load_sums<kAlignment>(p.sums + first, added);
  unpack(held, values);
  bool has_sum[kCount], has_sums = false;
#pragma unroll
  for (int k = 0; k < kCount; ++k) has_sum[k] = add(values[k], added[k]), has_sums |= has_sum[k];
  if (!has_sums) return;
  Pack summed;
  pack_into(summed, values);
  // A conversion may change the bits of NaN.
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    if (!has_sum[k]) reinterpret_cast<T*>(&summed)[k] = reinterpret_cast<const T*>(&held)[k];
  }
  static_cast<Pack*>(p.out)[pack] = summed;
}

// Of several indices that name a row, any one becomes its owner: the last whose word arrives.
__global__ void __launch_bounds__(kIndexBlock) clear_owned(OwnedSumsParams p) {
  const std::uint32_t item = blockIdx.x * kIndexBlock + threadIdx.x;
  let_dependents_start();
  wait_for_predecessors();
  if (item < p.items) reinterpret_cast<float4*>(p.sums)[item] = {kNothing, kNothing, kNothing, kNothing};
  if (item >= p.count) return;
  const std::uint32_t row = row_at(p, item);
  if (row != kNoRow) p.owners[row] = item;
}

// A thread has a column of kLines indices. What several of them add to one row goes there at once: where most indices
// name one row, its sums are what all wait for.
template <class T, int kLines>
__global__ void __launch_bounds__(kIndexBlock) add_to_owners(OwnedSumsParams p) {
  const std::uint32_t item = blockIdx.x * kIndexBlock + threadIdx.x, columns = p.packs.value();
  let_dependents_start();
  wait_for_predecessors();
  if (item >= p.items) return;
  const std::uint32_t group = p.packs.quotient(item), column = item - group * columns, first = group * kLines;
  std::uint32_t owner[kLines];
  T value[kLines];
#pragma unroll
  for (int i = 0; i < kLines; ++i) {
    owner[i] = kNoRow, value[i] = T{};
    if (first + i >= p.count) continue;
    owner[i] = row_at(p, first + i);
    value[i] = static_cast<const T*>(p.in)[(first + i) * columns + column];
  }
#pragma unroll
  for (int i = 0; i < kLines; ++i) {
    if (owner[i] != kNoRow) owner[i] = p.owners[owner[i]];
  }
#pragma unroll
  for (int i = 0; i < kLines; ++i) {
    if (owner[i] == kNoRow) continue;
    float sum = to_float(value[i]);
#pragma unroll
    for (int other = i + 1; other < kLines; ++other) {
      if (owner[other] != owner[i]) continue;
      sum += to_float(value[other]), owner[other] = kNoRow;
    }
    atomicAdd(p.sums + std::uint64_t{owner[i]} * columns + column, sum);
  }
}

// Each index adds the sums that stand at its own place, if it is an owner.
template <class T, Alignment kAlignment>
__global__ void __launch_bounds__(kIndexBlock) add_owned(OwnedSumsParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kCount = kPackSizeFor<T, kAlignment>;
  const std::uint32_t item = blockIdx.x * kIndexBlock + threadIdx.x;
  let_dependents_start();
  wait_for_predecessors();
  if (item >= p.items) return;
  const std::uint32_t line = p.packs.quotient(item), row = row_at(p, line);
  if (row == kNoRow) return;
  Pack* const to = static_cast<Pack*>(p.out) + std::uint64_t{row} * p.packs.value() + p.packs.remainder(item);
  // Before it is known whether they are needed: one latency less.
  const std::uint32_t owner = p.owners[row];
  float added[kCount];
  load_sums<kAlignment>(p.sums + std::uint64_t{item} * kCount, added);
  Pack held = *to;
  if (owner != line) return;
  float values[kCount];
  unpack(held, values);
#pragma unroll
  for (int k = 0; k < kCount; ++k) values[k] += p.alpha * added[k];
  pack_into(held, values);
  *to = held;
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

void clear_owned_on_host(HostGrid, OwnedSumsParams p) {
  std::fill_n(p.sums, std::uint64_t{p.items} * 4, kNothing);
  for (std::uint32_t i = 0; i < p.count; ++i) {
    const std::uint32_t row = row_at(p, i);
    if (row != kNoRow) p.owners[row] = i;
  }
}

template <class T>
void add_to_owners_on_host(HostGrid, OwnedSumsParams p) {
  const std::uint64_t columns = p.packs.value();
  std::vector<double> sums(p.sums, p.sums + p.count * columns);
  for (std::uint64_t i = 0; i < p.count; ++i) {
    const std::uint32_t row = row_at(p, static_cast<std::uint32_t>(i));
    if (row == kNoRow) continue;
    for (std::uint64_t j = 0; j < columns; ++j) {
      sums[p.owners[row] * columns + j] += static_cast<double>(to_float(static_cast<const T*>(p.in)[i * columns + j]));
    }
  }
  std::copy(sums.begin(), sums.end(), p.sums);
}

template <class T, Alignment kAlignment>
void add_owned_on_host(HostGrid, OwnedSumsParams p) {
  const std::uint64_t columns = std::uint64_t{p.packs.value()} * kPackSizeFor<T, kAlignment>;
  for (std::uint64_t i = 0; i < p.count; ++i) {
    const std::uint32_t row = row_at(p, static_cast<std::uint32_t>(i));
    if (row == kNoRow || p.owners[row] != i) continue;
    for (std::uint64_t j = 0; j < columns; ++j) {
      T& element = static_cast<T*>(p.out)[row * columns + j];
      element = from_float<T>(
          static_cast<float>(static_cast<double>(to_float(element)) +
                             static_cast<double>(p.alpha) * static_cast<double>(p.sums[i * columns + j])));
    }
  }
}

constexpr KernelResources kResources{.registers = 40, .max_threads = kIndexBlock};

template <class T>
AddSumsKernel of_type(Alignment alignment) {
  return alignment == Alignment::kAligned
             ? make_kernel<add_sums<T, Alignment::kAligned>, add_on_host<T>, kResources>()
             : make_kernel<add_sums<T, Alignment::kUnaligned>, add_on_host<T>, kResources>();
}

template <class T>
OwnedSumsKernel owned_of_type(Alignment alignment) {
  constexpr Alignment kAligned = Alignment::kAligned, kUnaligned = Alignment::kUnaligned;
  return alignment == kAligned ? make_kernel<add_owned<T, kAligned>, add_owned_on_host<T, kAligned>, kResources>()
                               : make_kernel<add_owned<T, kUnaligned>, add_owned_on_host<T, kUnaligned>, kResources>();
}

}  // namespace

OwnedSumsKernel clear_owned_kernel() { return make_kernel<clear_owned, clear_owned_on_host, kResources>(); }

OwnedSumsKernel add_to_owners_kernel(DType type, std::uint32_t lines) {
  const auto of_type = [=]<class T>() {
    return lines == 1 ? make_kernel<add_to_owners<T, 1>, add_to_owners_on_host<T>, kResources>()
                      : make_kernel<add_to_owners<T, kOwnedLines>, add_to_owners_on_host<T>, kResources>();
  };
  return type == DType::kFloat16 ? of_type.template operator()<__half>() : of_type.template operator()<__nv_bfloat16>();
}

OwnedSumsKernel add_owned_kernel(DType type, Alignment alignment) {
  return type == DType::kFloat16 ? owned_of_type<__half>(alignment) : owned_of_type<__nv_bfloat16>(alignment);
}

ClearSumsKernel clear_sums_kernel() { return make_kernel<clear_sums, clear_on_host, kResources>(); }

AddSumsKernel add_sums_kernel(DType type, Alignment alignment) {
  return type == DType::kFloat16 ? of_type<__half>(alignment) : of_type<__nv_bfloat16>(alignment);
}

}  // namespace cgrt::kernels
