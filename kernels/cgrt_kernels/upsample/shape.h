// How threads share images: what a plan of upsampling holds for its kernels. Plain: kernels include it, too.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cmath>
#include <cstdint>

#include "cgrt_kernels/common/divisor.h"

namespace cgrt::kernels {

// One direction of the images, and how its positions correspond.
struct UpsampleAxis {
  std::uint32_t size = 0, out_size = 0;
  float scale = 1;
  float inverse = 1;           // about 1 / scale
  std::uint32_t factor = 0;    // when each position has exactly that many copies; otherwise 0
  std::uint32_t together = 1;  // positions of the output that one thread of the forward kernels writes

  __host__ __device__ std::uint32_t source(std::uint32_t position) const {
    const auto at = static_cast<std::uint32_t>(static_cast<float>(position) * scale);
    return at < size - 1 ? at : size - 1;
  }
  // The first position of the output whose source is `position` or a later one. In floats, which count all positions:
  // conversions are what takes the time of those kernels that ask for each pixel.
  __host__ __device__ std::uint32_t begin(std::uint32_t position) const {
    if (position >= size) return out_size;
    if (factor != 0) return position * factor;
    const auto wanted = static_cast<float>(position), end = static_cast<float>(out_size);
    float at = std::fmin(std::trunc(wanted * inverse), end);
    while (at > 0 && (at - 1) * scale >= wanted) --at;
    while (at < end && at * scale < wanted) ++at;
    return static_cast<std::uint32_t>(at);
  }
};

// What a block of the kernels for lines has: `columns` of each of `lines` rows of images, whichever image a row is of.
struct UpsampleTile {
  Divisor columns;
  Divisor packs;  // of a row of the larger image that hold their copies, at most
  std::uint32_t lines = 0;
};

// An item is what one thread does at a time.
struct UpsampleShape {
  std::uint32_t items = 0;
  std::uint32_t images = 0;    // of one channel: batch * channels; channels last: batch
  std::uint32_t channels = 1;  // that lie side by side: 1, or all
  UpsampleAxis rows, columns;
  Divisor packs;         // of a row; channels last: of a pixel
  Divisor row_items;     // items below each other in an image
  Divisor column_items;  // items side by side: channels last, or tiles
  UpsampleTile tile;
};

}  // namespace cgrt::kernels
