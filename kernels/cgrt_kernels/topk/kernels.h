// What topk's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/topk/topk_desc.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kTopkBlock = 128;  // threads

// Threads of a token: those of a warp, or as many of it as hold a few experts.
constexpr std::uint32_t topk_lanes(std::uint64_t experts) { return experts <= 8 ? 8 : experts <= 16 ? 16 : 32; }

struct TopkParams {
  TopkArgs args;
  std::uint32_t tokens, experts, k;
  TopkWeights weights;
};

Kernel<TopkParams> topk_kernel(DType type, std::uint32_t experts);

}  // namespace cgrt::kernels
