// layer_norm and rms_norm of each row of a matrix, with or without a residual that is added before, and their backward:
// plan once, launch into any target.
//
//   const NormDesc desc{NormOp::kRmsNorm, DType::kBFloat16, tokens, hidden, 1e-5f, Residual::kAdded};
//   CGRT_ASSIGN_OR_RETURN(NormPlan plan, plan_norm(DeviceRef(0), desc));
//   CGRT_RETURN_IF_ERROR(launch_norm(stream.ref(), plan,
//                                    {.out = y, .in = x, .weight = gamma, .residual = h, .sum = h}));
//
// A plan is a value and depends on the device and the descriptor only. Results do not vary between runs. Rows need not
// be aligned. The forward is one kernel, which reads a row once: by some lanes of a warp, a block, or a cluster of up
// to 16 blocks. Longer rows are split among blocks of the whole device: those above 768 KB (aligned float32: 1 MB;
// unaligned 16-bit types: 512 KB), with a residual or of the backward those above 256 to 512 KB, and of very few rows
// some above 256 KB. Devices with smaller clusters split shorter ones, too: without clusters those above 64 KB or less.
// Such a plan needs a workspace. Where all rows fit the L2 cache, and where a row of layer_norm takes megabytes, it is
// two kernels, which read a row twice; so does one where shared memory cannot hold a row until it is written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/row/launch.h"
#include "cgrt_kernels/norm/norm_desc.h"

namespace cgrt::kernels {

struct NormParams;
struct NormBackwardParams;
struct SumPartialsParams;

struct NormPlan {
  NormDesc desc;
  RowLaunches<NormParams> launches;
  std::size_t workspace_bytes = 0;  // 0 but for long rows; see common/workspace.h

  // See common/topology.h. `alignment`: the least to which an array of the launch is aligned; it matters only whether
  // that is a multiple of 16.
  std::uint64_t topology_id(std::size_t alignment = 16) const { return launches.topology_id(alignment); }
};

// kInvalidArgument for no rows or columns, 2^31 or more of either, other types, and an epsilon that is negative or not
// finite.
absl::StatusOr<NormPlan> plan_norm(ContextRef context, const NormDesc& desc);

// kInvalidArgument, with the name of the argument, for a null out or in, or residual when one is added, for a residual
// or sum when none is, for out == sum, for pointers that are not aligned to the type's size, and for a workspace that
// is not as the plan needs it.
absl::Status launch_norm(LaunchTarget target, const NormPlan& plan, const NormArgs& args);

// The forward saves nothing for the backward: mean and deviation of a row come from x, which is read anyway. Kernels as
// in the forward. With WeightGradients::kSummed there is a workspace: blocks sum their rows' part of dweight and dbias,
// and a last kernel adds what they leave there, always in the same order. Few rows take two kernels. One is enough for
// few long rows that fit the shared memory of all multiprocessors, and for at most 64 rows of at most 256 columns,
// which need no workspace.
struct NormBackwardPlan {
  NormBackwardDesc desc;
  RowLaunches<NormBackwardParams> launches;
  // Of the aligned and the unaligned launch: blocks or clusters that leave sums. 0: none, and no kernel that adds them.
  std::uint32_t groups[2] = {};
  Kernel<SumPartialsParams> sum_kernel;
  std::size_t workspace_bytes = 0;           // see common/workspace.h
  std::size_t partials_offset = 0;           // of the sums that groups leave, in the workspace
  EdgeKind edges = EdgeKind::kProgrammatic;  // between them; full where their code was compiled for 8.0

  std::uint64_t topology_id(std::size_t alignment = 16) const;
};

// kInvalidArgument as above.
absl::StatusOr<NormBackwardPlan> plan_norm_backward(ContextRef context, const NormBackwardDesc& desc);

// kInvalidArgument, with the name of the argument, for a null dx, dy or x, for a null dweight with kSummed, for
// pointers that are not aligned to the type's size, and for a workspace that is not as the plan needs it.
absl::Status launch_norm_backward(LaunchTarget target, const NormBackwardPlan& plan, const NormBackwardArgs& args);

}  // namespace cgrt::kernels
