#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/bias_norm/bias_norm.h"
#include "cgrt_kernels/bias_norm/kernels.h"
#include "cgrt_kernels/norm/row_plan.h"

namespace cgrt::kernels {
namespace {

using Shape = RowShape<BiasNormRegime>;

OperationName name_of(NormOp op) { return {"bias_add_", to_string(op)}; }

std::optional<Shape> shape_of(const Machine& machine, const BiasNormDesc& desc, Alignment alignment) {
  const auto pack = static_cast<std::uint32_t>(16 / size_of(desc.type));
  const bool is_aligned = alignment == Alignment::kAligned, is_half = pack == 8;
  const auto share = [&](BiasNormRegime regime, std::uint32_t per_thread) {
    return share_among_blocks(machine, desc.rows, desc.columns, regime, per_thread);
  };
  if (!is_aligned) {
    if (desc.columns <= 4 * pack * kWarpThreads) return share_among_lanes(desc.rows, BiasNormRegime::kWarp);
    return share(BiasNormRegime::kCluster, 4 * pack);
  }
  // Few rows leave multiprocessors idle: more threads for each.
  if (desc.rows <= machine.sms) {
    if (auto shape = share(BiasNormRegime::kClusterShort, 8)) return shape;
  }
  // Of more than two rows for each multiprocessor, a block takes one in less time than a cluster does (H200). Not of
  // floats of layer_norm beyond 14 K columns, where in_bias, weight and bias do not stay in the L1 cache; 16-bit types
  // gain up to 32 K columns.
  constexpr std::uint32_t kMaxWarps = kMaxWideThreads / kWarpThreads;
  const std::uint64_t warps = ceil_divide<std::uint64_t>(desc.columns, kWidePacks * pack * kWarpThreads);
  const bool are_cached = is_half || desc.op == NormOp::kRmsNorm || desc.columns <= 14 * 1024;
  if (desc.rows > 2 * machine.sms && warps > kMaxWarps / 2 && warps <= kMaxWarps && are_cached) {
    return Shape{BiasNormRegime::kWideBlock, {.grid = narrow(desc.rows), .block = narrow(warps * kWarpThreads)}};
  }
  if (!is_half) {
    if (auto shape = share(BiasNormRegime::kClusterMiddle, 16)) return shape;
  }
  return share(BiasNormRegime::kCluster, 32);
}

absl::StatusOr<RowLaunch<NormParams>> launch_of(const Machine& machine, const BiasNormDesc& desc, Alignment alignment) {
  const NormProblem problem{name_of(desc.op), desc.op, desc.type, desc.rows, desc.columns, true, false};
  const bool is_many = desc.rows > machine.sms;
  if (desc.columns <= (alignment == Alignment::kAligned ? 128 : kMaxLaneColumns) && is_many) {
    return RowLaunch<NormParams>{.kernel = bias_norm_lanes_kernel(desc.op, desc.type, alignment, narrow(desc.columns)),
                                 .config = lanes_config(machine, problem, alignment)};
  }
  if (const auto held = held_shape(machine, problem, alignment)) {
    return RowLaunch<NormParams>{.kernel = bias_norm_held_kernel(desc.op, desc.type, held->regime),
                                 .config = held->config};
  }
  const std::optional<Shape> shape = shape_of(machine, desc, alignment);
  if (shape) {
    return RowLaunch<NormParams>{.kernel = bias_norm_kernel(desc.op, desc.type, shape->regime, alignment),
                                 .config = shape->config};
  }
  return refuse(name_of(desc.op),
                absl::StrCat(desc.rows, " rows of ", desc.columns, " columns do not fit the registers of a ",
                             machine.has_clusters ? "cluster" : "block",
                             "; plan_matrix adds the bias, and plan_norm takes rows of any length."));
}

}  // namespace

absl::StatusOr<BiasNormPlan> plan_bias_norm(ContextRef context, const BiasNormDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("bias_norm", "op", desc.op, NormOp::kRmsNorm));
  const OperationName name = name_of(desc.op);
  CGRT_RETURN_IF_ERROR(check_not_negative(name, "epsilon", desc.epsilon));
  CGRT_RETURN_IF_ERROR(check_matrix(name, desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(name, desc.type));
  CGRT_ASSIGN_OR_RETURN(
      const Machine machine,
      machine_of(context, bias_norm_kernel(desc.op, desc.type, BiasNormRegime::kCluster, Alignment::kAligned)));
  CGRT_ASSIGN_OR_RETURN(const RowLaunches<NormParams> launches,
                        plan_row_launches<NormParams>(machine, desc.columns * size_of(desc.type),
                                                      [&](const Machine& some, Alignment alignment) {
                                                        return launch_of(some, desc, alignment);
                                                      }));
  return BiasNormPlan{desc, launches};
}

absl::Status launch_bias_norm(LaunchTarget target, const BiasNormPlan& plan, const BiasNormArgs& args) {
  const BiasNormDesc& desc = plan.desc;
  const OperationName name = name_of(desc.op);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in_bias", args.in_bias, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "residual", args.residual, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "weight", args.weight, desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(name, "bias", args.bias, desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(name, "sum", args.sum, desc.type, Need::kOptional));
  if (args.out == args.sum) return refuse(name, "out and sum are the same array.");
  const RowLaunch<NormParams>& chosen =
      plan.launches.of(alignment_of(args.out, args.sum, args.in, args.in_bias, args.residual, args.weight, args.bias));
  // Clusters leave the L2 cache to the weights.
  const bool is_ahead = chosen.config.attributes.cluster.x == 1;
  const auto rows = static_cast<std::uint32_t>(desc.rows);
  NormParams params{};
  params.in_bias = args.in_bias;
  params.out = args.out, params.sum = args.sum;
  params.in = args.in, params.residual = args.residual;
  params.weight = args.weight, params.bias = args.bias;
  params.epsilon = desc.epsilon, params.one_of_columns = 1.0f / static_cast<float>(desc.columns);
  params.rows = rows, params.columns = static_cast<std::uint32_t>(desc.columns);
  params.rows_ahead = is_ahead ? rows_ahead(2 * desc.columns * size_of(desc.type)) : rows;
  return launch_rows(target, chosen, params);
}

}  // namespace cgrt::kernels
