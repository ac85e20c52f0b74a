// What transpose_heads' plan and device code have in common. Internal.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/wide_divisor.h"
#include "cgrt_kernels/transpose_heads/transpose_heads_desc.h"

namespace cgrt::kernels {

// A thread has the same pack of some positions, or some packs side by side in the output.
struct TransposeShape {
  std::uint32_t bytes;         // of a pack: 16, 8, 4 or 2
  std::uint32_t joined_bytes;  // of those side by side, 16, of packs of 2 bytes also 8; 0: a pack of some positions
  std::uint32_t positions;     // of packs of less than 16 bytes 4; of others 1, kTransposeDeep, or 2 with kMerge
  bool is_whole = false;       // 1 position of padded rows that are whole blocks: see transpose_heads_whole
};
inline constexpr std::uint32_t kTransposeDeep = 8;
inline constexpr std::uint32_t kTransposeDeepBlocks = 9;                      // of a multiprocessor, by their registers
__host__ __device__ constexpr int transpose_block(std::uint32_t positions) {  // threads
  return positions == kTransposeDeep ? 128 : 256;
}

struct TransposeHeadsParams {
  TransposeHeadsArgs args;  // offsets: null with padded rows
  std::uint32_t sequences, positions, tokens;
  std::uint32_t packs;  // of `out`, where some are joined
  Divisor heads;
  Divisor tiles;          // of a thread's positions, of a sequence
  Divisor head_packs;     // of a head
  WideDivisor row_packs;  // of a token
};

Kernel<TransposeHeadsParams> transpose_heads_kernel(TransposeHeadsOp op, TransposeShape shape);

}  // namespace cgrt::kernels
