// Attention: lengths from both sides of tiles, masks with more and fewer keys than queries, groups of heads, other
// strides, and packed sequences. What does not count is no number, and must not be read into a result or written.
#include "cgrt_kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/attention/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::AttentionArgs;
using kernels::AttentionDesc;
using kernels::AttentionKernel;
using kernels::AttentionMask;
using kernels::AttentionPlan;
using kernels::AttentionStrides;
using kernels::DType;

// How many tokens of each sequence count, and whether sequences are packed.
struct Tokens {
  std::vector<std::int32_t> lengths;  // empty: all that the plan has
  bool is_packed = false;

  std::uint64_t count(std::uint64_t sequence, std::uint64_t max) const {
    if (lengths.empty()) return max;
    return static_cast<std::uint64_t>(std::clamp<std::int64_t>(lengths[sequence], 0, static_cast<std::int64_t>(max)));
  }
  // Three tokens are before the first packed sequence.
  std::vector<std::int32_t> offsets() const {
    std::vector<std::int32_t> offsets{3};
    for (const std::int32_t length : lengths) offsets.push_back(offsets.back() + length);
    return offsets;
  }
  std::uint64_t first_element(std::uint64_t sequence, const AttentionStrides& strides) const {
    return is_packed ? static_cast<std::uint64_t>(offsets()[sequence]) * strides.token : sequence * strides.batch;
  }
  // Of an array with them, and of five tokens more where they are packed.
  std::uint64_t elements(const AttentionDesc& desc, const AttentionStrides& strides) const {
    if (!is_packed) return desc.batch * strides.batch;
    return static_cast<std::uint64_t>(offsets().back() + 5) * strides.token + desc.heads * strides.head;
  }
};

struct Case {
  AttentionDesc desc;
  Tokens queries = {}, keys = {};
  bool has_lse = true;
  std::size_t shift = 0;  // bytes that arrays are behind an address that is aligned to 256
  double same = 0;        // all elements of q and k, unless 0
};

// The first elements of the rows that count, in the order of sequences, heads and tokens.
std::vector<std::uint64_t> rows_of(const AttentionDesc& desc, const Tokens& tokens, const AttentionStrides& strides,
                                   std::uint64_t max, std::uint64_t heads) {
  std::vector<std::uint64_t> rows;
  for (std::uint64_t sequence = 0; sequence < desc.batch; ++sequence) {
    for (std::uint64_t head = 0; head < heads; ++head) {
      for (std::uint64_t i = 0; i < tokens.count(sequence, max); ++i) {
        rows.push_back(tokens.first_element(sequence, strides) + head * strides.head + i * strides.token);
      }
    }
  }
  return rows;
}

// Numbers in those rows, and none elsewhere.
Bytes numbers_in(const AttentionDesc& desc, std::uint64_t elements, const std::vector<std::uint64_t>& rows, double mean,
                 std::uint32_t seed, double deviation = 1) {
  const Bytes all = random_elements(desc.type, elements, mean, deviation, seed);
  Bytes bytes(2 * elements);
  for (std::uint64_t i = 0; i < elements; ++i) write_element(desc.type, &bytes[2 * i], std::nan(""));
  for (const std::uint64_t row : rows) {
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(2 * row), 2 * desc.head_size,
                bytes.begin() + static_cast<std::ptrdiff_t>(2 * row));
  }
  return bytes;
}

// Of `count` rows from `at` on, which is then behind them.
std::vector<double> take(const AttentionDesc& desc, const Bytes& bytes, std::vector<std::uint64_t>::const_iterator at,
                         std::uint64_t count) {
  std::vector<double> values;
  for (std::uint64_t i = 0; i < count; ++i, ++at) {
    const std::vector<double> row = to_doubles(desc.type, bytes, *at, desc.head_size);
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

absl::Status check(const Case& test) {
  CGRT_ASSIGN_OR_RETURN(const AttentionPlan plan, kernels::plan_attention(kDevice, test.desc));
  const AttentionDesc& desc = plan.desc;
  const std::uint64_t q_elements = test.queries.elements(desc, desc.q), k_elements = test.keys.elements(desc, desc.k);
  const std::uint64_t out_elements = test.queries.elements(desc, desc.out),
                      v_elements = test.keys.elements(desc, desc.v);
  if (!Trial::has_room_for(2 * std::max({q_elements, k_elements, out_elements, v_elements}))) {
    return absl::CancelledError("");
  }
  const auto q_rows = rows_of(desc, test.queries, desc.q, desc.queries, desc.heads);
  const auto k_rows = rows_of(desc, test.keys, desc.k, desc.keys, desc.kv_heads);
  const auto v_rows = rows_of(desc, test.keys, desc.v, desc.keys, desc.kv_heads);
  const auto out_rows = rows_of(desc, test.queries, desc.out, desc.queries, desc.heads);
  const bool is_same = test.same != 0;
  const Bytes q = numbers_in(desc, q_elements, q_rows, is_same ? test.same : 0.1, 1, is_same ? 0 : 1);
  const Bytes k = numbers_in(desc, k_elements, k_rows, test.same, 2, is_same ? 0 : 1);
  const Bytes v = numbers_in(desc, v_elements, v_rows, 0.2, 3);

  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  AttentionArgs args;
  const Bytes untouched(2 * out_elements, 0xC3), no_lse(4 * desc.batch * desc.heads * desc.queries, 0xC3);
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output(untouched, test.shift));
  if (test.has_lse) {
    CGRT_ASSIGN_OR_RETURN(void* const lse, trial.output(no_lse, test.shift / 4));
    args.lse = static_cast<float*>(lse);
  }
  CGRT_ASSIGN_OR_RETURN(args.q, trial.input(q, test.shift));
  CGRT_ASSIGN_OR_RETURN(args.k, trial.input(k, test.shift));
  CGRT_ASSIGN_OR_RETURN(args.v, trial.input(v, test.shift));
  const auto give = [&](const Tokens& tokens, const std::int32_t*& offsets,
                        const std::int32_t*& lengths) -> absl::Status {
    if (tokens.lengths.empty()) return absl::OkStatus();
    CGRT_ASSIGN_OR_RETURN(void* const given,
                          trial.input(bytes_of(tokens.is_packed ? tokens.offsets() : tokens.lengths)));
    (tokens.is_packed ? offsets : lengths) = static_cast<const std::int32_t*>(given);
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(give(test.queries, args.q_offsets, args.q_lengths));
  CGRT_RETURN_IF_ERROR(give(test.keys, args.k_offsets, args.k_lengths));
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_attention(target, plan, args); }));

  const Bytes out = trial.found(args.out), found_lse = test.has_lse ? trial.found(args.lse) : no_lse;
  Bytes rest = out, rest_of_lse = found_lse;  // with what they had before where something is to be written
  const double rounding = desc.type == DType::kFloat16 ? 1.0 / 2048 : 1.0 / 256;  // of the weights and of the result
  auto q_at = q_rows.begin(), out_at = out_rows.begin();
  std::uint64_t k_at = 0;
  for (std::uint64_t sequence = 0; sequence < desc.batch; ++sequence) {
    const std::uint64_t queries = test.queries.count(sequence, desc.queries);
    const std::uint64_t keys = test.keys.count(sequence, desc.keys);
    for (std::uint64_t head = 0; head < desc.heads; ++head) {
      const auto first = static_cast<std::ptrdiff_t>(k_at + head / (desc.heads / desc.kv_heads) * keys);
      const std::vector<double> q_of = take(desc, q, q_at, queries), k_of = take(desc, k, k_rows.begin() + first, keys);
      std::vector<double> v_of = take(desc, v, v_rows.begin() + first, keys);
      const auto reference = [&] {
        return kernels::attention_reference(q_of, k_of, v_of, desc.head_size, desc.mask,
                                            static_cast<double>(desc.scale));
      };
      const auto [expected, lse] = reference();
      for (double& value : v_of) value = std::abs(value);
      const std::vector<double> magnitude = reference().first;
      const std::vector<double> found = take(desc, out, out_at, queries);
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (std::abs(found[i] - expected[i]) <= rounding * (std::abs(expected[i]) + magnitude[i]) + 1e-6) continue;
        return absl::InternalError(absl::StrCat("sequence ", sequence, ", head ", head, ", query ", i / desc.head_size,
                                                ", element ", i % desc.head_size, ": expected ", expected[i],
                                                ", found ", found[i]));
      }
      for (std::uint64_t i = 0; i < queries; ++i, ++q_at, ++out_at) {
        std::fill_n(rest.begin() + static_cast<std::ptrdiff_t>(2 * *out_at), 2 * desc.head_size, 0xC3);
        if (!test.has_lse) continue;
        const std::uint64_t at = (sequence * desc.heads + head) * desc.queries + i;
        const double has = to_doubles(DType::kFloat32, found_lse, at, 1)[0];
        if (has != lse[i] && !(std::abs(has - lse[i]) <= 2e-5 + 4e-6 * std::abs(lse[i]))) {
          return absl::InternalError(absl::StrCat("lse[", at, "]: expected ", lse[i], ", found ", has));
        }
        std::fill_n(rest_of_lse.begin() + static_cast<std::ptrdiff_t>(4 * at), 4, 0xC3);
      }
    }
    k_at += desc.kv_heads * keys;
  }
  if (rest != untouched) return absl::InternalError("writes rows of out that do not count");
  return rest_of_lse == no_lse ? absl::OkStatus() : absl::InternalError("writes numbers of lse that do not count");
}

// Those of the device; of the simulator that which is chosen, since all have one host body.
std::vector<AttentionKernel> kernels_of(Report& report, AttentionDesc desc) {
  if (report.is_simulated()) return {AttentionKernel::kBest};
  desc.kernel = AttentionKernel::kHopper;
  if (!kernels::plan_attention(kDevice, desc).ok()) return {AttentionKernel::kPortable};
  return {AttentionKernel::kPortable, AttentionKernel::kHopper};
}

void check_case(Report& report, Case test) {
  AttentionDesc& desc = test.desc;
  const auto name_of = [](const Tokens& tokens) {
    return tokens.lengths.empty() ? "" : tokens.is_packed ? " (packed)" : " (lengths)";
  };
  for (const AttentionKernel kernel : kernels_of(report, desc)) {
    desc.kernel = kernel;
    report.check(
        absl::StrCat("attention ", to_string(desc.type), " ", desc.batch, " x ", desc.queries, name_of(test.queries),
                     " x ", desc.keys, name_of(test.keys), ", ", desc.heads, " heads on ", desc.kv_heads, " of ",
                     desc.head_size, ", mask ", to_string(desc.mask), ", kernel ", to_string(kernel)),
        check(test));
  }
}

constexpr AttentionMask kMasks[] = {AttentionMask::kNone, AttentionMask::kCausal};

AttentionDesc desc_of(DType type, AttentionMask mask, std::uint64_t batch, std::uint64_t queries, std::uint64_t keys,
                      std::uint64_t heads, std::uint64_t kv_heads, std::uint64_t head_size) {
  return {.type = type,
          .mask = mask,
          .batch = batch,
          .queries = queries,
          .keys = keys,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_size = head_size};
}

// [batch, heads, tokens, head_size] with gaps; and keys and values in one array of [tokens, 2, heads, head_size] could
// be.
AttentionDesc by_heads(AttentionDesc desc) {
  const std::uint64_t size = desc.head_size;
  desc.q = {size, desc.queries * size + 8, desc.heads * (desc.queries * size + 8)};
  desc.k = {size + 8, desc.keys * (size + 8), desc.kv_heads * desc.keys * (size + 8) + 16};
  desc.v = {2 * desc.kv_heads * size, size, 2 * desc.keys * desc.kv_heads * size};
  desc.out = {desc.heads * size + 24, size, desc.queries * (desc.heads * size + 24)};
  return desc;
}

void check_table(Report& report) {
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    for (const std::uint64_t head_size : {64, 128, 256}) {
      for (const AttentionMask mask : kMasks) {
        for (const auto& [queries, keys] :
             {std::pair{1, 1}, {1, 200}, {17, 17}, {33, 31}, {63, 65}, {70, 3}, {130, 64}}) {
          const AttentionDesc desc = desc_of(type, mask, 1, static_cast<std::uint64_t>(queries),
                                             static_cast<std::uint64_t>(keys), 1, 1, head_size);
          check_case(report, {desc});
          check_case(report, {by_heads(desc), {}, {}, false});
        }
        check_case(report, {by_heads(desc_of(type, mask, 2, 19, 35, 6, 2, head_size))});
        check_case(report,
                   {desc_of(type, mask, 4, 40, 50, 2, 1, head_size), {{40, 0, 1, 33}, true}, {{7, 9, 50, 0}, true}});
        check_case(report, {desc_of(type, mask, 4, 40, 50, 2, 1, head_size), {{40, 41, -3, 33}}, {{0, 51, 20, 1}}});
        check_case(report, {desc_of(type, mask, 2, 40, 150, 2, 2, head_size), {{39, 16}, true}, {{140, 65}}});
      }
    }
  }
  for (const AttentionMask mask : kMasks) {
    for (const std::uint64_t queries :
         {15, 16, 31, 32, 47, 48, 64, 95, 96, 127, 128, 129, 191, 192, 193, 255, 256, 257}) {
      check_case(report, {desc_of(DType::kBFloat16, mask, 1, queries, queries, 1, 1, 64)});
      check_case(report, {desc_of(DType::kFloat16, mask, 1, queries, 300 - queries, 2, 1, 128)});
    }
    AttentionDesc scaled = desc_of(DType::kFloat16, mask, 1, 20, 90, 1, 1, 64);
    scaled.scale = 0.7f;
    check_case(report, {scaled});
    // So many heads that blocks are large. The simulator runs the host body, which has no blocks.
    if (report.is_simulated()) continue;
    for (const std::uint64_t head_size : {64, 128}) {
      for (const std::uint64_t queries : {65, 97, 129}) {
        check_case(report, {desc_of(DType::kFloat16, mask, 1, queries, 70, 300, 1, head_size)});
        check_case(report, {desc_of(DType::kBFloat16, mask, 2, queries, 140, 150, 2, head_size),
                            {{static_cast<std::int32_t>(queries) - 1, 66}, true},
                            {{140, 33}}});
      }
    }
  }
}

void check_random(Report& report) {
  std::mt19937 random(5);
  const auto any = [&](std::uint64_t first, std::uint64_t last) { return first + random() % (last - first + 1); };
  const std::uint64_t max = report.is_simulated() ? 200 : 900;
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t kv_heads = any(1, 3);
    AttentionDesc desc =
        desc_of(i % 2 == 0 ? DType::kFloat16 : DType::kBFloat16, kMasks[any(0, 1)], any(1, 3), any(1, max), any(1, max),
                kv_heads * any(1, 4), kv_heads, std::uint64_t{64} << any(0, 2));
    if (any(0, 2) == 0) desc = by_heads(desc);
    Case test{desc, {}, {}, any(0, 1) == 0};
    const auto some = [&](Tokens& tokens, std::uint64_t most) {
      const std::uint64_t kind = any(0, 2);
      tokens.is_packed = kind == 1;
      for (std::uint64_t j = 0; kind != 0 && j < desc.batch; ++j) {
        tokens.lengths.push_back(static_cast<std::int32_t>(any(0, most)));
      }
    };
    some(test.queries, desc.queries), some(test.keys, desc.keys);
    check_case(report, test);
  }
}

// Equal scores far from zero: each step of keys leaves what the steps before have summed as it is.
void check_equal_scores(Report& report) {
  for (const std::uint64_t head_size : {64, 128, 256}) {
    Case test{desc_of(DType::kBFloat16, AttentionMask::kNone, 1, 65, 1024, 1, 1, head_size)};
    test.same = 3072;
    check_case(report, test);
  }
}

// As models have them; and keys of several steps of the grid's sections.
void check_real(Report& report) {
  for (const AttentionMask mask : kMasks) {
    check_case(report, {desc_of(DType::kFloat16, mask, 16, 64, 64, 12, 12, 64)});
    // Two to four tiles of a head, of which a block takes one or two.
    for (const std::uint64_t head_size : {64, 128, 256}) {
      for (const std::uint64_t queries : {257, 385}) {
        check_case(report, {desc_of(DType::kFloat16, mask, 1, queries, 100, 70, 2, head_size)});
      }
    }
    check_case(report, {desc_of(DType::kBFloat16, mask, 1, 512, 512, 32, 8, 128)});
    // On 132 multiprocessors pairs of three tiles, and the one that is left, take as long as single tiles.
    if (mask == AttentionMask::kCausal) {
      check_case(report, {desc_of(DType::kFloat16, mask, 1, 384, 384, 132, 12, 128)});
    }
    check_case(report, {desc_of(DType::kBFloat16, mask, 1, 4097, 4097, 1, 1, 128)});
    check_case(report, {desc_of(DType::kFloat16, mask, 1, 100, 40000, 2, 1, 128)});
    check_case(report, {desc_of(DType::kBFloat16, mask, 1, 200, 20000, 6, 3, 256)});
    check_case(
        report,
        {desc_of(DType::kBFloat16, mask, 3, 700, 700, 64, 4, 64), {{700, 1, 333}, true}, {{700, 90, 334}, true}});
  }
}

void check_refusals(Report& report) {
  const AttentionDesc good = desc_of(DType::kBFloat16, AttentionMask::kNone, 2, 100, 100, 8, 2, 64);
  const auto refuses = [&](const char* text, auto change) {
    AttentionDesc desc = good;
    change(desc);
    report.check(absl::StrCat("attention refuses: ", text),
                 refused(kernels::plan_attention(kDevice, desc).status(), text));
  };
  using Desc = AttentionDesc;
  refuses("float32", [](Desc& d) { d.type = DType::kFloat32; });
  refuses("batch is 0; it can be 1 to 2147483647", [](Desc& d) { d.batch = 0; });
  refuses("kernel is 3", [](Desc& d) { d.kernel = static_cast<AttentionKernel>(3); });
  refuses("kernel is hopper, which this device, this build or these strides do not have", [](Desc& d) {
    d.kernel = AttentionKernel::kHopper;
    d.k.batch = std::uint64_t{1} << 40;
  });
  refuses("queries is 0", [](Desc& d) { d.queries = 0; });
  refuses("keys is 2147483648", [](Desc& d) { d.keys = std::uint64_t{1} << 31; });
  refuses("heads is 0", [](Desc& d) { d.heads = 0; });
  refuses("kv_heads is 0", [](Desc& d) { d.kv_heads = 0; });
  refuses("heads is 7; it must be a multiple of 2, the kv_heads", [](Desc& d) { d.heads = 7; });
  refuses("head_size is 80; it can be 64, 128 or 256", [](Desc& d) { d.head_size = 80; });
  refuses("scale is -1", [](Desc& d) { d.scale = -1; });
  refuses("the token stride of q is 516; it must be a multiple of 8", [](Desc& d) { d.q.token = 516; });
  refuses("the head stride of k is 65", [](Desc& d) { d.k.head = 65; });
  refuses("the batch stride of v is 4", [](Desc& d) { d.v.batch = 4; });
  refuses("the token stride of out is 1152921504606846976; it can be at most 11529215046068469",
          [](Desc& d) { d.out.token = std::uint64_t{1} << 60; });
  refuses("the batch stride of q is 1152921504606846976", [](Desc& d) { d.q.batch = std::uint64_t{1} << 60; });
  refuses("2147483647 sequences of 8 heads and 100 queries are more than 2147483647 tiles of",
          [](Desc& d) { d.batch = 2147483647; });

  const absl::StatusOr<AttentionPlan> plan = kernels::plan_attention(kDevice, good);
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !trial.ok()) return report.check("attention plans", absl::InternalError("no plan or stream"));
  alignas(256) static float memory[64];
  const auto* const odd = reinterpret_cast<const std::int32_t*>(reinterpret_cast<const char*>(memory) + 1);
  const AttentionArgs all{memory, memory, memory, memory, memory};
  const auto refuses_args = [&](const char* text, auto change) {
    AttentionArgs args = all;
    change(args);
    report.check(absl::StrCat("attention refuses: ", text),
                 refused(kernels::launch_attention(trial->stream(), *plan, args), text));
  };
  using Args = AttentionArgs;
  refuses_args("out is null", [](Args& a) { a.out = nullptr; });
  refuses_args("lse (0x", [](Args& a) { a.lse = reinterpret_cast<float*>(1); });
  refuses_args("q (0x", [](Args& a) { a.q = memory + 1; });
  refuses_args("k (0x", [](Args& a) { a.k = memory + 2; });
  refuses_args("v is null", [](Args& a) { a.v = nullptr; });
  refuses_args("q_offsets (0x", [&](Args& a) { a.q_offsets = odd; });
  refuses_args("k_offsets (0x", [&](Args& a) { a.k_offsets = odd; });
  refuses_args("q_lengths (0x", [&](Args& a) { a.q_lengths = odd; });
  refuses_args("k_lengths (0x", [&](Args& a) { a.k_lengths = odd; });
}

}  // namespace

void check_attention(Report& report) {
  check_refusals(report);
  check_table(report);
  check_random(report);
  check_equal_scores(report);
  if (!report.is_simulated()) check_real(report);
}

void draw_attention(Draw& draw, Report& report) {
  const std::uint64_t max = draw.max_elements(2);
  std::uint64_t batch = draw.size(64), kv_heads = draw.size(16), group = draw.size(16), queries = draw.size(20000),
                keys = draw.size(20000);
  const std::uint64_t head_size = draw.one_in(30) ? draw.size(300) : draw.of<std::uint64_t>({64, 128, 256});
  Draw::shrink(max / head_size, {&batch, &kv_heads, &group, &queries});
  Draw::shrink(max / head_size, {&batch, &kv_heads, &keys});
  Draw::shrink(report.is_simulated() ? 1 << 12 : 1 << 18, {&batch, &kv_heads, &group, &queries, &keys});
  AttentionDesc desc = desc_of(draw.half_type(), draw.of({kMasks[0], kMasks[1]}), batch, queries, keys,
                               kv_heads * group, kv_heads, head_size);
  desc.scale = draw.of({0.0f, 0.0f, 0.5f, 0.01f, 2.0f});
  Case test{desc, {}, {}, draw.one_in(2), 16 * draw.from(0, 3)};
  const auto some = [&](Tokens& tokens, std::uint64_t all) {
    tokens.is_packed = draw.one_in(2);
    for (std::uint64_t i = 0; i < desc.batch; ++i) {
      const std::int32_t length = draw.count_of(all);
      const auto most = static_cast<std::int32_t>(all);
      tokens.lengths.push_back(tokens.is_packed ? std::clamp(length, 0, most) : length);
    }
  };
  if (!draw.one_in(3)) some(test.queries, queries);
  if (!draw.one_in(3)) some(test.keys, keys);
  const auto strides = [&](std::uint64_t tokens, std::uint64_t heads, bool by_tokens) {
    const auto gap = [&] { return draw.one_in(2) ? 0 : 8 * draw.from(1, 5); };
    const std::uint64_t inner = head_size + gap(), outer = (by_tokens ? heads : tokens) * inner + gap(),
                        all = (by_tokens ? tokens : heads) * outer + gap();
    return by_tokens ? AttentionStrides{outer, inner, all} : AttentionStrides{inner, outer, all};
  };
  if (draw.one_in(2)) test.desc.q = strides(queries, desc.heads, draw.one_in(2));
  if (draw.one_in(2)) test.desc.k = strides(keys, kv_heads, draw.one_in(2));
  if (draw.one_in(2)) test.desc.v = strides(keys, kv_heads, draw.one_in(2));
  // Packed results of heads that lie apart would overlap.
  if (draw.one_in(2)) test.desc.out = strides(queries, desc.heads, test.queries.is_packed || draw.one_in(2));
  check_case(report, test);
}

}  // namespace cgrt::testing
