// Attention of one query per sequence: groups of heads, lengths from both sides of tiles and splits, caches of both
// layouts with other strides, pages that are not there, and windows.
#include "cgrt_kernels/decode_attention/decode_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/decode_attention/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DecodeAttentionArgs;
using kernels::DecodeAttentionDesc;
using kernels::DecodeAttentionPlan;
using kernels::DType;
using kernels::KvCacheDesc;
using kernels::KvLayout;

using Lengths = std::vector<std::int32_t>;

std::uint64_t blocks_of(const KvCacheDesc& cache) {
  return cache.layout == KvLayout::kPaged ? cache.pages : cache.sequences;
}

// Pages in random order, again and again where there are few. Of those behind the length some are no pages, and so is
// each eleventh before it.
std::vector<std::int32_t> block_table_of(const KvCacheDesc& cache, const Lengths& lengths) {
  std::vector<std::int32_t> table(cache.sequences * cache.pages_per_sequence);
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), std::mt19937(3));
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::uint64_t first = i % cache.pages_per_sequence * cache.page_size;
    const bool is_used = static_cast<std::int64_t>(first) < lengths[i / cache.pages_per_sequence];
    table[i] %= static_cast<std::int32_t>(cache.pages);
    if (!is_used && i % 2 == 0) table[i] = -1;
    if (!is_used && i % 4 == 1) table[i] = 2000000000;
    if (is_used && i % 11 == 9) table[i] = i % 2 == 0 ? -1 : static_cast<std::int32_t>(cache.pages);
  }
  return table;
}

struct Expected {
  std::vector<double> out, magnitude, lse;  // magnitude: of what is added up, weights times the size of values
};

// Values behind lengths are no numbers: nothing of them may get into a result.
void spoil(DType type, const DecodeAttentionDesc& desc, const Lengths& lengths,
           const std::vector<std::int32_t>& block_table, Bytes& k, Bytes& v) {
  const KvCacheDesc& cache = desc.cache;
  std::vector<bool> is_used(blocks_of(cache) * cache.block_stride);
  for (std::uint64_t sequence = 0; sequence < cache.sequences; ++sequence) {
    const auto length = static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(lengths[sequence], 0, static_cast<std::int64_t>(cache.positions)));
    for (std::uint64_t position = 0; position < length; ++position) {
      std::uint64_t block = sequence, at = position;
      if (cache.layout == KvLayout::kPaged) {
        const std::int32_t page = block_table[sequence * cache.pages_per_sequence + position / cache.page_size];
        if (page < 0 || static_cast<std::uint64_t>(page) >= cache.pages) continue;
        block = static_cast<std::uint64_t>(page), at = position % cache.page_size;
      }
      for (std::uint64_t head = 0; head < cache.kv_heads; ++head) {
        const std::uint64_t first = block * cache.block_stride + at * cache.position_stride + head * cache.head_stride;
        std::fill_n(is_used.begin() + static_cast<std::ptrdiff_t>(first), cache.head_size, true);
      }
    }
  }
  for (std::size_t i = 0; i < is_used.size(); ++i) {
    if (is_used[i]) continue;
    write_element(type, &k[2 * i], std::nan(""));
    write_element(type, &v[2 * i], std::nan(""));
  }
}

Expected expected_of(const DecodeAttentionDesc& desc, const Lengths& lengths,
                     const std::vector<std::int32_t>& block_table, const std::vector<double>& q,
                     const std::vector<double>& k, const std::vector<double>& v) {
  const KvCacheDesc& cache = desc.cache;
  const std::uint64_t size = cache.head_size, group = desc.heads / cache.kv_heads;
  Expected expected;
  for (std::uint64_t sequence = 0; sequence < cache.sequences; ++sequence) {
    const std::int64_t length =
        std::clamp<std::int64_t>(lengths[sequence], 0, static_cast<std::int64_t>(cache.positions));
    const std::int64_t window = desc.window == 0 ? length : static_cast<std::int64_t>(desc.window);
    for (std::uint64_t head = 0; head < desc.heads; ++head) {
      std::vector<double> keys, values;
      for (std::int64_t position = std::max<std::int64_t>(length - window, 0); position < length; ++position) {
        auto at = static_cast<std::uint64_t>(position), block = sequence;
        bool is_there = true;
        if (cache.layout == KvLayout::kPaged) {
          const std::int32_t page = block_table[sequence * cache.pages_per_sequence + at / cache.page_size];
          is_there = page >= 0 && static_cast<std::uint64_t>(page) < cache.pages;
          block = static_cast<std::uint64_t>(page), at %= cache.page_size;
        }
        const std::uint64_t first =
            block * cache.block_stride + at * cache.position_stride + head / group * cache.head_stride;
        for (std::uint64_t i = 0; i < size; ++i) {
          keys.push_back(is_there ? k[first + i] : 0);
          values.push_back(is_there ? v[first + i] : 0);
        }
      }
      const auto* const query = &q[sequence * desc.q_stride + head * size];
      const std::vector<double> q_row(query, query + size);
      const auto scale = static_cast<double>(desc.scale);
      const auto [out, lse] = kernels::decode_attention_reference(q_row, keys, values, scale);
      for (double& value : values) value = std::abs(value);
      const auto magnitude = kernels::decode_attention_reference(q_row, keys, values, scale).first;
      expected.out.insert(expected.out.end(), out.begin(), out.end());
      expected.magnitude.insert(expected.magnitude.end(), magnitude.begin(), magnitude.end());
      expected.lse.push_back(lse);
    }
  }
  return expected;
}

absl::Status check(const DecodeAttentionDesc& given, const Lengths& lengths, bool has_lse = true) {
  CGRT_ASSIGN_OR_RETURN(const DecodeAttentionPlan plan, kernels::plan_decode_attention(kDevice, given));
  const DecodeAttentionDesc& desc = plan.desc;
  const KvCacheDesc& cache = desc.cache;
  const std::uint64_t elements = blocks_of(cache) * cache.block_stride, out_count = cache.sequences * desc.heads;
  if (!Trial::has_room_for(2 * elements)) return absl::CancelledError("");
  const std::vector<std::int32_t> block_table = block_table_of(cache, lengths);
  const Bytes q = random_elements(desc.type, cache.sequences * desc.q_stride, 0.1, 1.5, 1);
  Bytes k = random_elements(desc.type, elements, 0, 1, 2), v = random_elements(desc.type, elements, 0.2, 1, 3);
  spoil(desc.type, desc, lengths, block_table, k, v);

  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  DecodeAttentionArgs args;
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output(out_count * cache.head_size * 2));
  if (has_lse) {
    CGRT_ASSIGN_OR_RETURN(void* const lse, trial.output(out_count * 4, 4));
    args.lse = static_cast<float*>(lse);
  }
  CGRT_ASSIGN_OR_RETURN(args.q, trial.input(q, 16));
  CGRT_ASSIGN_OR_RETURN(args.k, trial.input(k, 32));
  CGRT_ASSIGN_OR_RETURN(args.v, trial.input(v, 48));
  CGRT_ASSIGN_OR_RETURN(void* const length_data, trial.input(bytes_of(lengths), 4));
  args.lengths = static_cast<const std::int32_t*>(length_data);
  if (cache.layout == KvLayout::kPaged) {
    CGRT_ASSIGN_OR_RETURN(void* const table, trial.input(bytes_of(block_table), 4));
    args.block_table = static_cast<const std::int32_t*>(table);
  }
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  CGRT_RETURN_IF_ERROR(trial.run(args.workspace, [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(kernels::launch_decode_attention(target, plan, args));
    if (plan.workspace_bytes == 0) return absl::OkStatus();
    CGRT_RETURN_IF_ERROR(fill8(target, args.out, 0x5A, out_count * cache.head_size * 2));
    return kernels::launch_decode_attention(target, plan, args);  // which finds the counters at zero again
  }));

  const Expected expected = expected_of(desc, lengths, block_table, to_doubles(desc.type, q), to_doubles(desc.type, k),
                                        to_doubles(desc.type, v));
  const std::vector<double> out = to_doubles(desc.type, trial.found(args.out));
  // Of the weights and of the result.
  const double rounding = desc.type == DType::kFloat16 ? 1.0 / 2048 : 1.0 / 256;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double tolerance = rounding * (std::abs(expected.out[i]) + expected.magnitude[i]) + 1e-6;
    if (std::abs(out[i] - expected.out[i]) <= tolerance) continue;
    return absl::InternalError(absl::StrCat("sequence ", i / cache.head_size / desc.heads, ", head ",
                                            i / cache.head_size % desc.heads, ", element ", i % cache.head_size,
                                            ": expected ", expected.out[i], ", found ", out[i]));
  }
  if (!has_lse) return absl::OkStatus();
  const std::vector<double> lse = to_doubles(DType::kFloat32, trial.found(args.lse));
  for (std::size_t i = 0; i < lse.size(); ++i) {
    if (lse[i] == expected.lse[i] || std::abs(lse[i] - expected.lse[i]) <= 2e-5 + 4e-6 * std::abs(expected.lse[i]))
      continue;
    return absl::InternalError(absl::StrCat("lse[", i, "]: expected ", expected.lse[i], ", found ", lse[i]));
  }
  return absl::OkStatus();
}

std::string name_of(const DecodeAttentionDesc& desc, const Lengths& lengths) {
  const KvCacheDesc& cache = desc.cache;
  std::string name = absl::StrCat("decode attention ", to_string(desc.type), " ", desc.heads, " heads on ",
                                  cache.kv_heads, " of ", cache.head_size, ", ", cache.positions, " positions");
  if (cache.layout == KvLayout::kPaged) absl::StrAppend(&name, " in pages of ", cache.page_size);
  if (desc.window != 0) absl::StrAppend(&name, ", window ", desc.window);
  return absl::StrCat(
      name, ", lengths ",
      absl::StrJoin(lengths.begin(), lengths.begin() + std::min<std::ptrdiff_t>(8, std::ssize(lengths)), " "));
}

struct Heads {
  std::uint64_t heads, kv_heads;
};

DecodeAttentionDesc dense(DType type, Heads heads, std::uint64_t head_size, std::uint64_t sequences,
                          std::uint64_t positions) {
  return {
      .type = type,
      .heads = heads.heads,
      .cache = {.sequences = sequences, .positions = positions, .kv_heads = heads.kv_heads, .head_size = head_size}};
}
DecodeAttentionDesc paged(DecodeAttentionDesc desc, std::uint64_t page_size) {
  KvCacheDesc& cache = desc.cache;
  cache.layout = KvLayout::kPaged, cache.page_size = page_size;
  cache.pages_per_sequence = (cache.positions + page_size - 1) / page_size + 1;
  cache.pages = cache.sequences * cache.pages_per_sequence;
  return desc;
}
// [sequences, kv_heads, positions, head_size], with a gap between heads.
DecodeAttentionDesc by_heads(DecodeAttentionDesc desc) {
  KvCacheDesc& cache = desc.cache;
  cache.position_stride = cache.head_size;
  cache.head_stride = (cache.layout == KvLayout::kPaged ? cache.page_size : cache.positions) * cache.head_size + 8;
  cache.block_stride = cache.kv_heads * cache.head_stride;
  desc.q_stride = (desc.heads + 2 * cache.kv_heads) * cache.head_size;
  return desc;
}

void check_case(Report& report, const DecodeAttentionDesc& desc, const Lengths& lengths, bool has_lse = true) {
  report.check(name_of(desc, lengths), check(desc, lengths, has_lse));
}

void check_table(Report& report) {
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    for (const std::uint64_t head_size : {64, 128, 256}) {
      for (const Heads heads : {Heads{1, 1}, Heads{2, 2}, Heads{3, 1}, Heads{8, 2}, Heads{9, 1}, Heads{16, 1}}) {
        const std::int32_t positions = head_size == 64 ? 700 : 300;
        const DecodeAttentionDesc desc = dense(type, heads, head_size, 3, static_cast<std::uint64_t>(positions));
        check_case(report, desc, {positions, 0, 257});
        check_case(report, paged(desc, 16), {1, 129, positions - 30});
        check_case(report, by_heads(desc), {31, positions + 1, -5}, false);
      }
    }
  }
  const DecodeAttentionDesc desc = dense(DType::kBFloat16, {4, 1}, 64, 1, 1500);
  for (const std::int32_t length : {0,   1,   15,  16,  17,  63,  64,  65,   127,  128,  129,  255,  256, 257,
                                    383, 384, 385, 511, 512, 513, 767, 1023, 1024, 1025, 1499, 1500, 1501}) {
    check_case(report, desc, {length});
    check_case(report, paged(by_heads(desc), 24), {length});
  }
  for (const std::uint64_t page_size : {1, 7, 8, 16, 32, 256, 2000}) {
    check_case(report, paged(dense(DType::kFloat16, {8, 2}, 128, 2, 400), page_size), {399, 130});
  }
  for (const std::uint64_t window : {1, 16, 100, 299, 300, 301, 1000}) {
    DecodeAttentionDesc some = dense(DType::kFloat16, {4, 2}, 64, 2, 800);
    some.window = window, some.scale = 0.3f;
    check_case(report, some, {300, 800});
    check_case(report, paged(some, 16), {299, 777});
  }
  // Few keys and values, in many places.
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    for (const Heads heads : {Heads{1, 1}, Heads{3, 1}, Heads{5, 1}, Heads{16, 1}}) {
      for (const std::uint64_t head_size : {64, 128, 256}) {
        for (const std::int32_t length : {1, 20, 130, 256, 1200}) {
          DecodeAttentionDesc few =
              paged(dense(type, heads, head_size, 1, length > 256 ? 1200 : 256), head_size == 256 ? 5 : 8);
          few.cache.pages = 1;
          check_case(report, few, {length});
        }
      }
    }
  }
  // So many sequences that two blocks share a multiprocessor, most of which are short.
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    for (const std::uint64_t head_size : {64, 128, 256}) {
      DecodeAttentionDesc many = paged(dense(type, {6, 2}, head_size, 70, 1200), 8);
      many.cache.pages = 3;
      Lengths lengths(70);
      for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = static_cast<std::int32_t>(i * i % 61);
      lengths[7] = 1200, lengths[69] = 333;
      check_case(report, many, lengths);
    }
  }
  // More sequences and heads than are split.
  check_case(report, dense(DType::kBFloat16, {35, 35}, 64, 30, 30), Lengths(30, 29));
}

void check_random(Report& report) {
  std::mt19937 random(11);
  const auto any = [&](std::uint64_t first, std::uint64_t last) { return first + random() % (last - first + 1); };
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t kv_heads = any(1, 3), group = any(1, 16), sequences = any(1, 5);
    const std::uint64_t positions = any(1, report.is_simulated() ? 900 : 9000);
    DecodeAttentionDesc desc = dense(i % 2 == 0 ? DType::kFloat16 : DType::kBFloat16, {kv_heads * group, kv_heads},
                                     std::uint64_t{64} << any(0, 2), sequences, positions);
    if (any(0, 1) == 0) desc = paged(desc, any(1, 70));
    if (any(0, 2) == 0) desc = by_heads(desc);
    if (any(0, 3) == 0) desc.window = any(1, positions);
    Lengths lengths;
    for (std::uint64_t j = 0; j < sequences; ++j) lengths.push_back(static_cast<std::int32_t>(any(0, positions)));
    check_case(report, desc, lengths, any(0, 1) == 0);
  }
}

// As models have them. One plan for lengths up to 32768.
void check_real(Report& report) {
  for (const Heads heads : {Heads{32, 32}, Heads{32, 8}, Heads{64, 8}}) {
    for (const std::int32_t length : {1, 512, 2048, 8192, 32768}) {
      check_case(report, dense(DType::kBFloat16, heads, 128, 1, 32768), {length});
    }
    check_case(report, paged(dense(DType::kBFloat16, heads, 128, 16, 4096), 16),
               {4096, 4000, 1, 0, 77, 2049, 3333, 128, 4095, 4096, 4096, 512, 511, 9, 1000, 2000});
    check_case(report, dense(DType::kBFloat16, heads, 128, 64, 1024), Lengths(64, 1000));
  }
}

void check_refusals(Report& report) {
  const DecodeAttentionDesc good = paged(dense(DType::kBFloat16, {8, 2}, 64, 2, 1000), 16);
  const auto refuses = [&](const char* text, auto change) {
    DecodeAttentionDesc desc = good;
    change(desc);
    report.check(absl::StrCat("decode attention refuses: ", text),
                 refused(kernels::plan_decode_attention(kDevice, desc).status(), text));
  };
  using Desc = DecodeAttentionDesc;
  refuses("float32", [](Desc& d) { d.type = DType::kFloat32; });
  refuses("head_size is 80; it can be 64, 128 or 256", [](Desc& d) { d.cache.head_size = 80; });
  refuses("heads is 0; it can be 1 to 16 times 2", [](Desc& d) { d.heads = 0; });
  refuses("heads is 7", [](Desc& d) { d.heads = 7; });
  refuses("heads is 34", [](Desc& d) { d.heads = 34; });
  refuses("sequences is 0; it can be 1 to 2147483647", [](Desc& d) { d.cache.sequences = 0; });
  refuses("positions is 2147483648", [](Desc& d) { d.cache.positions = std::uint64_t{1} << 31; });
  refuses("kv_heads is 0", [](Desc& d) { d.cache.kv_heads = 0; });
  refuses("pages is 0", [](Desc& d) { d.cache.pages = 0; });
  refuses("pages of 16 hold fewer than 1025 positions", [](Desc& d) { d.cache.positions = 1025; });
  refuses("position_stride is 132; it must be a multiple of 8", [](Desc& d) { d.cache.position_stride = 132; });
  refuses("head_stride is 65", [](Desc& d) { d.cache.head_stride = 65; });
  refuses("block_stride is 9223372036854775808; it can be at most",
          [](Desc& d) { d.cache.block_stride = std::uint64_t{1} << 63; });
  refuses("q_stride is 516", [](Desc& d) { d.q_stride = 516; });
  refuses("q_stride is 1152921504606846976", [](Desc& d) { d.q_stride = std::uint64_t{1} << 60; });
  refuses("window is 2147483648", [](Desc& d) { d.window = std::uint64_t{1} << 31; });
  refuses("scale is -1", [](Desc& d) { d.scale = -1; });
  refuses("2147483647 sequences of 2 heads are more than 2147483647 blocks",
          [](Desc& d) { d.cache.layout = KvLayout::kDense, d.cache.sequences = 2147483647; });

  // More splits than a cluster has blocks, so that they need the workspace.
  const DecodeAttentionDesc split = paged(dense(DType::kBFloat16, {8, 2}, 64, 2, 100000), 16);
  const absl::StatusOr<DecodeAttentionPlan> plan = kernels::plan_decode_attention(kDevice, split);
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !trial.ok())
    return report.check("decode attention plans", absl::InternalError("no plan or stream"));
  alignas(256) static float memory[64];
  auto* const numbers = reinterpret_cast<std::int32_t*>(memory);
  const DecodeAttentionArgs all{memory, memory, memory, memory, memory, numbers, numbers, {memory, sizeof(memory)}};
  const auto refuses_args = [&](const char* text, auto change) {
    DecodeAttentionArgs args = all;
    change(args);
    report.check(absl::StrCat("decode attention refuses: ", text),
                 refused(kernels::launch_decode_attention(trial->stream(), *plan, args), text));
  };
  using Args = DecodeAttentionArgs;
  refuses_args("out is null", [](Args& a) { a.out = nullptr; });
  refuses_args("lse (0x", [](Args& a) { a.lse = reinterpret_cast<float*>(1); });
  refuses_args("q (0x", [](Args& a) { a.q = memory + 1; });
  refuses_args("k (0x", [](Args& a) { a.k = memory + 2; });
  refuses_args("v is null", [](Args& a) { a.v = nullptr; });
  refuses_args("lengths is null", [](Args& a) { a.lengths = nullptr; });
  refuses_args("block_table is null", [](Args& a) { a.block_table = nullptr; });
  refuses_args("workspace is null", [](Args& a) { a.workspace = {}; });
  refuses_args("the workspace has 256 bytes", [](Args&) {});
}

}  // namespace

void check_decode_attention(Report& report) {
  check_refusals(report);
  check_table(report);
  check_random(report);
  if (!report.is_simulated()) check_real(report);
}

void draw_decode_attention(Draw& draw, Report& report) {
  std::uint64_t sequences = draw.size(300), kv_heads = draw.size(16), positions = draw.size(100000);
  std::uint64_t group = draw.one_in(20) ? draw.size(40) : draw.size(16);
  const std::uint64_t head_size = draw.one_in(30) ? draw.size(300) : draw.of<std::uint64_t>({64, 128, 256});
  Draw::shrink(draw.max_elements(2) / head_size, {&sequences, &kv_heads, &positions});
  Draw::shrink(report.is_simulated() ? 1 << 12 : 1 << 18, {&sequences, &kv_heads, &group, &positions});
  DecodeAttentionDesc desc = dense(draw.half_type(), {kv_heads * group, kv_heads}, head_size, sequences, positions);
  KvCacheDesc& cache = desc.cache;
  if (draw.one_in(2)) {
    desc = paged(desc, draw.size(400));
    if (cache.pages * cache.page_size > 2 * sequences * positions || draw.one_in(3)) {
      cache.pages = draw.size(std::max<std::uint64_t>(2 * sequences * positions / cache.page_size, 1));
    }
  }
  const auto gap = [&] { return draw.one_in(2) ? 0 : 8 * draw.from(1, 5); };
  const std::uint64_t rows = cache.layout == KvLayout::kPaged ? cache.page_size : positions;
  if (draw.one_in(3)) {
    cache.position_stride = head_size + gap();
    cache.head_stride = rows * cache.position_stride + gap();
    cache.block_stride = kv_heads * cache.head_stride + gap();
  } else if (draw.one_in(2)) {
    cache.head_stride = head_size + gap();
    cache.position_stride = kv_heads * cache.head_stride + gap();
    cache.block_stride = rows * cache.position_stride + gap();
  }
  if (draw.one_in(3)) desc.q_stride = desc.heads * head_size + gap();
  if (draw.one_in(3)) desc.window = draw.size(2 * positions);
  desc.scale = draw.of({0.0f, 0.0f, 0.5f, 0.01f, 2.0f});
  Lengths lengths;
  for (std::uint64_t i = 0; i < sequences; ++i) lengths.push_back(draw.count_of(positions));
  check_case(report, desc, lengths, draw.one_in(2));
}

}  // namespace cgrt::testing
