// What bias_norm's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/bias_norm/bias_norm_desc.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {

struct BiasNormParams {
  NormParams norm;
  const void* in_bias;
};

// How the threads share a row, and how many elements of it each keeps in registers.
enum class BiasNormRegime : std::uint8_t {
  kWarpShort,      // a warp, 8 elements each; aligned rows only
  kWarp,           // a warp, 4 packs each; unaligned rows only
  kBlockShort,     // a block of up to 4 warps, 8 elements each; aligned rows only
  kBlockMiddle,    // of up to 8 warps
  kBlock,          // of up to 16 warps, 16 elements each; aligned rows of 16-bit types only
  kClusterShort,   // a block or a cluster of blocks, 8 elements each; aligned rows only
  kClusterMiddle,  // 16 elements; aligned rows of floats only
  kCluster,        // 32 elements (16 of unaligned floats)
};

inline constexpr std::uint32_t kShortBlockThreads = 128, kMiddleBlockThreads = 256;  // at most

Kernel<BiasNormParams> bias_norm_kernel(NormOp op, DType type, BiasNormRegime regime, Alignment alignment);

}  // namespace cgrt::kernels
