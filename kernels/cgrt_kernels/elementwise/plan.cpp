#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/elementwise/elementwise.h"
#include "cgrt_kernels/elementwise/kernels.h"
#include "cgrt_kernels/elementwise/map.h"

namespace cgrt::kernels {
namespace {

OperationName name(const ElementwiseDesc& desc) { return {"Elementwise ", to_string(desc.op)}; }

absl::Status check_types(const ElementwiseDesc& desc) {
  if (desc.op == ElementwiseOp::kCast) {
    if (is_float(desc.type) && is_float(desc.out_type) && desc.type != desc.out_type) return absl::OkStatus();
    return refuse(name(desc), absl::StrCat("from ", to_string(desc.type), " to ", to_string(desc.out_type),
                                           "; the types must be two different ones of float32, float16 and bfloat16."));
  }
  const bool has_double = takes_two_inputs(desc.op) || desc.op == ElementwiseOp::kScale;
  if (is_float(desc.type) || (has_double && desc.type == DType::kFloat64)) return absl::OkStatus();
  return refuse_type(name(desc), desc.type,
                     has_double ? "float32, float16, bfloat16 and float64" : "float32, float16 and bfloat16");
}

}  // namespace

absl::StatusOr<ElementwisePlan> plan_elementwise(ContextRef context, const ElementwiseDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("elementwise", "op", desc.op, ElementwiseOp::kCast));
  if (desc.count == 0) {
    return refuse(name(desc), "the descriptor has 0 elements.");
  }
  CGRT_RETURN_IF_ERROR(check_types(desc));
  const ElementwiseKernel kernel = elementwise_kernel(desc);
  const int pack = map_pack(std::max(size_of(desc.type), size_of(out_type_of(desc))));
  CGRT_ASSIGN_OR_RETURN(const LaunchConfig config, internal::map_config(context, kernel, pack, desc.count));
  return ElementwisePlan{desc, kernel, config};
}

absl::Status launch_elementwise(LaunchTarget target, const ElementwisePlan& plan, const ElementwiseArgs& args) {
  const ElementwiseDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "out", args.out, out_type_of(desc)));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "a", args.a, desc.type));
  if (takes_two_inputs(desc.op)) CGRT_RETURN_IF_ERROR(check_array(name(desc), "b", args.b, desc.type));
  return launch(target, plan.config, plan.kernel, args.out, args.a, args.b, args.alpha, desc.count);
}

}  // namespace cgrt::kernels
