#include "cgrt_kernels/skinny_gemm/skinny_gemm.h"

#include <algorithm>
#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::SkinnyGemmDesc;
using kernels::SkinnyGemmPlan;
using kernels::SkinnyWeights;

struct Set {
  Array y, x, weights, scales;
  DeviceBuffer row_count, workspace;
};

}  // namespace

// rows, n, k; bits: 8 or 4 for integers with groups of 128; max_rows: of the plan, whose launches read `rows` on the
// device
absl::StatusOr<Work> make_skinny_gemm(const Case& test) {
  if (test.kernel != "skinny_gemm") return absl::NotFoundError("");
  SkinnyGemmDesc desc{.type = test.type};
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.n, test.size("n"));
  CGRT_ASSIGN_OR_RETURN(desc.k, test.size("k"));
  const std::uint64_t bits = test.size_or("bits", 16), max_rows = test.size_or("max_rows", 0);
  desc.rows = std::max(rows, max_rows);
  desc.weights = bits == 4 ? SkinnyWeights::kInt4 : bits == 8 ? SkinnyWeights::kInt8 : SkinnyWeights::kFloat;
  CGRT_ASSIGN_OR_RETURN(const SkinnyGemmPlan plan, plan_skinny_gemm(kDevice, desc));
  const std::size_t size = size_of(desc.type);
  const std::uint64_t weights_of = desc.n * desc.k * bits / 8 / size, scales_of = desc.n * (desc.k / desc.group);
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    const auto count = static_cast<std::int32_t>(rows);
    CGRT_ASSIGN_OR_RETURN(Array y, make_output(test, desc.type, desc.rows * desc.n));
    CGRT_ASSIGN_OR_RETURN(Array x, make_array(test, stream, desc.type, desc.rows * desc.k, seed));
    CGRT_ASSIGN_OR_RETURN(Array weights, make_array(test, stream, desc.type, weights_of, seed + 1));
    CGRT_ASSIGN_OR_RETURN(Array scales,
                          make_array(test, stream, desc.type, std::max<std::uint64_t>(scales_of, 1), seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer row_count, DeviceBuffer::create(kDevice, sizeof(count)));
    CGRT_RETURN_IF_ERROR(copy(stream, row_count.data(), &count, sizeof(count)));
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
    const auto set = std::make_shared<Set>(Set{std::move(y), std::move(x), std::move(weights), std::move(scales),
                                               std::move(row_count), std::move(workspace)});
    return [=](LaunchTarget target) {
      return launch_skinny_gemm(target, plan,
                                {.y = set->y.data(),
                                 .x = set->x.data(),
                                 .weights = set->weights.data(),
                                 .scales = set->scales.data(),
                                 .row_count = max_rows == 0 ? nullptr : set->row_count.as<std::int32_t>(),
                                 .workspace = workspace_in(set->workspace)});
    };
  };
  return Work{(weights_of + rows * (desc.n + desc.k) + (bits < 16 ? scales_of : 0)) * size, make};
}

}  // namespace cgrt::bench
