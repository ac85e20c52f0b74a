#include <algorithm>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/index/atomic.cuh"
#include "cgrt_kernels/index/kernels.h"
#include "cgrt_kernels/index/reference.h"
#include "cgrt_kernels/index/row_at.cuh"

namespace cgrt::kernels {
namespace {

// An item is a pack of the result. The indices of all that a thread has come first, then their packs.
template <class Pack, std::uint32_t kItems>
__global__ void __launch_bounds__(kIndexBlock) select_rows(IndexParams p) {
  const std::uint32_t first = blockIdx.x * (kIndexBlock * kItems) + threadIdx.x;
  const auto* const from = static_cast<const Pack*>(p.in);
  let_dependents_start();
  wait_for_predecessors();
  std::uint32_t row[kItems], line[kItems];
#pragma unroll
  for (std::uint32_t i = 0; i < kItems; ++i) {
    line[i] = p.packs.quotient(min(first + i * kIndexBlock, p.items - 1));
    row[i] = row_at(p, line[i]);
  }
  Pack pack[kItems];
#pragma unroll
  for (std::uint32_t i = 0; i < kItems; ++i) {
    const std::uint32_t item = first + i * kIndexBlock, packs = p.packs.value();
    pack[i] = Pack{};
    if (item < p.items && row[i] != kNoRow) pack[i] = from[std::uint64_t{row[i]} * packs + (item - line[i] * packs)];
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kItems; ++i) {
    const std::uint32_t item = first + i * kIndexBlock;
    Pack* const to = static_cast<Pack*>(p.out) + item;
    if (item >= p.items) return;
    if (p.is_streamed) {
      __stcs(to, pack[i]);
    } else {
      *to = pack[i];
    }
  }
}

// Blocks with y = i look after index i; those of an index that stands before have nothing to do. Each
// lane knows one index.
template <class T, Alignment kAlignment>
__global__ void __launch_bounds__(kIndexBlock) add_few(IndexParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kCount = kPackSizeFor<T, kAlignment>;
  const std::uint32_t lane = threadIdx.x % 32, packs = p.packs.value();
  const std::uint32_t first = blockIdx.x * (kIndexBlock * kFewItems) + threadIdx.x;
  let_dependents_start();
  wait_for_predecessors();
  const std::uint32_t mine = lane < p.count ? row_at(p, lane) : kNoRow;
  const std::uint32_t row = __shfl_sync(~0u, mine, static_cast<int>(blockIdx.y));
  const std::uint32_t equal = __ballot_sync(~0u, mine == row);
  if (row == kNoRow || (equal & ((1u << blockIdx.y) - 1)) != 0) return;
  auto* const to = static_cast<Pack*>(p.out) + std::uint64_t{row} * packs;
  Pack held[kFewItems];
#pragma unroll
  for (std::uint32_t i = 0; i < kFewItems; ++i) {
    if (first + i * kIndexBlock < packs) held[i] = to[first + i * kIndexBlock];
  }
  float sums[kFewItems][kCount] = {};
  for (std::uint32_t left = equal; left != 0; left &= left - 1) {
    const auto* const from = static_cast<const Pack*>(p.in) + std::uint64_t(__ffs(left) - 1) * packs;
    Pack pack[kFewItems];
#pragma unroll
    for (std::uint32_t i = 0; i < kFewItems; ++i) {
      if (first + i * kIndexBlock < packs) pack[i] = from[first + i * kIndexBlock];
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kFewItems; ++i) {
      if (first + i * kIndexBlock >= packs) break;
      float values[kCount];
      unpack(pack[i], values);
#pragma unroll
      for (int k = 0; k < kCount; ++k) sums[i][k] += values[k];
    }
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kFewItems; ++i) {
    if (first + i * kIndexBlock >= packs) return;
    float values[kCount];
    unpack(held[i], values);
#pragma unroll
    for (int k = 0; k < kCount; ++k) values[k] += p.alpha * sums[i][k];
    pack_into(held[i], values);
    to[first + i * kIndexBlock] = held[i];
  }
}

// An item is a pack, or with kIsScatter an element that has an index of its own. Always adds to floats: what is added
// to 16-bit numbers one by one is rounded each time, and lost where they are large. So theirs are in the workspace.
template <class T, Alignment kAlignment, bool kIsScatter>
__global__ void __launch_bounds__(kIndexBlock) add_atomic(IndexParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kCount = kPackSizeFor<T, kAlignment>;
  const std::uint32_t item = blockIdx.x * kIndexBlock + threadIdx.x;
  let_dependents_start();
  wait_for_predecessors();
  if (item >= p.items) return;
  const std::uint32_t row = row_at(p, kIsScatter ? item : p.packs.quotient(item));
  const Pack pack = static_cast<const Pack*>(p.in)[item];
  if (row == kNoRow) return;
  float values[kCount];
  unpack(pack, values);
#pragma unroll
  for (float& value : values) value *= p.alpha;
  const std::uint64_t at = std::uint64_t{row} * p.packs.value() + p.packs.remainder(item);
  add_atomically(static_cast<float*>(p.out) + at * kCount, values);
}

template <class Pack>
void select_on_host(HostGrid, IndexParams p) {
  const std::uint64_t packs = p.packs.value();
  std::vector<Pack> picked(p.items, Pack{});
  visit_indexed(
      IndexOp::kSelect, p.rows, packs, p.items / packs,
      [&](std::uint64_t i) { return static_cast<std::int32_t>(row_at(p, i)); },
      [&](std::uint64_t from, std::uint64_t to) { picked[to] = static_cast<const Pack*>(p.in)[from]; });
  std::copy(picked.begin(), picked.end(), static_cast<Pack*>(p.out));
}

template <IndexOp kOp, class T, Alignment kAlignment, class Out>
void add_on_host(HostGrid, IndexParams p) {
  const std::uint64_t columns = std::uint64_t{p.packs.value()} * kPackSizeFor<T, kAlignment>;
  auto* const to = static_cast<Out*>(p.out);
  std::vector<double> sums(p.rows * columns);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<double>(to_float(to[i]));
  visit_indexed(
      kOp, p.rows, columns, p.count, [&](std::uint64_t i) { return static_cast<std::int32_t>(row_at(p, i)); },
      [&](std::uint64_t at, std::uint64_t from) {
        sums[at] += static_cast<double>(p.alpha) * static_cast<double>(to_float(static_cast<const T*>(p.in)[from]));
      });
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] = from_float<Out>(static_cast<float>(sums[i]));
}

constexpr KernelResources kResources{.registers = 64, .max_threads = kIndexBlock};

template <class Pack>
IndexKernel select(std::uint32_t items) {
  return items == 1 ? make_kernel<select_rows<Pack, 1>, select_on_host<Pack>, kResources>()
                    : make_kernel<select_rows<Pack, kSelectItems>, select_on_host<Pack>, kResources>();
}

template <class T, Alignment kAlignment>
IndexKernel of_regime(IndexRegime regime) {
  constexpr Alignment kUnaligned = Alignment::kUnaligned;
  if (regime == IndexRegime::kScatter) {
    return make_kernel<add_atomic<T, kUnaligned, true>, add_on_host<IndexOp::kScatterAdd, T, kUnaligned, float>,
                       kResources>();
  }
  if (regime == IndexRegime::kFew) {
    return make_kernel<add_few<T, kAlignment>, add_on_host<IndexOp::kAdd, T, kAlignment, T>, kResources>();
  }
  return make_kernel<add_atomic<T, kAlignment, false>, add_on_host<IndexOp::kAdd, T, kAlignment, float>, kResources>();
}

}  // namespace

IndexKernel select_kernel(std::uint32_t pack_bytes, std::uint32_t items) {
  if (pack_bytes == 16) return select<uint4>(items);
  if (pack_bytes == 8) return select<uint2>(items);
  if (pack_bytes == 4) return select<std::uint32_t>(items);
  return select<std::uint16_t>(items);
}

IndexKernel add_kernel(IndexRegime regime, DType type, Alignment alignment) {
  return of_float_type(type, alignment,
                       [=]<class T, Alignment kAlignment>() { return of_regime<T, kAlignment>(regime); });
}

}  // namespace cgrt::kernels
