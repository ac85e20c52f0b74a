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
// The plan chooses by what was measured (gemm_is_faster in matmul.cpp), unless desc.kernel says whose kernels it must
// take; tune_matmul() measures instead. kSiluGate has gemm only. plan.desc.kernel says what was chosen. If it is kGemm,
// plan.gemm has a value, and what gemm/gemm.h says holds. Otherwise cuBLASLt's algorithm is chosen when planning, from
// its heuristics, and stays: a launch looks nothing up and allocates nothing, so it can be captured. A plan is a value;
// its copies share a handle of cuBLASLt, which must be gone before the context that it was planned for is. Launching is
// asynchronous and thread-safe. In a graph that is built through a cursor a call of cuBLASLt is one child graph node
// (common/library.h); on the simulator one host function.
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
  std::optional<GemmPlan> gemm;            // of MatmulKernel::kGemm

  std::uint64_t topology_id() const;  // see common/topology.h
};

// kInvalidArgument, with the value and its limit; kUnimplemented when there is no algorithm for it.
// Blocks while cuBLASLt is set up: plan outside of captures.
absl::StatusOr<MatmulPlan> plan_matmul(ContextRef context, const MatmulDesc& desc);

// The plan that took least time of what was measured now: gemm's, if it has one for this product, and those of the
// algorithms that cuBLASLt's heuristics name, eight at most; desc.kernel restricts both. Each is launched into `stream`
// with `args`, up to some 250 times: d is overwritten, and a d that is the residual grows. What fits into the L2 cache
// is read from there. args.workspace limits what a plan may need, as desc.max_workspace_bytes does. Blocks until
// all is measured, some milliseconds or, for large products, a hundred times as long as one. Errors as of
// plan_matmul and launch_matmul; kFailedPrecondition while `stream` captures. Thread-safe, with a stream and arrays
// that nothing else uses meanwhile. The simulator has nothing to measure: as plan_matmul.
absl::StatusOr<MatmulPlan> tune_matmul(StreamRef stream, const MatmulDesc& desc, const MatmulArgs& args);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer, and a workspace that is too small.
absl::Status launch_matmul(LaunchTarget target, const MatmulPlan& plan, const MatmulArgs& args);

}  // namespace cgrt::kernels
