// Attention of one query per sequence over a cache of keys and values, as a transformer decodes: what can be asked for.
// Plain: no Abseil. The functions that plan and launch are in decode_attention.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/kv_cache.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kDecodeMaxGroup = 16;

// out = softmax(scale * q k^T) v of each sequence and head. Query heads h * group to h * group + group - 1, where group
// is heads / kv_heads, share head h of the cache. Sums and the softmax are float; its weights are rounded to the type
// before they are multiplied with v.
struct DecodeAttentionDesc {
  DType type = DType::kBFloat16;  // of all arrays but lse; or float16
  std::uint64_t heads = 0;        // of queries: 1 to kDecodeMaxGroup times the cache's
  KvCacheDesc cache;              // head_size is 64, 128 or 256; strides are multiples of 8
  float scale = 0;                // 0: 1 / sqrt(head_size)
  std::uint64_t window = 0;       // how many of a sequence's last positions count; 0: all
  std::uint64_t q_stride = 0;     // elements from one sequence's queries to the next, a multiple of 8; 0: contiguous
};

// Device addresses of arrays that do not overlap. q, k, v and out are aligned to 16 bytes, others to their elements.
//
// Of a sequence without positions out is 0 and lse is -infinity. Keys and values of a position are 0 where the block
// table has no page from 0 to pages - 1. What the table says behind a sequence's length is not read.
struct DecodeAttentionArgs {
  void* out = nullptr;                        // [sequences, heads, head_size]
  float* lse = nullptr;                       // [sequences, heads]: log(sum(exp(scale * q k^T))); null: not written
  const void* q = nullptr;                    // [sequences, heads, head_size]
  const void* k = nullptr;                    // as the cache's descriptor says
  const void* v = nullptr;                    // as k
  const std::int32_t* lengths = nullptr;      // [sequences]: positions of each, clamped to 0 and `positions`
  const std::int32_t* block_table = nullptr;  // of a paged cache
  Workspace workspace;
};

}  // namespace cgrt::kernels
