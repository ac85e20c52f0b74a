#include <cstdint>

#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/add_norm/add_norm.h"
#include "cgrt_kernels/rows/share.h"

namespace cgrt::kernels {
namespace {

using Shape = RowShape<AddNormRegime>;

OperationName name(const AddNormDesc& desc) { return {"add_", to_string(desc.op)}; }

Shape element_shape(const Machine& machine, const AddNormDesc& desc) {
  Shape shape;
  const auto regime = AddNormRegime::kElements8;
  if (share_among_blocks(machine, desc.rows, desc.columns, regime, 8, kMostThreads, shape)) return shape;
  return {AddNormRegime::kAny, {.grid = static_cast<std::uint32_t>(desc.rows), .block = kMostThreads}};
}

// What is shortest on an H200, where it was measured.
Shape packed_shape(const Machine& machine, const AddNormDesc& desc) {
  Shape shape;
  const auto share = [&](AddNormRegime regime, std::uint32_t per_thread, std::uint32_t most) {
    return share_among_blocks(machine, desc.rows, desc.columns, regime, per_thread, most, shape);
  };
  // Few rows leave multiprocessors idle: more threads for each, with less to do.
  if (desc.rows <= machine.sms && share(AddNormRegime::kBlock8, 8, kMostThreads)) return shape;
  if (desc.columns <= 32 * kWarp) return share_among_warps(desc.rows, AddNormRegime::kWarp32);
  const bool is_long = desc.columns > std::uint64_t{16} * kMostWideThreads;
  if (is_long && size_of(desc.type) == 2 && share(AddNormRegime::kBlock32, 32, kMostWideThreads)) return shape;
  return share(AddNormRegime::kBlock16, 16, kMostWideThreads) ? shape : element_shape(machine, desc);
}

using Launch = RowLaunch<AddNormKernel>;
using ShapeOf = Shape (*)(const Machine& machine, const AddNormDesc& desc);

absl::StatusOr<Launch> plan_launch(const Machine& machine, const AddNormDesc& desc, ShapeOf shape_of) {
  return choose_with_room(machine, [&](const Machine& some) -> absl::StatusOr<Launch> {
    const Shape shape = shape_of(some, desc);
    return Launch{add_norm_kernel(desc.op, desc.type, shape.regime), shape.config};
  });
}

}  // namespace

absl::StatusOr<AddNormPlan> plan_add_norm(ContextRef context, const AddNormDesc& desc) {
  if (desc.op != RowOp::kLayerNorm && desc.op != RowOp::kRmsNorm) {
    return refuse(name(desc), "only layer_norm and rms_norm add a residual.");
  }
  CGRT_RETURN_IF_ERROR(check_matrix(name(desc), desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(name(desc), desc.type));
  CGRT_ASSIGN_OR_RETURN(const Machine machine,
                        machine_of(context, add_norm_kernel(desc.op, desc.type, AddNormRegime::kBlock16)));
  CGRT_ASSIGN_OR_RETURN(const Launch any, plan_launch(machine, desc, element_shape));
  Launch aligned = any;
  if (desc.columns * size_of(desc.type) % 16 == 0) {
    CGRT_ASSIGN_OR_RETURN(aligned, plan_launch(machine, desc, packed_shape));
  }
  return AddNormPlan{desc, aligned.kernel, aligned.config, any.kernel, any.config};
}

absl::Status launch_add_norm(LaunchTarget target, const AddNormPlan& plan, const AddNormArgs& args) {
  const AddNormDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "sum", args.sum, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "residual", args.residual, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "weight", args.weight, desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "bias", args.bias, desc.type, Need::kOptional));
  if (args.out == args.sum) return refuse(name(desc), "out and sum are the same array.");
  const bool is_aligned = address_bits(args.out, args.sum, args.in, args.residual, args.weight, args.bias) % 16 == 0;
  const LaunchConfig& config = is_aligned ? plan.config : plan.any_config;
  const auto rows = static_cast<std::uint32_t>(desc.rows);
  // Rows of clusters leave the L2 cache to the weights.
  const std::uint32_t ahead =
      config.attributes.cluster.x > 1 ? rows : rows_ahead(2 * desc.columns * size_of(desc.type));
  return launch(target, config, is_aligned ? plan.kernel : plan.any_kernel, args.out, args.sum, args.in, args.residual,
                args.weight, args.bias, desc.epsilon, rows, static_cast<std::uint32_t>(desc.columns), ahead);
}

}  // namespace cgrt::kernels
