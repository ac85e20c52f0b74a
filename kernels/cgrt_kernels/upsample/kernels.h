// What upsampling's plans and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/upsample/shape.h"
#include "cgrt_kernels/upsample/upsample_desc.h"

namespace cgrt::kernels {

struct UpsampleParams {
  void* out;
  const void* in;
  UpsampleShape shape;
};
using UpsampleKernel = Kernel<UpsampleParams>;

inline constexpr std::uint32_t kUpsampleBlock = 256;
inline constexpr std::uint32_t kTilePacks = 512;

// A pack of `pack_bytes`, 16, 8, 4 or 2 and not below the size of the type, of columns or, channels last, of channels.
UpsampleKernel upsample_kernel(DType type, ImageLayout layout, std::uint32_t pack_bytes);

// How the threads share the work. All but kPixels: channels first, in packs of 16 bytes.
enum class UpsampleBackwardRegime : std::uint8_t {
  kTwice,   // exactly 2 x 2 copies
  kThirds,  // 3 x 3 copies of 2 x 2 pixels
  kLines,   // tiles
  kPixels,  // a pixel, or a pack of its channels where these are last
};

// `copies`: max copies of a pixel in either direction; 2 and 3 have kernels of their own.
UpsampleKernel upsample_backward_kernel(DType type, UpsampleBackwardRegime regime, Alignment alignment,
                                        std::uint32_t copies);

}  // namespace cgrt::kernels
