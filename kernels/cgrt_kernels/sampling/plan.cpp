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

constexpr std::uint64_t kMinSlice = 4096;  // logits, or blocks cost more than they save
constexpr std::uint64_t kBlocksPerSm = 4;  // of those that share rows

// Blocks share rows as long as there are too few rows for the device.
std::uint64_t slices_of(const SamplingDesc& desc, std::uint64_t sms) {
  if (desc.op == SamplingOp::kFiltered || desc.rows > WorkspaceHeader::kCounters) return 1;
  return std::clamp<std::uint64_t>(kBlocksPerSm * sms / desc.rows, 1, ceil_divide(desc.vocabulary, kMinSlice));
}

std::uint32_t block_of(const SamplingDesc& desc) {
  if (desc.op != SamplingOp::kFiltered) return kSamplingBlock;
  const std::uint64_t packs = ceil_divide<std::uint64_t>(desc.vocabulary, 16 / size_of(desc.type));
  std::uint32_t block = kSamplingBlock;
  while (block < kSamplingFilteredBlock && 2 * block < packs) block += kSamplingBlock;
  return block;
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
  CGRT_ASSIGN_OR_RETURN(DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  SamplingPlan plan{desc,
                    sampling_kernel(desc.op, desc.type, Alignment::kAligned),
                    sampling_kernel(desc.op, desc.type, Alignment::kUnaligned),
                    {}};
  CGRT_RETURN_IF_ERROR(preload(plan.aligned, context));
  CGRT_RETURN_IF_ERROR(preload(plan.unaligned, context));
  const std::uint64_t pack = 16 / size_of(desc.type);
  const std::uint64_t slices = slices_of(desc, static_cast<std::uint64_t>(sms));
  plan.slice = ceil_divide(desc.vocabulary, slices * pack) * static_cast<std::uint32_t>(pack);
  plan.slices = ceil_divide(desc.vocabulary, plan.slice);
  plan.config = {.grid = static_cast<std::uint32_t>(desc.rows * plan.slices), .block = block_of(desc)};
  if (plan.slices > 1) plan.workspace_bytes = workspace_with(desc.rows * plan.slices * sizeof(SamplingPart));
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
  if (plan.slices > 1) {
    params.counters = header_of(args.workspace)->counters;
    params.parts = reinterpret_cast<SamplingPart*>(scratch_of(args.workspace));
  }
  const bool has_packs = desc.vocabulary * size_of(desc.type) % 16 == 0;
  const bool is_aligned = has_packs && alignment_of(args.logits) == Alignment::kAligned;
  return launch(target, plan.config, is_aligned ? plan.aligned : plan.unaligned, params);
}

}  // namespace cgrt::kernels
