// What tune_matmul chooses from. Internal.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt_kernels/cublaslt/matmul.h"

namespace cgrt::kernels {

// The plans that can compute a product, at least one: gemm's first, then cuBLASLt's in the order of its heuristics.
// Errors as of plan_matmul.
absl::StatusOr<std::vector<MatmulPlan>> matmul_candidates(ContextRef context, const MatmulDesc& desc);

}  // namespace cgrt::kernels
