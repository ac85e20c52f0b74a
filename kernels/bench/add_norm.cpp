#include "cgrt_kernels/add_norm/add_norm.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

using kernels::RowOp;

// rows, columns
absl::StatusOr<Work> make_add_norm(const Case& test) {
  kernels::AddNormDesc desc{.type = test.type};
  bool is_known = false;
  for (const RowOp op : {RowOp::kLayerNorm, RowOp::kRmsNorm}) {
    if (test.kernel == absl::StrCat("add_", to_string(op))) desc.op = op, is_known = true;
  }
  if (!is_known) return absl::NotFoundError("");
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::AddNormPlan plan, plan_add_norm(kDevice, desc));
  struct Set {
    DeviceBuffer out, sum, in, residual, weight, bias;
  };
  const std::uint64_t count = desc.rows * desc.columns;
  const std::size_t size = size_of(desc.type);
  return Work{4 * count * size, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, count * size));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer sum, DeviceBuffer::create(kDevice, count * size));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, desc.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer residual, make_numbers(stream, desc.type, count, seed + 1));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer weight, make_numbers(stream, desc.type, desc.columns, seed + 2));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer bias, make_numbers(stream, desc.type, desc.columns, seed + 3));
                const auto set = std::make_shared<Set>(Set{std::move(out), std::move(sum), std::move(in),
                                                           std::move(residual), std::move(weight), std::move(bias)});
                const bool in_place = test.is_chain;
                return [=](LaunchTarget target) {
                  return launch_add_norm(target, plan,
                                         {.out = in_place ? set->in.data() : set->out.data(),
                                          .sum = in_place ? set->residual.data() : set->sum.data(),
                                          .in = set->in.data(),
                                          .residual = set->residual.data(),
                                          .weight = set->weight.data(),
                                          .bias = set->bias.data()});
                };
              }};
}

}  // namespace cgrt::bench
