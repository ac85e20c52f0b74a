// Products of 1 to 64 rows with the weights of a linear layer, y = x W^T, which read weights at the speed of memory:
// with bias, activation and residual in one kernel. Plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(SkinnyGemmPlan plan, plan_skinny_gemm(DeviceRef(0), {.type = DType::kBFloat16,
//       .rows = tokens, .n = 64, .k = hidden, .activation = SkinnyActivation::kSiluGate}));
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), plan.workspace_bytes));
//   const Workspace workspace{buffer.data(), buffer.size_bytes()};
//   CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));   // once
//   CGRT_RETURN_IF_ERROR(launch_skinny_gemm(stream.ref(), plan, {.y = y, .x = x, .weights = w,
//                                                                .workspace = workspace}));
//
// The number of rows can be read on the device (row_count): one executable serves all steps of at most `rows` rows, and
// nothing of the others is written. Sums are float; integers with groups of less than 128 (int4) or 64 (int8), or of no
// multiple of it, are scaled and rounded to the type of x before. A plan is a value and depends on the device and the
// descriptor only. One kernel, no allocation, the same bits in every run. Where a plan is_wide, its kernel has tensor
// maps, which are made for the addresses of a launch: see gemm/gemm.h.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/common/workspace.h"
#include "cgrt_kernels/skinny_gemm/skinny_gemm_desc.h"

namespace cgrt::kernels {

struct SkinnyGemmParams;

struct SkinnyGemmPlan {
  SkinnyGemmDesc desc;  // strides of 0 replaced
  Kernel<SkinnyGemmParams> kernel;
  LaunchConfig config;
  bool is_wide = false;  // has the kernel of 9.0 for more than 8 rows, and for most products with many 16-bit weights
  std::uint32_t blocks = 0;         // that have tiles of W; of that kernel: halves, in launches with few rows
  bool shares_tiles = false;        // these have parts of tiles
  std::uint32_t clusters = 0;       // of that kernel: clusters that have tiles
  std::size_t workspace_bytes = 0;  // common/workspace.h

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({config.attributes}); }
};

// kInvalidArgument for other types, for rows, sizes, groups and strides that there are no kernels for, and for devices
// with too little shared memory.
absl::StatusOr<SkinnyGemmPlan> plan_skinny_gemm(ContextRef context, const SkinnyGemmDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer and for a workspace that is too
// small.
absl::Status launch_skinny_gemm(LaunchTarget target, const SkinnyGemmPlan& plan, const SkinnyGemmArgs& args);

}  // namespace cgrt::kernels
