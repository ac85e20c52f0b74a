#include "kernels/residency_works.h"

#include <algorithm>
#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/attention/attention.h"
#include "cgrt_kernels/batch_norm/batch_norm.h"
#include "cgrt_kernels/bias_activation/bias_activation.h"
#include "cgrt_kernels/bias_norm/bias_norm.h"
#include "cgrt_kernels/decode_attention/decode_attention.h"
#include "cgrt_kernels/dropout/dropout.h"
#include "cgrt_kernels/elementwise/elementwise.h"
#include "cgrt_kernels/elementwise/matrix.h"
#include "cgrt_kernels/gemm/gemm.h"
#include "cgrt_kernels/group_norm/group_norm.h"
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

namespace cgrt::testing {
namespace {

using namespace kernels;
using Make = std::function<absl::StatusOr<Work>(Arena&)>;

constexpr std::uint32_t kOne = 0x3f800000, kTwoHalves = 0x3c003c00;  // 1 as float, 1 and 1 as half

Make reduce(ReduceOp op, ReduceOver over, std::uint64_t rows, std::uint64_t columns) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const ReduceDesc desc{op, DType::kFloat32, over, arena.rows(rows), columns};
    CGRT_ASSIGN_OR_RETURN(const ReducePlan plan, plan_reduce(kDevice, desc));
    const std::size_t bytes = (over == ReduceOver::kColumn ? columns : over == ReduceOver::kRow ? desc.rows : 1) * 8;
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(desc.rows * columns * 4));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    const ReduceArgs args{.out = out, .in = in, .other = in, .workspace = workspace};
    return Work{[=](LaunchTarget target) { return launch_reduce(target, plan, args); }, out, bytes};
  };
}

Make scan(DType type, std::uint64_t rows, std::uint64_t columns) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const ScanDesc desc{.type = type, .rows = rows, .columns = arena.rows(columns)};
    CGRT_ASSIGN_OR_RETURN(const ScanPlan plan, plan_scan(kDevice, desc));
    const std::size_t bytes = rows * desc.columns * size_of(type);
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    return Work{[=](LaunchTarget target) { return launch_scan(target, plan, {out, in, workspace}); }, out, bytes};
  };
}

Make softmax(std::uint64_t count, std::uint64_t columns) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const SoftmaxDesc desc{SoftmaxOp::kSoftmax, DType::kFloat32, arena.rows(count), columns};
    CGRT_ASSIGN_OR_RETURN(const SoftmaxPlan plan, plan_softmax(kDevice, desc));
    const std::size_t bytes = desc.rows * columns * 4;
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    const SoftmaxArgs args{.out = out, .in = in, .workspace = workspace};
    return Work{[=](LaunchTarget target) { return launch_softmax(target, plan, args); }, out, bytes};
  };
}

Make norm_backward(WeightGradients gradients, std::uint64_t count, std::uint64_t columns) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const NormBackwardDesc desc{NormOp::kLayerNorm, DType::kFloat32, arena.rows(count), columns, 1e-5f, gradients};
    CGRT_ASSIGN_OR_RETURN(const NormBackwardPlan plan, plan_norm_backward(kDevice, desc));
    const std::size_t bytes = desc.rows * columns * 4;
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const dweight, arena.output(columns * 4));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    const NormBackwardArgs args{.dx = out, .dy = in, .x = in, .dweight = dweight, .workspace = workspace};
    return Work{[=](LaunchTarget target) { return launch_norm_backward(target, plan, args); }, out, bytes};
  };
}

Make masked_softmax(std::uint64_t count, std::uint64_t columns) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const MaskedSoftmaxDesc desc{.rows = arena.rows(count), .columns = columns, .causal = CausalMask::kLowerRight};
    CGRT_ASSIGN_OR_RETURN(const MaskedSoftmaxPlan plan, plan_masked_softmax(kDevice, desc));
    const std::size_t bytes = desc.rows * columns * 4;
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    const MaskedSoftmaxArgs args{.out = out, .in = in, .workspace = workspace};
    return Work{[=](LaunchTarget target) { return launch_masked_softmax(target, plan, args); }, out, bytes};
  };
}

Make norm(NormOp op, Residual residual, std::uint64_t count, std::uint64_t columns) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const NormDesc desc{op, DType::kFloat32, arena.rows(count), columns, 1e-5f, residual};
    CGRT_ASSIGN_OR_RETURN(const NormPlan plan, plan_norm(kDevice, desc));
    const std::size_t bytes = desc.rows * columns * 4;
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const sum, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    NormArgs args{.out = out, .in = in, .weight = in, .workspace = workspace};
    if (residual == Residual::kAdded) args.residual = in, args.sum = sum;
    return Work{[=](LaunchTarget target) { return launch_norm(target, plan, args); }, out, bytes};
  };
}

Make batch_norm(BatchNormOp op, ChannelOrder order, std::uint64_t batch, std::uint64_t channels, std::uint64_t plane) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const BatchNormDesc desc{
        .op = op, .order = order, .batch = arena.rows(batch) + 1, .channels = channels, .plane = plane};
    CGRT_ASSIGN_OR_RETURN(const BatchNormPlan plan, plan_batch_norm(kDevice, desc));
    const std::size_t bytes = desc.batch * channels * plane * 4;
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const of_channels, arena.filled(2 * channels * 4, kOne));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    auto* const mean = static_cast<float*>(of_channels);
    float* const invstd = mean + channels;
    return Work{[=](LaunchTarget target) {
                  if (op == BatchNormOp::kInfer) {
                    return launch_batch_norm_infer(
                        target, plan, {.y = out, .x = in, .running_mean = mean, .running_variance = invstd});
                  }
                  if (op == BatchNormOp::kTrain) {
                    return launch_batch_norm_train(
                        target, plan,
                        {.y = out, .x = in, .save_mean = mean, .save_invstd = invstd, .workspace = workspace});
                  }
                  return launch_batch_norm_backward(target, plan,
                                                    {.x_gradient = out,
                                                     .x = in,
                                                     .y_gradient = in,
                                                     .save_mean = mean,
                                                     .save_invstd = invstd,
                                                     .workspace = workspace});
                },
                out, bytes};
  };
}

// What is added is ones: sums are the same in whatever order.
Make index(IndexOp op, DType type, std::uint64_t of, std::uint64_t columns, std::uint64_t count, SumOrder order) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const IndexDesc desc{op, type, DType::kInt64, arena.rows(of), columns, arena.rows(count), order};
    CGRT_ASSIGN_OR_RETURN(const IndexPlan plan, plan_index(kDevice, desc));
    const std::size_t named = desc.count * columns * size_of(type), matrix = desc.rows * columns * size_of(type);
    const bool is_select = op == IndexOp::kSelect;
    const std::size_t out_bytes = is_select ? named : matrix;
    CGRT_ASSIGN_OR_RETURN(void* const in, is_select ? arena.input(matrix)
                                                    : arena.filled(named, type == DType::kFloat16 ? kTwoHalves : kOne));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(out_bytes));
    CGRT_ASSIGN_OR_RETURN(std::int64_t* const indices,
                          arena.indices(op == IndexOp::kScatterAdd ? desc.count * columns : desc.count, desc.rows));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    const IndexArgs args{.out = out, .in = in, .index = indices, .workspace = workspace};
    const unsigned char before = is_select ? Work{}.before : 0;
    return Work{[=](LaunchTarget target) { return launch_index(target, plan, args); }, out, out_bytes, before};
  };
}

Make upsample(UpsampleOp op, ImageLayout layout) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const UpsampleDesc desc{.op = op,
                            .layout = layout,
                            .batch = arena.rows(64),
                            .channels = 16,
                            .height = 40,
                            .width = 40,
                            .out_height = 100,
                            .out_width = 100};
    CGRT_ASSIGN_OR_RETURN(const UpsamplePlan plan, plan_upsample(kDevice, desc));
    const std::size_t small = desc.batch * 16 * 40 * 40 * 4, large = desc.batch * 16 * 100 * 100 * 4;
    const bool is_forward = op == UpsampleOp::kForward;
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(is_forward ? small : large));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(is_forward ? large : small));
    return Work{[=](LaunchTarget target) { return launch_upsample(target, plan, {.out = out, .in = in}); }, out,
                is_forward ? large : small};
  };
}

Make matrix(std::uint64_t count, std::uint64_t columns) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const MatrixDesc desc{MatrixOp::kAddPerColumn, DType::kFloat32, arena.rows(count), columns};
    CGRT_ASSIGN_OR_RETURN(const MatrixPlan plan, plan_matrix(kDevice, desc));
    const std::size_t bytes = desc.rows * columns * 4;
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    return Work{[=](LaunchTarget target) { return launch_matrix(target, plan, {.out = out, .a = in, .b = in}); }, out,
                bytes};
  };
}

Make elementwise(std::uint64_t count) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const ElementwiseDesc desc{ElementwiseOp::kAdd, arena.rows(count)};
    CGRT_ASSIGN_OR_RETURN(const ElementwisePlan plan, plan_elementwise(kDevice, desc));
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(desc.count * 4));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(desc.count * 4));
    return Work{[=](LaunchTarget target) { return launch_elementwise(target, plan, {.out = out, .a = in, .b = in}); },
                out, desc.count * 4};
  };
}

// Parts of sequences, which the blocks of a cluster merge, or the block that ends last.
Make decode_attention(std::uint64_t sequences, std::uint64_t positions) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const DecodeAttentionDesc desc{
        .heads = 8,
        .cache = {.sequences = arena.rows(sequences), .positions = positions, .kv_heads = 2, .head_size = 128}};
    CGRT_ASSIGN_OR_RETURN(const DecodeAttentionPlan plan, plan_decode_attention(kDevice, desc));
    const std::uint64_t rows = desc.cache.sequences, bytes = rows * 8 * 128 * 2;
    CGRT_ASSIGN_OR_RETURN(void* const q, arena.numbers(desc.type, rows * 8 * 128));
    CGRT_ASSIGN_OR_RETURN(void* const k, arena.numbers(desc.type, rows * positions * 2 * 128));
    CGRT_ASSIGN_OR_RETURN(void* const v, arena.numbers(desc.type, rows * positions * 2 * 128));
    CGRT_ASSIGN_OR_RETURN(void* const lengths, arena.filled(rows * 4, static_cast<std::uint32_t>(positions)));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    const DecodeAttentionArgs args{.out = out,
                                   .q = q,
                                   .k = k,
                                   .v = v,
                                   .lengths = static_cast<const std::int32_t*>(lengths),
                                   .workspace = workspace};
    return Work{[=](LaunchTarget target) { return launch_decode_attention(target, plan, args); }, out, bytes};
  };
}

// Tiles of weights that blocks share, or clusters.
Make skinny_gemm(std::uint64_t rows, std::uint64_t n, std::uint64_t k) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const SkinnyGemmDesc desc{.type = DType::kBFloat16, .rows = rows, .n = arena.rows(n), .k = k};
    CGRT_ASSIGN_OR_RETURN(const SkinnyGemmPlan plan, plan_skinny_gemm(kDevice, desc));
    const std::size_t bytes = rows * desc.n * 2;
    CGRT_ASSIGN_OR_RETURN(void* const x, arena.numbers(desc.type, rows * k));
    CGRT_ASSIGN_OR_RETURN(void* const weights, arena.numbers(desc.type, desc.n * k));
    CGRT_ASSIGN_OR_RETURN(void* const y, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    const SkinnyGemmArgs args{.y = y, .x = x, .weights = weights, .workspace = workspace};
    return Work{[=](LaunchTarget target) { return launch_skinny_gemm(target, plan, args); }, y, bytes};
  };
}

Make gemm(std::uint64_t m, std::uint64_t n, std::uint64_t k) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const MatmulDesc desc{.m = arena.rows(m), .n = n, .k = k};
    CGRT_ASSIGN_OR_RETURN(const GemmPlan plan, plan_gemm(kDevice, desc));
    const std::size_t bytes = desc.m * n * size_of(desc.type);
    CGRT_ASSIGN_OR_RETURN(void* const a, arena.numbers(desc.type, desc.m * k));
    CGRT_ASSIGN_OR_RETURN(void* const b, arena.numbers(desc.type, k * n));
    CGRT_ASSIGN_OR_RETURN(void* const d, arena.output(bytes));
    const MatmulArgs args{.d = d, .a = a, .b = b};
    return Work{[=](LaunchTarget target) { return launch_gemm(target, plan, args); }, d, bytes};
  };
}

// Slices of rows.
Make greedy_sampling(std::uint64_t count, std::uint64_t vocabulary) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const SamplingDesc desc{.rows = arena.rows(count), .vocabulary = vocabulary};
    CGRT_ASSIGN_OR_RETURN(const SamplingPlan plan, plan_sampling(kDevice, desc));
    const std::size_t bytes = desc.rows * 4;
    CGRT_ASSIGN_OR_RETURN(void* const logits, arena.input(desc.rows * vocabulary * 4));
    CGRT_ASSIGN_OR_RETURN(void* const token, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    const SamplingArgs args{.token = token, .logits = logits, .workspace = workspace};
    return Work{[=](LaunchTarget target) { return launch_sampling(target, plan, args); }, token, bytes};
  };
}

Make group_norm(std::uint64_t batch, std::uint64_t plane, std::uint64_t channels) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const GroupNormDesc desc{.type = DType::kFloat32, .batch = arena.rows(batch), .plane = plane, .channels = channels};
    CGRT_ASSIGN_OR_RETURN(const GroupNormPlan plan, plan_group_norm(kDevice, desc));
    const std::size_t bytes = desc.batch * plane * channels * size_of(desc.type);
    CGRT_ASSIGN_OR_RETURN(void* const x, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const y, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(const Workspace workspace, arena.workspace(plan.workspace_bytes));
    const GroupNormArgs args{.y = y, .x = x, .workspace = workspace};
    return Work{[=](LaunchTarget target) { return launch_group_norm(target, plan, args); }, y, bytes};
  };
}

Make attention(std::uint64_t batch, std::uint64_t tokens) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const AttentionDesc desc{.mask = AttentionMask::kCausal,
                             .batch = arena.rows(batch),
                             .queries = tokens,
                             .keys = tokens,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_size = 64};
    CGRT_ASSIGN_OR_RETURN(const AttentionPlan plan, plan_attention(kDevice, desc));
    const std::uint64_t count = desc.batch * tokens * 64, bytes = count * 4 * 2;
    CGRT_ASSIGN_OR_RETURN(void* const q, arena.numbers(desc.type, count * 4));
    CGRT_ASSIGN_OR_RETURN(void* const k, arena.numbers(desc.type, count * 2));
    CGRT_ASSIGN_OR_RETURN(void* const v, arena.numbers(desc.type, count * 2));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    const AttentionArgs args{.out = out, .q = q, .k = k, .v = v};
    return Work{[=](LaunchTarget target) { return launch_attention(target, plan, args); }, out, bytes};
  };
}

Make rope(std::uint64_t tokens) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const RopeDesc desc{.type = DType::kFloat32,
                        .tokens = arena.rows(tokens),
                        .heads = 8,
                        .kv_heads = 2,
                        .head_size = 64,
                        .positions = 8};
    CGRT_ASSIGN_OR_RETURN(const RopePlan plan, plan_rope(kDevice, desc));
    const std::size_t head_bytes = desc.tokens * 64 * 4, bytes = 8 * head_bytes;
    CGRT_ASSIGN_OR_RETURN(void* const qkv, arena.input(12 * head_bytes));
    CGRT_ASSIGN_OR_RETURN(void* const position, arena.filled(desc.tokens * 4, 5));
    CGRT_ASSIGN_OR_RETURN(void* const q, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const k, arena.output(2 * head_bytes));
    CGRT_ASSIGN_OR_RETURN(void* const v, arena.output(2 * head_bytes));
    const RopeArgs args{.q = q,
                        .k = k,
                        .v = v,
                        .qkv = qkv,
                        .table = static_cast<const float*>(qkv),
                        .position = static_cast<const std::int32_t*>(position)};
    return Work{[=](LaunchTarget target) { return launch_rope(target, plan, args); }, q, bytes};
  };
}

Make topk(std::uint64_t tokens) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const TopkDesc desc{.tokens = arena.rows(tokens), .experts = 256, .k = 8};
    CGRT_ASSIGN_OR_RETURN(const TopkPlan plan, plan_topk(kDevice, desc));
    const std::size_t bytes = desc.tokens * desc.k * 4;
    CGRT_ASSIGN_OR_RETURN(void* const logits, arena.input(desc.tokens * desc.experts * 4));
    CGRT_ASSIGN_OR_RETURN(void* const weights, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const chosen, arena.output(bytes));
    const TopkArgs args{
        .weights = static_cast<float*>(weights), .chosen = static_cast<std::int32_t*>(chosen), .logits = logits};
    return Work{[=](LaunchTarget target) { return launch_topk(target, plan, args); }, weights, bytes};
  };
}

// Of probability 0, as other launches have other numbers.
Make dropout(std::uint64_t count) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const DropoutDesc desc{.count = arena.rows(count), .probability = 0};
    CGRT_ASSIGN_OR_RETURN(const DropoutPlan plan, plan_dropout(kDevice, desc));
    const std::size_t bytes = desc.count * 4;
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const mask, arena.output((desc.count + 7) / 8));
    CGRT_ASSIGN_OR_RETURN(void* const state, arena.output(sizeof(RandomState)));
    const DropoutArgs args{
        .out = out, .in = in, .mask = static_cast<std::uint8_t*>(mask), .state = static_cast<RandomState*>(state)};
    return Work{[=](LaunchTarget target) { return launch_dropout(target, plan, args); }, out, bytes};
  };
}

Make transpose_heads(std::uint64_t sequences, std::uint64_t positions) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const TransposeHeadsDesc desc{.type = DType::kFloat32,
                                  .sequences = arena.rows(sequences),
                                  .positions = positions,
                                  .heads = 8,
                                  .head_size = 64};
    CGRT_ASSIGN_OR_RETURN(const TransposeHeadsPlan plan, plan_transpose_heads(kDevice, desc));
    const std::size_t bytes = desc.sequences * positions * 8 * 64 * 4;
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    const TransposeHeadsArgs args{.out = out, .in = in};
    return Work{[=](LaunchTarget target) { return launch_transpose_heads(target, plan, args); }, out, bytes};
  };
}

Make bias_activation(std::uint64_t count, std::uint64_t columns) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const BiasActivationDesc desc{.rows = arena.rows(count), .columns = columns};
    CGRT_ASSIGN_OR_RETURN(const BiasActivationPlan plan, plan_bias_activation(kDevice, desc));
    const std::size_t bytes = desc.rows * columns * size_of(desc.type);
    CGRT_ASSIGN_OR_RETURN(void* const a, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    const BiasActivationArgs args{.out = out, .a = a, .bias = a};
    return Work{[=](LaunchTarget target) { return launch_bias_activation(target, plan, args); }, out, bytes};
  };
}

Make bias_norm(std::uint64_t count, std::uint64_t columns) {
  return [=](Arena& arena) -> absl::StatusOr<Work> {
    const BiasNormDesc desc{.rows = arena.rows(count), .columns = columns};
    CGRT_ASSIGN_OR_RETURN(const BiasNormPlan plan, plan_bias_norm(kDevice, desc));
    const std::size_t bytes = desc.rows * columns * size_of(desc.type);
    CGRT_ASSIGN_OR_RETURN(void* const in, arena.input(bytes));
    CGRT_ASSIGN_OR_RETURN(void* const out, arena.output(bytes));
    const BiasNormArgs args{.out = out, .in = in, .in_bias = in, .residual = in};
    return Work{[=](LaunchTarget target) { return launch_bias_norm(target, plan, args); }, out, bytes};
  };
}

}  // namespace

absl::StatusOr<Arena> Arena::create(std::uint64_t scale) {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  return Arena(std::move(stream), scale);
}

absl::StatusOr<void*> Arena::input(std::size_t bytes) {
  if (bytes <= input_bytes_) return input_;
  const Bytes numbers = random_elements(DType::kFloat32, bytes / 4 + 1, 0.5, 3, 1);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, numbers.size()));
  CGRT_RETURN_IF_ERROR(copy(stream(), buffer.data(), numbers.data(), numbers.size()));
  CGRT_RETURN_IF_ERROR(stream().synchronize());
  input_ = buffer.data(), input_bytes_ = numbers.size();
  buffers_.push_back(std::move(buffer));  // works that have the one before keep it
  return input_;
}

absl::StatusOr<void*> Arena::numbers(DType type, std::uint64_t count) {
  const Bytes numbers = random_elements(type, count, 0, 1, 2);
  CGRT_ASSIGN_OR_RETURN(void* const device, output(numbers.size()));
  CGRT_RETURN_IF_ERROR(copy(stream(), device, numbers.data(), numbers.size()));
  CGRT_RETURN_IF_ERROR(stream().synchronize());
  return device;
}

absl::StatusOr<void*> Arena::filled(std::size_t bytes, std::uint32_t word) {
  if (bytes == 0) return nullptr;
  const std::size_t words = (bytes + 3) / 4;
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, words * 4));
  CGRT_RETURN_IF_ERROR(fill32(stream(), buffer.data(), word, words));
  CGRT_RETURN_IF_ERROR(stream().synchronize());
  buffers_.push_back(std::move(buffer));
  return buffers_.back().data();
}

absl::StatusOr<Workspace> Arena::workspace(std::size_t bytes) {
  CGRT_ASSIGN_OR_RETURN(void* const data, output(bytes));
  return Workspace{data, bytes};
}

absl::StatusOr<std::int64_t*> Arena::indices(std::uint64_t count, std::uint64_t below) {
  std::vector<std::int64_t> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(i * 7919 % below);
  CGRT_ASSIGN_OR_RETURN(void* const device, output(count * 8));
  CGRT_RETURN_IF_ERROR(copy(stream(), device, values.data(), count * 8));
  CGRT_RETURN_IF_ERROR(stream().synchronize());
  return static_cast<std::int64_t*>(device);
}

// Grids are larger than one multiprocessor has room for, where blocks wait for each other often.
std::vector<NamedWork> residency_works() {
  constexpr std::uint64_t kMany = 1 << 22;
  return {
      {"sum of an array", reduce(ReduceOp::kSum, ReduceOver::kAll, 1024, 4096)},
      {"argmax of an array", reduce(ReduceOp::kArgmax, ReduceOver::kAll, 1024, 4096)},
      {"dot", reduce(ReduceOp::kDot, ReduceOver::kAll, 1024, 4096)},
      {"sums of few long rows", reduce(ReduceOp::kSum, ReduceOver::kRow, 4, 1 << 20)},
      {"sums of rows", reduce(ReduceOp::kSum, ReduceOver::kRow, 4096, 1024)},
      {"sums of columns", reduce(ReduceOp::kSum, ReduceOver::kColumn, 8192, 512)},
      {"sums of single columns", reduce(ReduceOp::kSum, ReduceOver::kColumn, 8192, 511)},
      {"scan of few tiles", scan(DType::kFloat32, 1, 1 << 20)},
      {"scan of many tiles", scan(DType::kFloat32, 1, kMany)},
      {"scan of many tiles of doubles", scan(DType::kFloat64, 1, kMany / 2)},
      {"scan of few rows", scan(DType::kFloat16, 3, kMany / 2)},
      {"softmax", softmax(4096, 1024)},
      {"softmax of blocks", softmax(1024, 4096)},
      {"softmax of clusters", softmax(32, 131072)},
      {"softmax of clusters of 16", softmax(20, 200003)},
      {"softmax of streamed rows", softmax(150, 50003)},
      {"softmax of long rows", softmax(8, 1500001)},
      {"layer_norm of long rows", norm(NormOp::kLayerNorm, Residual::kNone, 8, 1500001)},
      {"layer_norm of clusters that hold weights", norm(NormOp::kLayerNorm, Residual::kNone, 150, 131081)},
      {"layer_norm backward of long rows", norm_backward(WeightGradients::kSummed, 4, 1500001)},
      {"layer_norm backward spread over all blocks", norm_backward(WeightGradients::kSummed, 7, 300001)},
      {"layer_norm backward with sums in shared memory", norm_backward(WeightGradients::kSummed, 61, 131081)},
      {"layer_norm of persistent blocks", norm(NormOp::kLayerNorm, Residual::kNone, 400, 16384)},
      {"rms_norm of persistent clusters", norm(NormOp::kRmsNorm, Residual::kNone, 200, 32768)},
      {"layer_norm backward", norm_backward(WeightGradients::kNone, 1024, 4096)},
      {"layer_norm backward with weights", norm_backward(WeightGradients::kSummed, 1024, 4096)},
      {"layer_norm backward with weights of clusters", norm_backward(WeightGradients::kSummed, 200, 32768)},
      {"masked_softmax", masked_softmax(2048, 2048)},
      {"masked_softmax of clusters", masked_softmax(128, 32768)},
      {"add_rms_norm", norm(NormOp::kRmsNorm, Residual::kAdded, 1024, 4096)},
      {"add_rms_norm of clusters", norm(NormOp::kRmsNorm, Residual::kAdded, 64, 65536)},
      {"batch_norm in shared memory", batch_norm(BatchNormOp::kTrain, ChannelOrder::kNchw, 63, 64, 784)},
      {"batch_norm read twice", batch_norm(BatchNormOp::kTrain, ChannelOrder::kNchw, 63, 5, 12544)},
      {"batch_norm of channels last", batch_norm(BatchNormOp::kTrain, ChannelOrder::kNhwc, 63, 64, 3136)},
      {"batch_norm backward", batch_norm(BatchNormOp::kBackward, ChannelOrder::kNchw, 63, 5, 12544)},
      {"batch_norm inference", batch_norm(BatchNormOp::kInfer, ChannelOrder::kNchw, 63, 64, 784)},
      {"index_select", index(IndexOp::kSelect, DType::kFloat32, 65536, 64, 65536, SumOrder::kAny)},
      {"index_add that sorts", index(IndexOp::kAdd, DType::kFloat32, 65536, 64, 70000, SumOrder::kAny)},
      {"index_add of halves", index(IndexOp::kAdd, DType::kFloat16, 4096, 16, 65536, SumOrder::kAny)},
      {"index_add of few", index(IndexOp::kAdd, DType::kFloat32, 16, 1 << 16, 32, SumOrder::kFixed)},
      {"index_add of groups", index(IndexOp::kAdd, DType::kFloat16, 65536, 64, 1000, SumOrder::kAny)},
      {"scatter_add", index(IndexOp::kScatterAdd, DType::kFloat32, 4096, 64, 16384, SumOrder::kAny)},
      {"scatter_add in a fixed order", index(IndexOp::kScatterAdd, DType::kFloat32, 4096, 16, 16384, SumOrder::kFixed)},
      {"upsampling", upsample(UpsampleOp::kForward, ImageLayout::kNchw)},
      {"upsampling backward", upsample(UpsampleOp::kBackward, ImageLayout::kNchw)},
      {"upsampling backward of channels last", upsample(UpsampleOp::kBackward, ImageLayout::kNhwc)},
      {"decode attention of few sequences", decode_attention(8, 4000)},
      {"decode attention of many sequences", decode_attention(128, 300)},
      {"skinny_gemm", skinny_gemm(4, 3000, 2048)},
      {"skinny_gemm of more rows", skinny_gemm(20, 3000, 2048)},
      {"gemm", gemm(100, 32768, 64)},
      {"gemm of clusters", gemm(1000, 8192, 256)},
      {"greedy sampling of few rows", greedy_sampling(8, 100000)},
      {"group_norm", group_norm(16, 1024, 320)},
      {"attention", attention(16, 500)},
      {"rope", rope(8192)},
      {"topk", topk(65536)},
      {"dropout", dropout(kMany)},
      {"transpose_heads", transpose_heads(64, 512)},
      {"a bias with gelu", bias_activation(2048, 2048)},
      {"bias_add_layer_norm", bias_norm(1024, 4096)},
      {"bias_add_layer_norm of clusters", bias_norm(64, 65536)},
      {"a bias for each column", matrix(2048, 2048)},
      {"elementwise add", elementwise(kMany)},
  };
}

}  // namespace cgrt::testing
