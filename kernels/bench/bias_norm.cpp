#include "cgrt_kernels/bias_norm/bias_norm.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

struct Set {
  Array out, sum, in, residual, in_bias, weight, bias;
};

}  // namespace

// rows, columns
absl::StatusOr<Work> make_bias_norm(const Case& test) {
  kernels::BiasNormDesc desc{.type = test.type};
  bool is_known = false;
  for (const kernels::NormOp op : {kernels::NormOp::kLayerNorm, kernels::NormOp::kRmsNorm}) {
    if (test.kernel == absl::StrCat("bias_add_", to_string(op))) desc.op = op, is_known = true;
  }
  if (!is_known) return absl::NotFoundError("");
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::BiasNormPlan plan, plan_bias_norm(kDevice, desc));
  const std::uint64_t count = desc.rows * desc.columns;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, desc.type, count));
    CGRT_ASSIGN_OR_RETURN(Array sum, make_output(test, desc.type, count));
    CGRT_ASSIGN_OR_RETURN(Array in, make_array(test, stream, desc.type, count, seed));
    CGRT_ASSIGN_OR_RETURN(Array residual, make_array(test, stream, desc.type, count, seed + 1));
    CGRT_ASSIGN_OR_RETURN(Array in_bias, make_array(test, stream, desc.type, desc.columns, seed + 2));
    CGRT_ASSIGN_OR_RETURN(Array weight, make_array(test, stream, desc.type, desc.columns, seed + 3));
    CGRT_ASSIGN_OR_RETURN(Array bias, make_array(test, stream, desc.type, desc.columns, seed + 4));
    const auto set = std::make_shared<Set>(Set{std::move(out), std::move(sum), std::move(in), std::move(residual),
                                               std::move(in_bias), std::move(weight), std::move(bias)});
    const bool in_place = test.is_chain;
    return [=](LaunchTarget target) {
      return launch_bias_norm(target, plan,
                              {.out = in_place ? set->in.data() : set->out.data(),
                               .in = set->in.data(),
                               .in_bias = set->in_bias.data(),
                               .residual = set->residual.data(),
                               .weight = set->weight.data(),
                               .bias = set->bias.data(),
                               .sum = in_place ? set->residual.data() : set->sum.data()});
    };
  };
  return Work{4 * count * size_of(desc.type), make};
}

}  // namespace cgrt::bench
