// Decoupled look-back: how the blocks of one launch tell each other the sums of their tiles.
//
// Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016. Other than there,
// the order of additions is fixed: each kScanRadix tiles of a row are a group, and what precedes a tile is
// what precedes the group before its own, as the first tile of that group found it; that group; and the tiles
// before it in its own. Tiles publish their sums before they wait, so only the groups are a chain, and a link
// of it has the time of a group to be there.
#pragma once

#include <cstdint>
#include <cstring>

#include "cgrt_kernels/scan/op.h"

namespace cgrt::kernels {

// A counter of tickets at the workspace's begin. Its upper half counts launches: plus 1, that is a launch's
// tag. Who draws the last ticket of a launch sets it for the next one, since by then every block has its own.
__device__ __forceinline__ std::uint64_t draw_ticket(void* workspace) {
  return atomicAdd(static_cast<unsigned long long*>(workspace), 1ull);
}
__device__ __forceinline__ void reset_if_last(void* workspace, std::uint64_t ticket, std::uint32_t last) {
  if (static_cast<std::uint32_t>(ticket) == last) *static_cast<std::uint64_t*>(workspace) = ((ticket >> 32) + 1) << 32;
}
__device__ __forceinline__ std::uint32_t tag_of(std::uint64_t ticket) {
  return static_cast<std::uint32_t>(ticket >> 32) + 1;
}

// A published sum: each 4 bytes in a word with the launch's tag, so that a word says itself whether it is of
// this launch. Nothing else has to be visible with it.
template <class Sum>
struct Published {
  static constexpr int kWords = sizeof(Sum) / 4;
  std::uint64_t words[kWords];

  __device__ __forceinline__ void set_zero(std::uint32_t tag) {
#pragma unroll
    for (std::uint64_t& word : words) word = std::uint64_t{tag} << 32;
  }
  __device__ __forceinline__ bool is_there(std::uint32_t tag) const {
    bool is_there = true;
#pragma unroll
    for (const std::uint64_t word : words) is_there &= word >> 32 == tag;
    return is_there;
  }
  __device__ __forceinline__ Sum sum() const {
    std::uint32_t parts[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) parts[i] = static_cast<std::uint32_t>(words[i]);
    Sum sum;
    memcpy(&sum, parts, sizeof(Sum));
    return sum;
  }
};

template <class Sum>
__device__ __forceinline__ void load_published(Published<Sum>& sum, const Published<Sum>* from) {
#pragma unroll
  for (int i = 0; i < Published<Sum>::kWords; ++i) {
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(sum.words[i]) : "l"(from->words + i) : "memory");
  }
}

template <class Sum>
__device__ __forceinline__ void publish(Published<Sum>* at, Sum sum, std::uint32_t tag) {
  std::uint32_t parts[Published<Sum>::kWords];
  memcpy(parts, &sum, sizeof(Sum));
#pragma unroll
  for (int i = 0; i < Published<Sum>::kWords; ++i) {
    const std::uint64_t word = std::uint64_t{tag} << 32 | parts[i];
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at->words + i), "l"(word) : "memory");
  }
}

// Of one row.
template <class Sum>
struct PublishedSums {
  Published<Sum>* of_tiles;       // each tile's own
  Published<Sum>* before_groups;  // of all tiles before each group; none for the first two

  __device__ __forceinline__ PublishedSums(void* workspace, std::uint32_t rows, std::uint32_t row,
                                           std::uint32_t tiles) {
    const std::uint32_t groups = (tiles + kScanRadix - 1) / kScanRadix;
    auto* const sums = reinterpret_cast<Published<Sum>*>(static_cast<unsigned char*>(workspace) + kScanHeaderBytes);
    of_tiles = sums + std::uint64_t{row} * tiles;
    before_groups = sums + std::uint64_t{rows} * tiles + std::uint64_t{row} * groups;
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
    if (has_before) load_published(before, published.before_groups + (group - 1));
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
  for (int i = 0; i < kEach; ++i) sum += sums[i].sum();
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  if (has_before) sum = before.sum() + sum;
  if (lane == 0 && !is_own_group && tile == begin && group >= 1) publish(published.before_groups + group, sum, tag);
  return sum;
}

}  // namespace cgrt::kernels
