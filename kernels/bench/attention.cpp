#include "cgrt_kernels/attention/attention.h"

#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

// batch, tokens, heads, kv_heads, head_size: queries and keys are as many. attention_causal: with the mask.
absl::StatusOr<Work> make_attention(const Case& test) {
  const bool is_causal = test.kernel == "attention_causal";
  if (!is_causal && test.kernel != "attention") return absl::NotFoundError("");
  kernels::AttentionDesc desc{.type = test.type};
  if (is_causal) desc.mask = kernels::AttentionMask::kCausal;
  CGRT_ASSIGN_OR_RETURN(desc.batch, test.size("batch"));
  CGRT_ASSIGN_OR_RETURN(desc.queries, test.size("tokens"));
  CGRT_ASSIGN_OR_RETURN(desc.heads, test.size("heads"));
  CGRT_ASSIGN_OR_RETURN(desc.kv_heads, test.size("kv_heads"));
  CGRT_ASSIGN_OR_RETURN(desc.head_size, test.size("head_size"));
  desc.keys = desc.queries;
  CGRT_ASSIGN_OR_RETURN(const kernels::AttentionPlan plan, plan_attention(kDevice, desc));
  struct Set {
    Array out, q, k, v;
  };
  const std::uint64_t queries = desc.batch * desc.queries * desc.heads * desc.head_size;
  const std::uint64_t keys = desc.batch * desc.keys * desc.kv_heads * desc.head_size;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, desc.type, queries));
    CGRT_ASSIGN_OR_RETURN(Array q, make_array(test, stream, desc.type, queries, seed));
    CGRT_ASSIGN_OR_RETURN(Array k, make_array(test, stream, desc.type, keys, seed + 1));
    CGRT_ASSIGN_OR_RETURN(Array v, make_array(test, stream, desc.type, keys, seed + 2));
    const auto set = std::make_shared<Set>(Set{std::move(out), std::move(q), std::move(k), std::move(v)});
    return [=](LaunchTarget target) {
      return launch_attention(target, plan,
                              {.out = set->out.data(), .q = set->q.data(), .k = set->k.data(), .v = set->v.data()});
    };
  };
  return Work{2 * (queries + keys) * size_of(desc.type), make};
}

}  // namespace cgrt::bench
