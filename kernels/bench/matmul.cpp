#ifdef CGRT_BENCH_MATMUL  // where the toolkit has cuBLASLt
#include "cgrt_kernels/cublaslt/matmul.h"

#include <algorithm>
#include <memory>

#endif

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

#ifdef CGRT_BENCH_MATMUL
// m, n, k; b as the weights of a linear layer, n rows of k
absl::StatusOr<Work> make_matmul(const Case& test) {
  if (test.kernel != "matmul") return absl::NotFoundError("");
  kernels::MatmulDesc desc{.type = test.type, .b_layout = kernels::MatmulLayout::kTransposed};
  CGRT_ASSIGN_OR_RETURN(desc.m, test.size("m"));
  CGRT_ASSIGN_OR_RETURN(desc.n, test.size("n"));
  CGRT_ASSIGN_OR_RETURN(desc.k, test.size("k"));
  CGRT_ASSIGN_OR_RETURN(const kernels::MatmulPlan plan, plan_matmul(kDevice, desc));
  struct Set {
    DeviceBuffer d, a, b, workspace;
  };
  const std::size_t size = size_of(desc.type);
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer d, DeviceBuffer::create(kDevice, desc.m * desc.n * size));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer a, make_numbers(stream, desc.type, desc.m * desc.k, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer b, make_numbers(stream, desc.type, desc.n * desc.k, seed + 1));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
    const auto set = std::make_shared<Set>(Set{std::move(d), std::move(a), std::move(b), std::move(workspace)});
    return [=](LaunchTarget target) {
      return launch_matmul(
          target, plan,
          {.d = set->d.data(), .a = set->a.data(), .b = set->b.data(), .workspace = workspace_in(set->workspace)});
    };
  };
  return Work{(desc.m * desc.n + desc.m * desc.k + desc.n * desc.k) * size, make};
}
#else
absl::StatusOr<Work> make_matmul(const Case&) { return absl::NotFoundError(""); }
#endif

}  // namespace cgrt::bench
