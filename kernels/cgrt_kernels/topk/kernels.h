// What topk's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/topk/topk_desc.h"

namespace cgrt::kernels {

inline constexpr int kTopkBlock = 128;  // threads, a warp for each token

struct TopkParams {
  TopkArgs args;
  std::uint32_t tokens, experts, k;
  TopkWeights weights;
};

Kernel<TopkParams> topk_kernel(DType type, std::uint32_t experts);

}  // namespace cgrt::kernels
