#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/group_norm/group_norm.h"
#include "cgrt_kernels/group_norm/kernels.h"

namespace cgrt::kernels {
namespace {

constexpr const char* kName = "group_norm";
// Of a multiprocessor: blocks that sum, that apply, and that hold parts of small images at once.
constexpr std::uint64_t kSumBlocksPerSm = 2, kBlocksPerSm = 4, kBlocksAtOnce = 8;
constexpr std::uint64_t kMinPixels = 4;         // of a thread, where there are so many
constexpr std::uint32_t kMaxClusterBlocks = 8;  // that every device with clusters has
// Of a resident block: bytes of static and reserved shared memory, at most; those below which more blocks gain nothing,
// and those above which it has more threads than others.
constexpr std::uint32_t kOtherShared = 2 * 1024, kFewBytes = 48 * 1024, kManyBytes = 70 * 1024, kManyThreads = 384;
constexpr std::uint32_t kFewNarrowBytes = 16 * 1024;  // of narrow groups, whose sums take longer
// Bytes of a multiprocessor up to which all images are in shared memory at once; and bytes of a pixel that slices have,
// the first of these that fit, but the first of all only where there are more images.
constexpr std::uint64_t kBytesPerSm = 80 * 1024;
constexpr std::uint32_t kRowBytes[] = {128, 64, 32};

absl::Status check(const GroupNormDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_float(kName, desc.type));
  CGRT_RETURN_IF_ERROR(check_enum(kName, "activation", desc.activation, GroupNormActivation::kSilu));
  CGRT_RETURN_IF_ERROR(check_not_negative(kName, "epsilon", desc.epsilon));
  for (const auto& [size, value, max] :
       {std::tuple{"batch", desc.batch, kMaxCount}, std::tuple{"plane", desc.plane, kMaxCount},
        std::tuple{"channels", desc.channels, std::uint64_t{kGroupNormMaxChannels}},
        std::tuple{"groups", desc.groups, desc.channels}}) {
    if (value >= 1 && value <= max) continue;
    return refuse(kName, absl::StrCat(size, " is ", value, "; it can be 1 to ", max, "."));
  }
  if (desc.plane > kMaxCount / desc.batch) {
    return refuse(kName,
                  absl::StrCat(desc.batch, " images of ", desc.plane, " pixels are more than ", kMaxCount, " pixels."));
  }
  if (desc.channels % desc.groups != 0) {
    return refuse(kName, absl::StrCat("channels is ", desc.channels, ", no multiple of the ", desc.groups, " groups."));
  }
  return absl::OkStatus();
}

absl::StatusOr<GroupNormPlan::Launch> read_twice(const Machine& machine, const GroupNormDesc& desc,
                                                 Alignment alignment) {
  const std::uint64_t pack = alignment == Alignment::kAligned ? 16 / size_of(desc.type) : 1;
  const auto width = static_cast<std::uint32_t>(std::min<std::uint64_t>(desc.channels / pack, kGroupNormBlock));
  const Kernel<GroupNormParams> statistics = group_norm_statistics_kernel(desc.type, alignment);
  const std::uint64_t height = kGroupNormBlock / width, blocks = kBlocksPerSm * machine.sms;
  const bool has_counters = desc.batch <= WorkspaceHeader::kCounters;
  const std::uint64_t max_splits = has_counters ? ceil_divide<std::uint64_t>(desc.plane, height * kMinPixels) : 1;
  const std::uint64_t splits = std::clamp<std::uint64_t>(kSumBlocksPerSm * machine.sms / desc.batch, 1, max_splits);
  std::uint64_t each = 2 * kMinPixels;  // pixels of a thread
  while (each > 1 && desc.batch * ceil_divide<std::uint64_t>(desc.plane, height * each) < blocks) each /= 2;
  GroupNormShape shape;
  shape.width = Divisor(width);
  shape.split_pixels = ceil_divide(desc.plane, splits);
  shape.splits = Divisor(ceil_divide(desc.plane, shape.split_pixels));
  shape.tile_pixels = static_cast<std::uint32_t>(height * each);
  shape.tiles = Divisor(ceil_divide(desc.plane, shape.tile_pixels));
  const auto batch = static_cast<std::uint32_t>(desc.batch);
  GroupNormPlan::Launch launch{
      .kernel = statistics,
      .config = {.grid = batch * shape.splits.value(), .block = kGroupNormBlock},
      .elements =
          SecondLaunch<GroupNormParams>{
              .kernel = group_norm_apply_kernel(desc.type, alignment),
              .config = {.grid = batch * shape.tiles.value(), .block = kGroupNormBlock},
              .edge = machine.has_programmatic_edges ? EdgeKind::kProgrammatic : EdgeKind::kFull},
      .shape = shape};
  CGRT_RETURN_IF_ERROR(preload(launch.kernel, machine.context));
  CGRT_RETURN_IF_ERROR(preload(launch.elements->kernel, machine.context));
  return launch;
}

// Slices of an image: so many groups each, shared by so many blocks.
struct Slices {
  std::uint32_t groups, blocks, threads;
};

bool are_narrow(const GroupNormDesc& desc) { return desc.channels / desc.groups < 16 / size_of(desc.type); }

GroupNormShape shape_of(const GroupNormDesc& desc, const Slices& slices) {
  const auto pack = static_cast<std::uint32_t>(16 / size_of(desc.type));
  const auto size = static_cast<std::uint32_t>(desc.channels / desc.groups);
  GroupNormShape shape;
  shape.width = Divisor(slices.groups * size / pack);
  shape.splits = Divisor(slices.blocks);
  shape.split_pixels = ceil_divide(desc.plane, slices.blocks);
  shape.slices = Divisor(ceil_divide(desc.groups, slices.groups));
  shape.slice_groups = slices.groups;
  // The lanes of a warp join what all parts of a group have.
  shape.parts = Divisor(std::clamp(slices.threads / 32 / slices.groups, 1u, 32 / slices.blocks));
  shape.span = Divisor(are_narrow(desc)   ? size
                       : size % pack == 0 ? size / pack
                                          : ceil_divide(size + 2 * pack - 2, pack));
  if (are_narrow(desc)) shape.sums = pack;
  return shape;
}

// Slices that fit, in as few blocks as leave room for a second on each multiprocessor, if possible: one loads while the
// other stores. Sectors of memory that two slices share cost time, unless images are few.
std::optional<Slices> slices_of(const Machine& machine, const GroupNormDesc& desc) {
  const auto pack = static_cast<std::uint32_t>(16 / size_of(desc.type));
  const auto size = static_cast<std::uint32_t>(desc.channels / desc.groups);
  const std::uint32_t unit = pack / std::gcd(size, pack), max_blocks = machine.has_clusters ? kMaxClusterBlocks : 1;
  const std::uint64_t bytes = desc.batch * desc.plane * desc.channels * size_of(desc.type);
  const bool is_small = bytes <= kBytesPerSm * machine.sms;
  const std::uint32_t few_bytes = are_narrow(desc) ? kFewNarrowBytes : kFewBytes;
  const auto bytes_of = [&](const Slices& slices) {
    return std::uint64_t{ceil_divide(desc.plane, slices.blocks)} * slices.groups * size * size_of(desc.type);
  };
  for (const std::uint32_t per_sm : {2u, 1u}) {
    const std::uint32_t room = std::min(machine.shared_per_sm / per_sm, machine.shared_per_block) - kOtherShared;
    for (const std::uint32_t row : kRowBytes) {
      if (is_small && row == kRowBytes[0]) continue;
      std::uint32_t groups = unit;
      while (groups < desc.groups && groups * size * size_of(desc.type) < row) {
        groups = static_cast<std::uint32_t>(std::min<std::uint64_t>(2 * groups, desc.groups));
      }
      if (groups * size / pack > kGroupNormBlock) continue;
      // Wider ones where a block would have fewer packs than threads, and there are more blocks than run at once.
      const auto is_wider = [&](std::uint32_t wider) {
        return wider <= desc.groups && wider * size / pack <= kGroupNormBlock &&
               desc.plane * (wider * size / pack) <= kGroupNormBlock &&
               desc.batch * (desc.groups / wider) >= std::uint64_t{machine.sms} * kBlocksAtOnce;
      };
      while (is_wider(2 * groups)) groups *= 2;
      const std::uint64_t count = desc.batch * ceil_divide<std::uint64_t>(desc.groups, groups);
      for (Slices slices{groups, 1, 0}; slices.blocks <= max_blocks; slices.blocks *= 2) {
        if (bytes_of(slices) >= room || count * slices.blocks > kMaxCount) continue;
        while (slices.blocks < max_blocks && count * slices.blocks < machine.sms && bytes_of(slices) > few_bytes) {
          slices.blocks *= 2;
        }
        slices.threads = bytes_of(slices) > kManyBytes && !are_narrow(desc) ? kManyThreads : kGroupNormBlock;
        if (resident_layout(shape_of(desc, slices), slices.threads).bytes <= room) return slices;
      }
    }
  }
  return std::nullopt;
}

absl::StatusOr<GroupNormPlan::Launch> read_once(const Machine& machine, const GroupNormDesc& desc,
                                                const Slices& slices) {
  const GroupNormShape shape = shape_of(desc, slices);
  GroupNormPlan::Launch launch{
      .kernel = group_norm_resident_kernel(desc.type, are_narrow(desc)),
      .config = {.grid = static_cast<std::uint32_t>(desc.batch) * shape.slices.value() * slices.blocks,
                 .block = slices.threads,
                 .shared_bytes = resident_layout(shape, slices.threads).bytes},
      .elements = std::nullopt,
      .shape = shape};
  launch.config.attributes.cluster = slices.blocks;
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(launch.kernel, machine, launch.config.shared_bytes));
  CGRT_RETURN_IF_ERROR(preload(launch.kernel, machine.context));
  return launch;
}

absl::StatusOr<GroupNormPlan::Launch> plan_aligned(const Machine& machine, const GroupNormDesc& desc) {
  if (const auto slices = slices_of(machine, desc)) return read_once(machine, desc, *slices);
  return read_twice(machine, desc, Alignment::kAligned);
}

// In the scratch memory: statistics, and behind them parts.
std::size_t statistics_bytes(const GroupNormDesc& desc) {
  return ceil_divide<std::size_t>(desc.batch * desc.groups * sizeof(GroupNormStatistics), sizeof(GroupNormPart)) *
         sizeof(GroupNormPart);
}
std::size_t workspace_of(const GroupNormDesc& desc, const GroupNormPlan::Launch& launch) {
  if (!launch.elements) return 0;
  const std::uint64_t splits = launch.shape.splits.value();
  return workspace_with(statistics_bytes(desc) +
                        (splits > 1 ? desc.batch * splits * desc.groups * sizeof(GroupNormPart) : 0));
}

}  // namespace

std::uint64_t GroupNormPlan::topology_id(std::size_t alignment) const {
  const Launch& chosen = alignment % 16 == 0 ? aligned : unaligned;
  std::vector<LaunchAttributes> kernels = {chosen.config.attributes};
  if (!chosen.elements) return topology_of_kernels(kernels);
  kernels.push_back(chosen.elements->config.attributes);
  return topology_of_kernels(kernels, chosen.elements->edge);
}

absl::StatusOr<GroupNormPlan> plan_group_norm(ContextRef context, const GroupNormDesc& desc) {
  CGRT_RETURN_IF_ERROR(check(desc));
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context, group_norm_resident_kernel(desc.type, false)));
  GroupNormPlan plan{desc, {}, {}};
  CGRT_ASSIGN_OR_RETURN(plan.unaligned, read_twice(machine, desc, Alignment::kUnaligned));
  plan.aligned = plan.unaligned;
  if (desc.channels * size_of(desc.type) % 16 == 0) {
    CGRT_ASSIGN_OR_RETURN(plan.aligned,
                          choose_with_room(machine, [&](const Machine& some) { return plan_aligned(some, desc); }));
  }
  plan.workspace_bytes = std::max(workspace_of(desc, plan.aligned), workspace_of(desc, plan.unaligned));
  return plan;
}

absl::Status launch_group_norm(LaunchTarget target, const GroupNormPlan& plan, const GroupNormArgs& args) {
  const GroupNormDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(kName, "y", args.y, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kName, "x", args.x, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kName, "weight", args.weight, desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(kName, "bias", args.bias, desc.type, Need::kOptional));
  const Alignment alignment = alignment_of(args.y, args.x, args.weight, args.bias);
  const GroupNormPlan::Launch& chosen = alignment == Alignment::kAligned ? plan.aligned : plan.unaligned;
  CGRT_RETURN_IF_ERROR(check_workspace(kName, args.workspace, workspace_of(desc, chosen)));
  const auto narrow = [](std::uint64_t size) { return static_cast<std::uint32_t>(size); };
  GroupNormParams params{};
  params.args = args;
  params.batch = narrow(desc.batch), params.plane = narrow(desc.plane);
  params.channels = narrow(desc.channels), params.groups = narrow(desc.groups);
  params.activation = desc.activation, params.epsilon = desc.epsilon;
  params.group_channels = Divisor(narrow(desc.channels / desc.groups));
  params.shape = chosen.shape;
  if (chosen.elements) {
    params.counters = header_of(args.workspace)->counters;
    unsigned char* const scratch = scratch_of(args.workspace);
    params.statistics = reinterpret_cast<GroupNormStatistics*>(scratch);
    params.parts = reinterpret_cast<GroupNormPart*>(scratch + statistics_bytes(desc));
  }
  CGRT_RETURN_IF_ERROR(launch(target, chosen.config, chosen.kernel, params));
  if (!chosen.elements) return absl::OkStatus();
  if (chosen.elements->edge == EdgeKind::kProgrammatic) target = target.programmatic();
  return launch(target, chosen.elements->config, chosen.elements->kernel, params);
}

}  // namespace cgrt::kernels
