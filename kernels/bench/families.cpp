#include "absl/strings/str_cat.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

absl::StatusOr<Work> make_work(const Case& test) {
  for (const auto make : {
           make_attention,       make_softmax,     make_norm,        make_decode_attention,
           make_dropout,         make_elementwise, make_group_norm,  make_reduce,
           make_reduce_ladder,   make_atomics,     make_cub_reduce,  make_rope,
           make_sampling,        make_scan,        make_skinny_gemm, make_cub,
           make_matmul,          make_batch_norm,  make_topk,        make_upsample,
           make_index,           make_bandwidth,   make_bias_norm,   make_transpose_heads,
           make_bias_activation, make_decode_step, make_gemm,        make_gemm_ladder,
       }) {
    absl::StatusOr<Work> work = make(test);
    if (!absl::IsNotFound(work.status())) return work;
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no kernel \"", test.kernel, "\"."));
}

}  // namespace cgrt::bench
