#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/group_norm/group_norm.h"
#include "cgrt_kernels/group_norm/kernels.h"

namespace cgrt::kernels {
namespace {

constexpr const char* kName = "group_norm";
constexpr std::uint64_t kBlocksPerSm = 4;
constexpr std::uint64_t kMinPixels = 4;  // of a thread, where there are so many

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

absl::StatusOr<GroupNormPlan::Launch> plan_launch(const Machine& machine, const GroupNormDesc& desc,
                                                  Alignment alignment) {
  const std::uint64_t pack = alignment == Alignment::kAligned ? 16 / size_of(desc.type) : 1;
  GroupNormPlan::Launch launch{};
  launch.statistics = group_norm_statistics_kernel(desc.type, alignment);
  launch.apply = group_norm_apply_kernel(desc.type, alignment);
  launch.width = static_cast<std::uint32_t>(std::min<std::uint64_t>(desc.channels / pack, kGroupNormBlock));
  const std::uint64_t height = kGroupNormBlock / launch.width, blocks = kBlocksPerSm * machine.sms;
  const bool has_counters = desc.batch <= WorkspaceHeader::kCounters;
  const std::uint64_t max_splits = has_counters ? ceil_divide<std::uint64_t>(desc.plane, height * kMinPixels) : 1;
  const std::uint64_t splits = std::clamp<std::uint64_t>(blocks / desc.batch, 1, max_splits);
  launch.split_pixels = ceil_divide(desc.plane, splits);
  launch.splits = ceil_divide(desc.plane, launch.split_pixels);
  std::uint64_t each = 2 * kMinPixels;  // pixels of a thread
  while (each > 1 && desc.batch * ceil_divide<std::uint64_t>(desc.plane, height * each) < blocks) each /= 2;
  launch.tile_pixels = static_cast<std::uint32_t>(height * each);
  const auto batch = static_cast<std::uint32_t>(desc.batch);
  launch.statistics_config = {.grid = batch * launch.splits, .block = kGroupNormBlock};
  launch.apply_config = {.grid = batch * ceil_divide(desc.plane, launch.tile_pixels), .block = kGroupNormBlock};
  CGRT_RETURN_IF_ERROR(preload(launch.statistics, machine.context));
  CGRT_RETURN_IF_ERROR(preload(launch.apply, machine.context));
  return launch;
}

// In the scratch memory: statistics, and behind them parts.
std::size_t statistics_bytes(const GroupNormDesc& desc) {
  return ceil_divide<std::size_t>(desc.batch * desc.groups * sizeof(GroupNormStatistics), sizeof(GroupNormPart)) *
         sizeof(GroupNormPart);
}

}  // namespace

std::uint64_t GroupNormPlan::topology_id() const {
  return topology_of_kernels({aligned.statistics_config.attributes, aligned.apply_config.attributes}, edges);
}

absl::StatusOr<GroupNormPlan> plan_group_norm(ContextRef context, const GroupNormDesc& desc) {
  CGRT_RETURN_IF_ERROR(check(desc));
  CGRT_ASSIGN_OR_RETURN(const Machine machine,
                        machine_of(context, group_norm_apply_kernel(desc.type, Alignment::kUnaligned)));
  GroupNormPlan plan{desc, {}, {}};
  if (!machine.has_programmatic_edges) plan.edges = EdgeKind::kFull;
  CGRT_ASSIGN_OR_RETURN(plan.unaligned, plan_launch(machine, desc, Alignment::kUnaligned));
  plan.aligned = plan.unaligned;
  if (desc.channels * size_of(desc.type) % 16 == 0) {
    CGRT_ASSIGN_OR_RETURN(plan.aligned, plan_launch(machine, desc, Alignment::kAligned));
  }
  const std::uint64_t splits = std::max(plan.aligned.splits, plan.unaligned.splits);
  plan.workspace_bytes = workspace_with(statistics_bytes(desc) +
                                        (splits > 1 ? desc.batch * splits * desc.groups * sizeof(GroupNormPart) : 0));
  return plan;
}

absl::Status launch_group_norm(LaunchTarget target, const GroupNormPlan& plan, const GroupNormArgs& args) {
  const GroupNormDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(kName, "y", args.y, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kName, "x", args.x, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kName, "weight", args.weight, desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(kName, "bias", args.bias, desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_workspace(kName, args.workspace, plan.workspace_bytes));
  const Alignment alignment = alignment_of(args.y, args.x, args.weight, args.bias);
  const GroupNormPlan::Launch& chosen = alignment == Alignment::kAligned ? plan.aligned : plan.unaligned;
  const auto narrow = [](std::uint64_t size) { return static_cast<std::uint32_t>(size); };
  GroupNormParams params{};
  params.args = args;
  params.batch = narrow(desc.batch), params.plane = narrow(desc.plane);
  params.channels = narrow(desc.channels), params.groups = narrow(desc.groups);
  params.activation = desc.activation, params.epsilon = desc.epsilon;
  params.group_channels = Divisor(narrow(desc.channels / desc.groups));
  params.width = Divisor(chosen.width);
  params.splits = Divisor(chosen.splits);
  params.tiles = Divisor(ceil_divide(desc.plane, chosen.tile_pixels));
  params.split_pixels = chosen.split_pixels, params.tile_pixels = chosen.tile_pixels;
  params.counters = header_of(args.workspace)->counters;
  unsigned char* const scratch = scratch_of(args.workspace);
  params.statistics = reinterpret_cast<GroupNormStatistics*>(scratch);
  params.parts = reinterpret_cast<GroupNormPart*>(scratch + statistics_bytes(desc));
  CGRT_RETURN_IF_ERROR(launch(target, chosen.statistics_config, chosen.statistics, params));
  if (plan.edges == EdgeKind::kProgrammatic) target = target.programmatic();
  return launch(target, chosen.apply_config, chosen.apply, params);
}

}  // namespace cgrt::kernels
