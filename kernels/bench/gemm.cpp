#include "cgrt_kernels/gemm/gemm.h"

#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

absl::StatusOr<kernels::MatmulEpilogue> epilogue_of(const Case& test) {
  using enum kernels::MatmulEpilogue;
  if (test.kernel == "gemm") return kNone;
  if (test.kernel == "gemm_bias") return kBias;
  if (test.kernel == "gemm_gelu_bias") return kGeluBias;
  if (test.kernel == "gemm_residual") return kResidual;
  if (test.kernel == "gemm_silu_gate") return kSiluGate;
  return absl::NotFoundError("");
}

struct Set {
  DeviceBuffer d, a, b, bias, residual;
};

}  // namespace

// m, n, k; b as the weights of a linear layer, n rows of k, or 2 n with a gate; plain: 1 for k rows of n
absl::StatusOr<Work> make_gemm(const Case& test) {
  kernels::MatmulDesc desc{.type = test.type};
  CGRT_ASSIGN_OR_RETURN(desc.epilogue, epilogue_of(test));
  CGRT_ASSIGN_OR_RETURN(desc.m, test.size("m"));
  CGRT_ASSIGN_OR_RETURN(desc.n, test.size("n"));
  CGRT_ASSIGN_OR_RETURN(desc.k, test.size("k"));
  desc.b_layout = test.size_or("plain", 0) != 0 ? kernels::MatmulLayout::kPlain : kernels::MatmulLayout::kTransposed;
  CGRT_ASSIGN_OR_RETURN(const kernels::GemmPlan plan, plan_gemm(kDevice, desc));
  const std::uint64_t of_b = columns_of_b(desc) * desc.k;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer d, DeviceBuffer::create(kDevice, desc.m * desc.n * size_of(desc.type)));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer a, make_numbers(stream, desc.type, desc.m * desc.k, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer b, make_numbers(stream, desc.type, of_b, seed + 1));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer bias, make_numbers(stream, desc.type, desc.n, seed + 2));
    const std::uint64_t of_residual = has_residual(desc.epilogue) ? desc.m * desc.n : 1;
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer residual, make_numbers(stream, desc.type, of_residual, seed + 3));
    const auto set =
        std::make_shared<Set>(Set{std::move(d), std::move(a), std::move(b), std::move(bias), std::move(residual)});
    return [=](LaunchTarget target) {
      return launch_gemm(target, plan,
                         {.d = set->d.data(),
                          .a = set->a.data(),
                          .b = set->b.data(),
                          .bias = set->bias.data(),
                          .residual = set->residual.data()});
    };
  };
  const std::uint64_t of_d = desc.m * desc.n * (has_residual(desc.epilogue) ? 2 : 1);
  return Work{(of_d + desc.m * desc.k + of_b) * size_of(desc.type), make};
}

}  // namespace cgrt::bench
