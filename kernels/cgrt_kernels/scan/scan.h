// Prefix sums: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(ScanPlan plan, plan_scan(DeviceRef(0), {.type = DType::kFloat16, .columns = n}));
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), plan.workspace_bytes));
//   const Workspace workspace{buffer.data(), buffer.size_bytes()};
//   CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));   // once, see common/workspace.h
//   CGRT_RETURN_IF_ERROR(launch_scan(stream.ref(), plan, {.out = y, .in = x, .workspace = workspace}));
//
// One kernel reads the input once and writes the output once. Sums of floats are added in an order that depends only on
// the plan and on where `in` begins within 16 bytes, never on which block was faster: equal inputs that begin alike
// give equal bits.
//
// A plan is a value and depends on the device and the descriptor only. Launching is asynchronous and
// allocates nothing. Where blocks share rows in more than some 12,000 tiles, or 6,000 of 64-bit types (0.1 to 0.8 GB),
// a kernel that clears the places of their sums comes first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/common/workspace.h"
#include "cgrt_kernels/scan/scan_desc.h"

namespace cgrt::kernels {

struct ScanParams;

struct ScanShape {
  Kernel<ScanParams> kernel;
  LaunchConfig config;
  std::uint32_t tiles;      // of a row
  std::uint32_t lane_bits;  // of a row that has less than a block
};

struct ScanPlan {
  ScanDesc desc;
  ScanShape aligned;  // each row begins at a multiple of 16 bytes
  ScanShape unaligned;
  std::uint64_t words_to_clear;  // for published sums; 0: the workspace's header has room for them
  EdgeKind edges;                // between the kernels; full where their code was compiled for 8.0
  std::size_t workspace_bytes;

  std::uint64_t topology_id() const;  // see common/topology.h
};

// kInvalidArgument for sizes of 0, for 2^31 or more rows or tiles, and for more than 2^48 columns.
absl::StatusOr<ScanPlan> plan_scan(ContextRef context, const ScanDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer, and a workspace that is too small.
absl::Status launch_scan(LaunchTarget target, const ScanPlan& plan, const ScanArgs& args);

}  // namespace cgrt::kernels
