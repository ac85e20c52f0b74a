// What the plan and the device code of attention have in common. Internal.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/attention/attention_desc.h"
#include "cgrt_kernels/common/device_count.h"

namespace cgrt::kernels {

// A block has four warps, and a warp one or two tiles of 16 queries. With two each matrix that is loaded from shared
// memory serves two products: with one, loads are what the kernel waits for, but short sequences have enough blocks.
inline constexpr std::uint32_t kAttentionThreads = 128, kAttentionKeys = 64;  // keys of a step
enum class AttentionBlock : std::uint8_t { kSmall, kLarge };
__host__ __device__ constexpr std::uint32_t attention_queries(AttentionBlock block) {
  return kAttentionThreads / 32 * (block == AttentionBlock::kLarge ? 32 : 16);
}
__host__ __device__ constexpr std::uint32_t attention_shared_bytes(std::uint32_t head_size, AttentionBlock block) {
  return (attention_queries(block) + 2 * kAttentionKeys) * head_size * 2;
}

// Of the kernel of sm_90a. One warpgroup copies, the others multiply 64 queries each. Blocks stay and take tiles in
// turn.
struct AttentionHopper {
  static constexpr std::uint32_t kStages = 2;  // of keys, and of values
  static __host__ __device__ constexpr std::uint32_t consumers(std::uint32_t head_size) {
    return head_size == 64 ? 3 : 2;  // warpgroups that multiply
  }
  static __host__ __device__ constexpr std::uint32_t threads(std::uint32_t head_size) {
    return 128 * (1 + consumers(head_size));
  }
  static __host__ __device__ constexpr std::uint32_t queries(std::uint32_t head_size) {
    return 64 * consumers(head_size);
  }
  static __host__ __device__ constexpr std::uint32_t keys(std::uint32_t head_size) {
    return head_size == 256 ? 64 : 128;
  }
  // Whether shared memory has room for outputs beside the next queries.
  static __host__ __device__ constexpr bool has_outputs(std::uint32_t head_size) { return head_size != 256; }
  // With room for barriers, and to begin at a multiple of 1024.
  static __host__ __device__ constexpr std::uint32_t shared_bytes(std::uint32_t head_size) {
    const std::uint32_t rows = (has_outputs(head_size) ? 2 : 1) * queries(head_size) + 2 * kStages * keys(head_size);
    return rows * head_size * 2 + 2048;
  }
};

struct AttentionParams {
  AttentionArgs args;
  AttentionStrides q, k, v, out;
  std::uint32_t batch, queries, keys, heads, kv_heads, group;
  std::uint32_t query_tiles, heads_at_once, tiles_at_once;  // as in the plan
  float scale;                                              // times log2(e): weights are powers of two
  AttentionMask mask;
  CUtensorMap q_map, k_map, v_map;  // for the kernel of sm_90a
};

// The tokens of a sequence that count.
struct AttentionTokens {
  std::uint32_t sequence;  // of a dense array, else 0
  std::uint32_t first;     // of a packed array, else 0
  std::uint32_t count;

  __host__ __device__ std::uint64_t offset(const AttentionStrides& strides) const {
    return sequence * strides.batch + first * strides.token;
  }
};
__host__ __device__ inline AttentionTokens attention_tokens(const std::int32_t* offsets, const std::int32_t* lengths,
                                                            std::uint32_t sequence, std::uint32_t max) {
  AttentionTokens tokens{sequence, 0, max};
  if (offsets != nullptr) {
    const std::int32_t first = offsets[sequence], between = offsets[sequence + 1] - first;
    tokens = {0, static_cast<std::uint32_t>(first), count_at(&between, max)};
  }
  if (lengths != nullptr) tokens.count = count_at(lengths + sequence, tokens.count);
  return tokens;
}

// How many of the first `keys` keys one of `queries` queries sees.
__host__ __device__ inline std::uint32_t seen_by(AttentionMask mask, std::uint32_t query, std::uint32_t queries,
                                                 std::uint32_t keys) {
  if (mask == AttentionMask::kNone) return keys;
  const std::uint32_t end = query + 1 + keys;
  return end <= queries ? 0 : end - queries;
}

// The order of tiles for the kernel of sm_90a, the same for the plan. Heads whose keys and values fit into the cache
// together are a section of it; in a section tiles with many keys come first, and heads that share keys and values are
// neighbours. A step is a tile, or two, of which the second has the fewer keys the more the first has: then all steps
// take as long.
struct AttentionOrder {
  std::uint32_t heads, section_heads;  // of queries, in all sequences
  std::uint32_t query_tiles, tiles_at_once;

  __host__ __device__ std::uint32_t steps_of_head() const { return (query_tiles + tiles_at_once - 1) / tiles_at_once; }
  __host__ __device__ std::uint32_t steps() const { return heads * steps_of_head(); }

  // Of its head the tile `last`, and where there are two `first`, unless they are the same.
  struct Step {
    std::uint32_t head, first, last;
  };
  __host__ __device__ Step at(std::uint32_t step) const {
    const std::uint32_t section_steps = section_heads * steps_of_head();
    const std::uint32_t section = step / section_steps, among = step - section * section_steps;
    const std::uint32_t first = section * section_heads, left = heads - first;
    const std::uint32_t in_section = section_heads < left ? section_heads : left, order = among / in_section;
    return {first + among - order * in_section, order, query_tiles - 1 - order};
  }

  // The step of a block that comes at `turn`: its index, and so many blocks more each time, until there is none. Blocks
  // take single tiles forwards and backwards in turn, or the first would have the longest each time.
  __host__ __device__ std::uint32_t step_at(std::uint32_t turn, std::uint32_t blocks) const {
    const std::uint32_t round = turn / blocks;
    return tiles_at_once == 1 && round % 2 != 0 ? (2 * round + 1) * blocks - 1 - turn : turn;
  }
};

Kernel<AttentionParams> attention_kernel(DType type, std::uint64_t head_size, AttentionBlock block);
Kernel<AttentionParams> attention_hopper_kernel(DType type, std::uint64_t head_size);

}  // namespace cgrt::kernels
