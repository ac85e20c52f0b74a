// layer_norm and rms_norm of a projection's output with its bias and a residual, in one kernel: plan once, launch into
// any target.
//
//   CGRT_ASSIGN_OR_RETURN(BiasNormPlan plan, plan_bias_norm(DeviceRef(0), {.op = NormOp::kLayerNorm,
//       .type = DType::kFloat16, .rows = tokens, .columns = hidden}));
//   CGRT_RETURN_IF_ERROR(launch_bias_norm(stream.ref(), plan, {.out = y, .in = x, .in_bias = b, .residual = h,
//       .weight = gamma, .bias = beta, .sum = h}));
//
// A plan is a value and depends on the device and the descriptor only. One kernel, no workspace, no allocation, the
// same bits in every run. A row is read once, by lanes of a warp, a block, or a cluster of up to 8 blocks. Rows need
// not be aligned. Without a bias, norm/norm.h has the same for rows of any length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/bias_norm/bias_norm_desc.h"
#include "cgrt_kernels/common/row/launch.h"

namespace cgrt::kernels {

struct NormParams;

struct BiasNormPlan {
  BiasNormDesc desc;
  RowLaunches<NormParams> launches;

  // See common/topology.h. `alignment`: the least to which an array of the launch is aligned; it matters only whether
  // that is a multiple of 16.
  std::uint64_t topology_id(std::size_t alignment = 16) const { return launches.topology_id(alignment); }
};

// kInvalidArgument for no rows or columns, 2^31 or more of either, other types, an epsilon that is negative or not
// finite, and rows of more than 256 KB, on GPUs without clusters of more than 32 KB.
absl::StatusOr<BiasNormPlan> plan_bias_norm(ContextRef context, const BiasNormDesc& desc);

// kInvalidArgument, with the name of the argument, for a null out, in, in_bias or residual, for out == sum, and for
// pointers that are not aligned to the type's size.
absl::Status launch_bias_norm(LaunchTarget target, const BiasNormPlan& plan, const BiasNormArgs& args);

}  // namespace cgrt::kernels
