// Nearest upsampling of images: what can be asked for. Plain: no Abseil. The functions that plan and launch are in
// upsample.h.
#pragma once

#include <cstdint>

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

// Device addresses of contiguous arrays that do not overlap, aligned to the size of their elements. The image is
// [batch, channels, height, width], with kNhwc [batch, height, width, channels]. The resized image is the same with
// out_height and out_width, which may also be smaller than height and width. Forward: `in` is the image, `out` the
// resized one. Backward: `in` is the gradient of the resized one, `out` that of the image, which is overwritten.
struct UpsampleArgs {
  void* out = nullptr;
  const void* in = nullptr;
};

}  // namespace cgrt::kernels
