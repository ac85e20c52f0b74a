// The workspaces of all families: one contract.
//
//   const std::size_t bytes = std::max(scan.workspace_bytes, sum.workspace_bytes);   // of the plans
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), bytes));
//   const Workspace workspace{buffer.data(), buffer.size_bytes()};
//   CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));   // once
//   CGRT_RETURN_IF_ERROR(launch_scan(stream.ref(), scan, {.out = y, .in = x, .workspace = workspace}));
//   CGRT_RETURN_IF_ERROR(launch_reduce(stream.ref(), sum, {.out = z, .in = y, .workspace = workspace}));
//
// A plan says how large its workspace must be, `workspace_bytes`; 0: it needs none, and {} will do. A launch refuses
// a workspace that is null, not aligned to 256 bytes, or smaller than that, with kInvalidArgument.
//
// Before its first use a workspace is initialized, once, whatever will use it, and from then on only launches write
// to it. They leave it ready for the next one: launches of any families and plans may use it, one after the other, be
// it in a stream, in a graph that is launched again and again, or by programmatic edges. Launches that may run at the
// same time need a workspace each: two that share one may wait for ever.
#pragma once

#include "absl/status/status.h"
#include "cgrt/target/launch_target.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// Zeroes the header: the first 128 KiB, or all of a smaller workspace; no other bytes need a value. Asynchronous, a
// memset in a stream and one memset node in a graph. It must come before the first launch that uses the workspace: in
// another stream, by an event. Nothing for one of 0 bytes. kInvalidArgument for a null or misaligned address, and for a
// programmatic() target.
absl::Status initialize_workspace(LaunchTarget target, const Workspace& workspace);

}  // namespace cgrt::kernels
