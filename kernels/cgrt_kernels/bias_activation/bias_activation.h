// The bias of a projection with the activation or the gate behind it, in one kernel: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(BiasActivationPlan plan, plan_bias_activation(DeviceRef(0), {
//       .activation = BiasActivation::kGeluTanh, .type = DType::kBFloat16, .rows = tokens, .columns = hidden}));
//   CGRT_RETURN_IF_ERROR(launch_bias_activation(stream.ref(), plan, {.out = y, .a = y, .bias = b}));
//
// A plan is a value and depends on the device and the descriptor only. One kernel, no workspace, no allocation. Where
// arrays are aligned, a thread writes 16 bytes, or 8 where rows are whole 8 bytes but no whole 16; rows of fewer than
// 1,024 elements of a 16-bit type that are whole 4 bytes, but no whole 8, go 4 bytes at a time. All other rows and
// arrays go 16 bytes at a time, aligned in `out`, and inputs are put together from the packs that they lie in. In small
// launches a thread writes at most 8 bytes, or one element of these other rows and arrays. Without a bias, elementwise/
// has the same.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/bias_activation/bias_activation_desc.h"
#include "cgrt_kernels/common/topology.h"

namespace cgrt::kernels {

struct BiasActivationParams;

struct BiasActivationPlan {
  struct Launch {
    Kernel<BiasActivationParams> kernel;
    LaunchConfig config;
    std::uint32_t row_items;  // packs or elements of a row of `out`
  };

  BiasActivationDesc desc;
  Launch aligned, unaligned;  // for arrays that are aligned to 16 bytes, and others

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({aligned.config.attributes}); }
};

// kInvalidArgument for no rows or columns, 2^31 or more of either, other types, and more elements than a grid has
// threads for.
absl::StatusOr<BiasActivationPlan> plan_bias_activation(ContextRef context, const BiasActivationDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer, and for a gate in place.
absl::Status launch_bias_activation(LaunchTarget target, const BiasActivationPlan& plan,
                                    const BiasActivationArgs& args);

}  // namespace cgrt::kernels
