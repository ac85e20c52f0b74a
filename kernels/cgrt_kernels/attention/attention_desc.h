// Attention of many queries per sequence, as a transformer reads its prompt: what can be asked for. Plain: no Abseil.
// The functions that plan and launch are in attention.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

enum class AttentionMask : std::uint8_t {
  kNone,
  kCausal,  // the last query of a sequence sees all of its keys, the one before all but the last, and so on
};
constexpr const char* to_string(AttentionMask mask) {
  switch (mask) {
    case AttentionMask::kNone: return "none";
    case AttentionMask::kCausal: return "causal";
  }
  return "unknown";
}

enum class AttentionKernel : std::uint8_t {
  kBest,      // of those that the device has
  kPortable,  // of every device
  kHopper,    // of compute capability 9.0, in builds for it, with strides below 2^40 bytes
};
constexpr const char* to_string(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kBest: return "best";
    case AttentionKernel::kPortable: return "portable";
    case AttentionKernel::kHopper: return "hopper";
  }
  return "unknown";
}

// Elements from one token to the next, from one head to the next, from one sequence to the next, each a multiple of 8;
// 0: as in a contiguous array of [batch, tokens, heads, head_size]. Arrays of packed sequences have no batch stride.
struct AttentionStrides {
  std::uint64_t token = 0, head = 0, batch = 0;
};

// out = softmax(scale * q k^T) v of each sequence and head. Query heads h * group to h * group + group - 1, where group
// is heads / kv_heads, share head h of keys and values. Sums and the softmax are float; its weights are rounded to the
// type before they are multiplied with v.
struct AttentionDesc {
  DType type = DType::kBFloat16;  // of all arrays but lse; or float16
  AttentionMask mask = AttentionMask::kNone;
  std::uint64_t batch = 0;              // sequences
  std::uint64_t queries = 0, keys = 0;  // of a sequence, at most
  std::uint64_t heads = 0, kv_heads = 0;
  std::uint64_t head_size = 0;  // 64, 128 or 256
  float scale = 0;              // 0: 1 / sqrt(head_size)
  AttentionStrides q = {}, k = {}, v = {}, out = {};
  AttentionKernel kernel = AttentionKernel::kBest;
};

// Device addresses of arrays that do not overlap. q, k, v and out are aligned to 16 bytes, others to their elements.
//
// Sequences have as many tokens as the plan says, or are packed one behind the other and begin at offsets. Either way
// lengths say how many of them count, from the first on. Queries and keys are independent in this: packed queries may
// go with keys in a dense cache. Of a query that sees no key out is 0 and lse is -infinity. Rows of out and lse of
// queries that do not count are not written, and keys and values that do not count are not read. A value that the mask
// hides from some queries only must be finite for them, too.
struct AttentionArgs {
  void* out = nullptr;                      // [batch, queries, heads, head_size], or packed as q
  float* lse = nullptr;                     // [batch, heads, queries]: log(sum(exp(scale * q k^T))); may be null
  const void* q = nullptr;                  // [batch, queries, heads, head_size] or [tokens, heads, head_size]
  const void* k = nullptr;                  // [batch, keys, kv_heads, head_size] or [tokens, kv_heads, head_size]
  const void* v = nullptr;                  // as k
  const std::int32_t* q_offsets = nullptr;  // [batch + 1], ascending from 0 or more: packed queries and outputs
  const std::int32_t* k_offsets = nullptr;  // [batch + 1]: packed keys and values
  const std::int32_t* q_lengths = nullptr;  // [batch]; null: all
  const std::int32_t* k_lengths = nullptr;  // [batch]; null: all
};

}  // namespace cgrt::kernels
