#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/sampling/kernels.h"
#include "cgrt_kernels/sampling/sampling.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kBlocksPerSm = 4;  // of those that share rows

// Of kFiltered: what is fastest on an H100.
constexpr std::uint32_t kMinFilteredSlice = 2048, kMaxFilteredSlice = 32 * 1024;  // logits of a block
constexpr std::uint32_t kManyLogits = 24 * 1024;  // that the threads of a large block have enough to do with
constexpr std::uint64_t kMaxFewSliceBytes = 160 * 1024;

// How clusters share the rows of kFiltered.
struct Filtered {
  Kernel<SamplingParams> kernel;
  LaunchConfig config;
  std::uint32_t slices, slice;
};

absl::StatusOr<Filtered> filtered_for(const Machine& machine, const SamplingDesc& desc) {
  const auto size = static_cast<std::uint32_t>(size_of(desc.type)), pack = 16 / size;
  const auto slice_of = [&](std::uint32_t blocks) {
    return ceil_divide(desc.vocabulary, std::uint64_t{blocks} * pack) * pack;
  };
  const auto bytes_of = [&](std::uint32_t blocks) { return std::uint64_t{slice_of(blocks)} * size; };
  const auto can_double = [&](std::uint32_t blocks) {
    return machine.has_clusters && blocks < kSamplingMaxCluster && desc.rows * blocks * 2 <= kMaxCount;
  };
  std::uint32_t blocks = 1;
  while (can_double(blocks) && desc.rows * blocks * 2 <= machine.sms && slice_of(blocks) >= 2 * kMinFilteredSlice) {
    blocks *= 2;
  }
  const bool are_few = desc.rows * blocks <= machine.sms && bytes_of(blocks) <= kMaxFewSliceBytes;
  while (!are_few && can_double(blocks) && slice_of(blocks) > kMaxFilteredSlice) blocks *= 2;
  const std::uint32_t slice = slice_of(blocks);
  const std::uint32_t max_threads =
      are_few && slice >= kManyLogits ? kSamplingFilteredBlock : kSamplingFilteredBlock / 2;
  std::uint32_t threads = kSamplingBlock;
  while (threads < max_threads && threads * pack < slice) threads *= 2;
  Filtered filtered{sampling_kernel(desc.op, desc.type, Alignment::kAligned),
                    {.grid = static_cast<std::uint32_t>(desc.rows * blocks), .block = threads},
                    blocks,
                    slice};
  filtered.config.attributes.cluster.x = blocks;
  const std::uint64_t bytes = bytes_of(blocks);
  if (bytes + kSamplingFilterShared <= machine.shared_per_block) {
    filtered.config.shared_bytes = static_cast<std::uint32_t>(bytes);
  }
  for (const Alignment alignment : {Alignment::kAligned, Alignment::kUnaligned}) {
    CGRT_RETURN_IF_ERROR(
        allow_shared_bytes(sampling_kernel(desc.op, desc.type, alignment), machine, filtered.config.shared_bytes));
  }
  return filtered;
}

}  // namespace

absl::StatusOr<SamplingPlan> plan_sampling(ContextRef context, const SamplingDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("sampling", "op", desc.op, SamplingOp::kFiltered));
  const char* const name = to_string(desc.op);
  CGRT_RETURN_IF_ERROR(check_float(name, desc.type));
  if (desc.token_type != DType::kInt32 && desc.token_type != DType::kInt64) {
    return refuse_type(name, desc.token_type, "int32, int64");
  }
  for (const auto& [size, value] : {std::pair{"rows", desc.rows}, std::pair{"vocabulary", desc.vocabulary}}) {
    if (value >= 1 && value <= kMaxCount) continue;
    return refuse(name, absl::StrCat(size, " is ", value, "; it can be 1 to ", kMaxCount, "."));
  }
  SamplingPlan plan{desc,
                    sampling_kernel(desc.op, desc.type, Alignment::kAligned),
                    sampling_kernel(desc.op, desc.type, Alignment::kUnaligned),
                    {}};
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context, plan.aligned));
  CGRT_RETURN_IF_ERROR(preload(plan.aligned, context));
  CGRT_RETURN_IF_ERROR(preload(plan.unaligned, context));
  if (desc.op == SamplingOp::kFiltered) {
    CGRT_ASSIGN_OR_RETURN(const Filtered filtered,
                          choose_with_room(machine, [&](const Machine& some) { return filtered_for(some, desc); }));
    plan.config = filtered.config, plan.slices = filtered.slices, plan.slice = filtered.slice;
    return plan;
  }
  const auto rows = static_cast<std::uint32_t>(desc.rows), vocabulary = static_cast<std::uint32_t>(desc.vocabulary);
  plan.blocks = kBlocksPerSm * machine.sms;
  const SamplingShares shares =
      sampling_shares(rows, vocabulary, static_cast<std::uint32_t>(16 / size_of(desc.type)), plan.blocks);
  plan.slices = shares.slices, plan.slice = shares.slice;
  // For any number of rows on the device: where a row has several slices, all rows have at most plan.blocks of them.
  const std::uint64_t max_slices = ceil_divide<std::uint64_t>(desc.vocabulary, kSamplingMinSlice);
  const std::uint64_t max_shared = std::min<std::uint64_t>(plan.blocks, desc.rows * max_slices);
  plan.config = {.grid = static_cast<std::uint32_t>(std::max(desc.rows, max_shared)), .block = kSamplingBlock};
  if (max_slices > 1) plan.workspace_bytes = workspace_with(max_shared * sizeof(SamplingPart));
  return plan;
}

absl::Status launch_sampling(LaunchTarget target, const SamplingPlan& plan, const SamplingArgs& args) {
  const SamplingDesc& desc = plan.desc;
  const char* const name = to_string(desc.op);
  const bool is_greedy = desc.op == SamplingOp::kGreedy, is_filtered = desc.op == SamplingOp::kFiltered;
  CGRT_RETURN_IF_ERROR(check_array(name, "token", args.token, desc.token_type));
  CGRT_RETURN_IF_ERROR(check_array(name, "log_probability", args.log_probability, DType::kFloat32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(name, "logits", args.logits, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "row_count", args.row_count, DType::kInt32, Need::kOptional));
  SamplingParams params{args,
                        desc.op,
                        desc.token_type,
                        static_cast<std::uint32_t>(desc.rows),
                        static_cast<std::uint32_t>(desc.vocabulary),
                        plan.slice,
                        Divisor(plan.slices),
                        plan.blocks,
                        plan.config.shared_bytes > 0 ? 1u : 0u,
                        nullptr,
                        nullptr};
  if (is_greedy) {
    params.args.temperature = nullptr, params.args.state = nullptr;
  } else {
    CGRT_RETURN_IF_ERROR(check_array(name, "temperature", args.temperature, DType::kFloat32, Need::kOptional));
    CGRT_RETURN_IF_ERROR(check_pointer(name, "state", args.state, alignof(RandomState)));
  }
  if (is_filtered) {
    CGRT_RETURN_IF_ERROR(check_array(name, "top_k", args.top_k, DType::kInt32, Need::kOptional));
    CGRT_RETURN_IF_ERROR(check_array(name, "top_p", args.top_p, DType::kFloat32, Need::kOptional));
  } else {
    params.args.top_k = nullptr, params.args.top_p = nullptr;
  }
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  if (plan.workspace_bytes > 0) {
    params.counters = header_of(args.workspace)->counters;
    params.parts = reinterpret_cast<SamplingPart*>(scratch_of(args.workspace));
  }
  const bool has_packs = desc.vocabulary * size_of(desc.type) % 16 == 0;
  const bool is_aligned = has_packs && alignment_of(args.logits) == Alignment::kAligned;
  LaunchConfig config = plan.config;
  if (!is_filtered && args.row_count == nullptr) config.grid = static_cast<std::uint32_t>(desc.rows) * plan.slices;
  return launch(target, config, is_aligned ? plan.aligned : plan.unaligned, params);
}

}  // namespace cgrt::kernels
