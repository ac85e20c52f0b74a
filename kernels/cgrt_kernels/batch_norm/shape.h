// How a plan shares a tensor among threads. Internal.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/wide_divisor.h"

namespace cgrt::kernels {

// Kernels see a matrix: NCHW has a row for each image, of channels * plane columns; NHWC has a row for each pixel, of
// `channels` columns, and planes of one. So column k belongs to channel k / plane, in both.
struct BatchNormShape {
  std::uint32_t rows = 0, columns = 0, plane = 1;
  std::uint32_t tile_packs = 0, tiles = 0;  // of a row: a block has a tile of columns; channels_held: of channels
  std::uint32_t splits = 0;                 // and one of so many parts of its rows
  std::uint32_t split_rows = 0;             // channels_resident, channel_apply: of a part
  Divisor tiles_divisor;                    // channel_apply: tiles; channels_packed: tile_packs, of a plane
  Divisor plane_divisor;
  WideDivisor columns_divisor;                    // channel_apply_shifted: columns
  std::uint32_t channels = 0;                     // channel_apply_shifted
  std::uint32_t step_rows = 0, step_columns = 0;  // channels_held: from an element of a thread to the next
  std::uint32_t slots = 0;
  std::uint32_t finish_warps = 0;  // channel_finish: of each channel
};

}  // namespace cgrt::kernels
