// A residual added, then layer_norm or rms_norm of each row, in one kernel: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(AddNormPlan plan,
//                         plan_add_norm(DeviceRef(0), {RowOp::kRmsNorm, DType::kFloat16, tokens, hidden}));
//   CGRT_RETURN_IF_ERROR(launch_add_norm(stream.ref(), plan, {.out = y, .sum = residual, .in = x,   // in place
//                                                             .residual = residual, .weight = gamma}));
//
// A plan is a value and depends on the device and the descriptor only. No workspace, no allocation; results
// do not vary between runs. Both arrays are read once. Rows whose length is no multiple of 16 bytes, and
// arrays that are not aligned to 16 bytes, are read element by element. The sum stays in registers up to
// 131,072 columns (262,144 of 16-bit types; 32,768 element by element), or an eighth of that where the device
// or the code has no clusters; of longer rows it is read again.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/add_norm/add_norm_desc.h"
#include "cgrt_kernels/common/topology.h"

namespace cgrt::kernels {

struct AddNormPlan {
  AddNormDesc desc;
  AddNormKernel kernel;
  LaunchConfig config;
  AddNormKernel any_kernel;  // for arrays that are not aligned to 16 bytes
  LaunchConfig any_config;

  // See common/topology.h. Of launches whose arrays are all aligned to so many bytes.
  std::uint64_t topology_id(std::size_t alignment = 16) const {
    return topology_of_kernels({(alignment % 16 == 0 ? config : any_config).attributes});
  }
};

// kInvalidArgument for a softmax, for no rows or columns, and for 2^31 or more of either.
absl::StatusOr<AddNormPlan> plan_add_norm(ContextRef context, const AddNormDesc& desc);

// kInvalidArgument, with the name of the argument, for a null out, sum, in or residual, for out == sum, and
// for pointers that are not aligned to the type's size.
absl::Status launch_add_norm(LaunchTarget target, const AddNormPlan& plan, const AddNormArgs& args);

}  // namespace cgrt::kernels
