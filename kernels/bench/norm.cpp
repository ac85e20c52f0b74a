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
    DeviceBuffer out, sum, in, residual, weight, bias, workspace;
  };
  const std::uint64_t shift = test.size_or("shift", 0), count = desc.rows * desc.columns + shift;
  const std::size_t size = size_of(desc.type);
  const bool is_added = residual == Residual::kAdded, has_sum = is_added && test.size_or("sum", 1) != 0;
  const std::uint64_t others = is_added ? count : 1;
  return Work{
      (2 + (is_added ? 1u : 0u) + (has_sum ? 1u : 0u)) * count * size,
      [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, count * size));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer sum, DeviceBuffer::create(kDevice, others * size));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, desc.type, count, seed));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer added, make_numbers(stream, desc.type, others, seed + 1));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer weight, make_numbers(stream, desc.type, desc.columns, seed + 2));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer bias, make_numbers(stream, desc.type, desc.columns, seed + 3));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
        const auto set =
            std::make_shared<Set>(Set{std::move(out), std::move(sum), std::move(in), std::move(added),
                                      std::move(weight), std::move(bias), std::move(workspace)});
        const bool in_place = test.is_chain;
        return [=](LaunchTarget target) {
          kernels::NormArgs args{.out = at(in_place ? set->in : set->out, shift * size),
                                 .in = at(set->in, shift * size),
                                 .weight = set->weight.data(),
                                 .bias = set->bias.data(),
                                 .workspace = workspace_in(set->workspace)};
          if (is_added) args.residual = at(set->residual, shift * size);
          if (has_sum) args.sum = at(in_place ? set->residual : set->sum, shift * size);
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
    DeviceBuffer dx, dy, x, weight, dweight, dbias, workspace;
  };
  const std::uint64_t shift = test.size_or("shift", 0), count = desc.rows * desc.columns + shift;
  const std::size_t size = size_of(desc.type);
  return Work{3 * count * size, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer dx, DeviceBuffer::create(kDevice, count * size));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer dy, make_numbers(stream, desc.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, make_numbers(stream, desc.type, count, seed + 1));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer weight, make_numbers(stream, desc.type, desc.columns, seed + 2));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer dweight, DeviceBuffer::create(kDevice, desc.columns * size));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer dbias, DeviceBuffer::create(kDevice, desc.columns * size));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
                const auto set =
                    std::make_shared<Set>(Set{std::move(dx), std::move(dy), std::move(x), std::move(weight),
                                              std::move(dweight), std::move(dbias), std::move(workspace)});
                const bool in_place = test.is_chain;
                return [=](LaunchTarget target) {
                  return launch_norm_backward(target, plan,
                                              {.dx = at(in_place ? set->dy : set->dx, shift * size),
                                               .dy = at(set->dy, shift * size),
                                               .x = at(set->x, shift * size),
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
