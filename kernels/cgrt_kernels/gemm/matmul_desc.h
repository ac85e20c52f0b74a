// Matrix products: what can be asked for. Plain: no Abseil. The functions that plan and launch are in gemm.h and in
// cublaslt/matmul.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// What becomes of a product before it is stored. gelu is the tanh form, on the sum with the bias.
enum class MatmulEpilogue : std::uint8_t {
  kNone,
  kBias,
  kGelu,
  kGeluBias,
  kResidual,      // a residual is added
  kResidualBias,  // and a bias
  kSiluGate,      // silu(a * b1) * (a * b2): b has 2 n columns, those of b1 and then those of b2
};
constexpr const char* to_string(MatmulEpilogue epilogue) {
  switch (epilogue) {
    case MatmulEpilogue::kNone: return "no epilogue";
    case MatmulEpilogue::kBias: return "bias";
    case MatmulEpilogue::kGelu: return "gelu";
    case MatmulEpilogue::kGeluBias: return "gelu and bias";
    case MatmulEpilogue::kResidual: return "residual";
    case MatmulEpilogue::kResidualBias: return "residual and bias";
    case MatmulEpilogue::kSiluGate: return "silu gate";
  }
  return "unknown";
}
constexpr bool has_bias(MatmulEpilogue epilogue) {
  return epilogue == MatmulEpilogue::kBias || epilogue == MatmulEpilogue::kGeluBias ||
         epilogue == MatmulEpilogue::kResidualBias;
}
constexpr bool has_gelu(MatmulEpilogue epilogue) {
  return epilogue == MatmulEpilogue::kGelu || epilogue == MatmulEpilogue::kGeluBias;
}
constexpr bool has_residual(MatmulEpilogue epilogue) {
  return epilogue == MatmulEpilogue::kResidual || epilogue == MatmulEpilogue::kResidualBias;
}

// How matrix b lies in memory.
enum class MatmulLayout : std::uint8_t {
  kPlain,       // k rows of n
  kTransposed,  // n rows of k, as the weights of a linear layer
};

// Whether fp32 products may round their inputs to TF32 (10 bits of fraction), which is several times faster.
enum class Float32Products : std::uint8_t { kExact, kTf32 };

// Whose kernels compute it.
enum class MatmulKernel : std::uint8_t {
  kBest,     // of the others, by what was measured
  kLibrary,  // cuBLASLt's
  kGemm,     // gemm's
};
constexpr const char* to_string(MatmulKernel kernel) {
  switch (kernel) {
    case MatmulKernel::kBest: return "best";
    case MatmulKernel::kLibrary: return "library";
    case MatmulKernel::kGemm: return "gemm";
  }
  return "unknown";
}

// d = epilogue(a * b): a is m x k, b k x n (or 2 n, see kSiluGate), d m x n, each row-major and without gaps. Sums are
// fp32.
struct MatmulDesc {
  std::uint64_t m = 0, n = 0, k = 0;
  DType type = DType::kFloat16;  // of all arrays; or bfloat16, float32
  MatmulLayout b_layout = MatmulLayout::kPlain;
  MatmulEpilogue epilogue = MatmulEpilogue::kNone;
  Float32Products products = Float32Products::kExact;
  std::size_t max_workspace_bytes = std::size_t{32} << 20;  // that the plan may need
  MatmulKernel kernel = MatmulKernel::kBest;                // plan_gemm does not look at it
};

constexpr std::uint64_t columns_of_b(const MatmulDesc& desc) {
  return desc.epilogue == MatmulEpilogue::kSiluGate ? 2 * desc.n : desc.n;
}

// Device addresses, aligned to 16 bytes; d overlaps none of the others, but may be the residual.
struct MatmulArgs {
  void* d = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;      // of n; ignored by epilogues without
  Workspace workspace = {};        // MatmulPlan::workspace_bytes; gemm needs none
  const void* residual = nullptr;  // m x n, as d; ignored by epilogues without
};

}  // namespace cgrt::kernels
