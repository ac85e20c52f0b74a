#include "cgrt_kernels/rows_backward/rows_backward.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

using kernels::RowOp;
using kernels::WeightGradients;

// rows, columns; weights=0: no weight gradients
absl::StatusOr<Work> make_rows_backward(const Case& test) {
  kernels::RowsBackwardDesc desc{.type = test.type};
  bool is_known = false;
  for (const RowOp op : {RowOp::kSoftmax, RowOp::kLogSoftmax, RowOp::kLayerNorm, RowOp::kRmsNorm}) {
    if (test.kernel == absl::StrCat(to_string(op), "_backward")) desc.op = op, is_known = true;
  }
  if (!is_known) return absl::NotFoundError("");
  const bool is_norm = desc.op == RowOp::kLayerNorm || desc.op == RowOp::kRmsNorm;
  if (is_norm && test.size_or("weights", 1) != 0) desc.weight_gradients = WeightGradients::kSummed;
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::RowsBackwardPlan plan, plan_rows_backward(kDevice, desc));
  struct Set {
    DeviceBuffer dx, dy, saved, weight, dweight, dbias, workspace;
  };
  const std::uint64_t count = desc.rows * desc.columns;
  const std::size_t size = size_of(desc.type);
  return Work{3 * count * size, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer dx, DeviceBuffer::create(kDevice, count * size));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer dy, make_numbers(stream, desc.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer saved, make_numbers(stream, desc.type, count, seed + 1));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer weight, make_numbers(stream, desc.type, desc.columns, seed + 2));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer dweight, DeviceBuffer::create(kDevice, desc.columns * size));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer dbias, DeviceBuffer::create(kDevice, desc.columns * size));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace,
                                      DeviceBuffer::create(kDevice, std::max<std::size_t>(plan.workspace_bytes, 1)));
                const auto set =
                    std::make_shared<Set>(Set{std::move(dx), std::move(dy), std::move(saved), std::move(weight),
                                              std::move(dweight), std::move(dbias), std::move(workspace)});
                const bool in_place = test.is_chain;
                return [=](LaunchTarget target) {
                  return launch_rows_backward(target, plan,
                                              {.dx = in_place ? set->dy.data() : set->dx.data(),
                                               .dy = set->dy.data(),
                                               .saved = set->saved.data(),
                                               .weight = set->weight.data(),
                                               .dweight = set->dweight.data(),
                                               .dbias = set->dbias.data(),
                                               .workspace = set->workspace.data()});
                };
              }};
}

}  // namespace cgrt::bench
