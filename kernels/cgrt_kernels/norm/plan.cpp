#include <cstdint>
#include <optional>

#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/norm/row_plan.h"

namespace cgrt::kernels {
namespace {

NormProblem problem_of(const NormDesc& desc) {
  const bool has_residual = desc.residual == Residual::kAdded;
  return {{has_residual ? "add_" : "", to_string(desc.op)},
          desc.op,
          desc.type,
          desc.rows,
          desc.columns,
          has_residual,
          false};
}

// Short rows.
std::optional<RowLaunch<NormParams>> lanes_launch(const Machine& machine, const NormDesc& desc, Alignment alignment) {
  const NormProblem problem = problem_of(desc);
  const bool is_aligned = alignment == Alignment::kAligned;
  if (desc.columns > kMaxLaneColumns) return std::nullopt;
  const std::uint64_t columns = desc.columns;
  if (are_few_short(machine, desc.rows, columns, kFewElements / 2)) {
    return RowLaunch<NormParams>{.kernel = norm_few_kernel(desc.op, desc.residual, desc.type),
                                 .config = {.grid = narrow(desc.rows), .block = kWarpThreads}};
  }
  if (!is_aligned && !problem.has_residual) {
    if (const auto shape = share_among_stages(machine, desc.rows, columns, problem.size())) {
      return RowLaunch<NormParams>{.kernel = norm_staged_kernel(desc.op, desc.type, narrow(columns)),
                                   .config = shape->config,
                                   .shares = shape->shares};
    }
  }
  return RowLaunch<NormParams>{
      .kernel = norm_lanes_kernel(desc.op, desc.residual, desc.type, alignment, narrow(columns)),
      .config = lanes_config(machine, problem, alignment)};
}
// Rows of which a thread has few elements.
std::optional<RowLaunch<NormParams>> held_launch(const Machine& machine, const NormDesc& desc, Alignment alignment) {
  const auto shape = held_shape(machine, problem_of(desc), alignment);
  if (!shape) return std::nullopt;
  return RowLaunch<NormParams>{.kernel = norm_held_kernel(desc.op, desc.residual, desc.type, shape->regime),
                               .config = shape->config};
}

}  // namespace

absl::StatusOr<NormPlan> plan_norm(ContextRef context, const NormDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("norm", "op", desc.op, NormOp::kRmsNorm));
  CGRT_RETURN_IF_ERROR(check_enum("norm", "residual", desc.residual, Residual::kAdded));
  const NormProblem problem = problem_of(desc);
  CGRT_RETURN_IF_ERROR(check_not_negative(problem.name, "epsilon", desc.epsilon));
  CGRT_RETURN_IF_ERROR(check_matrix(problem.name, desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(problem.name, desc.type));
  const auto kernel_of = [&](NormRegime regime, Alignment alignment) {
    return norm_kernel(desc.op, desc.residual, desc.type, regime, alignment);
  };
  CGRT_ASSIGN_OR_RETURN(const Machine machine,
                        machine_of(context, kernel_of(NormRegime::kCluster, Alignment::kAligned)));
  CGRT_ASSIGN_OR_RETURN(const RowLaunches<NormParams> launches,
                        plan_row_launches<NormParams>(
                            machine, problem.row_bytes(),
                            [&](const Machine& some, Alignment alignment) -> absl::StatusOr<RowLaunch<NormParams>> {
                              if (const auto launch = lanes_launch(some, desc, alignment)) return *launch;
                              if (const auto launch = held_launch(some, desc, alignment)) return *launch;
                              return row_launch<NormParams>(some, problem, alignment, kernel_of);
                            }));
  return NormPlan{desc, launches, launches.workspace_bytes()};
}

absl::Status launch_norm(LaunchTarget target, const NormPlan& plan, const NormArgs& args) {
  const NormDesc& desc = plan.desc;
  const OperationName name = problem_of(desc).name;
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "weight", args.weight, desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(name, "bias", args.bias, desc.type, Need::kOptional));
  if (desc.residual == Residual::kAdded) {
    CGRT_RETURN_IF_ERROR(check_array(name, "residual", args.residual, desc.type));
    CGRT_RETURN_IF_ERROR(check_array(name, "sum", args.sum, desc.type, Need::kOptional));
    if (args.out == args.sum) return refuse(name, "out and sum are the same array.");
  } else if (args.residual != nullptr || args.sum != nullptr) {
    return refuse(name, "residual and sum are for a plan with Residual::kAdded.");
  }
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  const RowLaunch<NormParams>& chosen =
      plan.launches.of(alignment_of(args.out, args.sum, args.in, args.residual, args.weight, args.bias));
  const std::uint32_t arrays = problem_of(desc).arrays();
  // Clusters that add a residual leave the L2 cache to the weights.
  const bool is_ahead = arrays == 1 || chosen.config.attributes.cluster.x == 1;
  NormParams params{.out = args.out,
                    .in = args.in,
                    .weight = args.weight,
                    .bias = args.bias,
                    .epsilon = desc.epsilon,
                    .one_of_columns = 1.0f / static_cast<float>(desc.columns),
                    .rows = narrow(desc.rows),
                    .columns = narrow(desc.columns),
                    .sum = args.sum,
                    .residual = args.residual,
                    .in_bias = nullptr,
                    .rows_ahead = is_ahead ? rows_ahead(arrays * desc.columns * size_of(desc.type)) : narrow(desc.rows),
                    .shares = chosen.shares,
                    .slices = chosen.slices,
                    .workspace = args.workspace.data};
  return launch_rows(target, chosen, params);
}

}  // namespace cgrt::kernels
