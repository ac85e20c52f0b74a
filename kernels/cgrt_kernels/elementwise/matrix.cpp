#include "cgrt_kernels/elementwise/matrix.h"

#include <cstdint>

#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/elementwise/kernels.h"
#include "cgrt_kernels/elementwise/map.h"

namespace cgrt::kernels {
absl::StatusOr<MatrixPlan> plan_matrix(ContextRef context, const MatrixDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("elementwise on a matrix", "op", desc.op, MatrixOp::kGeluTanhAndMul));
  CGRT_RETURN_IF_ERROR(check_matrix(to_string(desc.op), desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(to_string(desc.op), desc.type));
  const int pack = map_pack(size_of(desc.type));
  const auto kernel_of = [&](Alignment alignment) { return matrix_kernel(desc.op, desc.type, alignment); };
  const bool has_packs = desc.columns % static_cast<unsigned>(pack) == 0;
  MatrixPlan plan{
      desc, kernel_of(has_packs ? Alignment::kAligned : Alignment::kUnaligned), kernel_of(Alignment::kUnaligned), {}};
  for (const auto& kernel : {plan.aligned, plan.unaligned}) {
    CGRT_ASSIGN_OR_RETURN(plan.config, internal::map_config(context, kernel, pack, desc.rows * desc.columns));
  }
  return plan;
}

absl::Status launch_matrix(LaunchTarget target, const MatrixPlan& plan, const MatrixArgs& args) {
  const MatrixDesc& desc = plan.desc;
  const char* const name = to_string(desc.op);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "a", args.a, desc.type));
  if (!is_gated(desc.op)) CGRT_RETURN_IF_ERROR(check_array(name, "b", args.b, desc.type));
  if (is_gated(desc.op) && args.out == args.a) {
    return refuse(name, "out is a, whose rows are twice as long; it cannot work in place.");
  }
  const bool reads_packs_of_b = !is_gated(desc.op) && !is_per_row(desc.op);
  const Alignment alignment = alignment_of(args.out, args.a, reads_packs_of_b ? args.b : nullptr);
  return launch(target, plan.config, alignment == Alignment::kAligned ? plan.aligned : plan.unaligned,
                MatrixParams{args.out, args.a, args.b, static_cast<std::uint32_t>(desc.rows),
                             WideDivisor(static_cast<std::uint32_t>(desc.columns))});
}

}  // namespace cgrt::kernels
