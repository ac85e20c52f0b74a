#include <algorithm>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/index/pack_if.cuh"
#include "cgrt_kernels/index/reference.h"

namespace cgrt::kernels {
namespace {

// ~0 for one that is not a row.
__host__ __device__ __forceinline__ std::uint32_t row_at(const void* index, std::uint64_t i, const IndexShape& shape) {
  const std::int64_t row =
      shape.is_long ? static_cast<const std::int64_t*>(index)[i] : static_cast<const std::int32_t*>(index)[i];
  return row >= 0 && row < shape.rows ? static_cast<std::uint32_t>(row) : ~0u;
}

// One instruction for 16 bytes since sm_90.
template <int kCount>
__device__ __forceinline__ void add_atomically(float* to, const float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    atomicAdd(to, values[0]);
  } else {
#pragma unroll
    for (int k = 0; k < kCount; k += 4) {
#if __CUDA_ARCH__ >= 900
      asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to + k)),
                   "f"(values[k]), "f"(values[k + 1]), "f"(values[k + 2]), "f"(values[k + 3])
                   : "memory");
#else
#pragma unroll
      for (int i = k; i < k + 4; ++i) atomicAdd(to + i, values[i]);
#endif
    }
  }
}

// An item is a pack of the result. The indices of all that a thread has come first, then their packs.
template <class Pack>
__global__ void __launch_bounds__(kIndexBlock)
    select_rows(void* out, const void* in, const void* index, float, IndexShape shape) {
  const std::uint32_t first = blockIdx.x * (kIndexBlock * kSelectItems) + threadIdx.x;
  const auto* const from = static_cast<const Pack*>(in);
  let_dependents_start();
  wait_for_predecessors();
  std::uint32_t row[kSelectItems], line[kSelectItems];
#pragma unroll
  for (std::uint32_t i = 0; i < kSelectItems; ++i) {
    line[i] = shape.packs.quotient(min(first + i * kIndexBlock, shape.items - 1));
    row[i] = row_at(index, line[i], shape);
  }
  Pack pack[kSelectItems];
#pragma unroll
  for (std::uint32_t i = 0; i < kSelectItems; ++i) {
    const std::uint32_t item = first + i * kIndexBlock, packs = shape.packs.value();
    pack[i] = Pack{};
    if (item < shape.items && row[i] != ~0u) pack[i] = from[std::uint64_t{row[i]} * packs + (item - line[i] * packs)];
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kSelectItems; ++i) {
    const std::uint32_t item = first + i * kIndexBlock;
    Pack* const to = static_cast<Pack*>(out) + item;
    if (item >= shape.items) return;
    if (shape.is_streamed) {
      __stcs(to, pack[i]);
    } else {
      *to = pack[i];
    }
  }
}

// Blocks with y = i look after index i; those of an index that stands before have nothing to do. Each
// lane knows one index.
template <class T, bool kIsPacked>
__global__ void __launch_bounds__(kIndexBlock)
    add_few(void* out, const void* in, const void* index, float alpha, IndexShape shape) {
  using Pack = PackIf<T, kIsPacked>;
  constexpr int kCount = kCountIf<T, kIsPacked>;
  const std::uint32_t lane = threadIdx.x % 32, packs = shape.packs.value();
  const std::uint32_t first = blockIdx.x * (kIndexBlock * kIndexItems) + threadIdx.x;
  let_dependents_start();
  wait_for_predecessors();
  const std::uint32_t mine = lane < shape.count ? row_at(index, lane, shape) : ~0u;
  const std::uint32_t row = __shfl_sync(~0u, mine, static_cast<int>(blockIdx.y));
  const std::uint32_t equal = __ballot_sync(~0u, mine == row);
  if (row == ~0u || (equal & ((1u << blockIdx.y) - 1)) != 0) return;
  auto* const to = static_cast<Pack*>(out) + std::uint64_t{row} * packs;
  Pack held[kIndexItems];
#pragma unroll
  for (std::uint32_t i = 0; i < kIndexItems; ++i) {
    if (first + i * kIndexBlock < packs) held[i] = to[first + i * kIndexBlock];
  }
  float sums[kIndexItems][kCount] = {};
  for (std::uint32_t left = equal; left != 0; left &= left - 1) {
    const auto* const from = static_cast<const Pack*>(in) + std::uint64_t(__ffs(left) - 1) * packs;
    Pack pack[kIndexItems];
#pragma unroll
    for (std::uint32_t i = 0; i < kIndexItems; ++i) {
      if (first + i * kIndexBlock < packs) pack[i] = from[first + i * kIndexBlock];
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kIndexItems; ++i) {
      if (first + i * kIndexBlock >= packs) break;
      float values[kCount];
      unpack(pack[i], values);
#pragma unroll
      for (int k = 0; k < kCount; ++k) sums[i][k] += values[k];
    }
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kIndexItems; ++i) {
    if (first + i * kIndexBlock >= packs) return;
    float values[kCount];
    unpack(held[i], values);
#pragma unroll
    for (int k = 0; k < kCount; ++k) values[k] += alpha * sums[i][k];
    pack_into(held[i], values);
    to[first + i * kIndexBlock] = held[i];
  }
}

// An item is a pack, or with kIsScatter an element that has an index of its own. Always adds to floats: what is added
// to 16-bit numbers one by one is rounded each time, and lost where they are large. So theirs are in the workspace.
template <class T, bool kIsPacked, bool kIsScatter>
__global__ void __launch_bounds__(kIndexBlock)
    add_atomic(void* out, const void* in, const void* index, float alpha, IndexShape shape) {
  using Pack = PackIf<T, kIsPacked>;
  constexpr int kCount = kCountIf<T, kIsPacked>;
  const std::uint32_t first = blockIdx.x * (kIndexBlock * kIndexItems) + threadIdx.x;
  auto* const to = static_cast<float*>(out);
  let_dependents_start();
  wait_for_predecessors();
  std::uint32_t row[kIndexItems];
  Pack pack[kIndexItems];
#pragma unroll
  for (std::uint32_t i = 0; i < kIndexItems; ++i) {
    const std::uint32_t item = first + i * kIndexBlock;
    row[i] = ~0u;
    if (item >= shape.items) continue;
    row[i] = row_at(index, kIsScatter ? item : shape.packs.quotient(item), shape);
    pack[i] = static_cast<const Pack*>(in)[item];
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kIndexItems; ++i) {
    if (row[i] == ~0u) continue;
    float values[kCount];
    unpack(pack[i], values);
#pragma unroll
    for (int k = 0; k < kCount; ++k) values[k] *= alpha;
    const std::uint32_t column = shape.packs.remainder(first + i * kIndexBlock);
    const std::uint64_t packs = shape.packs.value();
    add_atomically(to + (row[i] * packs + column) * kCount, values);
  }
}

template <class Pack>
void select_on_host(HostGrid, void* out, const void* in, const void* index, float, IndexShape shape) {
  const std::uint64_t packs = shape.packs.value();
  std::vector<Pack> picked(shape.items, Pack{});
  visit_indexed(
      IndexOp::kSelect, shape.rows, packs, shape.items / packs,
      [&](std::uint64_t i) { return static_cast<std::int32_t>(row_at(index, i, shape)); },
      [&](std::uint64_t from, std::uint64_t to) { picked[to] = static_cast<const Pack*>(in)[from]; });
  std::copy(picked.begin(), picked.end(), static_cast<Pack*>(out));
}

template <IndexOp kOp, class T, bool kIsPacked, class Out>
void add_on_host(HostGrid, void* out, const void* in, const void* index, float alpha, IndexShape shape) {
  const std::uint64_t columns = shape.packs.value() * std::uint64_t{kIsPacked ? kPackSize<T> : 1};
  auto* const to = static_cast<Out*>(out);
  std::vector<double> sums(shape.rows * columns);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<double>(to_float(to[i]));
  visit_indexed(
      kOp, shape.rows, columns, shape.count,
      [&](std::uint64_t i) { return static_cast<std::int32_t>(row_at(index, i, shape)); },
      [&](std::uint64_t at, std::uint64_t from) {
        sums[at] += static_cast<double>(alpha) * static_cast<double>(to_float(static_cast<const T*>(in)[from]));
      });
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] = from_float<Out>(static_cast<float>(sums[i]));
}

constexpr KernelResources kResources{.registers = 64, .max_threads = kIndexBlock};

template <class Pack>
IndexKernel select() {
  return make_kernel<select_rows<Pack>, select_on_host<Pack>, kResources>();
}

template <class T, bool kIsPacked>
IndexKernel add_kernel(IndexRoute route) {
  if (route == IndexRoute::kFew) {
    return make_kernel<add_few<T, kIsPacked>, add_on_host<IndexOp::kAdd, T, kIsPacked, T>, kResources>();
  }
  return make_kernel<add_atomic<T, kIsPacked, false>, add_on_host<IndexOp::kAdd, T, kIsPacked, float>, kResources>();
}

template <class T>
IndexKernel of_type(IndexRoute route, bool is_packed) {
  if (route == IndexRoute::kScatter) {
    return make_kernel<add_atomic<T, false, true>, add_on_host<IndexOp::kScatterAdd, T, false, float>, kResources>();
  }
  return is_packed ? add_kernel<T, true>(route) : add_kernel<T, false>(route);
}

}  // namespace

IndexKernel index_kernel(IndexRoute route, DType type, std::uint32_t pack_bytes) {
  if (route == IndexRoute::kSelect) {
    if (pack_bytes == 16) return select<uint4>();
    if (pack_bytes == 8) return select<uint2>();
    if (pack_bytes == 4) return select<std::uint32_t>();
    return select<std::uint16_t>();
  }
  switch (type) {
    case DType::kFloat32: return of_type<float>(route, pack_bytes == 16);
    case DType::kFloat16: return of_type<__half>(route, pack_bytes == 16);
    default: return of_type<__nv_bfloat16>(route, pack_bytes == 16);  // plan_index lets no other pass
  }
}

}  // namespace cgrt::kernels
