#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/dropout/dropout.h"
#include "cgrt_kernels/dropout/kernels.h"

namespace cgrt::kernels {

absl::StatusOr<DropoutPlan> plan_dropout(ContextRef context, const DropoutDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("dropout", "op", desc.op, DropoutOp::kBackward));
  const char* const name = to_string(desc.op);
  CGRT_RETURN_IF_ERROR(check_float(name, desc.type));
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 40;
  if (desc.count == 0 || desc.count >= kEnd) {
    return refuse(name, absl::StrCat("count is ", desc.count, "; it can be 1 to ", kEnd - 1, "."));
  }
  if (!(desc.probability >= 0 && desc.probability < 1)) {
    return refuse(name, absl::StrCat("probability is ", desc.probability, "; it can be 0 to below 1."));
  }
  CGRT_ASSIGN_OR_RETURN(DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CGRT_ASSIGN_OR_RETURN(const int threads, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  constexpr std::uint64_t kMaxSingleBytes = 128 + 3 * 16;
  const auto at_once = static_cast<std::uint64_t>(sms) * static_cast<std::uint64_t>(threads / kDropoutBlock);
  const std::uint64_t pack = 16 / size_of(desc.type), packs = ceil_divide<std::uint64_t>(desc.count, pack);
  const bool is_forward = desc.op == DropoutOp::kForward, is_small = packs <= at_once * kDropoutBlock;
  const std::uint64_t tiles = ceil_divide<std::uint64_t>(packs, kDropoutBlock * (is_small ? 1 : kDropoutPacks));
  // Each block of dropout takes part in moving the state on. Some waves are enough, and fewer are no better than one.
  const std::uint64_t max_grid = tiles > 4 * at_once ? 4 * at_once : at_once;
  DropoutPlan plan{desc, {}, {}};
  for (const auto& [launch, alignment] :
       {std::pair(&plan.aligned, Alignment::kAligned), {&plan.unaligned, Alignment::kUnaligned}}) {
    launch->kernel = dropout_kernel(desc.op, desc.type, alignment, is_small);
    // Of the gradient: threads of packs, and of elements at either end, of which unaligned arrays have a line and more.
    const std::uint64_t singles =
        alignment == Alignment::kAligned ? desc.count % pack : kMaxSingleBytes / size_of(desc.type);
    const std::uint64_t grid =
        is_forward ? std::min(tiles, max_grid) : ceil_divide<std::uint64_t>(desc.count / pack + singles, kDropoutBlock);
    launch->config = {.grid = static_cast<std::uint32_t>(grid), .block = kDropoutBlock};
    CGRT_RETURN_IF_ERROR(preload(launch->kernel, context));
  }
  return plan;
}

absl::Status launch_dropout(LaunchTarget target, const DropoutPlan& plan, const DropoutArgs& args) {
  const DropoutDesc& desc = plan.desc;
  const char* const name = to_string(desc.op);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_pointer(name, "mask", args.mask, 1));
  DropoutParams params{args, desc.count, 0, 1 / (1 - desc.probability)};
  if (desc.op == DropoutOp::kForward) {
    CGRT_RETURN_IF_ERROR(check_pointer(name, "state", args.state, alignof(RandomState)));
    // Rounded up, as numbers are compared with the product itself: a float's is exact, and below 2^32.
    const double threshold = static_cast<double>(desc.probability) * 4294967296.0;
    params.threshold = static_cast<std::uint32_t>(threshold);
    if (static_cast<double>(params.threshold) < threshold) ++params.threshold;
  } else {
    params.args.state = nullptr;
  }
  const DropoutPlan::Launch& chosen =
      alignment_of(args.out, args.in) == Alignment::kAligned ? plan.aligned : plan.unaligned;
  return launch(target, chosen.config, chosen.kernel, params);
}

}  // namespace cgrt::kernels
