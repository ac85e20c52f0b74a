// Softmax of attention scores, scaled and masked, in one kernel: plan once, launch into any target.
//
//   const MaskedSoftmaxDesc desc{.type = DType::kFloat16, .matrices = batch * heads, .rows = queries,
//                                .columns = keys, .scale = 0.125f, .mask_matrices = batch, .mask_rows = queries};
//   CGRT_ASSIGN_OR_RETURN(MaskedSoftmaxPlan plan, plan_masked_softmax(DeviceRef(0), desc));
//   CGRT_RETURN_IF_ERROR(launch_masked_softmax(stream.ref(), plan, {.out = p, .in = scores, .mask = mask}));
//
// A plan is a value and depends on the device and the descriptor only; with or without mask and lengths it
// is one kernel. No workspace, no allocation; results do not vary between runs. A row is read once, up to
// 65,536 elements; columns that it does not see are not read at all. Rows whose length is no multiple of 16
// bytes, and arrays that are not aligned to 16 bytes, are read element by element, once up to 32,768. Longer
// rows are read three times. Where the device or the code has no clusters, an eighth of that is long.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/masked_softmax/masked_softmax_desc.h"

namespace cgrt::kernels {

struct MaskedSoftmaxPlan {
  MaskedSoftmaxDesc desc;
  MaskedSoftmaxKernel kernel;
  LaunchConfig config;
  MaskedSoftmaxKernel any_kernel;  // for arrays that are not aligned to 16 bytes
  LaunchConfig any_config;

  // See common/topology.h. Of launches whose arrays are all aligned to so many bytes.
  std::uint64_t topology_id(std::size_t alignment = 16) const {
    return topology_of_kernels({(alignment % 16 == 0 ? config : any_config).attributes});
  }
};

// kInvalidArgument for nothing to do, for 2^31 or more columns or rows of all matrices, for mask_matrices that
// do not divide matrices, and for mask_rows that are neither rows nor 1.
absl::StatusOr<MaskedSoftmaxPlan> plan_masked_softmax(ContextRef context, const MaskedSoftmaxDesc& desc);

// kInvalidArgument, with the name of the argument, for a null out or in, and for pointers that are not
// aligned to the size of what they point to.
absl::Status launch_masked_softmax(LaunchTarget target, const MaskedSoftmaxPlan& plan, const MaskedSoftmaxArgs& args);

}  // namespace cgrt::kernels
