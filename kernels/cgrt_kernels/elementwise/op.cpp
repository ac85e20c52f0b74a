#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/elementwise/elementwise.h"
#include "cgrt_kernels/elementwise/map.h"

namespace cgrt::kernels {
namespace {

absl::Status pointer_error(const ElementwiseDesc& desc, const char* name, const void* pointer, DType type) {
  if (pointer == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("Elementwise ", to_string(desc.op), ": ", name, " is null."));
  return absl::InvalidArgumentError(absl::StrCat("Elementwise ", to_string(desc.op), ": ", name, " (0x",
                                                 absl::Hex(reinterpret_cast<std::uintptr_t>(pointer)),
                                                 ") is not aligned to ", size_of(type), " bytes."));
}

inline absl::Status check_pointer(const ElementwiseDesc& desc, const char* name, const void* pointer, DType type) {
  if (pointer != nullptr && reinterpret_cast<std::uintptr_t>(pointer) % size_of(type) == 0) return absl::OkStatus();
  return pointer_error(desc, name, pointer, type);
}

bool is_float_type(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBFloat16;
}

absl::Status check_types(const ElementwiseDesc& desc) {
  if (desc.op == ElementwiseOp::kCast) {
    if (is_float_type(desc.type) && is_float_type(desc.out_type) && desc.type != desc.out_type) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("Elementwise cast: from ", to_string(desc.type), " to ", to_string(desc.out_type),
                     "; the types must be two different ones of float32, float16 and bfloat16."));
  }
  const bool has_double = takes_two_inputs(desc.op) || desc.op == ElementwiseOp::kScale;
  if (is_float_type(desc.type) || (has_double && desc.type == DType::kFloat64)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Elementwise ", to_string(desc.op), ": there is no kernel for ",
                                                 to_string(desc.type), ", only for float32, float16",
                                                 has_double ? ", bfloat16 and float64." : " and bfloat16."));
}

}  // namespace

absl::StatusOr<ElementwisePlan> plan_elementwise(ContextRef context, const ElementwiseDesc& desc) {
  if (desc.count == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Elementwise ", to_string(desc.op), ": the descriptor has 0 elements."));
  }
  CGRT_RETURN_IF_ERROR(check_types(desc));
  const ElementwiseKernel kernel = elementwise_kernel(desc);
  const int pack = map_pack(std::max(size_of(desc.type), size_of(out_type_of(desc))));
  CGRT_ASSIGN_OR_RETURN(const LaunchConfig config, internal::map_config(context, kernel, pack, desc.count));
  return ElementwisePlan{desc, kernel, config};
}

absl::Status launch_elementwise(LaunchTarget target, const ElementwisePlan& plan, const ElementwiseArgs& args) {
  const ElementwiseDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "out", args.out, out_type_of(desc)));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "a", args.a, desc.type));
  if (takes_two_inputs(desc.op)) CGRT_RETURN_IF_ERROR(check_pointer(desc, "b", args.b, desc.type));
  return launch(target, plan.config, plan.kernel, args.out, args.a, args.b, args.alpha, desc.count);
}

}  // namespace cgrt::kernels
