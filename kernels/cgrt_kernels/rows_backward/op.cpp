#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/device.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/rows_backward/rows_backward.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kMostThreads = 512;  // of a block: see __launch_bounds__ in op.cu
constexpr std::uint32_t kMostBlocks = 8;     // of a cluster, everywhere
constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;

struct Shape {
  RowBackwardRegime regime = RowBackwardRegime::kAny;
  LaunchConfig config;
};

struct Machine {
  ContextRef context;
  DeviceRef device;
  std::uint32_t sms;
  bool has_clusters;
};

std::string name(const RowsBackwardDesc& desc) { return absl::StrCat(to_string(desc.op), " backward"); }
bool is_norm(RowOp op) { return op == RowOp::kLayerNorm || op == RowOp::kRmsNorm; }
bool is_summed(const RowsBackwardDesc& desc) { return desc.weight_gradients == WeightGradients::kSummed; }

std::uint32_t ceil_divide(std::uint64_t a, std::uint64_t b) { return static_cast<std::uint32_t>((a - 1) / b + 1); }

// Blocks of at most `most` threads that share a row of which each thread keeps `per_thread` elements;
// false when that takes more than a cluster can have.
bool share_among_blocks(const Machine& machine, const RowsBackwardDesc& desc, RowBackwardRegime regime,
                        std::uint32_t per_thread, std::uint32_t most, Shape& shape) {
  const std::uint32_t threads = ceil_divide(desc.columns, per_thread);
  const std::uint32_t blocks = std::bit_ceil(ceil_divide(threads, most));
  if (blocks > (machine.has_clusters ? kMostBlocks : 1) || desc.rows * blocks > kMost) return false;
  shape.regime = regime;
  shape.config = {.grid = static_cast<std::uint32_t>(desc.rows) * blocks,
                  .block = ceil_divide(ceil_divide(threads, blocks), kWarp) * kWarp};
  shape.config.attributes.cluster = blocks;
  return true;
}

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

Shape element_shape(const Machine& machine, const RowsBackwardDesc& desc) {
  const auto regime = is_summed(desc) ? RowBackwardRegime::kSummedElements8 : RowBackwardRegime::kElements8;
  Shape shape;
  return share_among_blocks(machine, desc, regime, 8, kMostThreads, shape) ? shape : any_shape(machine, desc);
}

// What is expected to be shortest on an H200.
Shape packed_shape(const Machine& machine, const RowsBackwardDesc& desc) {
  Shape shape;
  const auto share = [&](RowBackwardRegime regime, std::uint32_t per_thread, std::uint32_t most = kMostThreads) {
    return share_among_blocks(machine, desc, regime, per_thread, most, shape);
  };
  if (is_summed(desc)) {
    // Shares of 8 leave registers for more blocks; of 16 they have less to exchange for each row, and halves
    // come so fast that it counts.
    const bool is_short = desc.columns <= (size_of(desc.type) == 2 ? kMostShort / 2 : kMostShort);
    if (is_short && share(RowBackwardRegime::kSummed8, 8)) return shape;
    return share(RowBackwardRegime::kSummed16, 16) ? shape : any_shape(machine, desc);
  }
  if (desc.columns <= 32 * kWarp) {
    constexpr std::uint32_t kWarps = 4;  // of a block
    shape.regime = desc.columns <= 8 * kWarp ? RowBackwardRegime::kWarp8 : RowBackwardRegime::kWarp32;
    shape.config.block = kWarps * kWarp;
    shape.config.grid = ceil_divide(desc.rows, kWarps);
    return shape;
  }
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
  if (shape.regime != RowBackwardRegime::kSummedElements8) {
    const std::uint32_t per_thread = shape.regime == RowBackwardRegime::kSummed8 ? 8 : 16;
    config.shared_bytes =
        kSummedStages * 2 * config.block.x * per_thread * static_cast<std::uint32_t>(size_of(desc.type));
    CGRT_RETURN_IF_ERROR(set_max_shared_bytes(launch.kernel, machine.device, config.shared_bytes));
  }
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

absl::Status check_pointer(const RowsBackwardDesc& desc, const char* argument, const void* pointer, bool may_be_null) {
  if (pointer == nullptr && !may_be_null) {
    return absl::InvalidArgumentError(absl::StrCat(name(desc), ": ", argument, " is null."));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % size_of(desc.type) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(name(desc), ": ", argument, " (0x", absl::Hex(address),
                                                   ") is not aligned to ", size_of(desc.type), " bytes, the size of ",
                                                   to_string(desc.type), "."));
  }
  return absl::OkStatus();
}

absl::Status check_workspace(const RowsBackwardPlan& plan, const void* workspace) {
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  if (workspace != nullptr && address % 256 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name(plan.desc), ": workspace (0x", absl::Hex(address), ") must be ",
                                                 plan.workspace_bytes, " bytes aligned to 256."));
}

}  // namespace

absl::StatusOr<RowsBackwardPlan> plan_rows_backward(ContextRef context, const RowsBackwardDesc& desc) {
  if (desc.rows == 0 || desc.columns == 0 || desc.rows > kMost || desc.columns > kMost) {
    return absl::InvalidArgumentError(absl::StrCat(name(desc), ": ", desc.rows, " rows of ", desc.columns,
                                                   " columns; each must be from 1 to ", kMost, "."));
  }
  if (desc.type != DType::kFloat32 && desc.type != DType::kFloat16 && desc.type != DType::kBFloat16) {
    return absl::InvalidArgumentError(absl::StrCat(name(desc), ": there is no kernel for ", to_string(desc.type),
                                                   ", only for float32, float16 and bfloat16."));
  }
  if (is_summed(desc) && !is_norm(desc.op)) {
    return absl::InvalidArgumentError(absl::StrCat(name(desc), ": there are no weights to sum gradients of."));
  }
  CGRT_ASSIGN_OR_RETURN(DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CGRT_ASSIGN_OR_RETURN(const int has_clusters, device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH));
  const Machine machine{context, device, static_cast<std::uint32_t>(sms), has_clusters != 0};
  CGRT_ASSIGN_OR_RETURN(const RowsBackwardPlan::Launch any, make_launch(machine, desc, element_shape(machine, desc)));
  RowsBackwardPlan plan{desc, any, any, sum_partials_kernel(desc.type), 0};
  if (desc.columns * size_of(desc.type) % 16 == 0) {
    CGRT_ASSIGN_OR_RETURN(plan.aligned, make_launch(machine, desc, packed_shape(machine, desc)));
  }
  const std::size_t planes = desc.op == RowOp::kLayerNorm ? 2 : 1;
  plan.workspace_bytes = planes * std::max(plan.aligned.groups, any.groups) * desc.columns * sizeof(float);
  return plan;
}

absl::Status launch_rows_backward(LaunchTarget target, const RowsBackwardPlan& plan, const RowsBackwardArgs& args) {
  const RowsBackwardDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "dx", args.dx, false));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "dy", args.dy, false));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "saved", args.saved, false));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "weight", args.weight, true));
  if (is_summed(desc)) {
    CGRT_RETURN_IF_ERROR(check_pointer(desc, "dweight", args.dweight, false));
    CGRT_RETURN_IF_ERROR(check_pointer(desc, "dbias", args.dbias, true));
    CGRT_RETURN_IF_ERROR(check_workspace(plan, args.workspace));
  }
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  const bool is_aligned = (bits(args.dx) | bits(args.dy) | bits(args.saved) | bits(args.weight)) % 16 == 0;
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
