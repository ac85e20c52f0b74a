// softmax, log_softmax, layer_norm and rms_norm of each row of a matrix: plan once, launch into any
// target.
//
//   CGRT_ASSIGN_OR_RETURN(RowsPlan plan, plan_rows(DeviceRef(0), {RowOp::kRmsNorm, DType::kFloat16, tokens, hidden}));
//   CGRT_RETURN_IF_ERROR(launch_rows(stream.ref(), plan, {.out = y, .in = x, .weight = gamma}));
//
// A plan is a value and depends on the device and the descriptor only. One kernel, no workspace, no
// allocation; results do not vary between runs. A row is read once and kept in registers: by a warp, by
// a block, or by a cluster of up to 8 blocks, which is 131,072 elements (fp32) or 262,144; an eighth of
// that where the device or the code has no clusters. Rows whose length is no multiple of 16 bytes, and
// arrays that are not aligned to 16 bytes, are read element by element: once up to 65,536 elements, or
// an eighth. Longer rows are read two or three times.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/rows/rows_desc.h"

namespace cgrt::kernels {

struct RowsPlan {
  RowsDesc desc;
  RowsKernel kernel;
  LaunchConfig config;
  RowsKernel any_kernel;  // for arrays that are not aligned to 16 bytes
  LaunchConfig any_config;

  // See common/topology.h. Of launches whose arrays are all aligned to so many bytes.
  std::uint64_t topology_id(std::size_t alignment = 16) const {
    return topology_of_kernels({(alignment % 16 == 0 ? config : any_config).attributes});
  }
};

// kInvalidArgument for no rows or columns, and for 2^31 or more of either.
absl::StatusOr<RowsPlan> plan_rows(ContextRef context, const RowsDesc& desc);

// kInvalidArgument, with the name of the argument, for a null out or in, and for pointers that are
// not aligned to the type's size.
absl::Status launch_rows(LaunchTarget target, const RowsPlan& plan, const RowsArgs& args);

}  // namespace cgrt::kernels
