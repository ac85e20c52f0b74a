// Rotary position embedding (RoPE), with the bias of the projection before it and the cache of keys and values behind
// it: what can be asked for. Plain: no Abseil. The functions that plan and launch are in rope.h.
#pragma once

#include <cstdint>
#include <optional>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/kv_cache.h"

namespace cgrt::kernels {

// Which two elements of a head are rotated together.
enum class RopePairs : std::uint8_t {
  kHalves,      // i and i + rotary_size / 2: Llama, GPT-NeoX
  kNeighbours,  // 2 i and 2 i + 1: GPT-J
  kNone,        // none: bias, split and append alone, without a table
};

// Each token has a row of qkv: its queries, keys and values, head by head. The bias is added to all of them; then the
// first rotary_size elements of each query and key are rotated by the angles of the token's position. Computed in
// float, rounded once.
struct RopeDesc {
  DType type = DType::kFloat16;  // of all arrays but the table; or bfloat16, float32
  std::uint64_t tokens = 0;      // rows of qkv, at most
  std::uint64_t heads = 0, kv_heads = 0, head_size = 0;
  std::uint64_t rotary_size = 0;  // even; 0: head_size. Ignored with kNone
  RopePairs pairs = RopePairs::kHalves;
  bool has_bias = false;
  std::uint64_t positions = 0;  // rows of the table
  // Where keys and values go, as attention is told of it; its kv_heads, head_size and positions are those above where
  // they are 0. None: to arrays of [tokens, kv_heads, head_size].
  std::optional<KvCacheDesc> cache = {};
};

// Device addresses of contiguous arrays that do not overlap, aligned to the size of their elements. The table has pairs
// of floats, aligned to 8 bytes.
//
// Of a token whose position is not in [0, positions) nothing is written: it is padding. Keys and values whose sequence
// or position the cache does not have, or that have no page, are not written: rows of a block table may end with -1. No
// two tokens of a launch have the same sequence and position, or either's keys and values may stay. With a token_count,
// position and sequence are read behind it, too, where they may hold anything.
struct RopeArgs {
  void* q = nullptr;                          // [tokens, heads, head_size]
  void* k = nullptr;                          // [tokens, kv_heads, head_size], or a cache
  void* v = nullptr;                          // as k
  const void* qkv = nullptr;                  // [tokens, heads + 2 kv_heads, head_size]
  const void* bias = nullptr;                 // [heads + 2 kv_heads, head_size], with has_bias
  const float* table = nullptr;               // [positions, rotary_size / 2, 2]: cos and sin; ignored with kNone
  const std::int32_t* position = nullptr;     // [tokens]
  const std::int32_t* sequence = nullptr;     // [tokens], with a cache
  const std::int32_t* block_table = nullptr;  // [sequences, pages_per_sequence], with a paged cache
  const std::int32_t* token_count = nullptr;  // how many tokens there are, clamped to 0 and `tokens`; null: all
};

}  // namespace cgrt::kernels
