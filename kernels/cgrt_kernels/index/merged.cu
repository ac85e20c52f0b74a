// Rows added by atomics, few for each row that many indices name: a block groups its indices by a hash table, and sums
// up what it has of a row. Indices that differ cost no sort, and one that most name no queue of atomics.
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/index/atomic.cuh"
#include "cgrt_kernels/index/kernels.h"
#include "cgrt_kernels/index/reference.h"
#include "cgrt_kernels/index/row_at.cuh"
#include "cgrt_kernels/index/row_packs.cuh"

namespace cgrt::kernels {
namespace {

// Of a block, in shared memory.
struct Window {
  static constexpr std::uint32_t kSlots = 2 * kMaxMergedWindow;
  std::uint32_t rows[kSlots];             // a hash table
  std::uint32_t counts[kSlots];           // of the indices that name each; then, where the places of these begin
  std::uint32_t found[kMaxMergedWindow];  // of each index: the slot of its row, and which of that row's it is
  uint2 places[kMaxMergedWindow];         // row and index, those of one row side by side
  std::uint32_t of_warps[kIndexBlock / 32];
};

// Fills the places of the indices from `first` on that are rows, and returns how many there are. For all threads.
__device__ __forceinline__ std::uint32_t find_places(Window& window, const MergedParams& p, std::uint32_t first) {
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, slots = 2 * p.window;
  for (std::uint32_t slot = threadIdx.x; slot < slots; slot += kIndexBlock) {
    window.rows[slot] = kNoRow, window.counts[slot] = 0;
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < p.window; i += kIndexBlock) {
    const std::uint32_t row = i < p.count - first ? row_at(p, first + i) : kNoRow;
    const std::uint32_t equal = __match_any_sync(~0u, row);
    const int leader = __ffs(static_cast<int>(equal)) - 1;
    std::uint32_t slot = 0, before = 0;
    if (static_cast<int>(lane) == leader && row != kNoRow) {
      slot = row * 2654435769u >> p.hash_shift;
      for (;; slot = (slot + 1) & (slots - 1)) {
        const std::uint32_t other = atomicCAS(&window.rows[slot], kNoRow, row);
        if (other == kNoRow || other == row) break;
      }
      before = atomicAdd(&window.counts[slot], __popc(equal));
    }
    slot = __shfl_sync(~0u, slot, leader), before = __shfl_sync(~0u, before, leader);
    window.found[i] = row == kNoRow ? kNoRow : slot << 16 | (before + __popc(equal & ((1u << lane) - 1)));
  }
  __syncthreads();
  const std::uint32_t own = slots / kIndexBlock, own_first = threadIdx.x * own;
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < own; ++i) count += window.counts[own_first + i];
  std::uint32_t until = count;
#pragma unroll
  for (std::uint32_t step = 1; step < 32; step *= 2) {
    const std::uint32_t other = __shfl_up_sync(~0u, until, step);
    if (lane >= step) until += other;
  }
  if (lane == 31) window.of_warps[warp] = until;
  __syncthreads();
  std::uint32_t total = 0, begin = until - count;
#pragma unroll
  for (std::uint32_t other = 0; other < kIndexBlock / 32; ++other) {
    if (other < warp) begin += window.of_warps[other];
    total += window.of_warps[other];
  }
  for (std::uint32_t i = 0; i < own; ++i) {
    const std::uint32_t of_slot = window.counts[own_first + i];
    window.counts[own_first + i] = begin;
    begin += of_slot;
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < p.window; i += kIndexBlock) {
    const std::uint32_t found = window.found[i], slot = found >> 16;
    if (found != kNoRow) window.places[window.counts[slot] + (found & 0xffff)] = {window.rows[slot], first + i};
  }
  __syncthreads();
  return total;
}

// A block takes a window of indices and a slice of their rows: 2^lane_bits threads side by side have a part of the
// places, each thread a pack of the columns.
template <class T, class Pack>
__global__ void __launch_bounds__(kIndexBlock, 4) add_merged(MergedParams p) {
  constexpr bool kIsSpread = kIsSpreadPack<T, Pack>;
  constexpr std::uint32_t kCount = sizeof(Pack) / sizeof(T);
  constexpr std::uint32_t kAhead = sizeof(Pack) == 16 || kIsSpread ? 4 : 8;  // rows of a thread in flight
  __shared__ Window window;
  const std::uint32_t number = p.slices.quotient(blockIdx.x), slice = blockIdx.x - number * p.slices.value();
  const std::uint32_t lanes = 1u << p.lane_bits, in_warp = threadIdx.x % 32, lane = in_warp & (lanes - 1);
  const std::uint32_t column = slice * lanes * kCount + (kIsSpread ? lane : lane * kCount);
  let_dependents_start();
  wait_for_predecessors();
  const std::uint32_t count = find_places(window, p, number * p.window);
  const std::uint32_t parts = kIndexBlock >> p.lane_bits, share = (count + parts - 1) / parts;
  const std::uint32_t first = (threadIdx.x >> p.lane_bits) * share, last = min(first + share, count);
  const bool has_part = column < p.columns && first < last;

  const T* const from = static_cast<const T*>(p.in) + column;
  std::uint32_t row = has_part ? window.places[first].x : kNoRow;
  float sums[kCount] = {};  // not -0, which says that nothing was added: see float_sums.cu
  const auto finish = [&] {
    float* const to = p.out + std::uint64_t{row} * p.columns + column;
#pragma unroll
    for (float& sum : sums) sum *= p.alpha;
    if constexpr (kIsSpread) {
      for_spread(column, lanes, p.columns, [&](std::uint32_t k, std::uint32_t at) { atomicAdd(to + at, sums[k]); });
    } else {
      add_atomically(to, sums);
    }
  };
  for (std::uint32_t at = first; has_part && at < last; at += kAhead) {
    uint2 place[kAhead];
    Pack pack[kAhead];
#pragma unroll
    for (std::uint32_t i = 0; i < kAhead; ++i) {
      place[i] = at + i < last ? window.places[at + i] : uint2{kNoRow, 0};
      if (place[i].x == kNoRow) continue;
      load_pack(pack[i], from + std::uint64_t{place[i].y} * p.columns, column, lanes, p.columns);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kAhead; ++i) {
      if (place[i].x == kNoRow) continue;
      if (place[i].x != row) {
        finish();
        row = place[i].x;
#pragma unroll
        for (float& sum : sums) sum = 0;
      }
      float values[kCount];
      unpack(pack[i], values);
#pragma unroll
      for (std::uint32_t k = 0; k < kCount; ++k) sums[k] += values[k];
    }
  }
  // Parts of a warp that end with one row: the first adds for all.
  for (std::uint32_t step = lanes; step < 32; step *= 2) {
    const bool is_first = (in_warp & step) == 0;
    const bool is_equal = __shfl_xor_sync(~0u, row, step) == row;
#pragma unroll
    for (float& sum : sums) {
      const float other = __shfl_xor_sync(~0u, sum, step);
      if (is_first && is_equal) sum += other;
    }
    if (!is_first && is_equal) row = kNoRow;
  }
  if (row != kNoRow) finish();
}

template <class T>
void add_merged_on_host(HostGrid, MergedParams p) {
  const std::uint64_t columns = p.columns;
  std::vector<double> sums(p.out, p.out + p.rows * columns);
  visit_indexed(
      IndexOp::kAdd, p.rows, columns, p.count, [&](std::uint64_t i) { return static_cast<std::int32_t>(row_at(p, i)); },
      [&](std::uint64_t at, std::uint64_t from) {
        sums[at] += static_cast<double>(p.alpha) * static_cast<double>(to_float(static_cast<const T*>(p.in)[from]));
      });
  for (std::size_t i = 0; i < sums.size(); ++i) p.out[i] = static_cast<float>(sums[i]);
}

}  // namespace

MergedKernel add_merged_kernel(DType type, SumPack pack) {
  return of_row_pack(type, pack, [=]<class T, class Pack>() -> MergedKernel {
    if constexpr (std::is_same_v<T, Pack>) {
      return {};  // rows of so few columns are not merged
    } else {
      return make_kernel<add_merged<T, Pack>, add_merged_on_host<T>,
                         KernelResources{
                             .registers = 64, .static_shared_bytes = sizeof(Window), .max_threads = kIndexBlock}>();
    }
  });
}

}  // namespace cgrt::kernels
