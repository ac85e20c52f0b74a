// Backward of softmax, log_softmax, layer_norm and rms_norm of each row of a matrix: plan once, launch
// into any target.
//
//   const RowsBackwardDesc desc{RowOp::kRmsNorm, DType::kFloat16, tokens, hidden, 1e-5f, WeightGradients::kSummed};
//   CGRT_ASSIGN_OR_RETURN(RowsBackwardPlan plan, plan_rows_backward(DeviceRef(0), desc));
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, DeviceBuffer::create(DeviceRef(0), plan.workspace_bytes));
//   CGRT_RETURN_IF_ERROR(launch_rows_backward(stream.ref(), plan,
//                                             {.dx = dx, .dy = dy, .saved = x, .weight = gamma, .dweight = dgamma,
//                                              .workspace = workspace.data()}));
//
// The forward saves nothing extra: mean and deviation of a row come from x, which is in registers anyway.
// A plan is a value and depends on the device and the descriptor only. One kernel; with kSummed two: blocks
// that stay sum their rows' part of dweight and dbias in registers, the second kernel adds what they leave in
// the workspace. Always in the same order: results do not vary between runs. dy and the saved row are read
// once: up to 131,072 elements in a cluster of 8 blocks, 65,536 with kSummed. Rows whose length is no multiple
// of 16 bytes, and arrays that are not aligned to 16 bytes, are worked on element by element: read once up to
// 65,536 elements. Longer rows are read several times. Where the device or the code has no clusters, an eighth
// of that is long.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/rows_backward/rows_backward_desc.h"

namespace cgrt::kernels {

struct RowsBackwardPlan {
  struct Launch {
    RowsBackwardKernel kernel;
    LaunchConfig config;
    std::uint32_t groups;  // blocks or clusters that sum; 0: none do
  };
  RowsBackwardDesc desc;
  Launch aligned, any;  // any: arrays that are not aligned to 16 bytes
  SumPartialsKernel sum_kernel;
  std::size_t workspace_bytes;

  // See common/topology.h. Of launches whose arrays are all aligned to so many bytes.
  std::uint64_t topology_id(std::size_t alignment = 16) const;
};

// kInvalidArgument for no rows or columns, for 2^31 or more of either, and for kSummed of a softmax.
absl::StatusOr<RowsBackwardPlan> plan_rows_backward(ContextRef context, const RowsBackwardDesc& desc);

// kInvalidArgument, with the name of the argument, for a null dx, dy or saved, for a null dweight or workspace
// with kSummed, for pointers that are not aligned to the type's size, and for a workspace that is not aligned
// to 256 bytes.
absl::Status launch_rows_backward(LaunchTarget target, const RowsBackwardPlan& plan, const RowsBackwardArgs& args);

}  // namespace cgrt::kernels
