// A stable radix sort of indices: 8 bits or fewer in each pass of three kernels. The next pass reads the
// number of pairs from device memory, since the first leaves out what is not a row. Or all passes in one kernel, where
// the shared memory of a cluster has room for all indices.
#include <cooperative_groups.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/index/kernels.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kWarps = kIndexBlock / 32;
template <std::uint32_t kTile>
constexpr std::uint32_t kRounds = kTile / kIndexBlock;  // in which a block looks at its tile
static_assert(kMaxDigits == kIndexBlock, "a thread looks after a digit");

// How many pairs the source has, among which some may be missing.
__host__ __device__ __forceinline__ std::uint32_t source_count(const IndexSortParams& p) {
  return p.source == SortSource::kPairs ? p.counters->pairs : p.count;
}

// Of the index at this position.
__host__ __device__ __forceinline__ uint2 pair_of(const IndexSortParams& p, std::uint32_t row, std::uint32_t at) {
  const std::uint32_t columns = p.columns.value();
  return {row * columns + (columns == 1 ? 0 : p.columns.remainder(at)), at};
}

// Pairs at `first` and each kStep behind it, a bit for each that is there. All are in flight before one is looked at.
template <std::uint32_t kStep, std::uint32_t kMaxRounds>
__device__ __forceinline__ std::uint32_t read_pairs(const IndexSortParams& p, std::uint32_t first, std::uint32_t count,
                                                    uint2 (&pairs)[kMaxRounds]) {
  const bool is_short = p.source == SortSource::kInt32;
#pragma unroll
  for (std::uint32_t round = 0; round < kMaxRounds; ++round) {
    const std::uint32_t at = first + round * kStep;
    if (at >= count) continue;
    if (is_short) {
      pairs[round].x = static_cast<const std::uint32_t*>(p.from)[at];
    } else {
      pairs[round] = static_cast<const uint2*>(p.from)[at];
    }
  }
  std::uint32_t present = 0;
#pragma unroll
  for (std::uint32_t round = 0; round < kMaxRounds; ++round) {
    const std::uint32_t at = first + round * kStep;
    const bool is_row =
        p.source == SortSource::kPairs || (pairs[round].x < p.rows && (is_short || pairs[round].y == 0));
    if (at >= count || !is_row) continue;
    present |= 1u << round;
    if (p.source != SortSource::kPairs) pairs[round] = pair_of(p, pairs[round].x, at);
  }
  return present;
}

__host__ __device__ __forceinline__ std::uint32_t digit_of(const IndexSortParams& p, std::uint32_t key) {
  return (key >> p.shift) & ((1u << p.bits) - 1);
}

template <std::uint32_t kTile>
__global__ void __launch_bounds__(kIndexBlock) count_digits(IndexSortParams p) {
  __shared__ std::uint32_t mine[kMaxDigits];
  mine[threadIdx.x] = 0;
  __syncthreads();
  let_dependents_start();
  wait_for_predecessors();
  const std::uint32_t count = source_count(p);
  uint2 pair[kRounds<kTile>];
  const std::uint32_t present = read_pairs<kIndexBlock>(p, blockIdx.x * kTile + threadIdx.x, count, pair);
#pragma unroll
  for (std::uint32_t round = 0; round < kRounds<kTile>; ++round) {
    if ((present >> round & 1) != 0) atomicAdd(&mine[digit_of(p, pair[round].x)], 1u);
  }
  __syncthreads();
  if (threadIdx.x >> p.bits == 0) p.counts[threadIdx.x * p.tiles + blockIdx.x] = mine[threadIdx.x];
}

// The sums of what the threads before this one have. `scratch` is free again after the next barrier.
__device__ __forceinline__ uint2 sum_before(uint2 mine, uint2 (&scratch)[kWarps], uint2& all) {
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint2 sum = mine;
#pragma unroll
  for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
    const std::uint32_t x = __shfl_up_sync(~0u, sum.x, distance), y = __shfl_up_sync(~0u, sum.y, distance);
    if (lane >= distance) sum.x += x, sum.y += y;
  }
  if (lane == 31) scratch[warp] = sum;
  __syncthreads();
  all = {0, 0};
  uint2 before{0, 0};
#pragma unroll
  for (std::uint32_t w = 0; w < kWarps; ++w) {
    if (w == warp) before = all;
    all.x += scratch[w].x, all.y += scratch[w].y;
  }
  return {before.x + sum.x - mine.x, before.y + sum.y - mine.y};
}

// A block for each digit.
__global__ void __launch_bounds__(kIndexBlock) scan_digits(IndexSortParams p) {
  __shared__ uint2 scratch[kWarps];
  std::uint32_t* const mine = p.counts + blockIdx.x * p.tiles;
  let_dependents_start();
  wait_for_predecessors();
  std::uint32_t total = 0;
  for (std::uint32_t first = 0; first < p.tiles; first += kIndexBlock) {
    const std::uint32_t tile = first + threadIdx.x;
    uint2 all;
    const uint2 before = sum_before({tile < p.tiles ? mine[tile] : 0, 0}, scratch, all);
    if (tile < p.tiles) mine[tile] = total + before.x;
    total += all.x;
    __syncthreads();
  }
  if (threadIdx.x == 0) p.totals[blockIdx.x] = total;
}

// Each warp has a stretch of the tile, 32 pairs a round: a pair's rank among those of its digit is what
// the warps before have, what the warp had in earlier rounds, and the lanes before. The tile is put in
// order in shared memory first, so that neighbours are written together.
template <std::uint32_t kTile>
__global__ void __launch_bounds__(kIndexBlock) move_pairs(IndexSortParams p) {
  __shared__ std::uint32_t ranks[kWarps][kMaxDigits];
  __shared__ std::uint32_t begins[kMaxDigits];  // of digits in the tile
  __shared__ std::uint32_t places[kMaxDigits];  // where the tile's first would be, of those of a digit
  __shared__ uint2 scratch[kWarps];
  __shared__ uint2 tile[kTile];
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (std::uint32_t w = 0; w < kWarps; ++w) ranks[w][threadIdx.x] = 0;
  __syncthreads();
  let_dependents_start();
  wait_for_predecessors();

  const std::uint32_t count = source_count(p);
  const std::uint32_t first = blockIdx.x * kTile + warp * (32 * kRounds<kTile>)+lane;
  uint2 pair[kRounds<kTile>];
  std::uint32_t rank[kRounds<kTile>];
  const std::uint32_t present = read_pairs<32>(p, first, count, pair);
#pragma unroll
  for (std::uint32_t round = 0; round < kRounds<kTile>; ++round) {
    const bool is_present = (present >> round & 1) != 0;
    const std::uint32_t digit = is_present ? digit_of(p, pair[round].x) : 0;
    std::uint32_t equal = __ballot_sync(~0u, is_present);
    for (std::uint32_t bit = 0; bit < p.bits; ++bit) {
      const bool is_set = (digit >> bit & 1) != 0;
      const std::uint32_t set = __ballot_sync(~0u, is_set);
      equal &= is_set ? set : ~set;
    }
    const std::uint32_t earlier = is_present ? ranks[warp][digit] : 0;
    rank[round] = earlier + __popc(equal & ((1u << lane) - 1));
    __syncwarp();
    if (is_present && (equal >> lane) == 1) ranks[warp][digit] = rank[round] + 1;  // the last of them
    __syncwarp();
  }
  __syncthreads();

  const std::uint32_t digit = threadIdx.x;
  const bool is_digit = digit >> p.bits == 0;
  uint2 mine{0, is_digit ? p.totals[digit] : 0};  // in the tile, in all
  for (std::uint32_t w = 0; w < kWarps; ++w) {
    const std::uint32_t before = mine.x;
    mine.x += ranks[w][digit];
    ranks[w][digit] = before;
  }
  uint2 all;
  const uint2 before = sum_before(mine, scratch, all);
  begins[digit] = before.x;
  if (is_digit) places[digit] = before.y + p.counts[digit * p.tiles + blockIdx.x] - before.x;
  if (p.source != SortSource::kPairs && blockIdx.x == 0 && digit == 0) *p.counters = {all.y, 0};
  __syncthreads();

#pragma unroll
  for (std::uint32_t round = 0; round < kRounds<kTile>; ++round) {
    if ((present >> round & 1) == 0) continue;
    const std::uint32_t of = digit_of(p, pair[round].x);
    tile[begins[of] + ranks[warp][of] + rank[round]] = pair[round];
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < all.x; i += kIndexBlock) {
    const uint2 moved = tile[i];
    p.to[places[digit_of(p, moved.x)] + i] = moved;
  }
}

// As move_pairs, in a cluster: what a block cannot know are the digits of the others, which it reads from their shared
// memory. Pairs stay there until the last pass. A block puts its own in order first: neighbours then go to one place,
// and stores of lanes to many places in other blocks take one after the other.
__global__ void __launch_bounds__(kClusterSortBlock) sort_in_cluster(IndexSortParams p) {
#if __CUDA_ARCH__ >= 900
  using Cluster = cooperative_groups::cluster_group;
  constexpr std::uint32_t kClusterWarps = kClusterSortBlock / 32;
  extern __shared__ uint4 memory[];
  const std::uint32_t digits = 1u << p.bits, tile_pairs = kClusterSortBlock * p.rounds;
  auto* const tile = reinterpret_cast<uint2*>(memory);
  uint2* const ordered = tile + tile_pairs;
  auto* const of_warps = reinterpret_cast<uint2*>(ordered + tile_pairs);            // for sums over all digits
  auto* const counts = reinterpret_cast<std::uint32_t*>(of_warps + kClusterWarps);  // of each digit in the block
  std::uint32_t* const begins = counts + digits;                                    // of digits in the block
  std::uint32_t* const places = begins + digits;  // where the block's first would be, of those of a digit
  auto* const ranks = reinterpret_cast<std::uint16_t*>(places + digits);  // [warp][digit]
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, digit = threadIdx.x;
  std::uint16_t* const mine = ranks + (warp << p.bits);
  const std::uint32_t block = Cluster::block_rank(), blocks = Cluster::num_blocks();
  const std::uint32_t begin = warp * 32 * p.rounds;  // of the warp's pairs in the tile
  let_dependents_start();
  wait_for_predecessors();

  uint2 pair[kMaxClusterRounds];
  const std::uint32_t first = block * tile_pairs + begin;
  std::uint32_t present = read_pairs<32>(p, first + lane, min(p.count, first + 32 * p.rounds), pair);
  for (std::uint32_t pass = 1;; ++pass, p.shift += p.bits) {
    // Two digits each; there are two at least.
    for (std::uint32_t i = threadIdx.x; i < kClusterWarps * digits / 2; i += kClusterSortBlock) {
      reinterpret_cast<std::uint32_t*>(ranks)[i] = 0;
    }
    __syncthreads();
    // First the lanes with the same digit, of all rounds side by side.
    std::uint32_t rank[kMaxClusterRounds];
#pragma unroll
    for (std::uint32_t round = 0; round < kMaxClusterRounds; ++round) {
      if (round < p.rounds) rank[round] = __ballot_sync(~0u, (present >> round & 1) != 0);
    }
    for (std::uint32_t bit = p.shift; bit < p.shift + p.bits; ++bit) {
#pragma unroll
      for (std::uint32_t round = 0; round < kMaxClusterRounds; ++round) {
        if (round >= p.rounds) break;
        const bool is_set = (pair[round].x >> bit & 1) != 0;
        const std::uint32_t set = __ballot_sync(~0u, is_set);
        rank[round] &= is_set ? set : ~set;
      }
    }
#pragma unroll
    for (std::uint32_t round = 0; round < kMaxClusterRounds; ++round) {
      if (round >= p.rounds) break;
      const bool is_present = (present >> round & 1) != 0;
      const std::uint32_t of = is_present ? digit_of(p, pair[round].x) : 0, equal = rank[round];
      rank[round] = mine[of] + __popc(equal & ((1u << lane) - 1));
      __syncwarp();
      if (is_present && (equal >> lane) == 1) mine[of] = static_cast<std::uint16_t>(rank[round] + 1);
      __syncwarp();
    }
    __syncthreads();
    std::uint32_t count = 0;
    if (digit < digits) {
#pragma unroll
      for (std::uint32_t w = 0; w < kClusterWarps; ++w) {
        const std::uint32_t of_warp = ranks[(w << p.bits) + digit];
        ranks[(w << p.bits) + digit] = static_cast<std::uint16_t>(count);
        count += of_warp;
      }
      counts[digit] = count;
    }
    Cluster::sync();

    std::uint32_t all = 0, of_blocks = 0;  // of this digit; of the blocks before this one
    if (digit < digits) {
#pragma unroll
      for (std::uint32_t b = 0; b < kMaxClusterBlocks; ++b) {
        const std::uint32_t of_block = b < blocks ? *Cluster::map_shared_rank(counts + digit, static_cast<int>(b)) : 0;
        if (b < block) of_blocks += of_block;
        all += of_block;
      }
    }
    uint2 sum{count, all};
#pragma unroll
    for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
      const std::uint32_t x = __shfl_up_sync(~0u, sum.x, distance), y = __shfl_up_sync(~0u, sum.y, distance);
      if (lane >= distance) sum.x += x, sum.y += y;
    }
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    const uint2 of_warp = of_warps[lane];
    const std::uint32_t in_block = __reduce_add_sync(~0u, of_warp.x), total = __reduce_add_sync(~0u, of_warp.y);
    const std::uint32_t begin_of = __reduce_add_sync(~0u, lane < warp ? of_warp.x : 0) + sum.x - count;
    const std::uint32_t place_of = __reduce_add_sync(~0u, lane < warp ? of_warp.y : 0) + sum.y - all + of_blocks;
    if (digit < digits) begins[digit] = begin_of, places[digit] = place_of - begin_of;
    __syncthreads();

    const bool is_last = pass == p.passes;
    // No block reads the counts of one that has ended. What is written below is not for the cluster.
    if (is_last) Cluster::barrier_arrive();
#pragma unroll
    for (std::uint32_t round = 0; round < kMaxClusterRounds; ++round) {
      if ((present >> round & 1) == 0) continue;
      const std::uint32_t of = digit_of(p, pair[round].x);
      ordered[begins[of] + mine[of] + rank[round]] = pair[round];
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < in_block; i += kClusterSortBlock) {
      const uint2 moved = ordered[i];
      const std::uint32_t at = places[digit_of(p, moved.x)] + i;
      if (is_last) {
        p.to[at] = moved;
      } else {
        const std::uint32_t to = at / tile_pairs;
        *Cluster::map_shared_rank(tile + (at - to * tile_pairs), static_cast<int>(to)) = moved;
      }
    }
    if (is_last) {
      if (block == 0 && threadIdx.x == 0) *p.counters = {total, 0};
      return Cluster::barrier_wait();
    }
    Cluster::sync();
    present = 0;
#pragma unroll
    for (std::uint32_t round = 0; round < kMaxClusterRounds; ++round) {
      if (round >= p.rounds || first + round * 32 + lane >= total) continue;
      pair[round] = tile[begin + round * 32 + lane];
      present |= 1u << round;
    }
  }
#endif
}

// False when there is none at this position.
bool read_pair(const IndexSortParams& p, std::uint32_t at, uint2& pair) {
  if (p.source == SortSource::kPairs) {
    pair = static_cast<const uint2*>(p.from)[at];
    return true;
  }
  const std::int64_t row = p.source == SortSource::kInt64 ? static_cast<const std::int64_t*>(p.from)[at]
                                                          : static_cast<const std::int32_t*>(p.from)[at];
  if (row < 0 || row >= p.rows) return false;
  pair = pair_of(p, static_cast<std::uint32_t>(row), at);
  return true;
}

template <std::uint32_t kTile, class Visit>
void visit_pairs(const IndexSortParams& p, Visit visit) {
  const std::uint32_t count = source_count(p);
  for (std::uint32_t at = 0; at < count; ++at) {
    uint2 pair;
    if (read_pair(p, at, pair)) visit(pair, at / kTile);
  }
}

template <std::uint32_t kTile>
void count_on_host(HostGrid, IndexSortParams p) {
  for (std::uint32_t i = 0; i < p.tiles << p.bits; ++i) p.counts[i] = 0;
  visit_pairs<kTile>(p, [&](uint2 pair, std::uint32_t tile) { ++p.counts[digit_of(p, pair.x) * p.tiles + tile]; });
}

void scan_on_host(HostGrid grid, IndexSortParams p) {
  for (std::uint32_t digit = 0; digit < grid.grid.x; ++digit) {
    p.totals[digit] = 0;
    for (std::uint32_t tile = 0; tile < p.tiles; ++tile) {
      const std::uint32_t count = p.counts[digit * p.tiles + tile];
      p.counts[digit * p.tiles + tile] = p.totals[digit];
      p.totals[digit] += count;
    }
  }
}

template <std::uint32_t kTile>
void move_on_host(HostGrid, IndexSortParams p) {
  std::vector<std::uint32_t> next(p.tiles << p.bits);
  std::uint32_t before = 0;
  for (std::uint32_t digit = 0; digit >> p.bits == 0; ++digit) {
    for (std::uint32_t tile = 0; tile < p.tiles; ++tile) {
      next[digit * p.tiles + tile] = before + p.counts[digit * p.tiles + tile];
    }
    before += p.totals[digit];
  }
  visit_pairs<kTile>(
      p, [&](uint2 pair, std::uint32_t tile) { p.to[next[digit_of(p, pair.x) * p.tiles + tile]++] = pair; });
  if (p.source != SortSource::kPairs) *p.counters = {before, 0};
}

void sort_on_host(HostGrid, IndexSortParams p) {
  std::vector<uint2> pairs;
  visit_pairs<kLongTile>(p, [&](uint2 pair, std::uint32_t) { pairs.push_back(pair); });
  std::stable_sort(pairs.begin(), pairs.end(), [](uint2 a, uint2 b) { return a.x < b.x; });
  std::copy(pairs.begin(), pairs.end(), p.to);
  *p.counters = {static_cast<std::uint32_t>(pairs.size()), 0};
}

constexpr KernelResources kResources{.registers = 64, .max_threads = kIndexBlock};

}  // namespace

SortKernel count_digits_kernel(std::uint32_t tile) {
  return tile == kShortTile ? make_kernel<count_digits<kShortTile>, count_on_host<kShortTile>, kResources>()
                            : make_kernel<count_digits<kLongTile>, count_on_host<kLongTile>, kResources>();
}
SortKernel scan_digits_kernel() { return make_kernel<scan_digits, scan_on_host, kResources>(); }
SortKernel move_pairs_kernel(std::uint32_t tile) {
  return tile == kShortTile ? make_kernel<move_pairs<kShortTile>, move_on_host<kShortTile>, kResources>()
                            : make_kernel<move_pairs<kLongTile>, move_on_host<kLongTile>, kResources>();
}
SortKernel sort_in_cluster_kernel() {
  return make_kernel<sort_in_cluster, sort_on_host,
                     KernelResources{.registers = 64, .max_threads = kClusterSortBlock}>();
}

}  // namespace cgrt::kernels
