#include "cgrt_kernels/group_norm/group_norm.h"

#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

struct Set {
  Array y, x, weight, bias;
  DeviceBuffer workspace;
};

}  // namespace

// batch, plane, channels, groups; silu=1: with the activation
absl::StatusOr<Work> make_group_norm(const Case& test) {
  if (test.kernel != "group_norm") return absl::NotFoundError("");
  kernels::GroupNormDesc desc{.type = test.type};
  CGRT_ASSIGN_OR_RETURN(desc.batch, test.size("batch"));
  CGRT_ASSIGN_OR_RETURN(desc.plane, test.size("plane"));
  CGRT_ASSIGN_OR_RETURN(desc.channels, test.size("channels"));
  desc.groups = test.size_or("groups", desc.groups);
  if (test.size_or("silu", 0) != 0) desc.activation = kernels::GroupNormActivation::kSilu;
  CGRT_ASSIGN_OR_RETURN(const kernels::GroupNormPlan plan, plan_group_norm(kDevice, desc));
  const std::uint64_t count = desc.batch * desc.plane * desc.channels;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(Array y, make_output(test, desc.type, count));
    CGRT_ASSIGN_OR_RETURN(Array x, make_array(test, stream, desc.type, count, seed));
    CGRT_ASSIGN_OR_RETURN(Array weight, make_array(test, stream, desc.type, desc.channels, seed + 1));
    CGRT_ASSIGN_OR_RETURN(Array bias, make_array(test, stream, desc.type, desc.channels, seed + 2));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
    const auto set = std::make_shared<Set>(
        Set{std::move(y), std::move(x), std::move(weight), std::move(bias), std::move(workspace)});
    return [=](LaunchTarget target) {
      return launch_group_norm(target, plan,
                               {.y = set->y.data(),
                                .x = set->x.data(),
                                .weight = set->weight.data(),
                                .bias = set->bias.data(),
                                .workspace = workspace_in(set->workspace)});
    };
  };
  return Work{2 * count * size_of(desc.type), make};
}

}  // namespace cgrt::bench
