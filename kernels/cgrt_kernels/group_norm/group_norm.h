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
// A plan is a value and depends on the device and the descriptor only. No allocation, the same bits in every run. Where
// arrays and pixels are aligned to 16 bytes, images that fit are read once, by one kernel: each group's channels stay
// in the shared memory of a block, or of a cluster of up to 8. Others are read twice, by one kernel for statistics and
// one for elements, which are ordered programmatically where their code was compiled for 9.0 or later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/row/launch.h"
#include "cgrt_kernels/common/workspace.h"
#include "cgrt_kernels/group_norm/group_norm_desc.h"
#include "cgrt_kernels/group_norm/shape.h"

namespace cgrt::kernels {

struct GroupNormParams;

struct GroupNormPlan {
  struct Launch {
    Kernel<GroupNormParams> kernel;  // for all of it, or for statistics
    LaunchConfig config;
    std::optional<SecondLaunch<GroupNormParams>> elements;
    GroupNormShape shape;
  };

  GroupNormDesc desc;
  Launch aligned, unaligned;  // for arrays that are aligned to 16 bytes, and others
  std::size_t workspace_bytes = 0;

  // See common/topology.h. `alignment`: the least to which an array of the launch is aligned; it matters only whether
  // that is a multiple of 16.
  std::uint64_t topology_id(std::size_t alignment = 16) const;
};

// kInvalidArgument for other types, for sizes of 0 and of 2^31 and more, the pixels of all images among them, for more
// channels than kGroupNormMaxChannels, for groups of which channels are no multiple, and for an epsilon that is
// negative or not finite.
absl::StatusOr<GroupNormPlan> plan_group_norm(ContextRef context, const GroupNormDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer, and for a workspace that is too
// small where images are read twice. They are read once, without a workspace, where they fit and all arrays are aligned
// to 16 bytes.
absl::Status launch_group_norm(LaunchTarget target, const GroupNormPlan& plan, const GroupNormArgs& args);

}  // namespace cgrt::kernels
