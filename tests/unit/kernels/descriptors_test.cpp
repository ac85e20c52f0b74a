// Values that a descriptor's enums and numbers do not have: refused by every family, with the field and the value.
#include <limits>
#include <string>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/attention/attention.h"
#include "cgrt_kernels/batch_norm/batch_norm.h"
#include "cgrt_kernels/bias_activation/bias_activation.h"
#include "cgrt_kernels/bias_norm/bias_norm.h"
#include "cgrt_kernels/cub/cub.h"
#include "cgrt_kernels/decode_attention/decode_attention.h"
#include "cgrt_kernels/dropout/dropout.h"
#include "cgrt_kernels/elementwise/elementwise.h"
#include "cgrt_kernels/elementwise/matrix.h"
#include "cgrt_kernels/gemm/gemm.h"
#include "cgrt_kernels/group_norm/group_norm.h"
#include "cgrt_kernels/histogram/histogram.h"
#include "cgrt_kernels/index/index.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/reduce/reduce.h"
#include "cgrt_kernels/rope/rope.h"
#include "cgrt_kernels/sampling/sampling.h"
#include "cgrt_kernels/scan/scan.h"
#include "cgrt_kernels/skinny_gemm/skinny_gemm.h"
#include "cgrt_kernels/softmax/softmax.h"
#include "cgrt_kernels/topk/topk.h"
#include "cgrt_kernels/transpose_heads/transpose_heads.h"
#include "cgrt_kernels/upsample/upsample.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

constexpr DeviceRef kDevice(0);

template <class Enum>
constexpr auto kNone = static_cast<Enum>(77);

// The plan of `desc` is refused with "FIELD is 77" where the field has such a value.
template <class Plan, class Desc, class Enum>
void expect_value_refused(Plan plan, Desc desc, Enum Desc::*field, const char* name) {
  INFO(name);
  desc.*field = kNone<Enum>;
  const absl::Status status = plan(kDevice, desc).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CAPTURE(std::string(status.message()));
  CHECK(status.message().find(std::string(name) + " is 77") != absl::string_view::npos);
}

// The plan of `desc` is made, and refused with such a value.
template <class Plan, class Desc, class Enum>
void expect_refused(Plan plan, Desc desc, Enum Desc::*field, const char* name) {
  INFO(name);
  CHECK(plan(kDevice, desc).ok());
  expect_value_refused(plan, desc, field, name);
}

TEST_CASE("descriptors with values that an enum does not have are refused") {
  const Simulator simulator;
  expect_refused(plan_softmax, SoftmaxDesc{.rows = 2, .columns = 8}, &SoftmaxDesc::op, "op");
  expect_refused(plan_softmax, SoftmaxDesc{.rows = 2, .columns = 8}, &SoftmaxDesc::type, "type");
  expect_refused(plan_softmax_backward, SoftmaxBackwardDesc{.rows = 2, .columns = 8}, &SoftmaxBackwardDesc::op, "op");
  const MaskedSoftmaxDesc masked{.matrices = 2, .rows = 2, .columns = 8};
  expect_refused(plan_masked_softmax, masked, &MaskedSoftmaxDesc::causal, "causal");
  expect_refused(plan_norm, NormDesc{.rows = 2, .columns = 8}, &NormDesc::op, "op");
  expect_refused(plan_norm, NormDesc{.rows = 2, .columns = 8}, &NormDesc::residual, "residual");
  expect_refused(plan_bias_norm, BiasNormDesc{.rows = 2, .columns = 8}, &BiasNormDesc::op, "op");
  const BiasActivationDesc bias_activation{.rows = 2, .columns = 8};
  expect_refused(plan_bias_activation, bias_activation, &BiasActivationDesc::activation, "activation");
  expect_refused(plan_bias_activation, bias_activation, &BiasActivationDesc::gate, "gate");
  const NormBackwardDesc backward{.rows = 2, .columns = 8};
  expect_refused(plan_norm_backward, backward, &NormBackwardDesc::op, "op");
  expect_refused(plan_norm_backward, backward, &NormBackwardDesc::weight_gradients, "weight_gradients");
  const BatchNormDesc batch_norm{.batch = 2, .channels = 3, .plane = 4};
  expect_refused(plan_batch_norm, batch_norm, &BatchNormDesc::op, "op");
  expect_refused(plan_batch_norm, batch_norm, &BatchNormDesc::order, "order");
  expect_refused(plan_elementwise, ElementwiseDesc{.count = 8}, &ElementwiseDesc::op, "op");
  expect_refused(plan_elementwise, ElementwiseDesc{.count = 8}, &ElementwiseDesc::type, "type");
  expect_refused(plan_matrix, MatrixDesc{.rows = 2, .columns = 8}, &MatrixDesc::op, "op");
  const IndexDesc index{.rows = 2, .columns = 8, .count = 2};
  expect_refused(plan_index, index, &IndexDesc::op, "op");
  expect_refused(plan_index, index, &IndexDesc::index_type, "index_type");
  expect_refused(plan_index, index, &IndexDesc::order, "order");
  const UpsampleDesc upsample{.batch = 1, .channels = 1, .height = 2, .width = 2, .out_height = 4, .out_width = 4};
  expect_refused(plan_upsample, upsample, &UpsampleDesc::op, "op");
  expect_refused(plan_upsample, upsample, &UpsampleDesc::layout, "layout");
  expect_refused(plan_dropout, DropoutDesc{.count = 8}, &DropoutDesc::op, "op");
  expect_refused(plan_topk, TopkDesc{.tokens = 1, .experts = 8, .k = 2}, &TopkDesc::weights, "weights");
  const SkinnyGemmDesc skinny_gemm{.rows = 1, .n = 8, .k = 8};
  expect_refused(plan_skinny_gemm, skinny_gemm, &SkinnyGemmDesc::weights, "weights");
  expect_refused(plan_skinny_gemm, skinny_gemm, &SkinnyGemmDesc::activation, "activation");
  const MatmulDesc gemm{.m = 8, .n = 8, .k = 8};  // which builds without code for 9.0 have no kernel for
  expect_value_refused(plan_gemm, gemm, &MatmulDesc::type, "type");
  expect_value_refused(plan_gemm, gemm, &MatmulDesc::b_layout, "b_layout");
  expect_value_refused(plan_gemm, gemm, &MatmulDesc::epilogue, "epilogue");
  expect_value_refused(plan_gemm, gemm, &MatmulDesc::products, "products");
  const AttentionDesc attention{.batch = 1, .queries = 8, .keys = 8, .heads = 2, .kv_heads = 1, .head_size = 64};
  expect_refused(plan_attention, attention, &AttentionDesc::type, "type");
  expect_refused(plan_attention, attention, &AttentionDesc::mask, "mask");
  expect_refused(plan_attention, attention, &AttentionDesc::kernel, "kernel");
  const DecodeAttentionDesc decode{.heads = 2,
                                   .cache = {.sequences = 1, .positions = 8, .kv_heads = 1, .head_size = 64}};
  expect_refused(plan_decode_attention, decode, &DecodeAttentionDesc::type, "type");
  const auto plan_layout = [](ContextRef context, const KvCacheDesc& cache) {
    return plan_decode_attention(context, {.heads = 2, .cache = cache});
  };
  expect_refused(plan_layout, decode.cache, &KvCacheDesc::layout, "layout");
  expect_refused(plan_sampling, SamplingDesc{.rows = 2, .vocabulary = 8}, &SamplingDesc::op, "op");
  const GroupNormDesc group_norm{.batch = 1, .plane = 4, .channels = 64};
  expect_refused(plan_group_norm, group_norm, &GroupNormDesc::activation, "activation");
  const RopeDesc rope{.tokens = 1, .heads = 1, .kv_heads = 1, .head_size = 8, .positions = 2};
  expect_refused(plan_rope, rope, &RopeDesc::pairs, "pairs");
  const auto plan_rope_layout = [&](ContextRef context, const KvCacheDesc& cache) {
    RopeDesc with_cache = rope;
    with_cache.cache = cache;
    return plan_rope(context, with_cache);
  };
  expect_refused(plan_rope_layout, KvCacheDesc{.sequences = 1}, &KvCacheDesc::layout, "layout");
  const TransposeHeadsDesc transpose{.sequences = 1, .positions = 4, .heads = 2, .head_size = 8};
  expect_refused(plan_transpose_heads, transpose, &TransposeHeadsDesc::op, "op");
  expect_refused(plan_transpose_heads, transpose, &TransposeHeadsDesc::rows, "rows");
  expect_refused(plan_reduce, ReduceDesc{.rows = 2, .columns = 8}, &ReduceDesc::op, "op");
  expect_refused(plan_reduce, ReduceDesc{.rows = 2, .columns = 8}, &ReduceDesc::over, "over");
  expect_refused(plan_reduce, ReduceDesc{.rows = 2, .columns = 8}, &ReduceDesc::type, "type");
  expect_refused(plan_scan, ScanDesc{.columns = 8}, &ScanDesc::kind, "kind");
  expect_refused(plan_scan, ScanDesc{.columns = 8}, &ScanDesc::type, "type");
  const HistogramDesc histogram{.count = 8, .bins = 2, .lower = 0, .upper = 4};
  expect_refused(plan_histogram, histogram, &HistogramDesc::type, "type");
  expect_refused(plan_cub_scan, CubScanDesc{.count = 8}, &CubScanDesc::kind, "kind");
  expect_refused(plan_cub_scan, CubScanDesc{.count = 8}, &CubScanDesc::type, "type");
  expect_refused(plan_radix_sort, RadixSortDesc{.count = 8}, &RadixSortDesc::key, "key");
  expect_refused(plan_select, SelectDesc{.count = 8}, &SelectDesc::type, "type");
}

TEST_CASE("an epsilon that is no number, or negative, is refused") {
  const Simulator simulator;
  for (const float epsilon : {-1.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    CAPTURE(epsilon);
    const auto refused = [] { return StatusIs(absl::StatusCode::kInvalidArgument, "epsilon is "); };
    CHECK_THAT(plan_norm(kDevice, {.rows = 2, .columns = 8, .epsilon = epsilon}).status(), refused());
    CHECK_THAT(plan_norm_backward(kDevice, {.rows = 2, .columns = 8, .epsilon = epsilon}).status(), refused());
    CHECK_THAT(plan_bias_norm(kDevice, {.rows = 2, .columns = 8, .epsilon = epsilon}).status(), refused());
    CHECK_THAT(plan_batch_norm(kDevice, {.batch = 2, .channels = 3, .plane = 4, .epsilon = epsilon}).status(),
               refused());
  }
  CHECK(plan_norm(kDevice, {.rows = 2, .columns = 8, .epsilon = 0}).ok());
}

TEST_CASE("pixels of 4 GiB and more are upsampled in as many packs as they have") {
  const Simulator simulator;
  constexpr std::uint64_t kChannels = 1 << 30, kPacksOfBlock = 256;
  for (const UpsampleOp op : {UpsampleOp::kForward, UpsampleOp::kBackward}) {
    for (const std::uint64_t channels : {kChannels, kChannels + 4 * kPacksOfBlock}) {
      CAPTURE(to_string(op), channels);
      const absl::StatusOr<UpsamplePlan> plan = plan_upsample(kDevice, {.op = op,
                                                                        .layout = ImageLayout::kNhwc,
                                                                        .batch = 1,
                                                                        .channels = channels,
                                                                        .height = 1,
                                                                        .width = 1,
                                                                        .out_height = 1,
                                                                        .out_width = 1});
      REQUIRE(plan.ok());
      CHECK(plan->by_alignment[0].config.grid.x == channels / 4 / kPacksOfBlock);
    }
  }
}

}  // namespace
}  // namespace cgrt::testing
