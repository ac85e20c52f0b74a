#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/elementwise/elementwise.h"

namespace cgrt::kernels {
namespace {

absl::Status check_pointer(const char* name, const float* pointer) {
  if (pointer == nullptr) return absl::InvalidArgumentError(absl::StrCat("Elementwise: ", name, " is null."));
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignof(float) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("Elementwise: ", name, " (0x",
                                                   absl::Hex(reinterpret_cast<std::uintptr_t>(pointer)),
                                                   ") is not aligned to 4 bytes."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ElementwisePlan> plan_elementwise(ContextRef context, const ElementwiseDesc& desc) {
  if (desc.count == 0) return absl::InvalidArgumentError("Elementwise: the descriptor has 0 elements.");
  constexpr std::uint32_t kBlock = 256;
  constexpr std::uint64_t kPack = 4;
  const ElementwiseKernel kernel = elementwise_kernel(desc.op);
  CGRT_ASSIGN_OR_RETURN(Occupancy fill, occupancy(kernel, context, Dim3(kBlock), 0));
  CGRT_ASSIGN_OR_RETURN(DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const std::uint64_t one_wave = static_cast<std::uint64_t>(sms) * static_cast<std::uint64_t>(fill.blocks_per_sm);
  const std::uint64_t needed = (desc.count - 1) / (kBlock * kPack) + 1;  // count + 1023 could wrap
  return ElementwisePlan{desc, kernel, {Dim3(static_cast<std::uint32_t>(std::min(one_wave, needed))), Dim3(kBlock)}};
}

absl::Status launch_elementwise(LaunchTarget target, const ElementwisePlan& plan, const ElementwiseArgs& args) {
  CGRT_RETURN_IF_ERROR(check_pointer("out", args.out));
  CGRT_RETURN_IF_ERROR(check_pointer("a", args.a));
  if (takes_two_inputs(plan.desc.op)) CGRT_RETURN_IF_ERROR(check_pointer("b", args.b));
  return launch(target, plan.config, plan.kernel, args.out, args.a, args.b, args.alpha, plan.desc.count);
}

}  // namespace cgrt::kernels
