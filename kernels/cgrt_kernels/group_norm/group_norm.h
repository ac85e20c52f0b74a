// Group normalization (Wu and He, "Group normalization", 2018) of images whose channels are last, with SiLU behind it
// as diffusion models have it: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(GroupNormPlan plan, plan_group_norm(DeviceRef(0), {.type = DType::kBFloat16, .batch = 2,
//       .plane = 64 * 64, .channels = 320, .activation = GroupNormActivation::kSilu}));
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), plan.workspace_bytes));
//   const Workspace workspace{buffer.data(), buffer.size_bytes()};
//   CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));   // once, see common/workspace.h
//   CGRT_RETURN_IF_ERROR(launch_group_norm(stream.ref(), plan, {.y = y, .x = x, .weight = weight, .bias = bias,
//       .workspace = workspace}));
//
// A plan is a value and depends on the device and the descriptor only. Two kernels, statistics and then elements, which
// are ordered programmatically where their code was compiled for 9.0 or later: x is read twice. No allocation, the same
// bits in every run. Packs of 16 bytes where arrays and pixels are aligned to them, single elements elsewhere.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/common/workspace.h"
#include "cgrt_kernels/group_norm/group_norm_desc.h"

namespace cgrt::kernels {

struct GroupNormParams;

struct GroupNormPlan {
  struct Launch {
    Kernel<GroupNormParams> statistics, apply;
    LaunchConfig statistics_config, apply_config;
    std::uint32_t width;                              // packs of a pixel that a block has beside each other
    std::uint32_t splits, split_pixels, tile_pixels;  // blocks of an image, and pixels of a block of either kernel
  };

  GroupNormDesc desc;
  Launch aligned, unaligned;  // for arrays that are aligned to 16 bytes, and others
  EdgeKind edges = EdgeKind::kProgrammatic;
  std::size_t workspace_bytes = 0;

  std::uint64_t topology_id() const;  // see common/topology.h
};

// kInvalidArgument for other types, for sizes of 0 and of 2^31 and more, for more channels than there can be, for
// groups of which channels are no multiple, and for an epsilon that is negative or not finite.
absl::StatusOr<GroupNormPlan> plan_group_norm(ContextRef context, const GroupNormDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer, and for a workspace that is too
// small.
absl::Status launch_group_norm(LaunchTarget target, const GroupNormPlan& plan, const GroupNormArgs& args);

}  // namespace cgrt::kernels
