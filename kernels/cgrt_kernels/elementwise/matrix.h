// Elementwise operations on a matrix, with a vector along its rows or columns (biases, scales) or with
// its own other half (gated activations): plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(MatrixPlan plan,
//                         plan_matrix(DeviceRef(0), {MatrixOp::kSiluAndMul, DType::kFloat16, tokens, hidden}));
//   CGRT_RETURN_IF_ERROR(launch_matrix(stream.ref(), plan, {.out = y, .a = x}));
//
// A plan is a value and depends on the device and the descriptor only. One kernel, no workspace, no
// allocation. Arrays are read and written 16 bytes at a time, however long rows are and wherever arrays begin: packs
// that are not aligned are put together from the two that they lie in. By element only what lies within 32 bytes of a
// row's end, where a column's factor or a gate is read there.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/elementwise/matrix_desc.h"

namespace cgrt::kernels {

struct MatrixParams;

struct MatrixPlan {
  MatrixDesc desc;
  Kernel<MatrixParams> aligned, unaligned;  // for arrays that are aligned to 16 bytes, and others
  LaunchConfig config;

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({config.attributes}); }
};

// kInvalidArgument for no rows or columns, for 2^31 or more of either, and for other types.
absl::StatusOr<MatrixPlan> plan_matrix(ContextRef context, const MatrixDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer, and for a gate in place.
absl::Status launch_matrix(LaunchTarget target, const MatrixPlan& plan, const MatrixArgs& args);

}  // namespace cgrt::kernels
