#include "cgrt_kernels/batch_norm/batch_norm.h"

#include <algorithm>
#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::BatchNormOp;
using kernels::DType;

struct Set {
  Array out, in, gradient;
  Array weight, bias, running_mean, running_variance, mean, invstd, weight_gradient, bias_gradient;
  DeviceBuffer workspace;
};

}  // namespace

// batch, channels, plane; nhwc=1: channels last; shift
absl::StatusOr<Work> make_batch_norm(const Case& test) {
  kernels::BatchNormDesc desc{.type = test.type};
  bool is_known = false;
  for (const BatchNormOp op : {BatchNormOp::kTrain, BatchNormOp::kInfer, BatchNormOp::kBackward}) {
    if (test.kernel == to_string(op)) desc.op = op, is_known = true;
  }
  if (!is_known) return absl::NotFoundError("");
  CGRT_ASSIGN_OR_RETURN(desc.batch, test.size("batch"));
  CGRT_ASSIGN_OR_RETURN(desc.channels, test.size("channels"));
  desc.plane = test.size_or("plane", 1);
  desc.order = test.size_or("nhwc", 0) != 0 ? kernels::ChannelOrder::kNhwc : kernels::ChannelOrder::kNchw;
  if (test.shift() != 0) desc.alignment = static_cast<std::uint32_t>(size_of(desc.type));
  CGRT_ASSIGN_OR_RETURN(const kernels::BatchNormPlan plan, plan_batch_norm(kDevice, desc));
  const std::uint64_t count = desc.batch * desc.channels * desc.plane;
  const bool is_backward = desc.op == BatchNormOp::kBackward, in_place = test.is_chain;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    const auto parameters = [&](std::uint32_t nth) {
      return make_array(test, stream, DType::kFloat32, desc.channels, seed + nth);
    };
    CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, desc.type, count));
    CGRT_ASSIGN_OR_RETURN(Array in, make_array(test, stream, desc.type, count, seed));
    CGRT_ASSIGN_OR_RETURN(Array gradient, make_array(test, stream, desc.type, is_backward ? count : 1, seed + 1));
    CGRT_ASSIGN_OR_RETURN(Array weight, parameters(2));
    CGRT_ASSIGN_OR_RETURN(Array bias, parameters(3));
    CGRT_ASSIGN_OR_RETURN(Array running_mean, parameters(4));
    CGRT_ASSIGN_OR_RETURN(Array running_variance, parameters(5));
    CGRT_ASSIGN_OR_RETURN(Array mean, parameters(6));
    CGRT_ASSIGN_OR_RETURN(Array invstd, parameters(7));
    CGRT_ASSIGN_OR_RETURN(Array weight_gradient, parameters(8));
    CGRT_ASSIGN_OR_RETURN(Array bias_gradient, parameters(9));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
    const auto set = std::make_shared<Set>(Set{std::move(out), std::move(in), std::move(gradient), std::move(weight),
                                               std::move(bias), std::move(running_mean), std::move(running_variance),
                                               std::move(mean), std::move(invstd), std::move(weight_gradient),
                                               std::move(bias_gradient), std::move(workspace)});
    return [=](LaunchTarget target) {
      void* const result = in_place ? set->in.data() : set->out.data();
      switch (desc.op) {
        case BatchNormOp::kTrain:
          return launch_batch_norm_train(target, plan,
                                         {.y = result,
                                          .x = set->in.data(),
                                          .weight = set->weight.as<float>(),
                                          .bias = set->bias.as<float>(),
                                          .running_mean = set->running_mean.as<float>(),
                                          .running_variance = set->running_variance.as<float>(),
                                          .save_mean = set->mean.as<float>(),
                                          .save_invstd = set->invstd.as<float>(),
                                          .workspace = workspace_in(set->workspace)});
        case BatchNormOp::kInfer:
          return launch_batch_norm_infer(target, plan,
                                         {.y = result,
                                          .x = set->in.data(),
                                          .weight = set->weight.as<float>(),
                                          .bias = set->bias.as<float>(),
                                          .running_mean = set->running_mean.as<float>(),
                                          .running_variance = set->running_variance.as<float>()});
        case BatchNormOp::kBackward: break;
      }
      return launch_batch_norm_backward(target, plan,
                                        {.x_gradient = result,
                                         .x = set->in.data(),
                                         .y_gradient = set->gradient.data(),
                                         .weight = set->weight.as<float>(),
                                         .save_mean = set->mean.as<float>(),
                                         .save_invstd = set->invstd.as<float>(),
                                         .weight_gradient = set->weight_gradient.as<float>(),
                                         .bias_gradient = set->bias_gradient.as<float>(),
                                         .workspace = workspace_in(set->workspace)});
    };
  };
  return Work{(is_backward ? 3 : 2) * count * size_of(desc.type), make};
}

}  // namespace cgrt::bench
