// What the plan and the device code of decode attention have in common. Internal.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/kv_cache_shape.h"
#include "cgrt_kernels/decode_attention/decode_attention_desc.h"

namespace cgrt::kernels {

// A warp reads tiles of so many positions, through a ring of stages of its own: a tile of keys and one of values each.
inline constexpr std::uint32_t kDecodeTile = 16;
__host__ __device__ constexpr std::uint32_t decode_stages(std::uint32_t head_size) { return head_size == 64 ? 6 : 3; }
__host__ __device__ constexpr std::uint32_t decode_ring_bytes(std::uint32_t head_size) {
  return decode_stages(head_size) * 2 * kDecodeTile * head_size * 2;
}
// What the blocks of a cluster send to one of them: parts of four elements, with a maximum and a sum.
__host__ __device__ constexpr std::uint32_t decode_sent_bytes(std::uint32_t head_size, std::uint32_t group,
                                                              std::uint32_t splits) {
  return (group * head_size / 4 + splits) * 24;
}
// Whole blocks have a multiprocessor for themselves, of halves it has two.
enum class DecodeBlock : std::uint8_t { kWhole, kHalf };
__host__ __device__ constexpr std::uint32_t decode_warps(std::uint32_t head_size, DecodeBlock block) {
  return (head_size == 256 ? 4 : 8) / (block == DecodeBlock::kWhole ? 1 : 2);
}

// At most kDecodeUnsplit positions are not split, more into parts of kDecodeMinPart or more.
inline constexpr std::uint32_t kDecodeUnsplit = 256, kDecodeMinPart = 128;

inline constexpr std::uint32_t kDecodeMaxCluster = 8;  // which every device with clusters has

struct DecodeAttentionParams {
  DecodeAttentionArgs args;
  KvCacheShape cache;
  Divisor kv_heads, splits;
  std::uint32_t group, window;
  std::uint64_t q_stride;
  float scale;      // times log2(e): weights are powers of two
  bool is_cluster;  // the splits of a sequence and head are a cluster; else they leave their parts in the workspace
  // A counter for each sequence and head of the cache, and what they have computed.
  std::uint32_t* counters;
  float4* part_values;
  float2* part_sums;
};

Kernel<DecodeAttentionParams> decode_attention_kernel(DType type, std::uint64_t head_size, DecodeBlock block);

}  // namespace cgrt::kernels
