// Matrix products of GPUs with compute capability 9.0: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(GemmPlan plan, plan_gemm(DeviceRef(0), {.m = tokens, .n = out, .k = in,
//       .type = DType::kBFloat16, .b_layout = MatmulLayout::kTransposed, .epilogue = MatmulEpilogue::kBias}));
//   CGRT_RETURN_IF_ERROR(launch_gemm(stream.ref(), plan, {.d = y, .a = x, .b = weights, .bias = bias}));
//
// cublaslt/matmul.h takes the same descriptor on every GPU and uses these kernels where they are faster. A plan is a
// value and depends on the device and the descriptor only. One kernel, no workspace, no allocation, the same bits in
// every run. Tensor maps are made for the addresses of a launch. GraphExec::rebind_buffer moves them, too, as long as
// the driver puts the address into a map as it is: CUDA does not document that, and `kernel_tests gpu rebound` checks
// it. Launching is asynchronous and thread-safe.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/gemm/matmul_desc.h"

namespace cgrt::kernels {

struct GemmParams;

struct GemmPlan {
  MatmulDesc desc;
  Kernel<GemmParams> kernel;
  LaunchConfig config;
  std::uint32_t columns = 0;  // of a tile

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({config.attributes}); }
};

// kInvalidArgument for types other than float16 and bfloat16; for m, n or k of 0 or of 2^31 and more; for n or k that
// are not a multiple of 8, so that rows of a, b and d are multiples of 16 bytes; for n of 2^30 and more with kSiluGate;
// and for more than 2^40 elements of d. kUnimplemented where the device or the build has no code for sm_90a.
absl::StatusOr<GemmPlan> plan_gemm(ContextRef context, const MatmulDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer.
absl::Status launch_gemm(LaunchTarget target, const GemmPlan& plan, const MatmulArgs& args);

}  // namespace cgrt::kernels
