#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/topk/kernels.h"
#include "cgrt_kernels/topk/topk.h"

namespace cgrt::kernels {
namespace {

constexpr const char* kName = "topk";

absl::Status check_size(const char* size, std::uint64_t value, std::uint64_t max) {
  if (value >= 1 && value <= max) return absl::OkStatus();
  return refuse(kName, absl::StrCat(size, " is ", value, "; it can be 1 to ", max, "."));
}

}  // namespace

absl::StatusOr<TopkPlan> plan_topk(ContextRef context, const TopkDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum(kName, "weights", desc.weights, TopkWeights::kNormalized));
  CGRT_RETURN_IF_ERROR(check_float(kName, desc.type));
  CGRT_RETURN_IF_ERROR(check_size("tokens", desc.tokens, kMaxCount));
  CGRT_RETURN_IF_ERROR(check_size("experts", desc.experts, kTopkMaxExperts));
  CGRT_RETURN_IF_ERROR(check_size("k", desc.k, std::min<std::uint64_t>(desc.experts, kTopkMaxChosen)));
  TopkPlan plan{desc, topk_kernel(desc.type, static_cast<std::uint32_t>(desc.experts)), {}};
  plan.config = {.grid = ceil_divide(desc.tokens, kTopkBlock / topk_lanes(desc.experts)), .block = kTopkBlock};
  CGRT_RETURN_IF_ERROR(preload(plan.kernel, context));
  return plan;
}

absl::Status launch_topk(LaunchTarget target, const TopkPlan& plan, const TopkArgs& args) {
  const TopkDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(kName, "weights", args.weights, DType::kFloat32));
  CGRT_RETURN_IF_ERROR(check_array(kName, "chosen", args.chosen, DType::kInt32));
  CGRT_RETURN_IF_ERROR(check_array(kName, "logits", args.logits, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kName, "token_count", args.token_count, DType::kInt32, Need::kOptional));
  return launch(target, plan.config, plan.kernel,
                TopkParams{args, static_cast<std::uint32_t>(desc.tokens), static_cast<std::uint32_t>(desc.experts),
                           static_cast<std::uint32_t>(desc.k), desc.weights});
}

}  // namespace cgrt::kernels
