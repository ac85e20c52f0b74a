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
  kWarpShort,      // a warp, 16 elements each; aligned rows only
  kWarp,           // a warp, 32 elements each (16 of unaligned floats)
  kClusterShort,   // a block or a cluster of blocks, 8 elements each; aligned rows only
  kClusterMiddle,  // 16 elements; aligned rows only
  kCluster,        // 32 elements (16 of unaligned floats)
};

Kernel<BiasNormParams> bias_norm_kernel(NormOp op, DType type, BiasNormRegime regime, Alignment alignment);

}  // namespace cgrt::kernels
