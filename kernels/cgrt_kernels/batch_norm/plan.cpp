#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/batch_norm/batch_norm.h"
#include "cgrt_kernels/common/plan.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kMaxBlocks = 8;  // of a cluster, everywhere
constexpr std::size_t kSlotBytes = 16;   // and a channel's coefficients

// Packs of a tile's row (shorter ones need more slots, longer ones more threads), the rows that a thread
// should have at least, and the most turns of the whole device.
constexpr std::uint32_t kTileOfPlanes = 256, kTileOfChannels = 32, kMinRows = 16, kMaxTurns = 4;
// Rows of a thread of kApply, in packs (the few: where they are faster on an H200) and in elements.
constexpr std::uint32_t kMaxPacks = 8, kFewPacks = 4, kMaxElements = 32;
// Bytes of a row that a resident tile should have at least: memory is read in sectors of 32 and fetched
// by twos.
constexpr std::uint32_t kMinRowBytes = 64;
// What memory is read in; the bytes of a tensor that the cache has anyway, and of one that takes no longer than its
// latencies.
constexpr std::uint64_t kSectorBytes = 32, kMaxSmallBytes = 2 << 20, kMaxTinyBytes = 512 << 10;
constexpr std::uint32_t kMinHeld = 4;  // elements that a thread holds, at least
// Static and reserved shared memory of a resident block.
constexpr std::uint32_t kOtherShared = 3 * 1024;

std::uint32_t lanes_of(const BatchNormPlan& plan) {
  return plan.access == BatchNormAccess::kPacked ? static_cast<std::uint32_t>(16 / size_of(plan.desc.type)) : 1;
}

// The channels whose rows together are whole packs, and long enough; 0: there are none.
std::uint32_t resident_channels(const BatchNormPlan& plan) {
  const std::uint64_t channels = plan.desc.channels, plane = plan.task.plane, lanes = lanes_of(plan);
  std::uint64_t some = 1;
  while (some * plane % lanes != 0) some *= 2;
  if (channels % some != 0) return 0;
  while (some * plane / lanes * 16 < kMinRowBytes && channels % (2 * some) == 0) some *= 2;
  return some <= kBatchNormMaxChannels && some * plane <= kMaxCount ? static_cast<std::uint32_t>(some) : 0;
}

// The smallest cluster whose blocks hold the tile, two of them on a multiprocessor if possible: one loads while the
// other stores. Three, and thus smaller ones, are slower on an H200.
bool share_tile(const Machine& machine, BatchNormPlan& plan) {
  BatchNormTask& task = plan.task;
  const std::uint32_t channels = resident_channels(plan), lanes = lanes_of(plan);
  if (channels == 0) return false;
  task.tile_packs = channels * task.plane / lanes;
  task.tiles = task.columns / (channels * task.plane);
  const std::uint32_t arrays = plan.desc.op == BatchNormOp::kBackward ? 2 : 1;
  // A thread keeps to its columns, unless all of them are of one channel.
  const bool is_wide = channels > 1 && task.tile_packs > kBatchNormThreads;
  const std::uint32_t threads = is_wide ? kBatchNormMaxThreads : kBatchNormThreads;
  if (channels > 1 && task.tile_packs > threads) return false;
  const auto try_blocks = [&](std::uint32_t blocks, std::uint32_t max_bytes) {
    const std::uint32_t rows = ceil_divide(task.rows, blocks);
    if (std::uint64_t{rows} * task.tile_packs * 16 * arrays > max_bytes) return false;
    const ResidentLayout layout = resident_layout(rows, task.tile_packs, task.plane, lanes, threads, arrays);
    if (layout.bytes > max_bytes || std::uint64_t{task.tiles} * blocks > kMaxCount) return false;
    task.split_rows = rows, task.splits = blocks;
    LaunchConfig config{.grid = task.tiles * blocks, .block = threads, .shared_bytes = layout.bytes};
    config.attributes.cluster = blocks;
    plan.steps.clear();
    plan.steps.push_back(
        {batch_norm_kernel(plan.desc.op, plan.desc.type, BatchNormStep::kResident, plan.access), config});
    return true;
  };
  for (const std::uint32_t per_sm : {2u, 1u}) {
    const std::uint32_t max_bytes = std::min(machine.shared_per_sm / per_sm, machine.shared_per_block) - kOtherShared;
    const std::uint32_t max_blocks = machine.has_clusters ? kMaxBlocks : 1;
    for (std::uint32_t blocks = 1; blocks <= max_blocks; blocks *= 2) {
      if (!try_blocks(blocks, max_bytes)) continue;
      // Few channels leave multiprocessors idle.
      while (blocks < max_blocks && task.tiles * blocks < machine.sms && task.split_rows > 8 &&
             plan.steps[0].config.shared_bytes > 8 * 1024) {
        blocks *= 2;
        try_blocks(blocks, max_bytes);
      }
      return true;
    }
  }
  return false;
}

absl::StatusOr<bool> plan_resident(const Machine& machine, BatchNormPlan& plan) {
  if (plan.access != BatchNormAccess::kPacked) return false;
  // Short rows of halves keep too many threads busy with too little: slower than reading twice on an H200.
  if (plan.task.plane == 1 && lanes_of(plan) == 8) return false;
  for (const Machine& some : {machine, without_clusters(machine)}) {
    if (!share_tile(some, plan)) break;
    const auto& [kernel, config] = plan.steps[0];
    CGRT_RETURN_IF_ERROR(allow_shared_bytes(kernel, some, config.shared_bytes));
    CGRT_ASSIGN_OR_RETURN(const bool has_room, has_room_for_cluster(some, kernel, config));
    if (has_room) return true;
    plan.steps.clear();
  }
  return false;
}

// Tiles of columns.
void plan_tiles(BatchNormPlan& plan) {
  BatchNormTask& task = plan.task;
  const std::uint32_t packs = task.columns / lanes_of(plan);
  task.tiles = ceil_divide(packs, task.plane != 1 ? kTileOfPlanes : kTileOfChannels);
  task.tile_packs = ceil_divide(packs, task.tiles);
}

// The blocks that apply: many, whose threads have no more rows than let all multiprocessors take part.
absl::StatusOr<BatchNormPlan::Step> apply_step(const Machine& machine, BatchNormPlan& plan) {
  BatchNormTask& task = plan.task;
  const BatchNormKernel kernel = batch_norm_kernel(plan.desc.op, plan.desc.type, BatchNormStep::kApply, plan.access);
  CGRT_ASSIGN_OR_RETURN(const Occupancy fill, occupancy(kernel, machine.context, kBatchNormThreads, 0));
  const std::uint32_t height = std::min(kBatchNormThreads / task.tile_packs, task.rows);
  const std::uint64_t turn = std::uint64_t{machine.sms} * static_cast<std::uint64_t>(fill.blocks_per_sm);
  const bool has_few = plan.desc.op == BatchNormOp::kInfer && (task.plane != 1 || lanes_of(plan) == 4);
  const std::uint32_t limit = plan.access == BatchNormAccess::kElement ? kMaxElements : has_few ? kFewPacks : kMaxPacks;
  const std::uint64_t each =
      std::clamp<std::uint64_t>(std::uint64_t{task.rows} * task.tiles / (height * turn), 1, limit);
  const std::uint64_t splits = std::min(ceil_divide<std::uint64_t>(task.rows, height * each), kMaxCount / task.tiles);
  task.split_rows = ceil_divide(task.rows, splits);
  task.tiles_divisor = Divisor(task.tiles);
  return BatchNormPlan::Step{
      kernel, {.grid = task.tiles * ceil_divide(task.rows, task.split_rows), .block = Dim3(task.tile_packs, height)}};
}

// Parts of the rows of each tile: so many that the last turn of the blocks is nearly as full as the others.
absl::Status plan_splits(const Machine& machine, std::uint32_t shared_bytes, BatchNormPlan& plan) {
  BatchNormTask& task = plan.task;
  const BatchNormKernel kernel =
      batch_norm_kernel(plan.desc.op, plan.desc.type, BatchNormStep::kStatistics, plan.access);
  const std::uint32_t height = kBatchNormThreads / task.tile_packs;
  CGRT_ASSIGN_OR_RETURN(const Occupancy fill, occupancy(kernel, machine.context, kBatchNormThreads, shared_bytes));
  const std::uint64_t turn = std::uint64_t{machine.sms} * static_cast<std::uint64_t>(fill.blocks_per_sm);
  const std::uint64_t limit = std::min(std::max(kMaxTurns * turn / task.tiles, std::uint64_t{1}),
                                       std::max(std::uint64_t{task.rows} / (height * kMinRows), std::uint64_t{1}));
  task.splits = 1;
  double best_share = 0;
  for (std::uint64_t splits = 1; splits <= limit; ++splits) {
    const std::uint64_t blocks = splits * task.tiles;
    const double share = static_cast<double>(blocks) / static_cast<double>((blocks + turn - 1) / turn * turn);
    if (share > best_share + 0.01) task.splits = static_cast<std::uint32_t>(splits), best_share = share;
  }
  if (std::uint64_t{task.tiles} * task.splits > kMaxCount) {
    return refuse(to_string(plan.desc.op), absl::StrCat(task.columns, " columns are too many for one grid."));
  }
  // A channel may begin within a tile and end within another.
  const std::uint32_t tile_columns = task.tile_packs * lanes_of(plan);
  task.slots = (ceil_divide(task.plane - 1, tile_columns) + 1) * task.splits;
  return absl::OkStatus();
}

absl::Status plan_streamed(const Machine& machine, BatchNormPlan& plan) {
  BatchNormTask& task = plan.task;
  plan_tiles(plan);
  CGRT_ASSIGN_OR_RETURN(const BatchNormPlan::Step apply, apply_step(machine, plan));
  if (plan.desc.op != BatchNormOp::kInfer) {
    const auto kernel = [&](BatchNormStep step) {
      return batch_norm_kernel(plan.desc.op, plan.desc.type, step, plan.access);
    };
    const std::uint32_t shared_bytes = bytes_of_partials(task.plane, lanes_of(plan), kBatchNormThreads);
    CGRT_RETURN_IF_ERROR(plan_splits(machine, shared_bytes, plan));
    plan.steps.push_back(
        {kernel(BatchNormStep::kStatistics),
         {.grid = task.tiles * task.splits, .block = kBatchNormThreads, .shared_bytes = shared_bytes}});
    const std::uint32_t finishing = std::clamp(std::bit_ceil(task.slots / 4), 32u, kBatchNormThreads);
    plan.steps.push_back(
        {kernel(BatchNormStep::kFinish), {.grid = static_cast<std::uint32_t>(plan.desc.channels), .block = finishing}});
    plan.coefficients_begin = plan.desc.channels * task.slots * kSlotBytes;
    plan.workspace_bytes = workspace_with(plan.coefficients_begin + plan.desc.channels * kSlotBytes);
  }
  plan.steps.push_back(apply);
  return absl::OkStatus();
}

// Channels that a block can hold in registers: where no other kernel reads them once, or the tensor is so small that it
// is about latency.
bool plan_held(const Machine& machine, BatchNormPlan& plan) {
  BatchNormTask& task = plan.task;
  const std::uint64_t size = size_of(plan.desc.type), count = std::uint64_t{task.rows} * task.plane;
  const std::uint32_t max_threads = held_threads(plan.desc.op);
  const std::uint64_t limit = std::uint64_t{kBatchNormHeld} * max_threads;
  if (count > limit || std::uint64_t{task.rows} * task.columns > UINT32_MAX) return false;
  std::uint32_t lanes = 1;
  if (task.plane * size < kSectorBytes) {  // most of what a block of one channel reads would be of others
    if (count * plan.desc.channels * size > kMaxSmallBytes) return false;
    lanes = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::bit_ceil(plan.desc.channels), 32));
    while (count * lanes > limit) lanes /= 2;
  }
  const std::uint32_t blocks = ceil_divide(plan.desc.channels, lanes);
  // As few elements of a thread as let all blocks run at once.
  std::uint32_t threads = max_threads;
  for (std::uint32_t each = kMinHeld; each <= kBatchNormHeld; each *= 2) {
    threads = ceil_divide(ceil_divide<std::uint64_t>(count, each) * lanes, 32) * 32;
    const std::uint32_t of_sm = max_threads / std::min(threads, max_threads);  // blocks
    if (blocks <= of_sm * machine.sms) break;
  }
  threads = std::clamp(threads, 64u, max_threads);
  task.tile_packs = lanes, task.tiles = static_cast<std::uint32_t>(plan.desc.channels);
  task.step_rows = threads / lanes / task.plane, task.step_columns = threads / lanes % task.plane;
  plan.steps.push_back({batch_norm_kernel(plan.desc.op, plan.desc.type, BatchNormStep::kHeld, plan.access),
                        {.grid = blocks, .block = threads}});
  return true;
}

std::size_t element_alignment(const BatchNormPlan& plan) {
  return plan.access == BatchNormAccess::kPacked ? 16 : size_of(plan.desc.type);
}

absl::Status check_plan(const BatchNormPlan& plan, BatchNormOp op) {
  if (plan.desc.op == op) return absl::OkStatus();
  return refuse(to_string(op), absl::StrCat("the plan is for ", to_string(plan.desc.op), "."));
}

// What training and inference have in common.
template <class Args>
absl::Status check_forward(const BatchNormPlan& plan, BatchNormOp op, const Args& args) {
  CGRT_RETURN_IF_ERROR(check_plan(plan, op));
  CGRT_RETURN_IF_ERROR(check_pointer(to_string(op), "y", args.y, element_alignment(plan)));
  CGRT_RETURN_IF_ERROR(check_pointer(to_string(op), "x", args.x, element_alignment(plan)));
  CGRT_RETURN_IF_ERROR(check_array(to_string(op), "weight", args.weight, DType::kFloat32, Need::kOptional));
  return check_array(to_string(op), "bias", args.bias, DType::kFloat32, Need::kOptional);
}

absl::Status launch_steps(LaunchTarget target, const BatchNormPlan& plan, BatchNormTask task,
                          const Workspace& workspace) {
  if (plan.workspace_bytes != 0) {
    task.partials = scratch_of(workspace);
    task.coefficients = scratch_of(workspace) + plan.coefficients_begin;
  }
  for (const auto& [kernel, config] : plan.steps) {
    CGRT_RETURN_IF_ERROR(launch(target, config, kernel, task));
    if (plan.edges == EdgeKind::kProgrammatic) target = target.programmatic();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BatchNormPlan> plan_batch_norm(ContextRef context, const BatchNormDesc& desc) {
  const auto shape = [&] {
    return absl::StrCat("batch ", desc.batch, ", ", desc.channels, " channels of ", desc.plane, " elements");
  };
  if (desc.batch == 0 || desc.channels == 0 || desc.plane == 0) {
    return refuse(to_string(desc.op), absl::StrCat(shape(), "; each must be 1 or more."));
  }
  if (desc.batch > kMaxCount || desc.channels > kMaxCount || desc.plane > kMaxCount ||
      (desc.order == ChannelOrder::kNchw ? desc.channels : desc.batch) * desc.plane > kMaxCount) {
    return refuse(to_string(desc.op),
                  absl::StrCat(shape(), "; ", desc.order == ChannelOrder::kNchw ? "channels" : "batch",
                               " times elements must be at most ", kMaxCount, "."));
  }
  CGRT_RETURN_IF_ERROR(check_float(to_string(desc.op), desc.type));
  if (desc.op == BatchNormOp::kTrain && desc.batch * desc.plane == 1) {
    return refuse(to_string(desc.op), absl::StrCat(shape(), "; one value per channel has no variance."));
  }
  const std::size_t size = size_of(desc.type);
  if (!std::has_single_bit(desc.alignment) || desc.alignment < size) {
    return refuse(to_string(desc.op),
                  absl::StrCat("the alignment (", desc.alignment, ") is not a power of two from ", size, "."));
  }
  CGRT_ASSIGN_OR_RETURN(
      const Machine machine,
      machine_of(context, batch_norm_kernel(desc.op, desc.type, BatchNormStep::kApply, BatchNormAccess::kPacked)));
  BatchNormPlan plan{.desc = desc, .task = {}, .steps = {}};
  if (!machine.has_programmatic_edges) plan.edges = EdgeKind::kFull;
  BatchNormTask& task = plan.task;
  task.epsilon = desc.epsilon, task.momentum = desc.momentum;
  const bool has_planes = desc.order == ChannelOrder::kNchw;
  task.rows = static_cast<std::uint32_t>(has_planes ? desc.batch : desc.batch * desc.plane);
  task.columns = static_cast<std::uint32_t>(has_planes ? desc.channels * desc.plane : desc.channels);
  task.plane = has_planes ? static_cast<std::uint32_t>(desc.plane) : 1;
  const bool is_packed = desc.alignment >= 16 && task.columns * size % 16 == 0;
  plan.access = is_packed ? BatchNormAccess::kPacked : BatchNormAccess::kElement;
  if (desc.op != BatchNormOp::kInfer) {
    const bool is_tiny = desc.batch * desc.channels * desc.plane * size <= kMaxTinyBytes;
    if (is_tiny && plan_held(machine, plan)) return plan;
    CGRT_ASSIGN_OR_RETURN(const bool is_resident, plan_resident(machine, plan));
    if (is_resident || plan_held(machine, plan)) return plan;
  }
  CGRT_RETURN_IF_ERROR(plan_streamed(machine, plan));
  return plan;
}

std::uint64_t BatchNormPlan::topology_id() const {
  std::vector<LaunchAttributes> kernels;
  for (const Step& step : steps) kernels.push_back(step.config.attributes);
  return topology_of_kernels(kernels, edges);
}

absl::Status launch_batch_norm_train(LaunchTarget target, const BatchNormPlan& plan, const BatchNormTrainArgs& args) {
  const char* const name = to_string(BatchNormOp::kTrain);
  CGRT_RETURN_IF_ERROR(check_forward(plan, BatchNormOp::kTrain, args));
  CGRT_RETURN_IF_ERROR(check_array(name, "save_mean", args.save_mean, DType::kFloat32));
  CGRT_RETURN_IF_ERROR(check_array(name, "save_invstd", args.save_invstd, DType::kFloat32));
  const Need running =
      args.running_mean == nullptr && args.running_variance == nullptr ? Need::kOptional : Need::kRequired;
  CGRT_RETURN_IF_ERROR(check_array(name, "running_mean", args.running_mean, DType::kFloat32, running));
  CGRT_RETURN_IF_ERROR(check_array(name, "running_variance", args.running_variance, DType::kFloat32, running));
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  BatchNormTask task = plan.task;
  task.out = args.y, task.in = args.x, task.weight = args.weight, task.bias = args.bias;
  task.save_mean = args.save_mean, task.save_invstd = args.save_invstd;
  task.running_mean = args.running_mean, task.running_variance = args.running_variance;
  return launch_steps(target, plan, task, args.workspace);
}

absl::Status launch_batch_norm_infer(LaunchTarget target, const BatchNormPlan& plan, const BatchNormInferArgs& args) {
  const char* const name = to_string(BatchNormOp::kInfer);
  CGRT_RETURN_IF_ERROR(check_forward(plan, BatchNormOp::kInfer, args));
  CGRT_RETURN_IF_ERROR(check_array(name, "running_mean", args.running_mean, DType::kFloat32));
  CGRT_RETURN_IF_ERROR(check_array(name, "running_variance", args.running_variance, DType::kFloat32));
  BatchNormTask task = plan.task;
  task.out = args.y, task.in = args.x, task.weight = args.weight, task.bias = args.bias;
  task.mean = args.running_mean, task.spread = args.running_variance;
  return launch_steps(target, plan, task, {});
}

absl::Status launch_batch_norm_backward(LaunchTarget target, const BatchNormPlan& plan,
                                        const BatchNormBackwardArgs& args) {
  CGRT_RETURN_IF_ERROR(check_plan(plan, BatchNormOp::kBackward));
  const char* const name = to_string(plan.desc.op);
  CGRT_RETURN_IF_ERROR(check_pointer(name, "x_gradient", args.x_gradient, element_alignment(plan)));
  CGRT_RETURN_IF_ERROR(check_pointer(name, "x", args.x, element_alignment(plan)));
  CGRT_RETURN_IF_ERROR(check_pointer(name, "y_gradient", args.y_gradient, element_alignment(plan)));
  CGRT_RETURN_IF_ERROR(check_array(name, "weight", args.weight, DType::kFloat32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(name, "save_mean", args.save_mean, DType::kFloat32));
  CGRT_RETURN_IF_ERROR(check_array(name, "save_invstd", args.save_invstd, DType::kFloat32));
  CGRT_RETURN_IF_ERROR(check_array(name, "weight_gradient", args.weight_gradient, DType::kFloat32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(name, "bias_gradient", args.bias_gradient, DType::kFloat32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  BatchNormTask task = plan.task;
  task.out = args.x_gradient, task.in = args.x, task.gradient = args.y_gradient, task.weight = args.weight;
  task.mean = args.save_mean, task.spread = args.save_invstd;
  task.weight_gradient = args.weight_gradient, task.bias_gradient = args.bias_gradient;
  return launch_steps(target, plan, task, args.workspace);
}

}  // namespace cgrt::kernels
