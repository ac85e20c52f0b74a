#include "cgrt_kernels/norm/norm.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::NormOp;
using kernels::Residual;
using kernels::WeightGradients;

// rows, columns; with a residual, sum=0: the sum is not written
absl::StatusOr<Work> make_forward(const Case& test, NormOp op, Residual residual) {
  kernels::NormDesc desc{.op = op, .type = test.type, .residual = residual};
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::NormPlan plan, plan_norm(kDevice, desc));
  struct Set {
    Array out, sum, in, residual, weight, bias;
    DeviceBuffer workspace;
  };
  const std::uint64_t count = desc.rows * desc.columns;
  const std::size_t size = size_of(desc.type);
  const bool is_added = residual == Residual::kAdded, has_sum = is_added && test.size_or("sum", 1) != 0;
  const std::uint64_t others = is_added ? count : 1;
  return Work{(2 + (is_added ? 1u : 0u) + (has_sum ? 1u : 0u)) * count * size,
              [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, desc.type, count));
                CGRT_ASSIGN_OR_RETURN(Array sum, make_output(test, desc.type, others));
                CGRT_ASSIGN_OR_RETURN(Array in, make_array(test, stream, desc.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(Array added, make_array(test, stream, desc.type, others, seed + 1));
                CGRT_ASSIGN_OR_RETURN(Array weight, make_array(test, stream, desc.type, desc.columns, seed + 2));
                CGRT_ASSIGN_OR_RETURN(Array bias, make_array(test, stream, desc.type, desc.columns, seed + 3));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
                const auto set =
                    std::make_shared<Set>(Set{std::move(out), std::move(sum), std::move(in), std::move(added),
                                              std::move(weight), std::move(bias), std::move(workspace)});
                const bool in_place = test.is_chain;
                return [=](LaunchTarget target) {
                  kernels::NormArgs args{.out = in_place ? set->in.data() : set->out.data(),
                                         .in = set->in.data(),
                                         .weight = set->weight.data(),
                                         .bias = set->bias.data(),
                                         .workspace = workspace_in(set->workspace)};
                  if (is_added) args.residual = set->residual.data();
                  if (has_sum) args.sum = in_place ? set->residual.data() : set->sum.data();
                  return launch_norm(target, plan, args);
                };
              }};
}

// rows, columns; weights=0: no weight gradients
absl::StatusOr<Work> make_backward(const Case& test, NormOp op) {
  kernels::NormBackwardDesc desc{.op = op, .type = test.type};
  if (test.size_or("weights", 1) != 0) desc.weight_gradients = WeightGradients::kSummed;
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::NormBackwardPlan plan, plan_norm_backward(kDevice, desc));
  struct Set {
    Array dx, dy, x, weight, dweight, dbias;
    DeviceBuffer workspace;
  };
  const std::uint64_t count = desc.rows * desc.columns;
  const std::size_t size = size_of(desc.type);
  return Work{3 * count * size, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(Array dx, make_output(test, desc.type, count));
                CGRT_ASSIGN_OR_RETURN(Array dy, make_array(test, stream, desc.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(Array x, make_array(test, stream, desc.type, count, seed + 1));
                CGRT_ASSIGN_OR_RETURN(Array weight, make_array(test, stream, desc.type, desc.columns, seed + 2));
                CGRT_ASSIGN_OR_RETURN(Array dweight, make_output(test, desc.type, desc.columns));
                CGRT_ASSIGN_OR_RETURN(Array dbias, make_output(test, desc.type, desc.columns));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
                const auto set =
                    std::make_shared<Set>(Set{std::move(dx), std::move(dy), std::move(x), std::move(weight),
                                              std::move(dweight), std::move(dbias), std::move(workspace)});
                const bool in_place = test.is_chain;
                return [=](LaunchTarget target) {
                  return launch_norm_backward(target, plan,
                                              {.dx = in_place ? set->dy.data() : set->dx.data(),
                                               .dy = set->dy.data(),
                                               .x = set->x.data(),
                                               .weight = set->weight.data(),
                                               .dweight = set->dweight.data(),
                                               .dbias = set->dbias.data(),
                                               .workspace = workspace_in(set->workspace)});
                };
              }};
}

}  // namespace

absl::StatusOr<Work> make_norm(const Case& test) {
  for (const NormOp op : {NormOp::kLayerNorm, NormOp::kRmsNorm}) {
    if (test.kernel == to_string(op)) return make_forward(test, op, Residual::kNone);
    if (test.kernel == absl::StrCat("add_", to_string(op))) return make_forward(test, op, Residual::kAdded);
    if (test.kernel == absl::StrCat(to_string(op), "_backward")) return make_backward(test, op);
  }
  return absl::NotFoundError("");
}

}  // namespace cgrt::bench
