// A step of one decoder layer of a transformer from the families' kernels, beside PyTorch's: a norm, the projection of
// queries, keys and values, their rotation and the append to a cache, attention, and the feed-forward part.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/decode_attention/decode_attention.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/rope/rope.h"
#include "cgrt_kernels/skinny_gemm/skinny_gemm.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

constexpr std::uint64_t kSequences = 5, kHidden = 256, kHeads = 4, kKvHeads = 2, kSize = 64, kFeatures = 512;
constexpr std::uint64_t kPositions = 100, kRowHeads = kHeads + 2 * kKvHeads;
constexpr std::uint64_t kPageSize = 16, kPages = 40, kPagesPerSequence = 7;
constexpr std::int32_t kLengths[kSequences] = {1, 17, 64, 65, 100};  // with the token of this step

// Of PyTorch's step with the same inputs: in double, and how far it is from that in the type.
struct Expected {
  DType type;
  double error;
  std::vector<float> out;
};
const Expected kExpected[] = {
#include "kernels/decoder_layer_pytorch.inc"
};

// As in decoder_layer.py.
Bytes numbers(DType type, std::uint32_t seed, std::uint64_t count, double scale, double mean = 0) {
  std::vector<double> values;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t u = i * 2654435761u + seed * 40503u;
    u ^= u >> 16;
    u *= 0x85ebca6bu;
    u ^= u >> 13;
    u *= 0xc2b2ae35u;
    u ^= u >> 16;
    values.push_back(mean + (static_cast<double>(u) / 4294967296.0 * 2 - 1) * scale);
  }
  return to_elements(type, values);
}
Bytes weights(DType type, std::uint32_t seed, std::uint64_t n, std::uint64_t k) {
  return numbers(type, seed, n * k, std::sqrt(3.0 / static_cast<double>(k)));
}

struct Layer {
  NormPlan norm;
  SkinnyGemmPlan qkv, out, gate_up, down;
  RopePlan rope;
  DecodeAttentionPlan attention;
};

absl::StatusOr<Layer> plan_layer(DType type, KvLayout layout) {
  const NormDesc norm{.op = NormOp::kRmsNorm, .type = type, .rows = kSequences, .columns = kHidden};
  const auto product = [&](std::uint64_t n, std::uint64_t k, SkinnyActivation activation, bool has_residual) {
    return plan_skinny_gemm(
        kDevice,
        {.type = type, .rows = kSequences, .n = n, .k = k, .activation = activation, .has_residual = has_residual});
  };
  KvCacheDesc cache{
      .layout = layout, .sequences = kSequences, .positions = kPositions, .kv_heads = kKvHeads, .head_size = kSize};
  if (layout == KvLayout::kPaged) {
    cache.pages = kPages, cache.page_size = kPageSize, cache.pages_per_sequence = kPagesPerSequence;
  }
  const RopeDesc rope{.type = type,
                      .tokens = kSequences,
                      .heads = kHeads,
                      .kv_heads = kKvHeads,
                      .head_size = kSize,
                      .positions = kPositions,
                      .cache = cache};
  Layer layer;
  CGRT_ASSIGN_OR_RETURN(layer.norm, plan_norm(kDevice, norm));
  CGRT_ASSIGN_OR_RETURN(layer.qkv, product(kRowHeads * kSize, kHidden, SkinnyActivation::kNone, false));
  CGRT_ASSIGN_OR_RETURN(layer.rope, plan_rope(kDevice, rope));
  CGRT_ASSIGN_OR_RETURN(layer.attention,
                        plan_decode_attention(kDevice, {.type = type, .heads = kHeads, .cache = cache}));
  CGRT_ASSIGN_OR_RETURN(layer.out, product(kHidden, kHeads * kSize, SkinnyActivation::kNone, true));
  CGRT_ASSIGN_OR_RETURN(layer.gate_up, product(kFeatures, kHidden, SkinnyActivation::kSiluGate, false));
  CGRT_ASSIGN_OR_RETURN(layer.down, product(kHidden, kFeatures, SkinnyActivation::kNone, true));
  return layer;
}

// Pages that sequences have in turn, from the last one on.
std::int32_t page_of(std::uint64_t sequence, std::uint64_t column) {
  return static_cast<std::int32_t>(kPages - 1 - (column * kSequences + sequence));
}

// What [sequences, positions, kv_heads, head_size] is in pages.
Bytes in_pages(const Bytes& dense) {
  const std::size_t row = dense.size() / (kSequences * kPositions);
  Bytes paged(kPages * kPageSize * row, 0x7f);
  for (std::uint64_t sequence = 0; sequence < kSequences; ++sequence) {
    for (std::uint64_t at = 0; at < kPositions; ++at) {
      const auto page = static_cast<std::uint64_t>(page_of(sequence, at / kPageSize));
      std::copy_n(dense.begin() + static_cast<std::ptrdiff_t>((sequence * kPositions + at) * row), row,
                  paged.begin() + static_cast<std::ptrdiff_t>((page * kPageSize + at % kPageSize) * row));
    }
  }
  return paged;
}

// `count`: how many of the sequences there are, as the device is told.
absl::Status check(const Expected& expected, KvLayout layout, std::int32_t count) {
  const DType type = expected.type;
  CGRT_ASSIGN_OR_RETURN(const Layer layer, plan_layer(type, layout));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  const auto cache = [&](std::uint32_t seed) {
    const Bytes dense = numbers(type, seed, kSequences * kPositions * kKvHeads * kSize, 1);
    return trial.output(layout == KvLayout::kPaged ? in_pages(dense) : dense);
  };
  const auto ints = [&](const std::vector<std::int32_t>& values) -> absl::StatusOr<const std::int32_t*> {
    CGRT_ASSIGN_OR_RETURN(void* const data, trial.input(bytes_of(values)));
    return static_cast<const std::int32_t*>(data);
  };
  std::vector<std::int32_t> position, sequence(kSequences), length, table;
  std::iota(sequence.begin(), sequence.end(), 0);
  for (std::uint64_t s = 0; s < kSequences; ++s) {
    position.push_back(kLengths[s] - 1);
    length.push_back(static_cast<std::int32_t>(s) < count ? kLengths[s] : 0);
    for (std::uint64_t column = 0; column < kPagesPerSequence; ++column) table.push_back(page_of(s, column));
  }
  CGRT_ASSIGN_OR_RETURN(const std::int32_t* const positions, ints(position));
  CGRT_ASSIGN_OR_RETURN(const std::int32_t* const sequences, ints(sequence));
  CGRT_ASSIGN_OR_RETURN(const std::int32_t* const lengths, ints(length));
  CGRT_ASSIGN_OR_RETURN(const std::int32_t* const block_table, ints(table));
  CGRT_ASSIGN_OR_RETURN(const std::int32_t* const row_count, ints({count}));
  CGRT_ASSIGN_OR_RETURN(void* const angles, trial.input(bytes_of(rope_table(kPositions, kSize))));

  const std::uint64_t bytes = kSequences * size_of(type);
  CGRT_ASSIGN_OR_RETURN(void* const x, trial.input(numbers(type, 1, kSequences * kHidden, 1)));
  CGRT_ASSIGN_OR_RETURN(void* const first_weight, trial.input(numbers(type, 2, kHidden, 0.1, 1)));
  CGRT_ASSIGN_OR_RETURN(void* const to_qkv, trial.input(weights(type, 3, kRowHeads * kSize, kHidden)));
  CGRT_ASSIGN_OR_RETURN(void* const to_hidden, trial.input(weights(type, 4, kHidden, kHeads * kSize)));
  CGRT_ASSIGN_OR_RETURN(void* const second_weight, trial.input(numbers(type, 5, kHidden, 0.1, 1)));
  CGRT_ASSIGN_OR_RETURN(void* const to_gate_up, trial.input(weights(type, 6, 2 * kFeatures, kHidden)));
  CGRT_ASSIGN_OR_RETURN(void* const k_cache, cache(7));
  CGRT_ASSIGN_OR_RETURN(void* const v_cache, cache(8));
  CGRT_ASSIGN_OR_RETURN(void* const to_down, trial.input(weights(type, 9, kHidden, kFeatures)));
  CGRT_ASSIGN_OR_RETURN(void* const normed, trial.output(bytes * kHidden));
  CGRT_ASSIGN_OR_RETURN(void* const qkv, trial.output(bytes * kRowHeads * kSize));
  CGRT_ASSIGN_OR_RETURN(void* const q, trial.output(bytes * kHeads * kSize));
  CGRT_ASSIGN_OR_RETURN(void* const attended, trial.output(bytes * kHeads * kSize));
  CGRT_ASSIGN_OR_RETURN(void* const middle, trial.output(bytes * kHidden));
  CGRT_ASSIGN_OR_RETURN(void* const features, trial.output(bytes * kFeatures));
  CGRT_ASSIGN_OR_RETURN(void* const out, trial.output(bytes * kHidden));
  // One after the other, kernels can share a workspace.
  const std::size_t needed =
      std::max({layer.norm.workspace_bytes, layer.qkv.workspace_bytes, layer.attention.workspace_bytes,
                layer.out.workspace_bytes, layer.gate_up.workspace_bytes, layer.down.workspace_bytes});
  CGRT_ASSIGN_OR_RETURN(const Workspace workspace, trial.workspace(needed));

  const auto product = [&](LaunchTarget target, const SkinnyGemmPlan& plan, void* y, const void* from,
                           const void* weights, const void* residual = nullptr) {
    return launch_skinny_gemm(
        target, plan,
        {.y = y, .x = from, .weights = weights, .residual = residual, .row_count = row_count, .workspace = workspace});
  };
  const auto norm = [&](LaunchTarget target, const void* in, const void* weight) {
    return launch_norm(target, layer.norm, {.out = normed, .in = in, .weight = weight, .workspace = workspace});
  };
  CGRT_RETURN_IF_ERROR(trial.run(workspace, [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(norm(target, x, first_weight));
    CGRT_RETURN_IF_ERROR(product(target, layer.qkv, qkv, normed, to_qkv));
    CGRT_RETURN_IF_ERROR(launch_rope(target, layer.rope,
                                     {.q = q,
                                      .k = k_cache,
                                      .v = v_cache,
                                      .qkv = qkv,
                                      .table = static_cast<const float*>(angles),
                                      .position = positions,
                                      .sequence = sequences,
                                      .block_table = block_table,
                                      .token_count = row_count}));
    CGRT_RETURN_IF_ERROR(launch_decode_attention(target, layer.attention,
                                                 {.out = attended,
                                                  .q = q,
                                                  .k = k_cache,
                                                  .v = v_cache,
                                                  .lengths = lengths,
                                                  .block_table = block_table,
                                                  .workspace = workspace}));
    CGRT_RETURN_IF_ERROR(product(target, layer.out, middle, attended, to_hidden, x));
    CGRT_RETURN_IF_ERROR(norm(target, middle, second_weight));
    CGRT_RETURN_IF_ERROR(product(target, layer.gate_up, features, normed, to_gate_up));
    return product(target, layer.down, out, features, to_down, middle);
  }));

  const std::vector<double> found = to_doubles(type, trial.found(out));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count) * kHidden; ++i) {
    const double difference = std::abs(found[i] - static_cast<double>(expected.out[i]));
    if (!(difference <= 1.5 * expected.error)) {
      return absl::InternalError(absl::StrCat("element ", i, " is ", found[i], ", PyTorch's in double is ",
                                              expected.out[i], ", and its own differ by at most ", expected.error));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void check_decoder_layer(Report& report) {
  for (const Expected& expected : kExpected) {
    for (const KvLayout layout : {KvLayout::kDense, KvLayout::kPaged}) {
      for (const std::int32_t count : {5, 3, 1}) {
        report.check(absl::StrCat("decoder layer in ", to_string(expected.type), ", ",
                                  layout == KvLayout::kDense ? "dense" : "paged", " cache, ", count, " sequences"),
                     check(expected, layout, count));
      }
    }
  }
}

}  // namespace cgrt::testing
