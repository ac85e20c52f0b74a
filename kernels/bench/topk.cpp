#include "cgrt_kernels/topk/topk.h"

#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

// tokens, experts, k
absl::StatusOr<Work> make_topk(const Case& test) {
  if (test.kernel != "topk_softmax") return absl::NotFoundError("");
  kernels::TopkDesc desc{.type = test.type};
  CGRT_ASSIGN_OR_RETURN(desc.tokens, test.size("tokens"));
  CGRT_ASSIGN_OR_RETURN(desc.experts, test.size("experts"));
  CGRT_ASSIGN_OR_RETURN(desc.k, test.size("k"));
  CGRT_ASSIGN_OR_RETURN(const kernels::TopkPlan plan, plan_topk(kDevice, desc));
  struct Set {
    Array logits;
    DeviceBuffer weights, chosen;
  };
  const std::size_t chosen_bytes = desc.tokens * desc.k * 4;
  const std::size_t bytes = desc.tokens * desc.experts * size_of(desc.type) + 2 * chosen_bytes;
  return Work{bytes, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(Array logits,
                                      make_array(test, stream, desc.type, desc.tokens * desc.experts, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer weights, DeviceBuffer::create(kDevice, chosen_bytes));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer chosen, DeviceBuffer::create(kDevice, chosen_bytes));
                const auto set = std::make_shared<Set>(Set{std::move(logits), std::move(weights), std::move(chosen)});
                return [=](LaunchTarget target) {
                  return launch_topk(target, plan,
                                     {.weights = set->weights.as<float>(),
                                      .chosen = set->chosen.as<std::int32_t>(),
                                      .logits = set->logits.data()});
                };
              }};
}

}  // namespace cgrt::bench
