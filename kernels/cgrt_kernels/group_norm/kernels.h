// What group_norm's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/group_norm/group_norm_desc.h"

namespace cgrt::kernels {

inline constexpr int kGroupNormBlock = 256;  // threads

// Of elements: how many, their mean, and their squared deviations from it.
struct alignas(16) GroupNormPart {
  float count, mean, squares;
};
// Of a group of an image.
struct GroupNormStatistics {
  float mean, scale;
};

struct GroupNormParams {
  GroupNormArgs args;
  std::uint32_t batch, plane, channels, groups;
  GroupNormActivation activation;
  float epsilon;
  Divisor group_channels;
  Divisor width;                            // packs of a pixel that a block has beside each other
  Divisor splits;                           // blocks of an image that share its statistics
  Divisor tiles;                            // and its elements
  std::uint32_t split_pixels, tile_pixels;  // of such a block
  std::uint32_t* counters;                  // one for each image
  GroupNormPart* parts;                     // [batch, splits, groups]
  GroupNormStatistics* statistics;          // [batch, groups]
};

Kernel<GroupNormParams> group_norm_statistics_kernel(DType type, Alignment alignment);
Kernel<GroupNormParams> group_norm_apply_kernel(DType type, Alignment alignment);

}  // namespace cgrt::kernels
