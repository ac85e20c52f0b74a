#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/bias_norm/bias_norm.h"
#include "cgrt_kernels/bias_norm/kernels.h"
#include "cgrt_kernels/common/row/plan.h"

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
  // A thread that has little of a row has little code, and starts sooner. What was fastest on an H100.
  if (desc.columns <= 8 * kWarpThreads) return share_among_lanes(desc.rows, BiasNormRegime::kWarpShort);
  if (desc.columns <= 8 * kShortBlockThreads) return share(BiasNormRegime::kBlockShort, 8);
  if (desc.columns <= 8 * kMiddleBlockThreads) return share(BiasNormRegime::kBlockMiddle, 8);
  // Of longer rows a cluster is faster while they are few, in a chain at least.
  if (is_half && desc.columns <= (desc.rows > machine.sms ? 16 : 8) * kMaxThreads) {
    return share(BiasNormRegime::kBlock, 16);
  }
  // Few rows leave multiprocessors idle: more threads for each.
  if (desc.rows <= machine.sms || desc.columns <= 8 * kMaxThreads) {
    if (auto shape = share(BiasNormRegime::kClusterShort, 8)) return shape;
  }
  if (!is_half) {
    if (auto shape = share(BiasNormRegime::kClusterMiddle, 16)) return shape;
  }
  return share(BiasNormRegime::kCluster, 32);
}

absl::StatusOr<RowLaunch<BiasNormParams>> launch_of(const Machine& machine, const BiasNormDesc& desc,
                                                    Alignment alignment) {
  const std::optional<Shape> shape = shape_of(machine, desc, alignment);
  if (shape) {
    return RowLaunch<BiasNormParams>{.kernel = bias_norm_kernel(desc.op, desc.type, shape->regime, alignment),
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
  CGRT_ASSIGN_OR_RETURN(const RowLaunches<BiasNormParams> launches,
                        plan_row_launches<BiasNormParams>(machine, desc.columns * size_of(desc.type),
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
  const RowLaunch<BiasNormParams>& chosen =
      plan.launches.of(alignment_of(args.out, args.sum, args.in, args.in_bias, args.residual, args.weight, args.bias));
  // Clusters leave the L2 cache to the weights.
  const bool is_ahead = chosen.config.attributes.cluster.x == 1;
  const auto rows = static_cast<std::uint32_t>(desc.rows);
  BiasNormParams params{.norm = {}, .in_bias = args.in_bias};
  params.norm.out = args.out, params.norm.sum = args.sum;
  params.norm.in = args.in, params.norm.residual = args.residual;
  params.norm.weight = args.weight, params.norm.bias = args.bias;
  params.norm.epsilon = desc.epsilon, params.norm.one_of_columns = 1.0f / static_cast<float>(desc.columns);
  params.norm.rows = rows, params.norm.columns = static_cast<std::uint32_t>(desc.columns);
  params.norm.rows_ahead = is_ahead ? rows_ahead(2 * desc.columns * size_of(desc.type)) : rows;
  return launch_rows(target, chosen, params);
}

}  // namespace cgrt::kernels
