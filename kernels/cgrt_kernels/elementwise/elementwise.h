// Elementwise operations on arrays: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(ElementwisePlan plan, plan_elementwise(DeviceRef(0), {ElementwiseOp::kAxpy, n}));
//   CGRT_RETURN_IF_ERROR(launch_elementwise(stream.ref(), plan, {.out = y, .a = x, .b = y, .alpha = 2.0f}));
//
// A plan is a value and depends on the device and the descriptor only: the same plan serves any
// pointers. Launching is asynchronous, needs no workspace and allocates nothing. For operations of
// your own see map.h; for biases and gates of matrices, matrix.h.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/elementwise/elementwise_desc.h"

namespace cgrt::kernels {

struct ElementwisePlan {
  ElementwiseDesc desc;
  ElementwiseKernel kernel;
  LaunchConfig config;

  std::uint64_t topology_id() const { return topology_of_kernels({config.attributes}); }  // see common/topology.h
};

// kInvalidArgument for 0 elements, for arrays of 8 TiB and more and for types that the operation does not have.
absl::StatusOr<ElementwisePlan> plan_elementwise(ContextRef context, const ElementwiseDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer.
absl::Status launch_elementwise(LaunchTarget target, const ElementwisePlan& plan, const ElementwiseArgs& args);

}  // namespace cgrt::kernels
