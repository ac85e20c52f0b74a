// Decoupled look-back: how the blocks of one launch tell each other the sums of their tiles.
//
// Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016. Unlike there, the order of
// additions is fixed. kScanRadix tiles of a row are a group. The sum of all that precedes a tile is added from three
// parts:
// - all that precedes the previous group, which the first tile of that group has published;
// - the tiles of the previous group;
// - the tiles before this one in its own group.
// A tile publishes its own sum without waiting. So only the groups wait for each other in a chain, and each link has as
// much time as a whole group of tiles takes.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/published.cuh"
#include "cgrt_kernels/scan/kernels.h"

namespace cgrt::kernels {

// Of one row.
template <class Sum>
struct PublishedSums {
  Published<Sum>* of_tiles;       // each tile's own
  Published<Sum>* before_groups;  // of all tiles before each group but the first

  __device__ __forceinline__ PublishedSums(std::uint64_t* words, std::uint32_t rows, std::uint32_t row,
                                           std::uint32_t tiles) {
    const std::uint32_t groups = (tiles - 1) / kScanRadix;
    auto* const sums = reinterpret_cast<Published<Sum>*>(words);
    of_tiles = sums + std::uint64_t{row} * tiles;
    before_groups = sums + std::uint64_t{rows} * tiles + std::uint64_t{row} * groups;
  }
  __device__ __forceinline__ Published<Sum>* of_tile(std::uint32_t tile) const { return of_tiles + tile; }
  __device__ __forceinline__ Published<Sum>* before_group(std::uint32_t group) const {
    return before_groups + (group - 1);
  }
};

// The parts of what precedes a tile, for a warp each. Their sum, in this order, is what the tiles before it in
// its row sum up to.
enum class LookBack { kGroupsBefore, kOwnGroup };
inline constexpr int kLookBackParts = 2;

// Waits until all tiles that the part is of have published their sums.
template <class Sum>
__device__ __forceinline__ Sum look_back(LookBack part, const PublishedSums<Sum>& published, std::uint32_t tile,
                                         std::uint32_t tag) {
  constexpr int kEach = kScanRadix / 32;
  constexpr unsigned kAll = 0xffffffffu;
  const std::uint32_t lane = threadIdx.x % 32, group = tile / kScanRadix, begin = group * kScanRadix;
  const bool is_own_group = part == LookBack::kOwnGroup;
  const std::uint32_t begin_of_part = is_own_group || group == 0 ? begin : begin - kScanRadix;
  const std::uint32_t count = (is_own_group ? tile : begin) - begin_of_part;
  const bool has_before = !is_own_group && begin >= 2 * kScanRadix;
  const Published<Sum>* const from = published.of_tiles + begin_of_part + lane;
  Published<Sum> before, sums[kEach];
  before.set_zero(tag);
#pragma unroll
  for (Published<Sum>& sum : sums) sum.set_zero(tag);
  bool is_complete;
  do {
    // All loads are under way before one is looked at.
    if (has_before) load_published(before, published.before_group(group - 1));
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (lane + i * 32 < count) load_published(sums[i], from + i * 32);
    }
    is_complete = before.is_there(tag);
#pragma unroll
    for (int i = 0; i < kEach; ++i) is_complete &= sums[i].is_there(tag);
  } while (!__all_sync(kAll, is_complete));
  Sum sum{};
#pragma unroll
  for (int i = 0; i < kEach; ++i) sum += sums[i].value();
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  if (has_before) sum = before.value() + sum;
  if (lane == 0 && !is_own_group && tile == begin && group >= 1) publish(published.before_group(group), sum, tag);
  return sum;
}

}  // namespace cgrt::kernels
