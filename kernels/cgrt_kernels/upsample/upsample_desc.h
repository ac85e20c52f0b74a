// Nearest upsampling of images: what can be asked for. Plain: no Abseil. The functions that plan and
// launch are in upsample.h.
#pragma once

#include <cmath>
#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

enum class UpsampleOp : std::uint8_t {
  kForward,   // each pixel of the output is that of the input which it lies on
  kBackward,  // the gradient of the input: each pixel sums the output's gradients of its copies
};
constexpr const char* to_string(UpsampleOp op) {
  return op == UpsampleOp::kForward ? "upsample_nearest" : "upsample_nearest_backward";
}

enum class ImageLayout : std::uint8_t { kNchw, kNhwc };

// Row y of the output shows row min(floor(y * scale), height - 1) of the input, where scale is
// height / out_height in float; columns alike. This is PyTorch's mode="nearest".
struct UpsampleDesc {
  UpsampleOp op = UpsampleOp::kForward;
  DType type = DType::kFloat32;  // or float16, bfloat16
  ImageLayout layout = ImageLayout::kNchw;
  std::uint64_t batch = 0, channels = 0, height = 0, width = 0, out_height = 0, out_width = 0;
  // PyTorch's scale_factor, where the sizes came from one: scale is then 1 / factor. 0: from the sizes.
  double factor_height = 0, factor_width = 0;
};

// Device addresses of contiguous arrays that do not overlap. Forward: `in` is the image, `out` the
// larger one. Backward: `in` is the gradient of the larger one, `out` that of the image.
struct UpsampleArgs {
  void* out = nullptr;
  const void* in = nullptr;
};

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
  // The first position of the output whose source is `position` or a later one. In floats, which count
  // all positions: conversions are what takes the time of those kernels that ask for each pixel.
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

// What a block of the kernels for lines has: `columns` of each of `lines` rows of images, whichever image
// a row is of.
struct UpsampleTile {
  Divisor columns;
  Divisor packs;  // of a row of the larger image that have copies of them, at most
  std::uint32_t lines = 0;
};

// What the kernels are told. An item is what one thread does at a time.
struct UpsampleShape {
  ImageLayout layout = ImageLayout::kNchw;
  std::uint32_t items = 0;
  std::uint32_t images = 0;    // of one channel: batch * channels; channels last: batch
  std::uint32_t channels = 1;  // that lie side by side: 1, or all
  UpsampleAxis rows, columns;
  Divisor packs;         // of a row; channels last: of a pixel
  Divisor row_items;     // items below each other in an image
  Divisor column_items;  // items side by side: channels last, or tiles
  UpsampleTile tile;
};

using UpsampleKernel = Kernel<void*, const void*, UpsampleShape>;  // out, in, shape

// How the threads share the work.
enum class UpsampleRegime : std::uint8_t {
  kColumns,   // forward, channels first: a pack of columns
  kTwice,     // backward, channels first: exactly 2 x 2 copies, in packs of 16 bytes
  kThirds,    // alike: 3 x 3 copies of 2 x 2 pixels
  kLines,     // backward, channels first: tiles, in packs of 16 bytes
  kChannels,  // channels last: a pack of channels; backward also a pixel, channels first
};

inline constexpr std::uint32_t kUpsampleBlock = 256;
inline constexpr std::uint32_t kTilePacks = 512;

// The device code (kernels.cu). `pack_bytes`: 16, 8, 4 or 2, not below the size of the type; backward, 16
// or the size. `copies`: max copies of a pixel in either direction; 2 and 3 have kernels of their own.
UpsampleKernel upsample_kernel(UpsampleOp op, DType type, UpsampleRegime regime, std::uint32_t pack_bytes,
                               std::uint32_t copies);

}  // namespace cgrt::kernels
