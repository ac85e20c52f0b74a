#include "absl/strings/str_cat.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

absl::StatusOr<Work> make_work(const Case& test) {
  for (const auto make : {
           make_atomics,         make_attention,   make_bandwidth,   make_batch_norm,       make_bias_activation,
           make_bias_norm,       make_cub,         make_cub_reduce,  make_decode_attention, make_decode_step,
           make_dropout,         make_elementwise, make_gemm,        make_gemm_ladder,      make_group_norm,
           make_index,           make_norm,        make_reduce,      make_reduce_ladder,    make_rope,
           make_sampling,        make_scan,        make_skinny_gemm, make_softmax,          make_topk,
           make_transpose_heads, make_upsample,
       }) {
    absl::StatusOr<Work> work = make(test);
    if (!absl::IsNotFound(work.status())) return work;
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no kernel \"", test.kernel, "\"."));
}

}  // namespace cgrt::bench
