#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/host.h"
#include "cgrt_kernels/common/library.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/cublaslt/candidates.h"
#include "cgrt_kernels/cublaslt/matmul.h"
#include "cgrt_kernels/gemm/reference.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kAlignment = 16;  // of matrices

absl::Status to_status(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat(call, ": ", cublasLtGetStatusString(status));
  switch (status) {
    case CUBLAS_STATUS_INVALID_VALUE: return absl::InvalidArgumentError(text);
    case CUBLAS_STATUS_ALLOC_FAILED: return absl::ResourceExhaustedError(text);
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH: return absl::UnimplementedError(text);
    default: return absl::InternalError(text);
  }
}

std::string to_text(const MatmulDesc& desc) {
  return absl::StrCat("matmul of ", desc.m, "x", desc.k, " and ", desc.k, "x", desc.n, " ", to_string(desc.type));
}

cudaDataType to_library(DType type) {
  switch (type) {
    case DType::kFloat16: return CUDA_R_16F;
    case DType::kBFloat16: return CUDA_R_16BF;
    default: return CUDA_R_32F;  // plan_matmul lets no other pass
  }
}

cublasLtEpilogue_t to_library(MatmulEpilogue epilogue) {
  switch (epilogue) {
    case MatmulEpilogue::kNone:
    case MatmulEpilogue::kResidual:                                    // which is its c
    case MatmulEpilogue::kSiluGate: return CUBLASLT_EPILOGUE_DEFAULT;  // plan_matmul lets none pass
    case MatmulEpilogue::kBias:
    case MatmulEpilogue::kResidualBias: return CUBLASLT_EPILOGUE_BIAS;
    case MatmulEpilogue::kGelu: return CUBLASLT_EPILOGUE_GELU;
    case MatmulEpilogue::kGeluBias: return CUBLASLT_EPILOGUE_GELU_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// The product as the library takes it. Its matrices are column-major, where ours are their transposes: it
// computes transposed d, n x m, from transposed b and transposed a, and adds a bias to each of its columns.
// Made anew for each launch: it allocates nothing, and launches of one plan share nothing.
struct Product {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t a, b, d;

  absl::Status create(const MatmulDesc& desc, const void* bias) {
    const bool is_tf32 = desc.type == DType::kFloat32 && desc.products == Float32Products::kTf32;
    CGRT_RETURN_IF_ERROR(to_status(
        cublasLtMatmulDescInit(&operation, is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescInit"));
    const bool is_transposed = desc.b_layout == MatmulLayout::kTransposed;
    CGRT_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSA, is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
    CGRT_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_EPILOGUE, to_library(desc.epilogue)));
    if (has_bias(desc.epilogue)) CGRT_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    const cudaDataType type = to_library(desc.type);
    const std::uint64_t rows_of_b = is_transposed ? desc.k : desc.n, columns_of_b = is_transposed ? desc.n : desc.k;
    CGRT_RETURN_IF_ERROR(layout(b, type, rows_of_b, columns_of_b));
    CGRT_RETURN_IF_ERROR(layout(a, type, desc.k, desc.m));
    return layout(d, type, desc.n, desc.m);
  }

 private:
  template <class T>
  absl::Status set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return to_status(cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof(value)),
                     "cublasLtMatmulDescSetAttribute");
  }
  static absl::Status layout(cublasLtMatrixLayoutOpaque_t& matrix, cudaDataType type, std::uint64_t rows,
                             std::uint64_t columns) {
    return to_status(cublasLtMatrixLayoutInit(&matrix, type, rows, columns, static_cast<std::int64_t>(rows)),
                     "cublasLtMatrixLayoutInit");
  }
};

using Algorithms = std::vector<cublasLtMatmulHeuristicResult_t>;

// At least one, the most promising first. Gives the plan its handle.
absl::StatusOr<Algorithms> find_algorithms(MatmulPlan& plan, int max_count) {
  cublasLtHandle_t handle = nullptr;
  CGRT_RETURN_IF_ERROR(to_status(cublasLtCreate(&handle), "cublasLtCreate"));
  plan.handle =
      std::shared_ptr<void>(handle, [](void* owned) { cublasLtDestroy(static_cast<cublasLtHandle_t>(owned)); });
  Product product;
  // Some address: only launches read there.
  CGRT_RETURN_IF_ERROR(product.create(plan.desc, reinterpret_cast<const void*>(kWorkspaceAlignment)));
  cublasLtMatmulPreferenceOpaque_t preference;
  CGRT_RETURN_IF_ERROR(to_status(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit"));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    return to_status(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)),
                     "cublasLtMatmulPreferenceSetAttribute");
  };
  const std::size_t limit = plan.desc.max_workspace_bytes;
  const std::size_t max_scratch = limit > workspace_with(0) ? limit - workspace_with(0) : 0;
  CGRT_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, max_scratch));
  // Parts of sums are floats too: those that are added in d, where that is float.
  const std::uint32_t in_place = plan.desc.type == DType::kFloat32 ? CUBLASLT_REDUCTION_SCHEME_INPLACE : 0;
  CGRT_RETURN_IF_ERROR(
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, in_place | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    CGRT_RETURN_IF_ERROR(prefer(attribute, kAlignment));
  }
  Algorithms algorithms(static_cast<std::size_t>(max_count));
  int found = 0;
  const cublasStatus_t asked =
      cublasLtMatmulAlgoGetHeuristic(handle, &product.operation, &product.b, &product.a, &product.d, &product.d,
                                     &preference, max_count, algorithms.data(), &found);
  algorithms.resize(static_cast<std::size_t>(found));
  std::erase_if(algorithms, [](const auto& algorithm) { return algorithm.state != CUBLAS_STATUS_SUCCESS; });
  if (asked == CUBLAS_STATUS_NOT_SUPPORTED || (asked == CUBLAS_STATUS_SUCCESS && algorithms.empty())) {
    return absl::UnimplementedError(absl::StrCat(to_text(plan.desc), " with ", to_string(plan.desc.epilogue),
                                                 ": cuBLASLt has no algorithm that needs at most ", limit,
                                                 " bytes of workspace."));
  }
  CGRT_RETURN_IF_ERROR(to_status(asked, "cublasLtMatmulAlgoGetHeuristic"));
  return algorithms;
}

void take_algorithm(MatmulPlan& plan, const cublasLtMatmulHeuristicResult_t& algorithm) {
  static_assert(sizeof(algorithm.algo) == sizeof(plan.algorithm));
  std::memcpy(plan.algorithm.data(), &algorithm.algo, sizeof(algorithm.algo));
  plan.scratch_bytes = algorithm.workspaceSize;
  if (plan.scratch_bytes != 0) plan.workspace_bytes = workspace_with(plan.scratch_bytes);
}

double read(DType type, const void* array, std::uint64_t i) {
  switch (type) {
    case DType::kFloat16: return static_cast<double>(__half2float(static_cast<const __half*>(array)[i]));
    case DType::kBFloat16: return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(array)[i]));
    default: return static_cast<double>(static_cast<const float*>(array)[i]);
  }
}

void write(DType type, void* array, std::uint64_t i, double value) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case DType::kFloat16: static_cast<__half*>(array)[i] = __float2half_rn(single); return;
    case DType::kBFloat16: static_cast<__nv_bfloat16*>(array)[i] = __float2bfloat16_rn(single); return;
    default: static_cast<float*>(array)[i] = single;
  }
}

void matmul_on_host(const MatmulDesc& desc, const MatmulArgs& args) {
  const auto element_of = [&](const void* array) {
    return [&desc, array](std::uint64_t i) { return read(desc.type, array, i); };
  };
  for (std::uint64_t row = 0; row < desc.m; ++row) {
    for (std::uint64_t column = 0; column < desc.n; ++column) {
      write(desc.type, args.d, row * desc.n + column,
            matmul_reference(desc, row, column, element_of(args.a), element_of(args.b), element_of(args.bias),
                             element_of(args.residual)));
    }
  }
}

// Where gemm was measured to be at least as fast as cuBLASLt, with 16-bit types on an H100: products that are large in
// each direction. Others are as fast by either, or faster by cuBLASLt (kernels/bench/records/matmul.json).
bool gemm_is_faster(const MatmulDesc& desc) {
  constexpr std::uint64_t kLarge = 8192;
  return desc.type != DType::kFloat32 && desc.m >= kLarge && desc.n >= kLarge && desc.k >= kLarge && desc.n % 8 == 0 &&
         desc.k % 8 == 0;
}

// All that tells its launches from those of other plans, but for addresses.
std::vector<std::uint64_t> values_of(const MatmulPlan& plan) {
  const MatmulDesc& desc = plan.desc;
  std::vector<std::uint64_t> values;
  values.reserve(24);  // with the addresses
  values.assign(plan.algorithm.begin(), plan.algorithm.end());
  values.insert(values.end(), {desc.m, desc.n, desc.k, static_cast<std::uint64_t>(desc.type),
                               static_cast<std::uint64_t>(desc.b_layout), static_cast<std::uint64_t>(desc.epilogue),
                               static_cast<std::uint64_t>(desc.products)});
  return values;
}

absl::Status check(const MatmulDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("matmul", "b_layout", desc.b_layout, MatmulLayout::kTransposed));
  CGRT_RETURN_IF_ERROR(check_enum("matmul", "epilogue", desc.epilogue, MatmulEpilogue::kSiluGate));
  CGRT_RETURN_IF_ERROR(check_enum("matmul", "products", desc.products, Float32Products::kTf32));
  CGRT_RETURN_IF_ERROR(check_enum("matmul", "kernel", desc.kernel, MatmulKernel::kGemm));
  CGRT_RETURN_IF_ERROR(check_enum("matmul", "type", desc.type, DType::kInt64));
  if (desc.m == 0 || desc.n == 0 || desc.k == 0 || desc.m > kMaxCount || desc.n > kMaxCount || desc.k > kMaxCount) {
    return absl::InvalidArgumentError(
        absl::StrCat(to_text(desc), ": m, n and k must each be from 1 to ", kMaxCount, "."));
  }
  if (!is_float(desc.type)) {
    return absl::InvalidArgumentError(absl::StrCat(to_text(desc), ": the type must be float32, float16 or bfloat16."));
  }
  if (desc.epilogue == MatmulEpilogue::kSiluGate && desc.kernel == MatmulKernel::kLibrary) {
    return absl::InvalidArgumentError(absl::StrCat(
        to_text(desc), ": cuBLASLt has no silu gate. Take MatmulKernel::kBest or kGemm, or two products."));
  }
  return absl::OkStatus();
}

absl::StatusOr<MatmulPlan> plan_of_gemm(ContextRef context, const MatmulDesc& desc) {
  MatmulPlan plan{desc, 0, 0, nullptr, {}, {}};
  CGRT_ASSIGN_OR_RETURN(plan.gemm, plan_gemm(context, desc));
  plan.desc.kernel = MatmulKernel::kGemm;
  return plan;
}

// One on the simulator, without an algorithm.
absl::StatusOr<std::vector<MatmulPlan>> plans_of_library(ContextRef context, const MatmulDesc& desc, int max_count) {
  MatmulPlan plan{desc, 0, 0, nullptr, {}, {}};
  plan.desc.kernel = MatmulKernel::kLibrary;
  if (is_simulated()) return std::vector{plan};
  CGRT_ASSIGN_OR_RETURN(const CUcontext handle, context.get());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(handle));
  CGRT_ASSIGN_OR_RETURN(const Algorithms algorithms, find_algorithms(plan, max_count));
  std::vector<MatmulPlan> plans(algorithms.size(), plan);
  for (std::size_t i = 0; i < plans.size(); ++i) take_algorithm(plans[i], algorithms[i]);
  return plans;
}

bool has_only_gemm(const MatmulDesc& desc) {
  return desc.kernel == MatmulKernel::kGemm || desc.epilogue == MatmulEpilogue::kSiluGate;
}

}  // namespace

absl::StatusOr<MatmulPlan> plan_matmul(ContextRef context, const MatmulDesc& desc) {
  CGRT_RETURN_IF_ERROR(check(desc));
  if (has_only_gemm(desc)) return plan_of_gemm(context, desc);
  if (desc.kernel == MatmulKernel::kBest && gemm_is_faster(desc)) {
    absl::StatusOr<MatmulPlan> plan = plan_of_gemm(context, desc);
    if (plan.ok() || !absl::IsUnimplemented(plan.status())) return plan;
  }
  absl::StatusOr<std::vector<MatmulPlan>> plans = plans_of_library(context, desc, 1);
  if (plans.ok()) return std::move(plans->front());
  if (desc.kernel == MatmulKernel::kBest && absl::IsUnimplemented(plans.status())) {
    if (absl::StatusOr<MatmulPlan> plan = plan_of_gemm(context, desc); plan.ok()) return plan;
  }
  return plans.status();
}

absl::StatusOr<std::vector<MatmulPlan>> matmul_candidates(ContextRef context, const MatmulDesc& desc) {
  constexpr int kMaxAlgorithms = 8;
  CGRT_RETURN_IF_ERROR(check(desc));
  std::vector<MatmulPlan> plans;
  if (desc.kernel != MatmulKernel::kLibrary) {
    absl::StatusOr<MatmulPlan> plan = plan_of_gemm(context, desc);
    const bool has_none = absl::IsUnimplemented(plan.status()) || absl::IsInvalidArgument(plan.status());
    if (!plan.ok() && (has_only_gemm(desc) || !has_none)) return plan.status();
    if (plan.ok()) plans.push_back(*std::move(plan));
  }
  if (has_only_gemm(desc)) return plans;
  const absl::StatusOr<std::vector<MatmulPlan>> of_library = plans_of_library(context, desc, kMaxAlgorithms);
  if (of_library.ok()) plans.insert(plans.end(), of_library->begin(), of_library->end());
  if (plans.empty() || !(of_library.ok() || absl::IsUnimplemented(of_library.status()))) return of_library.status();
  return plans;
}

std::uint64_t MatmulPlan::topology_id() const {
  if (gemm) return gemm->topology_id();
  return topology_of_library("matmul", values_of(*this));
}

absl::Status launch_matmul(LaunchTarget target, const MatmulPlan& plan, const MatmulArgs& args) {
  if (plan.gemm) return launch_gemm(target, *plan.gemm, args);
  const MatmulDesc& desc = plan.desc;
  const char* const name = "matmul";
  CGRT_RETURN_IF_ERROR(check_pointer(name, "d", args.d, kAlignment));
  CGRT_RETURN_IF_ERROR(check_pointer(name, "a", args.a, kAlignment));
  CGRT_RETURN_IF_ERROR(check_pointer(name, "b", args.b, kAlignment));
  if (has_bias(desc.epilogue)) CGRT_RETURN_IF_ERROR(check_pointer(name, "bias", args.bias, kAlignment));
  if (has_residual(desc.epilogue)) CGRT_RETURN_IF_ERROR(check_pointer(name, "residual", args.residual, kAlignment));
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  if (is_simulated()) return launch_host(target, [desc = plan.desc, args] { matmul_on_host(desc, args); });
  void* const scratch = plan.scratch_bytes != 0 ? scratch_of(args.workspace) : nullptr;
  std::vector<std::uint64_t> key = values_of(plan);
  for (const void* address : {reinterpret_cast<const void*>(&launch_matmul), args.a, args.b, args.bias, args.residual,
                              static_cast<const void*>(args.d), static_cast<const void*>(scratch)}) {
    key.push_back(reinterpret_cast<std::uintptr_t>(address));
  }
  const auto call = [&](CUstream stream) {
    Product product;
    CGRT_RETURN_IF_ERROR(product.create(desc, args.bias));
    cublasLtMatmulAlgo_t algorithm;
    std::memcpy(&algorithm, plan.algorithm.data(), sizeof(algorithm));
    const float one = 1, of_c = has_residual(desc.epilogue) ? 1 : 0;
    const void* const c = has_residual(desc.epilogue) ? args.residual : args.d;
    return to_status(cublasLtMatmul(static_cast<cublasLtHandle_t>(plan.handle.get()), &product.operation, &one, args.b,
                                    &product.b, args.a, &product.a, &of_c, c, &product.d, args.d, &product.d,
                                    &algorithm, scratch, plan.scratch_bytes, stream),
                     "cublasLtMatmul");
  };
  return launch_library(target, call, key);
}

}  // namespace cgrt::kernels
