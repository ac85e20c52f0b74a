// CUB's scan, radix sort and select: plan once, launch into any target (CMake: cgrt::cub).
//
//   CGRT_ASSIGN_OR_RETURN(RadixSortPlan plan, plan_radix_sort(DeviceRef(0), {.count = n, .end_bit = 20}));
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), plan.workspace_bytes));
//   const Workspace workspace{buffer.data(), buffer.size_bytes()};
//   CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));   // once, see common/workspace.h
//   CGRT_RETURN_IF_ERROR(launch_radix_sort(stream.ref(), plan,
//                                          {.keys_out = y, .keys_in = x, .workspace = workspace}));
//
// A plan is a value and depends on the device and the descriptor only; CUB says how large its workspace
// is. A launch is one operation of a few kernels and memsets: in a graph that is built through a cursor,
// one child graph node (common/library.h). Asynchronous; allocates nothing, but the first launch of an operation may
// load CUB's kernels. On the simulator it is one host function that gives what CUB would.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/target/launch_target.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/common/workspace.h"
#include "cgrt_kernels/cub/cub_desc.h"

namespace cgrt::kernels {

template <class Desc>
struct CubPlan {
  Desc desc;
  std::size_t scratch_bytes;    // for CUB
  std::size_t workspace_bytes;  // 128 KiB at least

  std::uint64_t topology_id() const;  // see common/topology.h
};
using CubScanPlan = CubPlan<CubScanDesc>;
using RadixSortPlan = CubPlan<RadixSortDesc>;
using SelectPlan = CubPlan<SelectDesc>;

// kInvalidArgument, with the value and its limit: no elements or more than 2^40, which is cgrt's limit; another type;
// bits that the key does not have.
absl::StatusOr<CubScanPlan> plan_cub_scan(ContextRef context, const CubScanDesc& desc);
absl::StatusOr<RadixSortPlan> plan_radix_sort(ContextRef context, const RadixSortDesc& desc);
absl::StatusOr<SelectPlan> plan_select(ContextRef context, const SelectDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer, and a workspace that is too small.
absl::Status launch_cub_scan(LaunchTarget target, const CubScanPlan& plan, const CubScanArgs& args);
absl::Status launch_radix_sort(LaunchTarget target, const RadixSortPlan& plan, const RadixSortArgs& args);
absl::Status launch_select(LaunchTarget target, const SelectPlan& plan, const SelectArgs& args);

}  // namespace cgrt::kernels
