#include <algorithm>
#include <cstdint>

#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/rows/share.h"
#include "cgrt_kernels/rows_backward/rows_backward.h"

namespace cgrt::kernels {
namespace {

using Shape = RowShape<RowBackwardRegime>;

OperationName name(const RowsBackwardDesc& desc) { return {to_string(desc.op), " backward"}; }
bool is_norm(RowOp op) { return op == RowOp::kLayerNorm || op == RowOp::kRmsNorm; }
bool is_summed(const RowsBackwardDesc& desc) { return desc.weight_gradients == WeightGradients::kSummed; }

Shape any_shape(const Machine& machine, const RowsBackwardDesc& desc) {
  constexpr std::uint64_t kMostPartials = std::uint64_t{1} << 25;  // floats of the workspace, at most a row more
  std::uint64_t blocks = desc.rows;
  if (is_summed(desc)) {
    blocks =
        std::min(blocks, std::clamp<std::uint64_t>(kMostPartials / desc.columns, 1, std::uint64_t{2} * machine.sms));
  }
  return {RowBackwardRegime::kAny,
          {.grid = static_cast<std::uint32_t>(blocks),
           .block = std::min(kMostThreads, ceil_divide(desc.columns, kWarp) * kWarp)}};
}

// Bytes of shared memory of a thread whose share of a row is `elements`.
std::uint32_t summed_bytes(const RowsBackwardDesc& desc, std::uint32_t elements) {
  return kSummedStages * 2 * elements * static_cast<std::uint32_t>(size_of(desc.type));
}

Shape summed_shape(const Machine& machine, const RowsBackwardDesc& desc, RowBackwardRegime regime) {
  const std::uint32_t fitting = (machine.shared_per_block - kOtherShared) / summed_bytes(desc, 16);
  const std::uint32_t most = std::min(kMostThreads, fitting / kWarp * kWarp);
  Shape shape;
  const bool fits = share_among_blocks(machine, desc.rows, desc.columns, regime, 16, most, shape);
  return fits ? shape : any_shape(machine, desc);
}

Shape element_shape(const Machine& machine, const RowsBackwardDesc& desc) {
  if (is_summed(desc)) return summed_shape(machine, desc, RowBackwardRegime::kSummedElements16);
  if (desc.columns <= 16 * 4) return share_among_warps(desc.rows, RowBackwardRegime::kElementLanes4, 4);
  if (desc.columns <= 16 * kWarp) return share_among_warps(desc.rows, RowBackwardRegime::kElementWarp16);
  Shape shape;
  const bool fits =
      share_among_blocks(machine, desc.rows, desc.columns, RowBackwardRegime::kElements16, 16, kMostThreads, shape);
  return fits ? shape : any_shape(machine, desc);
}

// What is shortest on an H200, where it was measured.
Shape packed_shape(const Machine& machine, const RowsBackwardDesc& desc) {
  Shape shape;
  const auto share = [&](RowBackwardRegime regime, std::uint32_t per_thread, std::uint32_t most = kMostThreads) {
    return share_among_blocks(machine, desc.rows, desc.columns, regime, per_thread, most, shape);
  };
  if (is_summed(desc)) {
    // Shares of 8 leave registers for more blocks; of 16 they have less to exchange for each row.
    if (desc.columns <= kMostShort && share(RowBackwardRegime::kSummed8, 8)) return shape;
    return summed_shape(machine, desc, RowBackwardRegime::kSummed16);
  }
  if (desc.columns <= 16 * 4) return share_among_warps(desc.rows, RowBackwardRegime::kLanes4, 4);
  if (desc.columns <= 16 * 16) return share_among_warps(desc.rows, RowBackwardRegime::kLanes16, 16);
  if (desc.columns <= 32 * kWarp) return share_among_warps(desc.rows, RowBackwardRegime::kWarp32);
  // Few rows leave multiprocessors idle: more threads for each, with less to do.
  if (desc.rows <= machine.sms && share(RowBackwardRegime::kBlock8, 8)) return shape;
  const bool is_half = size_of(desc.type) == 2;
  const bool is_layer_norm = desc.op == RowOp::kLayerNorm;
  if (!is_half && !is_layer_norm && share(RowBackwardRegime::kBlock16, 16)) return shape;
  if (desc.columns <= 4096 && is_norm(desc.op) && share(RowBackwardRegime::kBlock16, 16)) return shape;
  if (is_half && !is_layer_norm && share(RowBackwardRegime::kBlock32, 32)) return shape;
  // Threads that have more than 64 registers: small blocks waste less of a multiprocessor.
  if (share(RowBackwardRegime::kBlock32, 32, kMostThreads / 2)) return shape;
  return share(RowBackwardRegime::kBlock32, 32) ? shape : any_shape(machine, desc);
}

// Kernel and grid of a shape; where blocks stay, as many as run at once.
absl::StatusOr<RowsBackwardPlan::Launch> make_launch(const Machine& machine, const RowsBackwardDesc& desc,
                                                     Shape shape) {
  RowsBackwardPlan::Launch launch{rows_backward_kernel(desc.op, desc.type, shape.regime), shape.config, 0};
  if (!is_summed(desc)) return launch;
  LaunchConfig& config = launch.config;
  launch.groups = config.grid.x;
  if (shape.regime == RowBackwardRegime::kAny) return launch;
  constexpr std::uint32_t kAround = kSummedStages * 2 * 16;  // single elements
  config.shared_bytes =
      config.block.x * summed_bytes(desc, shape.regime == RowBackwardRegime::kSummed8 ? 8 : 16) + kAround;
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(launch.kernel, machine, config.shared_bytes));
  const std::uint32_t blocks = config.attributes.cluster.x;
  std::uint32_t at_once = 0;
  if (blocks > 1) {
    CGRT_ASSIGN_OR_RETURN(const int clusters, max_active_clusters(launch.kernel, machine.context, blocks, config.block,
                                                                  config.shared_bytes));
    at_once = static_cast<std::uint32_t>(clusters);
  } else {
    CGRT_ASSIGN_OR_RETURN(const Occupancy of_sm,
                          occupancy(launch.kernel, machine.context, config.block, config.shared_bytes));
    at_once = static_cast<std::uint32_t>(of_sm.blocks_per_sm) * machine.sms;
  }
  launch.groups = std::min(std::max(at_once, 1u), static_cast<std::uint32_t>(desc.rows));
  config.grid = launch.groups * blocks;
  return launch;
}

using ShapeOf = Shape (*)(const Machine& machine, const RowsBackwardDesc& desc);

absl::StatusOr<RowsBackwardPlan::Launch> plan_launch(const Machine& machine, const RowsBackwardDesc& desc,
                                                     ShapeOf shape_of) {
  return choose_with_room(machine, [&](const Machine& some) { return make_launch(some, desc, shape_of(some, desc)); });
}

}  // namespace

absl::StatusOr<RowsBackwardPlan> plan_rows_backward(ContextRef context, const RowsBackwardDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_matrix(name(desc), desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(name(desc), desc.type));
  if (is_summed(desc) && !is_norm(desc.op)) {
    return refuse(name(desc), "there are no weights to sum gradients of.");
  }
  CGRT_ASSIGN_OR_RETURN(const Machine machine,
                        machine_of(context, rows_backward_kernel(desc.op, desc.type, RowBackwardRegime::kBlock32)));
  CGRT_ASSIGN_OR_RETURN(const RowsBackwardPlan::Launch any, plan_launch(machine, desc, element_shape));
  RowsBackwardPlan plan{desc, any, any, sum_partials_kernel(desc.type), 0};
  if (desc.columns * size_of(desc.type) % 16 == 0) {
    CGRT_ASSIGN_OR_RETURN(plan.aligned, plan_launch(machine, desc, packed_shape));
  }
  const std::size_t planes = desc.op == RowOp::kLayerNorm ? 2 : 1;
  plan.workspace_bytes = planes * std::max(plan.aligned.groups, any.groups) * desc.columns * sizeof(float);
  return plan;
}

std::uint64_t RowsBackwardPlan::topology_id(std::size_t alignment) const {
  std::vector<LaunchAttributes> kernels = {(alignment % 16 == 0 ? aligned : any).config.attributes};
  if (is_summed(desc)) kernels.emplace_back();
  return topology_of_kernels(kernels);
}

absl::Status launch_rows_backward(LaunchTarget target, const RowsBackwardPlan& plan, const RowsBackwardArgs& args) {
  const RowsBackwardDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "dx", args.dx, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "dy", args.dy, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "saved", args.saved, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "weight", args.weight, desc.type, Need::kOptional));
  if (is_summed(desc)) {
    CGRT_RETURN_IF_ERROR(check_array(name(desc), "dweight", args.dweight, desc.type));
    CGRT_RETURN_IF_ERROR(check_array(name(desc), "dbias", args.dbias, desc.type, Need::kOptional));
    CGRT_RETURN_IF_ERROR(check_workspace(name(desc), args.workspace, plan.workspace_bytes));
  }
  const bool is_aligned = address_bits(args.dx, args.dy, args.saved, args.weight) % 16 == 0;
  const RowsBackwardPlan::Launch& chosen = is_aligned ? plan.aligned : plan.any;
  const auto columns = static_cast<std::uint32_t>(desc.columns);
  auto* const partials = is_summed(desc) ? static_cast<float*>(args.workspace) : nullptr;
  CGRT_RETURN_IF_ERROR(launch(target, chosen.config, chosen.kernel, args.dx, args.dy, args.saved, args.weight, partials,
                              chosen.groups, desc.epsilon, static_cast<std::uint32_t>(desc.rows), columns));
  if (!is_summed(desc)) return absl::OkStatus();
  const bool has_bias = desc.op == RowOp::kLayerNorm && args.dbias != nullptr;
  const LaunchConfig sum{.grid = {ceil_divide(columns, kSumColumns), has_bias ? 2u : 1u},
                         .block = {kSumColumns, kSumLanes}};
  return launch(target, sum, plan.sum_kernel, args.dweight, args.dbias, partials, chosen.groups, columns);
}

}  // namespace cgrt::kernels
