// Group normalization of images whose channels are last: what can be asked for. Plain: no Abseil. The functions that
// plan and launch are in group_norm.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// Of the normalized elements, before they are rounded.
enum class GroupNormActivation : std::uint8_t { kNone, kSilu };

inline constexpr std::uint32_t kGroupNormMaxChannels = 4096;

// y = activation((x - mean) / sqrt(variance + epsilon) * weight + bias), with the mean and variance of the
// channels / groups neighbouring channels of a group in one image, and weight and bias of a channel. Computed in float,
// rounded once.
struct GroupNormDesc {
  DType type = DType::kFloat16;  // of all arrays; or bfloat16, float32
  std::uint64_t batch = 0;       // images
  std::uint64_t plane = 0;       // pixels of an image: height * width
  std::uint64_t channels = 0;    // a multiple of groups, at most kGroupNormMaxChannels
  std::uint64_t groups = 32;
  GroupNormActivation activation = GroupNormActivation::kNone;
  float epsilon = 1e-5f;
};

// Device addresses of contiguous arrays, aligned to the size of their elements. y may be x; any other overlap is
// undefined.
struct GroupNormArgs {
  void* y = nullptr;             // [batch, plane, channels]
  const void* x = nullptr;       // the same
  const void* weight = nullptr;  // [channels]; null: ones
  const void* bias = nullptr;    // [channels]; null: zeros
  Workspace workspace = {};      // GroupNormPlan::workspace_bytes
};

}  // namespace cgrt::kernels
