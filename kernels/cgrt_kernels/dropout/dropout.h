// Dropout with a mask of bits, and its gradient: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(DropoutPlan plan, plan_dropout(DeviceRef(0), {.type = DType::kFloat16, .count = n,
//                                                                       .probability = 0.1f}));
//   const RandomState seeded{.seed = 42};
//   CGRT_RETURN_IF_ERROR(copy(stream.ref(), state, &seeded, sizeof(seeded)));   // once
//   CGRT_RETURN_IF_ERROR(launch_dropout(stream.ref(), plan, {.out = y, .in = x, .mask = mask, .state = state}));
//
// The state is on the device and moves on with each launch: every replay of a graph drops other elements, and the same
// state gives the same mask, whatever the device and the target. A plan is a value and depends on the device and the
// descriptor only. One kernel, no workspace, no allocation. Arrays are read and written 16 bytes at a time, wherever
// they begin.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/dropout/dropout_desc.h"

namespace cgrt::kernels {

struct DropoutParams;

struct DropoutPlan {
  struct Launch {
    Kernel<DropoutParams> kernel;
    LaunchConfig config;
  };

  DropoutDesc desc;
  Launch aligned, unaligned;  // for arrays that are aligned to 16 bytes, and others

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({aligned.config.attributes}); }
};

// kInvalidArgument for no elements or 2^40 and more, for other types, and for a probability that is none or 1.
absl::StatusOr<DropoutPlan> plan_dropout(ContextRef context, const DropoutDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer.
absl::Status launch_dropout(LaunchTarget target, const DropoutPlan& plan, const DropoutArgs& args);

}  // namespace cgrt::kernels
