#include <algorithm>
#include <bit>
#include <cstdint>

#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/rows/rows.h"
#include "cgrt_kernels/rows/share.h"

namespace cgrt::kernels {
namespace {

using Shape = RowShape<RowRegime>;

bool is_norm(RowOp op) { return op == RowOp::kLayerNorm || op == RowOp::kRmsNorm; }

Shape any_shape(const RowsDesc& desc) {
  const auto rows = static_cast<std::uint32_t>(desc.rows);
  return {RowRegime::kAny, {.grid = rows, .block = std::min(kMostThreads, ceil_divide(desc.columns, kWarp) * kWarp)}};
}

Shape warp_shape(const RowsDesc& desc) {
  if (desc.columns <= 16 * 4) return share_among_warps(desc.rows, RowRegime::kLanes4, 4);
  if (desc.columns <= 16 * 16) return share_among_warps(desc.rows, RowRegime::kLanes16, 16);
  return share_among_warps(desc.rows, desc.columns <= 16 * kWarp ? RowRegime::kWarp16 : RowRegime::kWarp32);
}

// The fewest blocks of a cluster that can stream such rows.
std::uint32_t least_stream_blocks(const RowsDesc& desc) {
  constexpr std::uint32_t kMostShare = kStreamWarps * kWarp * kStreamPacks * 16;  // bytes of a block
  return std::bit_ceil(ceil_divide(desc.columns * size_of(desc.type), kMostShare));
}

// How many do, and how many rows each block has on its way: smaller blocks wait less for each other, until what they
// exchange costs more, and rows that are fetched too early push each other out of the L2 cache.
struct StreamDepth {
  std::uint32_t blocks, stages;
};
StreamDepth stream_depth(const RowsDesc& desc) {
  const std::uint32_t least = least_stream_blocks(desc);
  const bool is_half = size_of(desc.type) == 2, is_rms = desc.op == RowOp::kRmsNorm;
  const std::uint32_t stages = is_half == is_rms ? kMostStages : 2;
  if (least == 1 || (!is_half && !is_rms)) return {least == 1 ? 1 : std::max(least, 4u), stages};
  const std::uint64_t share = std::uint64_t{is_half ? 32u : 16u} * 1024;  // bytes of a block
  const auto blocks = static_cast<std::uint32_t>(std::bit_floor(desc.columns * size_of(desc.type) / share));
  return {std::clamp(blocks, least, kMostBlocks), stages};
}

// Blocks that stay, each with its share of a row and of the rows after it in shared memory.
absl::StatusOr<Shape> stream_shape(const Machine& machine, const RowsDesc& desc) {
  const std::uint32_t landing = machine.shared_per_block - kOtherShared;
  const auto [blocks, stages] = stream_depth(desc);
  const std::uint32_t packs = ceil_divide(desc.columns * size_of(desc.type) / 16, blocks), share = packs * 16;
  Shape shape;
  shape.regime = RowRegime::kStream;
  LaunchConfig& config = shape.config;
  config.block = ceil_divide(ceil_divide(packs, kStreamPacks), kWarp) * kWarp;
  config.attributes.cluster = blocks;
  config.shared_bytes = std::min(landing / share, stages) * share;
  const RowsKernel kernel = rows_kernel(desc.op, desc.type, shape.regime);
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(kernel, machine, config.shared_bytes));
  std::uint32_t at_once = machine.sms;
  if (blocks > 1) {
    CGRT_ASSIGN_OR_RETURN(const int clusters, max_active_clusters(kernel, machine.context, config.attributes.cluster,
                                                                  config.block, config.shared_bytes));
    at_once = static_cast<std::uint32_t>(clusters);
  }
  config.grid = std::min(std::max(at_once, 1u), static_cast<std::uint32_t>(desc.rows)) * blocks;
  return shape;
}

// Whether streaming is shorter than a block, or a cluster, for each row: when clusters would be large, and for
// norms, which then keep their weights.
bool gains_from_streams(const Machine& machine, const RowsDesc& desc) {
  const std::uint32_t blocks = least_stream_blocks(desc);
  if (!machine.has_clusters || blocks > kMostBlocks || desc.rows * blocks <= machine.sms) return false;
  const bool fills_a_block = desc.columns * size_of(desc.type) == 64 * 1024;
  return blocks == kMostBlocks || (blocks > 1 && is_norm(desc.op)) ||
         (fills_a_block && desc.op == RowOp::kLayerNorm && desc.type == DType::kFloat32);
}

// What is shortest on an H200, where it was measured.
absl::StatusOr<Shape> packed_shape(const Machine& machine, const RowsDesc& desc) {
  if (desc.columns <= 32 * kWarp) return warp_shape(desc);
  const bool is_half = size_of(desc.type) == 2, is_long = desc.columns * size_of(desc.type) >= 64 * 1024;
  const auto share = [&](RowRegime regime, std::uint32_t per_thread, Shape& shape, std::uint32_t most = kMostThreads) {
    return share_among_blocks(machine, desc.rows, desc.columns, regime, per_thread, most, shape);
  };
  Shape shape;
  // Few rows leave multiprocessors idle: more threads for each, with less to do.
  if (desc.rows <= machine.sms && share(RowRegime::kBlock8, 8, shape)) return shape;
  if (gains_from_streams(machine, desc)) return stream_shape(machine, desc);
  if (!is_half && desc.op == RowOp::kLayerNorm && !is_long && share(RowRegime::kBlock16, 16, shape)) return shape;
  if (is_half && is_long) {
    const std::uint32_t most = desc.columns < 128 * kMostThreads ? kMostThreads : kMostThreads / 2;
    if (share(RowRegime::kBlock64, 64, shape, most)) return shape;
  }
  if (share(RowRegime::kBlock32, 32, shape) || (is_half && share(RowRegime::kBlock64, 64, shape))) return shape;
  return any_shape(desc);
}

absl::StatusOr<Shape> element_shape(const Machine& machine, const RowsDesc& desc) {
  if (desc.columns <= 16 * 4) return share_among_warps(desc.rows, RowRegime::kElementLanes4, 4);
  if (desc.columns <= 16 * kWarp) return share_among_warps(desc.rows, RowRegime::kElementWarp16);
  Shape shape;
  const bool fits =
      share_among_blocks(machine, desc.rows, desc.columns, RowRegime::kElements16, 16, kMostThreads, shape);
  return fits ? shape : any_shape(desc);
}

using ShapeOf = absl::StatusOr<Shape> (*)(const Machine& machine, const RowsDesc& desc);

absl::StatusOr<RowLaunch<RowsKernel>> plan_launch(const Machine& machine, const RowsDesc& desc, ShapeOf shape_of) {
  return choose_with_room(machine, [&](const Machine& some) -> absl::StatusOr<RowLaunch<RowsKernel>> {
    CGRT_ASSIGN_OR_RETURN(const Shape shape, shape_of(some, desc));
    return RowLaunch<RowsKernel>{rows_kernel(desc.op, desc.type, shape.regime), shape.config};
  });
}

}  // namespace

absl::StatusOr<RowsPlan> plan_rows(ContextRef context, const RowsDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_matrix(to_string(desc.op), desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(to_string(desc.op), desc.type));
  CGRT_ASSIGN_OR_RETURN(const Machine machine,
                        machine_of(context, rows_kernel(desc.op, desc.type, RowRegime::kBlock32)));
  CGRT_ASSIGN_OR_RETURN(const RowLaunch<RowsKernel> any, plan_launch(machine, desc, element_shape));
  RowLaunch<RowsKernel> aligned = any;
  if (desc.columns * size_of(desc.type) % 16 == 0) {
    CGRT_ASSIGN_OR_RETURN(aligned, plan_launch(machine, desc, packed_shape));
  }
  return RowsPlan{desc, aligned.kernel, aligned.config, any.kernel, any.config};
}

absl::Status launch_rows(LaunchTarget target, const RowsPlan& plan, const RowsArgs& args) {
  const char* const name = to_string(plan.desc.op);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, plan.desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, plan.desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "weight", args.weight, plan.desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(name, "bias", args.bias, plan.desc.type, Need::kOptional));
  const bool is_aligned = address_bits(args.out, args.in, args.weight, args.bias) % 16 == 0;
  return launch(target, is_aligned ? plan.config : plan.any_config, is_aligned ? plan.kernel : plan.any_kernel,
                args.out, args.in, args.weight, args.bias, plan.desc.epsilon,
                static_cast<std::uint32_t>(plan.desc.rows), static_cast<std::uint32_t>(plan.desc.columns),
                rows_ahead(plan.desc.columns * size_of(plan.desc.type)));
}

}  // namespace cgrt::kernels
