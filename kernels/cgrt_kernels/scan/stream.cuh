// The scan of long arrays: persistent blocks, one on each multiprocessor, take tile after tile. A block publishes the
// sum of a tile one tile before it looks back from it, so that others seldom wait for the sum.
//
//   a block's tile    n               n + 1                n + 2                n + 3
//   meanwhile         looks back,     is summed, its sum   is being copied to   its ticket
//                     is stored       is published         shared memory        is drawn
//
// Threads read what they copied themselves: a barrier is needed for sums and tickets only.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/scan/look_back.cuh"
#include "cgrt_kernels/scan/tile.cuh"

namespace cgrt::kernels {

template <class T>
__global__ void __launch_bounds__(kScanMaxThreads, 1) scan_stream(const __grid_constant__ ScanParams p) {
  using Sum = typename ElementOf<T>::Sum;
  using Pack = typename ElementOf<T>::Pack;
  constexpr int kPack = kPackSize<T>, kStages = kScanStreamStages, kPacksOfTile = kScanStreamThreadBytes / 16;
  constexpr int kRemembered = 8;  // tiles: kStages, and 2 that the slowest warps may still look at
  constexpr std::uint32_t kNone = ~0u;
  static_assert(kRemembered >= kStages + 2);
  extern __shared__ uint4 ring[];  // of stages; in each the packs of a thread are 32 apart
  __shared__ Tile remembered[kRemembered];
  __shared__ Sum totals[2][kScanMaxWarps], before_tiles[2][kLookBackParts];
  __shared__ std::uint32_t shared_tag;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t packs_of_stage = blockDim.x * kPacksOfTile, width = packs_of_stage * kPack;
  const std::uint32_t first_pack = warp * kPacksOfTile * 32 + lane, begin = first_pack * kPack;
  const T* const x = static_cast<const T*>(p.in);
  wait_for_predecessors();

  const auto tile_of = [&](std::uint32_t n) -> Tile& { return remembered[n % kRemembered]; };
  const auto remember = [&](std::uint32_t n, std::uint64_t ticket) {
    const auto number = static_cast<std::uint32_t>(ticket);
    const std::uint32_t last = p.tiles * p.rows + kStages * gridDim.x - 1;  // each block draws kStages in vain
    end_if_last(p.header, ticket, last, p.tagged);
    const std::uint32_t index = number / p.rows, row = number - index * p.rows;
    if (index < p.tiles) {
      tile_of(n) = make_tile(x, p.columns, row, index, width);
    } else {
      tile_of(n).index = kNone;
    }
  };
  const auto copy = [&](std::uint32_t n, std::uint32_t stage) {
    const Tile& tile = tile_of(n);
    if (tile.index != kNone) {
      const std::uint32_t low = tile.low, high = tile.high;
      const T* const from = x + tile.at + begin;
      uint4* const packs = ring + stage * packs_of_stage + first_pack;
      if (low == 0 && high == width) {
#pragma unroll
        for (int k = 0; k < kPacksOfTile; ++k) copy_asynchronously(packs + k * 32, from + k * 32 * kPack);
      } else {
#pragma unroll 1
        for (int k = 0; k < kPacksOfTile; ++k) {
          const std::uint32_t slot = begin + k * 32 * kPack;
          if (is_inside<T>(slot, low, high)) {
            copy_asynchronously(packs + k * 32, from + k * 32 * kPack);
          } else {
            load_edge(packs + k * 32, from + k * 32 * kPack, slot, low, high);
          }
        }
      }
    }
    end_copy_group();
  };
  const auto pack_at = [&](std::uint32_t stage, int k) {
    return *reinterpret_cast<const Pack*>(ring + stage * packs_of_stage + first_pack + k * 32);
  };
  // Until the packs of the stage have landed, kStages - 2 copies after it.
  const auto sum_packs = [&](std::uint32_t stage, Sum(&before_packs)[kPacksOfTile], Sum(&of_warps)[kScanMaxWarps]) {
    wait_for_copies<kStages - 2>();
#pragma unroll
    for (int k = 0; k < kPacksOfTile; ++k) before_packs[k] = sum_of<T>(pack_at(stage, k));
    const Sum total = scan_warp(before_packs);
    if (lane == 0) of_warps[warp] = total;
  };
  const auto publish_sum = [&](std::uint32_t n, Sum sum, std::uint32_t tag) {
    const Tile& tile = tile_of(n);
    if (tile.index == kNone) return;
    publish(PublishedSums<Sum>(p.header->tagged, p.rows, tile.row, p.tiles).of_tile(tile.index), sum, tag);
  };
  const auto store = [&](std::uint32_t n, std::uint32_t stage, const Sum(&before_packs)[kPacksOfTile], Sum before) {
    const Tile& tile = tile_of(n);
    const std::uint32_t low = tile.low, high = tile.high;
    T* const to = static_cast<T*>(p.out) + tile.at + begin;
    const bool is_packed = misaligned(to) == 0, is_whole = is_packed && low == 0 && high == width;
#pragma unroll
    for (int k = 0; k < kPacksOfTile; ++k) {
      const std::uint32_t slot = begin + k * 32 * kPack;
      const Pack result = scan_pack<T>(pack_at(stage, k), before + before_packs[k], p.is_exclusive);
      if (is_whole || (is_packed && is_inside<T>(slot, low, high))) {
        *reinterpret_cast<Pack*>(to + k * 32 * kPack) = result;
      } else {
        store_edge(to + k * 32 * kPack, &result, slot, low, high);
      }
    }
  };

  // A ticket is drawn when the one before has arrived: two at once would be neighbours, and the next block
  // would wait for both of this one's tiles.
  std::uint64_t ticket = 0;
#pragma unroll 1
  for (std::uint32_t n = 0; n < kStages - 1; ++n) {
    if (threadIdx.x == 0) {
      ticket = draw_ticket(p.header);
      shared_tag = tag_of(ticket);
      remember(n, ticket);
    }
    __syncthreads();
    copy(n, n);
  }
  const std::uint32_t tag = shared_tag;
  if (threadIdx.x == 0) ticket = draw_ticket(p.header);
  Sum before_packs[kPacksOfTile];
  sum_packs(0, before_packs, totals[1]);
  if (threadIdx.x == 0) remember(kStages - 1, ticket);
  __syncthreads();
  SumsOfBlock<Sum> sums = scan_block(totals[1]);
  if (threadIdx.x == 0) publish_sum(0, sums.all, tag);

  std::uint32_t stage = 0;
#pragma unroll 1
  for (std::uint32_t n = 0; tile_of(n).index != kNone; ++n) {
    const std::uint32_t next = stage == kStages - 1 ? 0 : stage + 1;
    copy(n + kStages - 1, stage == 0 ? kStages - 1 : stage - 1);
    if (threadIdx.x == 0) ticket = draw_ticket(p.header);
    Sum before_next_packs[kPacksOfTile];
    sum_packs(next, before_next_packs, totals[n % 2]);
    // The last warps: the first thread draws and remembers.
    if (const std::uint32_t part = blockDim.x / 32 - 1 - warp; part < kLookBackParts) {
      const PublishedSums<Sum> published(p.header->tagged, p.rows, tile_of(n).row, p.tiles);
      const Sum before = look_back(static_cast<LookBack>(part), published, tile_of(n).index, tag);
      if (lane == 0) before_tiles[n % 2][part] = before;
    }
    if (threadIdx.x == 0) remember(n + kStages, ticket);
    __syncthreads();
    const SumsOfBlock<Sum> next_sums = scan_block(totals[n % 2]);
    if (threadIdx.x == 0) publish_sum(n + 1, next_sums.all, tag);
    const Sum(&before_tile)[kLookBackParts] = before_tiles[n % 2];
    store(n, stage, before_packs, (before_tile[0] + before_tile[1]) + sums.before_warp);
#pragma unroll
    for (int k = 0; k < kPacksOfTile; ++k) before_packs[k] = before_next_packs[k];
    sums = next_sums;
    stage = next;
  }
}

}  // namespace cgrt::kernels
