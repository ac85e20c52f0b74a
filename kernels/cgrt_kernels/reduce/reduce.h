// Reductions of an array to one value, of a matrix along its rows or columns, and the dot product:
// plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(ReducePlan plan, plan_reduce(DeviceRef(0), {ReduceOp::kSum, DType::kFloat16,
//                                                                     ReduceOver::kRow, rows, columns}));
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), plan.workspace_bytes));
//   const Workspace workspace{buffer.data(), buffer.size_bytes()};
//   CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));   // once, see common/workspace.h
//   CGRT_RETURN_IF_ERROR(launch_reduce(stream.ref(), plan, {.out = y, .in = x, .workspace = workspace}));
//
// A plan is a value and depends on the device and the descriptor only. One kernel, no allocation.
// Where several blocks share a result each leaves its part in a place of its own, and one of them
// adds the parts up in their order: results do not vary between runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/common/workspace.h"
#include "cgrt_kernels/reduce/reduce_desc.h"

namespace cgrt::kernels {

struct ReduceParams;

// A kernel and how it shares the work.
struct ReduceShape {
  Kernel<ReduceParams> kernel;
  LaunchConfig config = {};
  std::uint32_t lanes = 0;  // threads of a block beside each other in a row
  std::uint32_t parts = 1;  // blocks that share a result, or the results of some columns
  std::uint32_t each = 1;   // short rows of a thread
  std::uint64_t slots = 0;  // of columns: for partial results
};

struct ReducePlan {
  ReduceDesc desc;
  ReduceShape aligned, unaligned;  // in begins at a multiple of 16 bytes, or not; of single elements out, too
  std::size_t workspace_bytes = 0;

  std::uint64_t topology_id() const {
    return topology_of_kernels({aligned.config.attributes});
  }  // see common/topology.h
};

// kInvalidArgument for no elements, more than 2^63 bytes of them, 2^31 or more rows or columns unless
// all are reduced, an operation that the type does not have, and a dot that is not over all.
absl::StatusOr<ReducePlan> plan_reduce(ContextRef context, const ReduceDesc& desc);

// kInvalidArgument, with the name of the argument, for a null pointer, for one that is not
// aligned to its type's size, and for a workspace that is too small.
absl::Status launch_reduce(LaunchTarget target, const ReducePlan& plan, const ReduceArgs& args);

}  // namespace cgrt::kernels
