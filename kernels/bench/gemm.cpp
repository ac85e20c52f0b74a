#include "cgrt_kernels/gemm/gemm.h"

#include <functional>
#include <memory>
#include <string>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

#ifdef CGRT_BENCH_MATMUL  // where the toolkit has cuBLASLt
#include "cgrt_kernels/cublaslt/matmul.h"
#endif

namespace cgrt::bench {
namespace {

using kernels::MatmulArgs;
using kernels::MatmulDesc;

absl::StatusOr<kernels::MatmulEpilogue> epilogue_of(const std::string& name) {
  using enum kernels::MatmulEpilogue;
  if (name.empty()) return kNone;
  if (name == "_bias") return kBias;
  if (name == "_gelu_bias") return kGeluBias;
  if (name == "_residual") return kResidual;
  if (name == "_silu_gate") return kSiluGate;
  return absl::NotFoundError("");
}

struct Product {
  std::size_t workspace_bytes;
  std::function<absl::Status(LaunchTarget, const MatmulArgs&)> launch;
};

// gemm's kernels, cuBLASLt's, or those that plan_matmul chooses.
absl::StatusOr<Product> make_product(const std::string& whose, MatmulDesc desc) {
  if (whose == "gemm") {
    CGRT_ASSIGN_OR_RETURN(const kernels::GemmPlan plan, plan_gemm(kDevice, desc));
    return Product{0, [plan](LaunchTarget to, const MatmulArgs& args) { return launch_gemm(to, plan, args); }};
  }
#ifdef CGRT_BENCH_MATMUL
  if (whose == "cublaslt" || whose == "matmul") {
    if (whose == "cublaslt") desc.kernel = kernels::MatmulKernel::kLibrary;
    CGRT_ASSIGN_OR_RETURN(const kernels::MatmulPlan plan, plan_matmul(kDevice, desc));
    return Product{plan.workspace_bytes,
                   [plan](LaunchTarget to, const MatmulArgs& args) { return launch_matmul(to, plan, args); }};
  }
#endif
  return absl::NotFoundError("");
}

struct Set {
  DeviceBuffer d, a, b, bias, residual, workspace;
};

}  // namespace

// m, n, k; b as the weights of a linear layer, n rows of k, or 2 n with a gate; plain: 1 for k rows of n
absl::StatusOr<Work> make_gemm(const Case& test) {
  const std::string whose = test.kernel.substr(0, test.kernel.find('_'));
  MatmulDesc desc{.type = test.type};
  CGRT_ASSIGN_OR_RETURN(desc.epilogue, epilogue_of(test.kernel.substr(whose.size())));
  if (whose != "gemm" && whose != "cublaslt" && whose != "matmul") return absl::NotFoundError("");
  CGRT_ASSIGN_OR_RETURN(desc.m, test.size("m"));
  CGRT_ASSIGN_OR_RETURN(desc.n, test.size("n"));
  CGRT_ASSIGN_OR_RETURN(desc.k, test.size("k"));
  desc.b_layout = test.size_or("plain", 0) != 0 ? kernels::MatmulLayout::kPlain : kernels::MatmulLayout::kTransposed;
  CGRT_ASSIGN_OR_RETURN(const Product product, make_product(whose, desc));
  const std::uint64_t of_b = columns_of_b(desc) * desc.k;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer d, DeviceBuffer::create(kDevice, desc.m * desc.n * size_of(desc.type)));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer a, make_numbers(stream, desc.type, desc.m * desc.k, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer b, make_numbers(stream, desc.type, of_b, seed + 1));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer bias, make_numbers(stream, desc.type, desc.n, seed + 2));
    const std::uint64_t of_residual = has_residual(desc.epilogue) ? desc.m * desc.n : 1;
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer residual, make_numbers(stream, desc.type, of_residual, seed + 3));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, product.workspace_bytes));
    const auto set = std::make_shared<Set>(
        Set{std::move(d), std::move(a), std::move(b), std::move(bias), std::move(residual), std::move(workspace)});
    return [=](LaunchTarget target) {
      return product.launch(target, {.d = set->d.data(),
                                     .a = set->a.data(),
                                     .b = set->b.data(),
                                     .bias = set->bias.data(),
                                     .workspace = workspace_in(set->workspace),
                                     .residual = set->residual.data()});
    };
  };
  const std::uint64_t of_d = desc.m * desc.n * (has_residual(desc.epilogue) ? 2 : 1);
  return Work{(of_d + desc.m * desc.k + of_b) * size_of(desc.type), make};
}

}  // namespace cgrt::bench
