// Batch normalization of NCHW and NHWC tensors: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(BatchNormPlan plan, plan_batch_norm(DeviceRef(0), {.type = DType::kFloat16, .batch = batch,
//                                                                .channels = channels, .plane = height * width}));
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), plan.workspace_bytes));
//   const Workspace workspace{buffer.data(), buffer.size_bytes()};
//   CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));   // once, see common/workspace.h
//   CGRT_RETURN_IF_ERROR(launch_batch_norm_train(stream.ref(), plan, {.y = y, .x = x, .save_mean = mean,
//       .save_invstd = invstd, .workspace = workspace}));
//
// As PyTorch does with 16-bit tensors: parameters, statistics and sums are float32, whatever the type of x. A channel's
// sums are of differences from its first element, so values far from zero lose no bits; a first element d away from the
// mean costs the mean d / 2^23. Results do not vary between runs.
//
// Inference is one kernel. Training and backward are one kernel, which reads its inputs once, in three cases. First, in
// registers: an NCHW plane is two or more whole packs of 16 bytes, and a channel has at most 64 KB (backward: 48 KB).
// Second: a set of whole channels fits the shared memory of a block, or of a cluster of up to 8; it is not for 16-bit
// types in NHWC or with planes of one element. Both take accesses of 16 bytes. Third, element by element in registers:
// a channel has at most 16,384 elements (backward: 12,288), and an NCHW plane has at least 32 bytes or the tensor at
// most 2 MB. Otherwise they are three kernels (sums, coefficients, result), which read the inputs twice, the second
// time from the end, which may still be in the L2 cache. Only these need a workspace.
//
// A plan is a value and depends on the device and the descriptor only; a launch is plan.steps.size() kernels, ordered
// programmatically where their code was compiled for 9.0 or later. Nothing is allocated.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/batch_norm/batch_norm_desc.h"
#include "cgrt_kernels/batch_norm/shape.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/common/workspace.h"

namespace cgrt::kernels {

struct BatchNormParams;

struct BatchNormPlan {
  struct Step {
    Kernel<BatchNormParams> kernel;
    LaunchConfig config;
  };
  BatchNormDesc desc;
  BatchNormShape shape;
  std::vector<Step> steps;
  Alignment alignment = Alignment::kAligned;
  EdgeKind edges = EdgeKind::kProgrammatic;  // between the steps; full where their code was compiled for 8.0
  std::size_t workspace_bytes = 0;           // 0: none is needed
  std::size_t coefficients_begin = 0;        // in the scratch memory of the workspace

  std::uint64_t topology_id() const;  // see common/topology.h
};

// kInvalidArgument for empty tensors, for 2^31 or more of batch, channels, plane, or channels * plane (NHWC: batch *
// plane), for other types, for training with one element per channel, which has no variance, for an alignment that is
// no power of two or below the size of an element, and for an epsilon or a momentum that is negative or not finite.
absl::StatusOr<BatchNormPlan> plan_batch_norm(ContextRef context, const BatchNormDesc& desc);

// kInvalidArgument, with the name of the argument, for a plan of another operation, a null or misaligned
// pointer, and a workspace that is too small.
absl::Status launch_batch_norm_train(LaunchTarget target, const BatchNormPlan& plan, const BatchNormTrainArgs& args);
absl::Status launch_batch_norm_infer(LaunchTarget target, const BatchNormPlan& plan, const BatchNormInferArgs& args);
absl::Status launch_batch_norm_backward(LaunchTarget target, const BatchNormPlan& plan,
                                        const BatchNormBackwardArgs& args);

}  // namespace cgrt::kernels
