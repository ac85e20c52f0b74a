// Nearest upsampling of batches of images and its gradient: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(UpsamplePlan plan, plan_upsample(DeviceRef(0), {.type = DType::kFloat16, .batch = batch,
//       .channels = channels, .height = height, .width = width, .out_height = 2 * height, .out_width = 2 * width}));
//   CGRT_RETURN_IF_ERROR(launch_upsample(stream.ref(), plan, {.out = y, .in = x}));
//
// A plan is a value and depends on the device and the descriptor only. One kernel, no workspace, no allocation. The
// gradient is the exact transpose of the forward map (PyTorch's can differ from its own forward map by a pixel where a
// scale is not a fraction of small numbers), has no atomics, and is summed in float, in the same order in every run.
// Packs of up to 16 bytes, narrower where the sizes or addresses are not multiples.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/upsample/shape.h"
#include "cgrt_kernels/upsample/upsample_desc.h"

namespace cgrt::kernels {

struct UpsampleParams;

struct UpsamplePlan {
  struct Launch {
    Kernel<UpsampleParams> kernel;
    LaunchConfig config;
    UpsampleShape shape;
  };

  UpsampleDesc desc;
  Launch by_alignment[4];  // for arrays that are aligned to 16, 8, 4 and 2 bytes

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({by_alignment[0].config.attributes}); }
};

// kInvalidArgument for a size of 0, for types other than those three, for more than 2^31 - 1 elements or 2^24 rows or
// columns of either image, and for factors that are negative, not finite, or far from the ratio of the sizes.
absl::StatusOr<UpsamplePlan> plan_upsample(ContextRef context, const UpsampleDesc& desc);

// kInvalidArgument, with the name of the argument, for null pointers and for pointers that are not
// aligned to the type's size.
absl::Status launch_upsample(LaunchTarget target, const UpsamplePlan& plan, const UpsampleArgs& args);

}  // namespace cgrt::kernels
