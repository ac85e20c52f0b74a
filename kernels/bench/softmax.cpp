#include "cgrt_kernels/softmax/softmax.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::SoftmaxOp;

// rows, columns
absl::StatusOr<Work> make_forward(const Case& test, SoftmaxOp op) {
  kernels::SoftmaxDesc desc{.op = op, .type = test.type};
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::SoftmaxPlan plan, plan_softmax(kDevice, desc));
  struct Set {
    Array out, in;
    DeviceBuffer workspace;
  };
  const std::uint64_t count = desc.rows * desc.columns;
  const std::size_t size = size_of(desc.type);
  return Work{2 * count * size, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, desc.type, count));
                CGRT_ASSIGN_OR_RETURN(Array in, make_array(test, stream, desc.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
                const auto set = std::make_shared<Set>(Set{std::move(out), std::move(in), std::move(workspace)});
                const bool in_place = test.is_chain;
                return [=](LaunchTarget target) {
                  return launch_softmax(target, plan,
                                        {.out = in_place ? set->in.data() : set->out.data(),
                                         .in = set->in.data(),
                                         .workspace = workspace_in(set->workspace)});
                };
              }};
}

// rows, columns
absl::StatusOr<Work> make_backward(const Case& test, SoftmaxOp op) {
  kernels::SoftmaxBackwardDesc desc{.op = op, .type = test.type};
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::SoftmaxBackwardPlan plan, plan_softmax_backward(kDevice, desc));
  struct Set {
    Array dx, dy, y;
    DeviceBuffer workspace;
  };
  const std::uint64_t count = desc.rows * desc.columns;
  const std::size_t size = size_of(desc.type);
  return Work{
      3 * count * size, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
        CGRT_ASSIGN_OR_RETURN(Array dx, make_output(test, desc.type, count));
        CGRT_ASSIGN_OR_RETURN(Array dy, make_array(test, stream, desc.type, count, seed));
        CGRT_ASSIGN_OR_RETURN(Array y, make_array(test, stream, desc.type, count, seed + 1));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
        const auto set = std::make_shared<Set>(Set{std::move(dx), std::move(dy), std::move(y), std::move(workspace)});
        const bool in_place = test.is_chain;
        return [=](LaunchTarget target) {
          return launch_softmax_backward(target, plan,
                                         {.dx = in_place ? set->dy.data() : set->dx.data(),
                                          .dy = set->dy.data(),
                                          .y = set->y.data(),
                                          .workspace = workspace_in(set->workspace)});
        };
      }};
}

// matrices, rows, columns; masks: that many matrices of an additive mask (0: none), causal=1
absl::StatusOr<Work> make_masked(const Case& test) {
  kernels::MaskedSoftmaxDesc desc{.type = test.type, .scale = 0.125f};
  CGRT_ASSIGN_OR_RETURN(desc.matrices, test.size("matrices"));
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  const std::uint64_t masks = test.size_or("masks", 0);
  if (masks != 0) desc.mask_matrices = masks;
  desc.mask_rows = desc.rows;
  if (test.size_or("causal", 0) != 0) desc.causal = kernels::CausalMask::kLowerRight;
  CGRT_ASSIGN_OR_RETURN(const kernels::MaskedSoftmaxPlan plan, plan_masked_softmax(kDevice, desc));
  struct Set {
    Array out, in, mask;
    DeviceBuffer workspace;
  };
  const std::uint64_t matrix = desc.rows * desc.columns, count = desc.matrices * matrix;
  const std::size_t size = size_of(desc.type);
  return Work{2 * count * size, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, desc.type, count));
                CGRT_ASSIGN_OR_RETURN(Array in, make_array(test, stream, desc.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(Array mask,
                                      make_array(test, stream, desc.type, desc.mask_matrices * matrix, seed + 1));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
                const auto set =
                    std::make_shared<Set>(Set{std::move(out), std::move(in), std::move(mask), std::move(workspace)});
                const bool in_place = test.is_chain;
                return [=](LaunchTarget target) {
                  return launch_masked_softmax(target, plan,
                                               {.out = in_place ? set->in.data() : set->out.data(),
                                                .in = set->in.data(),
                                                .mask = masks != 0 ? set->mask.data() : nullptr,
                                                .workspace = workspace_in(set->workspace)});
                };
              }};
}

}  // namespace

absl::StatusOr<Work> make_softmax(const Case& test) {
  for (const SoftmaxOp op : {SoftmaxOp::kSoftmax, SoftmaxOp::kLogSoftmax}) {
    if (test.kernel == to_string(op)) return make_forward(test, op);
    if (test.kernel == absl::StrCat(to_string(op), "_backward")) return make_backward(test, op);
  }
  if (test.kernel == "masked_softmax") return make_masked(test);
  return absl::NotFoundError("");
}

}  // namespace cgrt::bench
