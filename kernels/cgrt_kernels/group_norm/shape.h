// How blocks share the images of a launch of group_norm. Internal.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/divisor.h"

namespace cgrt::kernels {

struct GroupNormShape {
  Divisor width;                   // packs of a pixel that a block has beside each other
  Divisor splits;                  // blocks that share statistics: of an image, or of a slice of it
  std::uint32_t split_pixels = 0;  // of each
  Divisor tiles;                   // group_apply: blocks of an image
  std::uint32_t tile_pixels = 0;   // of each
  Divisor slices;                  // group_norm_resident: of an image, whole groups each
  std::uint32_t slice_groups = 0;  // of each, at most
  Divisor parts;                   // warps that share a group's sums
  Divisor span;                    // packs of a pixel that a group lies in, at most; of narrow groups its channels
  std::uint32_t sums = 2;          // of a thread: its first and second group's; of narrow groups each channel's
};

}  // namespace cgrt::kernels
