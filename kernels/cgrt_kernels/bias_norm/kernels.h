// What bias_norm's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt_kernels/bias_norm/bias_norm_desc.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {

// How the threads share a row, and how many elements of it each keeps in registers.
enum class BiasNormRegime : std::uint8_t {
  kWarp,           // a warp, 4 packs each; unaligned rows only
  kClusterShort,   // a block or a cluster of blocks, 8 elements each; aligned rows only
  kClusterMiddle,  // 16 elements; aligned rows of floats only
  kCluster,        // 32 elements (16 of unaligned floats)
  kWideBlock,      // a block of up to kMaxWideThreads, kWidePacks packs each; aligned rows only
};

NormKernel bias_norm_kernel(NormOp op, DType type, BiasNormRegime regime, Alignment alignment);
// As norm_lanes_kernel, of up to 128 columns where rows are aligned, and norm_held_kernel.
NormKernel bias_norm_lanes_kernel(NormOp op, DType type, Alignment alignment, std::uint32_t columns);
NormKernel bias_norm_held_kernel(NormOp op, DType type, HeldRegime regime);

}  // namespace cgrt::kernels
