// softmax and log_softmax of each row of a matrix, softmax of scaled and masked rows, and their backward: plan once,
// launch into any target.
//
//   const SoftmaxDesc desc{SoftmaxOp::kSoftmax, DType::kBFloat16, rows, columns};
//   CGRT_ASSIGN_OR_RETURN(SoftmaxPlan plan, plan_softmax(DeviceRef(0), desc));
//   CGRT_RETURN_IF_ERROR(launch_softmax(stream.ref(), plan, {.out = y, .in = x}));
//
// A plan is a value and depends on the device and the descriptor only. Results do not vary between runs. Rows need not
// be aligned. A launch is one kernel, which reads a row once: by one or some lanes of a warp, a block, or a cluster of
// up to 16 blocks. Longer rows are split among blocks of the whole device: those above 1 MB, in the backward above 640
// KB (1 MB of aligned float32), masked above 65,536 columns. Devices with smaller clusters split shorter ones, too:
// without clusters those above 32 to 64 KB, some above 16. Such a plan needs a workspace. Where all rows fit the L2
// cache, it is two kernels, which read them twice; so does one where shared memory cannot hold a row until it is
// written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/row/launch.h"
#include "cgrt_kernels/softmax/softmax_desc.h"

namespace cgrt::kernels {

struct SoftmaxParams;
struct SoftmaxBackwardParams;

struct SoftmaxPlan {
  SoftmaxDesc desc;
  RowLaunches<SoftmaxParams> launches;
  std::size_t workspace_bytes = 0;  // 0 but for long rows; see common/workspace.h

  // See common/topology.h. `alignment`: the least to which an array of the launch is aligned; it matters only whether
  // that is a multiple of 16.
  std::uint64_t topology_id(std::size_t alignment = 16) const { return launches.topology_id(alignment); }
};

// kInvalidArgument for no rows or columns, 2^31 or more of either, and other types.
absl::StatusOr<SoftmaxPlan> plan_softmax(ContextRef context, const SoftmaxDesc& desc);

// kInvalidArgument, with the name of the argument, for a null out or in, for pointers that are not aligned to the
// type's size, and for a workspace that is not as the plan needs it.
absl::Status launch_softmax(LaunchTarget target, const SoftmaxPlan& plan, const SoftmaxArgs& args);

struct SoftmaxBackwardPlan {
  SoftmaxBackwardDesc desc;
  RowLaunches<SoftmaxBackwardParams> launches;
  std::size_t workspace_bytes = 0;  // as above

  std::uint64_t topology_id(std::size_t alignment = 16) const { return launches.topology_id(alignment); }
};

// Both refuse as above.
absl::StatusOr<SoftmaxBackwardPlan> plan_softmax_backward(ContextRef context, const SoftmaxBackwardDesc& desc);
absl::Status launch_softmax_backward(LaunchTarget target, const SoftmaxBackwardPlan& plan,
                                     const SoftmaxBackwardArgs& args);

// Attention scores, scaled and masked:
//
//   const MaskedSoftmaxDesc desc{.type = DType::kFloat16, .matrices = batch * heads, .rows = queries,
//                                .columns = keys, .scale = 0.125f, .mask_matrices = batch, .mask_rows = queries};
//   CGRT_ASSIGN_OR_RETURN(MaskedSoftmaxPlan plan, plan_masked_softmax(DeviceRef(0), desc));
//   CGRT_RETURN_IF_ERROR(launch_masked_softmax(stream.ref(), plan, {.out = p, .in = scores, .mask = mask}));
//
// Columns that a row does not see are not read, as long as the row fits the registers of a cluster.
struct MaskedSoftmaxPlan {
  MaskedSoftmaxDesc desc;
  RowLaunches<SoftmaxParams> launches;
  std::size_t workspace_bytes = 0;  // 0 but for long rows; see common/workspace.h

  std::uint64_t topology_id(std::size_t alignment = 16) const { return launches.topology_id(alignment); }
};

// kInvalidArgument for nothing to do, for 2^31 or more columns or rows of all matrices, for mask_matrices that
// do not divide matrices, for mask_rows that are neither rows nor 1, and for other types.
absl::StatusOr<MaskedSoftmaxPlan> plan_masked_softmax(ContextRef context, const MaskedSoftmaxDesc& desc);

// Refuses as launch_softmax; also a misaligned mask or lengths.
absl::Status launch_masked_softmax(LaunchTarget target, const MaskedSoftmaxPlan& plan, const MaskedSoftmaxArgs& args);

}  // namespace cgrt::kernels
