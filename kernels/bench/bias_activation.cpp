#include "cgrt_kernels/bias_activation/bias_activation.h"

#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::BiasActivation;
using kernels::BiasGate;

struct Named {
  const char* name;
  BiasActivation activation;
  BiasGate gate;
};
constexpr Named kNamed[] = {{"bias_relu", BiasActivation::kRelu, BiasGate::kNone},
                            {"bias_silu", BiasActivation::kSilu, BiasGate::kNone},
                            {"bias_gelu", BiasActivation::kGelu, BiasGate::kNone},
                            {"bias_gelu_tanh", BiasActivation::kGeluTanh, BiasGate::kNone},
                            {"bias_silu_gate", BiasActivation::kSilu, BiasGate::kGated},
                            {"bias_gelu_gate", BiasActivation::kGelu, BiasGate::kGated}};

struct Set {
  Array out, a, bias;
};

}  // namespace

// rows, columns
absl::StatusOr<Work> make_bias_activation(const Case& test) {
  kernels::BiasActivationDesc desc{.type = test.type};
  bool is_known = false;
  for (const Named& named : kNamed) {
    if (test.kernel == named.name) desc.activation = named.activation, desc.gate = named.gate, is_known = true;
  }
  if (!is_known) return absl::NotFoundError("");
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::BiasActivationPlan plan, plan_bias_activation(kDevice, desc));
  const std::uint64_t count = desc.rows * desc.columns, factors = desc.gate == BiasGate::kGated ? 2 : 1;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, desc.type, count));
    CGRT_ASSIGN_OR_RETURN(Array a, make_array(test, stream, desc.type, factors * count, seed));
    CGRT_ASSIGN_OR_RETURN(Array bias, make_array(test, stream, desc.type, factors * desc.columns, seed + 1));
    const auto set = std::make_shared<Set>(Set{std::move(out), std::move(a), std::move(bias)});
    const bool in_place = test.is_chain && factors == 1;
    return [=](LaunchTarget target) {
      return launch_bias_activation(
          target, plan,
          {.out = in_place ? set->a.data() : set->out.data(), .a = set->a.data(), .bias = set->bias.data()});
    };
  };
  return Work{(1 + factors) * count * size_of(desc.type), make};
}

}  // namespace cgrt::bench
