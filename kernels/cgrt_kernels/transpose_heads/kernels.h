// What transpose_heads' plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/wide_divisor.h"
#include "cgrt_kernels/transpose_heads/transpose_heads_desc.h"

namespace cgrt::kernels {

inline constexpr int kTransposeBlock = 256;  // threads
// Positions of a thread, which has the same pack of each: narrower packs than 16 bytes need more in flight.
inline constexpr std::uint32_t kTransposePositions = 1, kTransposeNarrowPositions = 4;

struct TransposeHeadsParams {
  TransposeHeadsArgs args;  // offsets: null with padded rows
  std::uint32_t sequences, positions, heads, tokens;
  Divisor tiles;          // of a thread's positions, of a sequence
  Divisor head_packs;     // of a head
  WideDivisor row_packs;  // of a token
};

// `bytes` of a pack: 16, 8, 4 or 2.
Kernel<TransposeHeadsParams> transpose_heads_kernel(TransposeHeadsOp op, std::uint32_t bytes);

}  // namespace cgrt::kernels
