// Decoupled look-back: how the blocks of one launch tell each other the sums of their tiles.
//
// Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016. Other than there,
// the order of additions is fixed: each kScanRadix tiles of a row are a group, and what precedes a tile is
// what precedes its group, as the last tile of the group before found it, and the tiles before it in the
// group. A tile publishes its own sum before it waits, so only the groups are a chain.
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

  // One that is there already, or not yet.
  __device__ __forceinline__ void set_zero(bool is_there, std::uint32_t tag) {
#pragma unroll
    for (std::uint64_t& word : words) word = std::uint64_t{is_there ? tag : ~tag} << 32;
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
  for (int i = 0; i < sum.kWords; ++i) {
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
  Published<Sum>* before_groups;  // of all tiles before group 1, 2, ...

  __device__ __forceinline__ PublishedSums(void* workspace, std::uint32_t rows, std::uint32_t row,
                                           std::uint32_t tiles) {
    const std::uint32_t groups = (tiles + kScanRadix - 1) / kScanRadix;
    auto* const sums = reinterpret_cast<Published<Sum>*>(static_cast<unsigned char*>(workspace) + kScanHeaderBytes);
    of_tiles = sums + std::uint64_t{row} * tiles;
    before_groups = sums + std::uint64_t{rows} * tiles + std::uint64_t{row} * groups;
  }
};

// What the tiles before this one in its row sum up to, once all of them have published that. For a warp.
template <class Sum>
__device__ __forceinline__ Sum look_back(const PublishedSums<Sum>& published, std::uint32_t tile, std::uint32_t tag,
                                         Sum own) {
  constexpr int kEach = kScanRadix / 32;
  constexpr unsigned kAll = 0xffffffffu;
  const std::uint32_t lane = threadIdx.x % 32, group = tile / kScanRadix, first = group * kScanRadix + lane;
  Published<Sum> before_group, of_tiles[kEach];
  before_group.set_zero(group == 0, tag);
#pragma unroll
  for (int i = 0; i < kEach; ++i) of_tiles[i].set_zero(first + i * 32 >= tile, tag);
  bool is_missing;
  do {
    if (!before_group.is_there(tag)) load_published(before_group, published.before_groups + group - 1);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (!of_tiles[i].is_there(tag)) load_published(of_tiles[i], published.of_tiles + first + i * 32);
    }
    is_missing = !before_group.is_there(tag);
#pragma unroll
    for (int i = 0; i < kEach; ++i) is_missing |= !of_tiles[i].is_there(tag);
  } while (__any_sync(kAll, is_missing));
  Sum sum = of_tiles[0].sum();
#pragma unroll
  for (int i = 1; i < kEach; ++i) sum += of_tiles[i].sum();
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  sum += before_group.sum();
  if (lane == 0 && tile % kScanRadix == kScanRadix - 1) publish(published.before_groups + group, sum + own, tag);
  return sum;
}

}  // namespace cgrt::kernels
