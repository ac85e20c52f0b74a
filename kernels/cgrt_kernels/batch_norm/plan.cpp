#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/batch_norm/batch_norm.h"
#include "cgrt_kernels/batch_norm/kernels.h"
#include "cgrt_kernels/common/plan.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kMaxBlocks = 8;  // of a cluster, everywhere
constexpr std::size_t kSlotBytes = 16;   // and a channel's coefficients

// Packs of a tile's row (shorter ones need more slots, longer ones more threads), the rows that a thread
// should have at least, and the most waves of the whole device.
constexpr std::uint32_t kTileOfPlanes = 256, kTileOfChannels = 32, kMinRows = 16, kMinFewRows = 4, kMaxWaves = 4;
// Rows of a thread of kApply, in packs (the few: where they are faster on an H200) and in elements; bytes from which on
// they go by packs too.
constexpr std::uint32_t kMaxPacks = 8, kFewPacks = 4, kMaxElements = 32;
constexpr std::uint64_t kMinShiftedBytes = 64 << 10;
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
  return plan.alignment == Alignment::kAligned ? static_cast<std::uint32_t>(16 / size_of(plan.desc.type)) : 1;
}

// The channels whose rows together are whole packs, and long enough; 0: there are none.
std::uint32_t resident_channels(const BatchNormPlan& plan) {
  const std::uint64_t channels = plan.desc.channels, plane = plan.shape.plane, lanes = lanes_of(plan);
  std::uint64_t some = 1;
  while (some * plane % lanes != 0) some *= 2;
  if (channels % some != 0) return 0;
  while (some * plane / lanes * 16 < kMinRowBytes && channels % (2 * some) == 0) some *= 2;
  return some <= kBatchNormMaxChannels && some * plane <= kMaxCount ? static_cast<std::uint32_t>(some) : 0;
}

// The smallest cluster whose blocks hold the tile, two of them on a multiprocessor if possible: one loads while the
// other stores. Three, and thus smaller ones, are slower on an H200.
bool share_tile(const Machine& machine, BatchNormPlan& plan) {
  BatchNormShape& shape = plan.shape;
  const std::uint32_t channels = resident_channels(plan), lanes = lanes_of(plan);
  if (channels == 0) return false;
  shape.tile_packs = channels * shape.plane / lanes;
  shape.tiles = shape.columns / (channels * shape.plane);
  const std::uint32_t arrays = plan.desc.op == BatchNormOp::kBackward ? 2 : 1;
  // A thread keeps to its columns, unless all of them are of one channel.
  const bool is_wide = channels > 1 && shape.tile_packs > kBatchNormThreads;
  const std::uint32_t threads = is_wide ? kBatchNormMaxThreads : kBatchNormThreads;
  if (channels > 1 && shape.tile_packs > threads) return false;
  const auto try_blocks = [&](std::uint32_t blocks, std::uint32_t max_bytes) {
    const std::uint32_t rows = ceil_divide(shape.rows, blocks);
    if (std::uint64_t{rows} * shape.tile_packs * 16 * arrays > max_bytes) return false;
    const ResidentLayout layout = resident_layout(rows, shape.tile_packs, shape.plane, lanes, threads, arrays);
    if (layout.bytes > max_bytes || std::uint64_t{shape.tiles} * blocks > kMaxCount) return false;
    shape.split_rows = rows, shape.splits = blocks;
    LaunchConfig config{.grid = shape.tiles * blocks, .block = threads, .shared_bytes = layout.bytes};
    config.attributes.cluster = blocks;
    plan.steps.clear();
    plan.steps.push_back({resident_batch_norm_kernel(plan.desc.op, plan.desc.type), config});
    return true;
  };
  for (const std::uint32_t per_sm : {2u, 1u}) {
    const std::uint32_t max_bytes = std::min(machine.shared_per_sm / per_sm, machine.shared_per_block) - kOtherShared;
    const std::uint32_t max_blocks = machine.has_clusters ? kMaxBlocks : 1;
    for (std::uint32_t blocks = 1; blocks <= max_blocks; blocks *= 2) {
      if (!try_blocks(blocks, max_bytes)) continue;
      // Few channels leave multiprocessors idle.
      while (blocks < max_blocks && shape.tiles * blocks < machine.sms && shape.split_rows > 8 &&
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
  if (plan.alignment != Alignment::kAligned) return false;
  // Short rows of halves keep too many threads busy with too little: slower than reading twice on an H200.
  if (plan.shape.plane == 1 && lanes_of(plan) == 8) return false;
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
  BatchNormShape& shape = plan.shape;
  const std::uint32_t packs = shape.columns / lanes_of(plan);
  shape.tiles = ceil_divide(packs, shape.plane != 1 ? kTileOfPlanes : kTileOfChannels);
  shape.tile_packs = ceil_divide(packs, shape.tiles);
}

// Whether packs that lie across two of an input are faster than elements (H100): where each has at most two channels,
// or four floats of a channel each, and the tensor is not small.
bool has_shifted_packs(const BatchNormPlan& plan) {
  if (plan.alignment == Alignment::kAligned) return false;
  const std::uint64_t size = size_of(plan.desc.type), plane = plan.shape.plane;
  if (plane * size < 16 && (plane > 1 || size == 2)) return false;
  return std::uint64_t{plan.shape.rows} * plan.shape.columns * size >= kMinShiftedBytes;
}

// The blocks that apply: many, whose threads have no more rows than let all multiprocessors take part.
absl::StatusOr<BatchNormPlan::Step> apply_step(const Machine& machine, BatchNormPlan& plan) {
  BatchNormShape& shape = plan.shape;
  const bool is_shifted = has_shifted_packs(plan);
  const BatchNormKernel kernel = streamed_batch_norm_kernel(
      plan.desc.op, plan.desc.type, is_shifted ? BatchNormStep::kApplyShifted : BatchNormStep::kApply, plan.alignment);
  if (is_shifted) {
    shape.channels = static_cast<std::uint32_t>(plan.desc.channels);
    shape.columns_divisor = WideDivisor(shape.columns);
    const std::uint64_t packs = std::uint64_t{shape.rows} * shape.columns * size_of(plan.desc.type) / 16;
    const std::uint64_t blocks = packs / kBatchNormThreads + 1;
    if (blocks > kMaxCount) {
      return refuse(to_string(plan.desc.op),
                    absl::StrCat(shape.rows, " rows of ", shape.columns, " columns are too many for one grid."));
    }
    return BatchNormPlan::Step{kernel, {.grid = static_cast<std::uint32_t>(blocks), .block = kBatchNormThreads}};
  }
  CGRT_ASSIGN_OR_RETURN(const Occupancy fill, occupancy(kernel, machine.context, kBatchNormThreads, 0));
  const std::uint32_t height = std::min(kBatchNormThreads / shape.tile_packs, shape.rows);
  const std::uint64_t wave = std::uint64_t{machine.sms} * static_cast<std::uint64_t>(fill.blocks_per_sm);
  const bool has_few = plan.desc.op == BatchNormOp::kInfer && (shape.plane != 1 || lanes_of(plan) == 4);
  const std::uint32_t limit = plan.alignment == Alignment::kUnaligned ? kMaxElements : has_few ? kFewPacks : kMaxPacks;
  const std::uint64_t each =
      std::clamp<std::uint64_t>(std::uint64_t{shape.rows} * shape.tiles / (height * wave), 1, limit);
  const std::uint64_t splits = std::min(ceil_divide<std::uint64_t>(shape.rows, height * each), kMaxCount / shape.tiles);
  shape.split_rows = ceil_divide(shape.rows, splits);
  shape.tiles_divisor = Divisor(shape.tiles);
  const bool is_once = plan.desc.op == BatchNormOp::kInfer && shape.split_rows <= height;
  return BatchNormPlan::Step{
      is_once ? streamed_batch_norm_kernel(plan.desc.op, plan.desc.type, BatchNormStep::kApplyOnce, plan.alignment)
              : kernel,
      {.grid = shape.tiles * ceil_divide(shape.rows, shape.split_rows), .block = Dim3(shape.tile_packs, height)}};
}

// Parts of the rows of each tile: so many that the last wave of blocks is nearly as full as the others.
absl::Status plan_splits(const Machine& machine, std::uint32_t shared_bytes, BatchNormPlan& plan) {
  BatchNormShape& shape = plan.shape;
  const BatchNormKernel kernel =
      streamed_batch_norm_kernel(plan.desc.op, plan.desc.type, BatchNormStep::kStatistics, plan.alignment);
  const std::uint32_t height = kBatchNormThreads / shape.tile_packs;
  CGRT_ASSIGN_OR_RETURN(const Occupancy fill, occupancy(kernel, machine.context, kBatchNormThreads, shared_bytes));
  const std::uint64_t wave = std::uint64_t{machine.sms} * static_cast<std::uint64_t>(fill.blocks_per_sm);
  // A block has kMinRows rows of each thread or more, and fewer only as long as there are multiprocessors without one.
  const std::uint64_t of_many = shape.rows / (height * kMinRows);
  const std::uint64_t of_few = std::min(shape.rows / (height * kMinFewRows), machine.sms / shape.tiles);
  const std::uint64_t limit = std::clamp<std::uint64_t>(std::max(of_many, of_few), 1,
                                                        std::max<std::uint64_t>(kMaxWaves * wave / shape.tiles, 1));
  shape.splits = 1;
  double best_share = 0;
  for (std::uint64_t splits = 1; splits <= limit; ++splits) {
    const std::uint64_t blocks = splits * shape.tiles;
    const double share = static_cast<double>(blocks) / static_cast<double>((blocks + wave - 1) / wave * wave);
    if (share > best_share + 0.01) shape.splits = static_cast<std::uint32_t>(splits), best_share = share;
  }
  if (std::uint64_t{shape.tiles} * shape.splits > kMaxCount) {
    return refuse(to_string(plan.desc.op), absl::StrCat(shape.columns, " columns are too many for one grid."));
  }
  // A channel may begin within a tile and end within another.
  const std::uint32_t tile_columns = shape.tile_packs * lanes_of(plan);
  shape.slots = (ceil_divide(shape.plane - 1, tile_columns) + 1) * shape.splits;
  return absl::OkStatus();
}

absl::Status plan_streamed(const Machine& machine, BatchNormPlan& plan) {
  BatchNormShape& shape = plan.shape;
  plan_tiles(plan);
  CGRT_ASSIGN_OR_RETURN(const BatchNormPlan::Step apply, apply_step(machine, plan));
  if (plan.desc.op != BatchNormOp::kInfer) {
    const auto kernel = [&](BatchNormStep step) {
      return streamed_batch_norm_kernel(plan.desc.op, plan.desc.type, step, plan.alignment);
    };
    const std::uint32_t shared_bytes = bytes_of_partials(shape.plane, lanes_of(plan), kBatchNormThreads);
    CGRT_RETURN_IF_ERROR(plan_splits(machine, shared_bytes, plan));
    plan.steps.push_back(
        {kernel(BatchNormStep::kStatistics),
         {.grid = shape.tiles * shape.splits, .block = kBatchNormThreads, .shared_bytes = shared_bytes}});
    const std::uint32_t finishing = std::clamp(std::bit_ceil(shape.slots / 4), 32u, kBatchNormThreads);
    shape.finish_warps = finishing / 32;
    // Several channels in a block where there are many: blocks cost time to begin.
    std::uint32_t channels = 1;
    while (finishing * channels < kBatchNormThreads &&
           plan.desc.channels >= 8 * std::uint64_t{machine.sms} * channels) {
      channels *= 2;
    }
    plan.steps.push_back({kernel(BatchNormStep::kFinish),
                          {.grid = static_cast<std::uint32_t>(ceil_divide<std::uint64_t>(plan.desc.channels, channels)),
                           .block = finishing * channels}});
    plan.coefficients_begin = plan.desc.channels * shape.slots * kSlotBytes;
    plan.workspace_bytes = workspace_with(plan.coefficients_begin + plan.desc.channels * kSlotBytes);
  }
  plan.steps.push_back(apply);
  return absl::OkStatus();
}

// Channels that a block can hold in registers: where no other kernel reads them once, or the tensor is so small that it
// is about latency.
bool plan_held(const Machine& machine, BatchNormPlan& plan) {
  BatchNormShape& shape = plan.shape;
  const std::uint64_t size = size_of(plan.desc.type), count = std::uint64_t{shape.rows} * shape.plane;
  const std::uint32_t max_threads = held_threads(plan.desc.op);
  const std::uint64_t limit = std::uint64_t{kBatchNormHeld} * max_threads;
  if (count > limit || std::uint64_t{shape.rows} * shape.columns > UINT32_MAX) return false;
  std::uint32_t lanes = 1;
  if (shape.plane * size < kSectorBytes) {  // most of what a block of one channel reads would be of others
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
  shape.tile_packs = lanes, shape.tiles = static_cast<std::uint32_t>(plan.desc.channels);
  shape.step_rows = threads / lanes / shape.plane, shape.step_columns = threads / lanes % shape.plane;
  const auto held = ceil_divide(count, threads / lanes);
  plan.steps.push_back(
      {held_batch_norm_kernel(plan.desc.op, plan.desc.type, held), {.grid = blocks, .block = threads}});
  return true;
}

// Planes of whole packs, of channels that a block can hold.
bool plan_packed(const Machine& machine, BatchNormPlan& plan) {
  BatchNormShape& shape = plan.shape;
  const std::uint32_t lanes = lanes_of(plan), max_threads = held_threads(plan.desc.op);
  if (plan.alignment != Alignment::kAligned || shape.plane % lanes != 0) return false;
  const std::uint64_t size = size_of(plan.desc.type), packs = std::uint64_t{shape.rows} * shape.plane / lanes;
  if (shape.plane * size < kSectorBytes || packs > std::uint64_t{kBatchNormHeldPacks} * max_threads) return false;
  if (packs * plan.desc.channels > UINT32_MAX) return false;
  const auto blocks = static_cast<std::uint32_t>(plan.desc.channels);
  // As few packs of a thread as let all blocks run at once.
  std::uint32_t threads = max_threads;
  for (std::uint32_t each = 1; each <= kBatchNormHeldPacks; each *= 2) {
    threads = ceil_divide(ceil_divide<std::uint64_t>(packs, each), 32) * 32;
    const std::uint32_t of_sm = max_threads / std::min(threads, max_threads);  // blocks
    if (threads <= max_threads && blocks <= of_sm * machine.sms) break;
  }
  threads = std::max(threads, 64u);
  shape.tile_packs = shape.plane / lanes, shape.tiles_divisor = Divisor(shape.tile_packs);
  plan.steps.push_back({packed_batch_norm_kernel(plan.desc.op, plan.desc.type), {.grid = blocks, .block = threads}});
  return true;
}

absl::Status plan_steps(const Machine& machine, BatchNormPlan& plan) {
  const BatchNormDesc& desc = plan.desc;
  if (desc.op != BatchNormOp::kInfer) {
    if (plan_packed(machine, plan)) return absl::OkStatus();
    const bool is_tiny = desc.batch * desc.channels * desc.plane * size_of(desc.type) <= kMaxTinyBytes;
    if (is_tiny && plan_held(machine, plan)) return absl::OkStatus();
    CGRT_ASSIGN_OR_RETURN(const bool is_resident, plan_resident(machine, plan));
    if (is_resident || plan_held(machine, plan)) return absl::OkStatus();
  }
  return plan_streamed(machine, plan);
}

std::size_t element_alignment(const BatchNormPlan& plan) {
  return plan.alignment == Alignment::kAligned ? 16 : size_of(plan.desc.type);
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

// Without addresses.
BatchNormParams params_of(const BatchNormPlan& plan) {
  return {{.epsilon = plan.desc.epsilon, .momentum = plan.desc.momentum}, plan.shape, {}};
}

absl::Status launch_steps(LaunchTarget target, const BatchNormPlan& plan, BatchNormParams p,
                          const Workspace& workspace) {
  if (plan.workspace_bytes != 0) {
    p.partials = scratch_of(workspace);
    p.coefficients = scratch_of(workspace) + plan.coefficients_begin;
  }
  for (const auto& [kernel, config] : plan.steps) {
    CGRT_RETURN_IF_ERROR(launch(target, config, kernel, p));
    if (plan.edges == EdgeKind::kProgrammatic) target = target.programmatic();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BatchNormPlan> plan_batch_norm(ContextRef context, const BatchNormDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("batch_norm", "op", desc.op, BatchNormOp::kBackward));
  CGRT_RETURN_IF_ERROR(check_enum("batch_norm", "order", desc.order, ChannelOrder::kNhwc));
  CGRT_RETURN_IF_ERROR(check_not_negative(to_string(desc.op), "epsilon", desc.epsilon));
  CGRT_RETURN_IF_ERROR(check_not_negative(to_string(desc.op), "momentum", desc.momentum));
  const auto text = [&] {
    return absl::StrCat("batch ", desc.batch, ", ", desc.channels, " channels of ", desc.plane, " elements");
  };
  if (desc.batch == 0 || desc.channels == 0 || desc.plane == 0) {
    return refuse(to_string(desc.op), absl::StrCat(text(), "; each must be 1 or more."));
  }
  if (desc.batch > kMaxCount || desc.channels > kMaxCount || desc.plane > kMaxCount ||
      (desc.order == ChannelOrder::kNchw ? desc.channels : desc.batch) * desc.plane > kMaxCount) {
    return refuse(to_string(desc.op),
                  absl::StrCat(text(), "; ", desc.order == ChannelOrder::kNchw ? "channels" : "batch",
                               " times elements must be at most ", kMaxCount, "."));
  }
  CGRT_RETURN_IF_ERROR(check_float(to_string(desc.op), desc.type));
  if (desc.op == BatchNormOp::kTrain && desc.batch * desc.plane == 1) {
    return refuse(to_string(desc.op), absl::StrCat(text(), "; one value per channel has no variance."));
  }
  const std::size_t size = size_of(desc.type);
  if (!std::has_single_bit(desc.alignment) || desc.alignment < size) {
    return refuse(to_string(desc.op),
                  absl::StrCat("the alignment (", desc.alignment, ") is not a power of two from ", size, "."));
  }
  CGRT_ASSIGN_OR_RETURN(
      const Machine machine,
      machine_of(context, streamed_batch_norm_kernel(desc.op, desc.type, BatchNormStep::kApply, Alignment::kAligned)));
  BatchNormPlan plan{.desc = desc, .shape = {}, .steps = {}};
  if (!machine.has_programmatic_edges) plan.edges = EdgeKind::kFull;
  BatchNormShape& shape = plan.shape;
  const bool has_planes = desc.order == ChannelOrder::kNchw;
  shape.rows = static_cast<std::uint32_t>(has_planes ? desc.batch : desc.batch * desc.plane);
  shape.columns = static_cast<std::uint32_t>(has_planes ? desc.channels * desc.plane : desc.channels);
  shape.plane = has_planes ? static_cast<std::uint32_t>(desc.plane) : 1;
  shape.plane_divisor = Divisor(shape.plane);
  const bool is_aligned = desc.alignment >= 16 && shape.columns * size % 16 == 0;
  plan.alignment = is_aligned ? Alignment::kAligned : Alignment::kUnaligned;
  CGRT_RETURN_IF_ERROR(plan_steps(machine, plan));
  for (const BatchNormPlan::Step& step : plan.steps) CGRT_RETURN_IF_ERROR(preload(step.kernel, context));
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
  BatchNormParams p = params_of(plan);
  p.out = args.y, p.in = args.x, p.weight = args.weight, p.bias = args.bias;
  p.save_mean = args.save_mean, p.save_invstd = args.save_invstd;
  p.running_mean = args.running_mean, p.running_variance = args.running_variance;
  return launch_steps(target, plan, p, args.workspace);
}

absl::Status launch_batch_norm_infer(LaunchTarget target, const BatchNormPlan& plan, const BatchNormInferArgs& args) {
  const char* const name = to_string(BatchNormOp::kInfer);
  CGRT_RETURN_IF_ERROR(check_forward(plan, BatchNormOp::kInfer, args));
  CGRT_RETURN_IF_ERROR(check_array(name, "running_mean", args.running_mean, DType::kFloat32));
  CGRT_RETURN_IF_ERROR(check_array(name, "running_variance", args.running_variance, DType::kFloat32));
  BatchNormParams p = params_of(plan);
  p.out = args.y, p.in = args.x, p.weight = args.weight, p.bias = args.bias;
  p.mean = args.running_mean, p.spread = args.running_variance;
  return launch_steps(target, plan, p, {});
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
  BatchNormParams p = params_of(plan);
  p.out = args.x_gradient, p.in = args.x, p.gradient = args.y_gradient, p.weight = args.weight;
  p.mean = args.save_mean, p.spread = args.save_invstd;
  p.weight_gradient = args.weight_gradient, p.bias_gradient = args.bias_gradient;
  return launch_steps(target, plan, p, args.workspace);
}

}  // namespace cgrt::kernels
