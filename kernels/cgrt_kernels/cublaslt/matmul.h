// Matrix products by cuBLASLt, or by gemm where that is faster: plan once, launch into any target (CMake:
// cgrt::cublaslt).
//
//   CGRT_ASSIGN_OR_RETURN(MatmulPlan plan, plan_matmul(DeviceRef(0), {.m = tokens, .n = out, .k = in,
//       .type = DType::kBFloat16, .b_layout = MatmulLayout::kTransposed, .epilogue = MatmulEpilogue::kBias}));
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), plan.workspace_bytes));
//   const Workspace workspace{buffer.data(), buffer.size_bytes()};
//   CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));   // once, see common/workspace.h
//   CGRT_RETURN_IF_ERROR(launch_matmul(stream.ref(), plan, {.d = y, .a = x, .b = weights, .bias = bias,
//                                                           .workspace = workspace}));
//
// The plan chooses by a table of measured shapes in matmul.cpp; kSiluGate has gemm only. Where plan.gemm has a value,
// what gemm/gemm.h says holds. Otherwise cuBLASLt's algorithm is chosen when planning, from its heuristics, and stays:
// a launch looks nothing up and allocates nothing, so it can be captured. A plan is a value; its copies share a handle
// of cuBLASLt, which must be gone before the context that it was planned for is. Launching is asynchronous and
// thread-safe. In a graph that is built through a cursor a call of cuBLASLt is one child graph node (common/library.h);
// on the simulator one host function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/target/launch_target.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/common/workspace.h"
#include "cgrt_kernels/gemm/gemm.h"
#include "cgrt_kernels/gemm/matmul_desc.h"

namespace cgrt::kernels {

struct MatmulPlan {
  MatmulDesc desc;
  std::size_t scratch_bytes;  // for cuBLASLt
  std::size_t workspace_bytes;
  std::shared_ptr<void> handle;            // a cublasLtHandle_t; null on the simulator
  std::array<std::uint64_t, 8> algorithm;  // a cublasLtMatmulAlgo_t
  std::optional<GemmPlan> gemm;            // set: launches are of gemm

  std::uint64_t topology_id() const;  // see common/topology.h
};

// kInvalidArgument, with the value and its limit; kUnimplemented when there is no algorithm for it.
// Blocks while cuBLASLt is set up: plan outside of captures.
absl::StatusOr<MatmulPlan> plan_matmul(ContextRef context, const MatmulDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer, and a workspace that is too small.
absl::Status launch_matmul(LaunchTarget target, const MatmulPlan& plan, const MatmulArgs& args);

}  // namespace cgrt::kernels
