// Prefix sums: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(ScanPlan plan, plan_scan(DeviceRef(0), {.type = DType::kFloat16, .columns = n}));
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, DeviceBuffer::create(DeviceRef(0), plan.workspace_bytes));
//   CGRT_RETURN_IF_ERROR(initialize_scan(stream.ref(), plan, workspace.data()));   // once, not per launch
//   CGRT_RETURN_IF_ERROR(launch_scan(stream.ref(), plan, {.out = y, .in = x, .workspace = workspace.data()}));
//
// One kernel reads the input once and writes the output once. Sums of floats are added in an order that
// depends on the plan only, never on which block was faster: equal inputs give equal bits.
//
// A plan is a value and depends on the device and the descriptor only. Launching is asynchronous and
// allocates nothing. A workspace that was initialized serves any number of launches of any scan plans
// that need no more bytes, one at a time: a launch leaves it ready for the next one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/scan/scan_desc.h"

namespace cgrt::kernels {

struct ScanShape {
  ScanKernel kernel;
  LaunchConfig config;
  std::uint32_t tiles;  // of a row
};

struct ScanPlan {
  ScanDesc desc;
  ScanShape aligned;  // each row begins at a multiple of 16 bytes
  ScanShape any;
  std::size_t workspace_bytes;

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({aligned.config.attributes}); }
};

// kInvalidArgument for sizes of 0, for 2^31 or more rows or tiles, and for more than 2^48 columns.
absl::StatusOr<ScanPlan> plan_scan(ContextRef context, const ScanDesc& desc);

// Zeroes the workspace. Nothing when the plan needs none.
absl::Status initialize_scan(LaunchTarget target, const ScanPlan& plan, void* workspace);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer.
absl::Status launch_scan(LaunchTarget target, const ScanPlan& plan, const ScanArgs& args);

}  // namespace cgrt::kernels
