// What rope's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/kv_cache_shape.h"
#include "cgrt_kernels/common/wide_divisor.h"
#include "cgrt_kernels/rope/rope_desc.h"

namespace cgrt::kernels {

inline constexpr int kRopeBlock = 128;  // threads, two packs each
// Of a multiprocessor: with all that a thread asks for at once it would take registers for fewer.
inline constexpr int kRopeBlocks = 9;

struct RopeParams {
  RopeArgs args;  // `sequence` is null without a cache
  std::uint32_t tokens, heads, kv_heads, head_size, rotary_size, positions;
  KvCacheShape cache;     // without one, a position is a token
  Divisor head_items;     // threads of a head
  WideDivisor row_items;  // of a token
};

// RopePairs::kNone: that of kHalves, of which none are rotated with a rotary_size of 0.
Kernel<RopeParams> rope_kernel(DType type, RopePairs pairs, Alignment alignment);

}  // namespace cgrt::kernels
