// Rotary position embedding with and without caches: pairs, parts of heads, packs and single elements, tokens that are
// padding, and pages that are not there.
#include "cgrt_kernels/rope/rope.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/rope/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::KvCacheDesc;
using kernels::KvLayout;
using kernels::RopeArgs;
using kernels::RopeDesc;
using kernels::RopePairs;
using kernels::RopePlan;
using kernels::size_of;

// Tokens in turn of each sequence, at positions from somewhere on; every seventh is padding, every eleventh of no
// sequence.
struct Tokens {
  std::vector<std::int32_t> position, sequence, block_table;

  explicit Tokens(const RopeDesc& desc) {
    const KvCacheDesc cache = desc.cache.value_or(KvCacheDesc{.sequences = 1});
    const std::uint64_t sequences = cache.sequences;
    const auto positions = static_cast<std::int32_t>(desc.positions);
    for (std::uint64_t token = 0; token < desc.tokens; ++token) {
      const std::uint64_t own = token % sequences;
      position.push_back(static_cast<std::int32_t>((token / sequences + 3 * own) % desc.positions));
      sequence.push_back(static_cast<std::int32_t>(own));
      if (token % 7 == 5) position.back() = token % 2 == 0 ? -1 : positions;
      if (token % 11 == 9) sequence.back() = token % 2 == 0 ? -1 : static_cast<std::int32_t>(sequences);
    }
    block_table.resize(sequences * cache.pages_per_sequence);
    std::iota(block_table.begin(), block_table.end(), 0);
    std::shuffle(block_table.begin(), block_table.end(), std::mt19937(3));
    for (std::int32_t& page : block_table) {
      if (page >= static_cast<std::int32_t>(cache.pages)) page = page % 2 == 0 ? -1 : page;
    }
  }

  // Where head 0 of a token's keys and values begins, or -1. `desc` is a plan's.
  std::int64_t kept_at(const RopeDesc& desc, std::uint64_t token) const {
    const auto row = static_cast<std::int64_t>(desc.kv_heads * desc.head_size);
    if (!desc.cache) return static_cast<std::int64_t>(token) * row;
    const std::int64_t own = sequence[token], at = position[token];
    const KvCacheDesc& cache = *desc.cache;
    if (own < 0 || own >= static_cast<std::int64_t>(cache.sequences)) return -1;
    if (at >= static_cast<std::int64_t>(cache.positions)) return -1;
    const auto block_stride = static_cast<std::int64_t>(cache.block_stride),
               stride = static_cast<std::int64_t>(cache.position_stride);
    if (cache.layout == KvLayout::kDense) return own * block_stride + at * stride;
    const auto size = static_cast<std::int64_t>(cache.page_size);
    const std::int64_t page =
        block_table[static_cast<std::size_t>(own * static_cast<std::int64_t>(cache.pages_per_sequence) + at / size)];
    if (page < 0 || page >= static_cast<std::int64_t>(cache.pages)) return -1;
    return page * block_stride + at % size * stride;
  }
};

// Elements of the keys.
std::uint64_t kept_count(const RopeDesc& desc) {
  if (!desc.cache) return desc.tokens * desc.kv_heads * desc.head_size;
  return (desc.cache->layout == KvLayout::kPaged ? desc.cache->pages : desc.cache->sequences) *
         desc.cache->block_stride;
}

absl::Status compare(const char* array, DType type, const std::vector<double>& expected, const Bytes& bytes) {
  const std::vector<double> found = to_doubles(type, bytes);
  const double rounding = type == DType::kFloat32 ? 1e-7 : type == DType::kFloat16 ? 1.0 / 2048 : 1.0 / 256;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::abs(found[i] - expected[i]) <= rounding * std::abs(expected[i]) + 3e-6) continue;
    return absl::InternalError(absl::StrCat(array, "[", i, "]: expected ", expected[i], ", found ", found[i]));
  }
  return absl::OkStatus();
}

struct Setup {
  std::size_t shift = 0;             // elements that all arrays of the type are behind an aligned address
  std::int32_t token_count = -1000;  // on the device; -1000: none is given
  std::size_t table_shift = 0;       // bytes
};

absl::Status check(const RopeDesc& desc, const Setup& setup) {
  CGRT_ASSIGN_OR_RETURN(const RopePlan plan, kernels::plan_rope(kDevice, desc));
  const std::uint64_t size = desc.head_size, row_heads = desc.heads + 2 * desc.kv_heads;
  const Tokens tokens(desc);
  const std::vector<float> table = kernels::rope_table(desc.positions, plan.desc.rotary_size);
  const Bytes qkv = random_elements(desc.type, desc.tokens * row_heads * size, 0.2, 1, 1);
  const Bytes bias = random_elements(desc.type, row_heads * size, 0, 1, 2);
  const Bytes q_before = random_elements(desc.type, desc.tokens * desc.heads * size, 9, 1, 3);
  const Bytes k_before = random_elements(desc.type, kept_count(plan.desc), 7, 1, 4);
  const Bytes v_before = random_elements(desc.type, kept_count(plan.desc), 5, 1, 5);

  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  const std::size_t shift = setup.shift * size_of(desc.type);
  RopeArgs args;
  CGRT_ASSIGN_OR_RETURN(args.q, trial.output(q_before, shift));
  CGRT_ASSIGN_OR_RETURN(args.k, trial.output(k_before, shift));
  CGRT_ASSIGN_OR_RETURN(args.v, trial.output(v_before, shift));
  CGRT_ASSIGN_OR_RETURN(args.qkv, trial.input(qkv, shift));
  if (desc.has_bias) {
    CGRT_ASSIGN_OR_RETURN(args.bias, trial.input(bias, shift));
  }
  const auto input = [&](const auto& values, auto*& argument, std::size_t behind = 0) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(void* const data, trial.input(bytes_of(values), behind));
    argument = static_cast<std::remove_reference_t<decltype(argument)>>(data);
    return absl::OkStatus();
  };
  if (desc.pairs != RopePairs::kNone) CGRT_RETURN_IF_ERROR(input(table, args.table, setup.table_shift));
  CGRT_RETURN_IF_ERROR(input(tokens.position, args.position));
  if (desc.cache) CGRT_RETURN_IF_ERROR(input(tokens.sequence, args.sequence));
  if (desc.cache && desc.cache->layout == KvLayout::kPaged) {
    CGRT_RETURN_IF_ERROR(input(tokens.block_table, args.block_table));
  }
  if (setup.token_count != -1000) CGRT_RETURN_IF_ERROR(input(std::vector{setup.token_count}, args.token_count));
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_rope(target, plan, args); }));

  std::vector<double> q = to_doubles(desc.type, q_before), k = to_doubles(desc.type, k_before),
                      v = to_doubles(desc.type, v_before);
  const std::vector<double> from = to_doubles(desc.type, qkv), added = to_doubles(desc.type, bias);
  for (std::uint64_t token = 0; token < desc.tokens; ++token) {
    const std::int32_t position = tokens.position[token];
    if (position < 0 || position >= static_cast<std::int32_t>(desc.positions)) continue;
    if (setup.token_count != -1000 && static_cast<std::int64_t>(token) >= setup.token_count) break;
    const std::int64_t kept = tokens.kept_at(plan.desc, token);
    for (std::uint64_t head = 0; head < row_heads; ++head) {
      std::vector<double> elements(size);
      for (std::uint64_t i = 0; i < size; ++i) {
        elements[i] = from[(token * row_heads + head) * size + i] + (desc.has_bias ? added[head * size + i] : 0);
      }
      const bool is_query = head < desc.heads, is_value = head >= desc.heads + desc.kv_heads;
      if (!is_value) {
        const float* const angles = table.data() + static_cast<std::size_t>(position) * plan.desc.rotary_size;
        elements = kernels::rope_reference(desc.pairs, plan.desc.rotary_size, elements, angles);
      }
      if (!is_query && kept < 0) continue;
      const std::uint64_t kv_head = head - desc.heads - (is_value ? desc.kv_heads : 0);
      const std::uint64_t head_stride = desc.cache ? plan.desc.cache->head_stride : size;
      const std::uint64_t at =
          is_query ? (token * desc.heads + head) * size : static_cast<std::uint64_t>(kept) + kv_head * head_stride;
      std::copy(elements.begin(), elements.end(),
                (is_query   ? q
                 : is_value ? v
                            : k)
                        .begin() +
                    static_cast<std::ptrdiff_t>(at));
    }
  }
  CGRT_RETURN_IF_ERROR(compare("q", desc.type, q, trial.found(args.q)));
  CGRT_RETURN_IF_ERROR(compare("k", desc.type, k, trial.found(args.k)));
  return compare("v", desc.type, v, trial.found(args.v));
}

// heads, kv_heads, head_size, rotary_size
struct Heads {
  std::uint64_t heads, kv_heads, size, rotary = 0;
};
constexpr Heads kHeads[] = {
    {1, 1, 2},      {4, 4, 64},    {8, 2, 128},    {4, 1, 256},    {3, 3, 80},     {2, 1, 96, 32},
    {2, 2, 80, 16}, {2, 1, 40, 8}, {1, 2, 24, 16}, {3, 1, 66, 66}, {2, 2, 72, 20}, {5, 3, 7, 6},
};
// As models have them: of Llama 3 8B and 70B, GPT-J, Phi-2.
constexpr Heads kReal[] = {{32, 8, 128}, {64, 8, 128}, {16, 16, 256, 64}, {32, 32, 80, 32}};

// Where keys and values go. kHeadsFirst: a dense cache of [sequences, kv_heads, positions, head_size], of fewer
// positions than the table.
enum class Kept { kArrays, kDense, kHeadsFirst, kPaged };
const char* to_string(Kept kept) {
  switch (kept) {
    case Kept::kArrays: return "rope";
    case Kept::kDense: return "rope with a dense cache";
    case Kept::kHeadsFirst: return "rope with a cache of heads";
    case Kept::kPaged: return "rope with a paged cache";
  }
  return "";
}
std::optional<KvCacheDesc> cache_of(Kept kept, const Heads& heads, std::uint64_t positions) {
  KvCacheDesc cache{.sequences = 3};
  switch (kept) {
    case Kept::kArrays: return std::nullopt;
    case Kept::kDense: return cache;
    case Kept::kHeadsFirst:
      cache.positions = (positions + 1) / 2;
      cache.position_stride = heads.size;
      cache.head_stride = cache.positions * heads.size;
      cache.block_stride = heads.kv_heads * cache.head_stride;
      return cache;
    case Kept::kPaged: break;
  }
  cache.layout = KvLayout::kPaged;
  cache.page_size = heads.kv_heads == 1 ? 1 : 16;
  cache.pages_per_sequence = (positions + cache.page_size - 1) / cache.page_size + 1;
  cache.pages = 2 * cache.pages_per_sequence;  // for two thirds of the block table
  return cache;
}

void check_heads(Report& report, const Heads& heads, std::uint64_t tokens, std::uint64_t positions) {
  const char* const names[] = {" halves ", " neighbours ", " no pairs "};
  if (heads.size % 2 != 0 && heads.rotary == 0) return;
  for (const DType type : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kNeighbours, RopePairs::kNone}) {
      for (const Kept kept : {Kept::kArrays, Kept::kDense, Kept::kHeadsFirst, Kept::kPaged}) {
        const RopeDesc desc{.type = type,
                            .tokens = tokens,
                            .heads = heads.heads,
                            .kv_heads = heads.kv_heads,
                            .head_size = heads.size,
                            .rotary_size = heads.rotary,
                            .pairs = pairs,
                            .has_bias = kept != Kept::kDense,
                            .positions = positions,
                            .cache = cache_of(kept, heads, positions)};
        const Setup setups[] = {
            {}, {.shift = 1}, {.token_count = static_cast<std::int32_t>(tokens / 2)}, {.table_shift = 8}};
        for (const Setup& setup : setups) {
          if (setup.table_shift != 0 && kept == Kept::kPaged) continue;  // as with a dense cache
          report.check(absl::StrCat(to_string(kept), " ", to_string(type), names[static_cast<int>(pairs)], tokens,
                                    " tokens of ", heads.heads, " and ", heads.kv_heads, " heads of ", heads.size, ", ",
                                    heads.rotary, " turn; shifted by ", setup.shift, ", table by ", setup.table_shift,
                                    ", ", setup.token_count, " tokens"),
                       check(desc, setup));
        }
      }
    }
  }
}

void check_refusals(Report& report) {
  const RopeDesc good{
      .tokens = 4,
      .heads = 2,
      .kv_heads = 1,
      .head_size = 64,
      .has_bias = true,
      .positions = 32,
      .cache = KvCacheDesc{
          .layout = KvLayout::kPaged, .sequences = 2, .pages = 8, .page_size = 16, .pages_per_sequence = 2}};
  const auto refuses = [&](const char* text, auto change) {
    RopeDesc desc = good;
    change(desc);
    report.check(absl::StrCat("rope refuses: ", text), refused(kernels::plan_rope(kDevice, desc).status(), text));
  };
  refuses("tokens is 0; it can be 1 to 2147483647", [](RopeDesc& d) { d.tokens = 0; });
  refuses("heads is 0", [](RopeDesc& d) { d.heads = 0; });
  refuses("kv_heads is 0", [](RopeDesc& d) { d.kv_heads = 0; });
  refuses("head_size is 2147483648", [](RopeDesc& d) { d.head_size = std::uint64_t{1} << 31; });
  refuses("a row of qkv has 2000000002 heads of 64 elements", [](RopeDesc& d) { d.kv_heads = 1000000000; });
  refuses("2147483647 tokens of 131072 threads",
          [](RopeDesc& d) { d.tokens = 2147483647, d.heads = 510, d.head_size = 512; });
  refuses("rotary_size is 31; it can be an even number of at most 64", [](RopeDesc& d) { d.rotary_size = 31; });
  refuses("rotary_size is 66", [](RopeDesc& d) { d.rotary_size = 66; });
  refuses("rotary_size is 63", [](RopeDesc& d) { d.head_size = 63; });
  refuses("positions is 0", [](RopeDesc& d) { d.positions = 0; });
  refuses("sequences is 0", [](RopeDesc& d) { d.cache->sequences = 0; });
  refuses("pages is 0", [](RopeDesc& d) { d.cache->pages = 0; });
  refuses("pages of 16 hold fewer than 33 positions", [](RopeDesc& d) { d.positions = 33; });
  refuses("the cache has 2 heads of 64 elements, but rows of qkv have 1 of 64",
          [](RopeDesc& d) { d.cache->kv_heads = 2; });
  refuses("head_stride is 2305843009213693952", [](RopeDesc& d) { d.cache->head_stride = std::uint64_t{1} << 61; });
  refuses("int32", [](RopeDesc& d) { d.type = DType::kInt32; });

  const absl::StatusOr<RopePlan> plan = kernels::plan_rope(kDevice, good);
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !trial.ok()) return report.check("rope plans", absl::InternalError("no plan or no stream"));
  alignas(16) static float memory[4];
  auto* const numbers = reinterpret_cast<std::int32_t*>(memory);
  const RopeArgs all{memory, memory, memory, memory, memory, memory, numbers, numbers, numbers, numbers};
  const auto refuses_args = [&](const char* text, auto change) {
    RopeArgs args = all;
    change(args);
    report.check(absl::StrCat("rope refuses: ", text), refused(launch_rope(trial->stream(), *plan, args), text));
  };
  const auto odd = [](auto* pointer) {
    return reinterpret_cast<decltype(pointer)>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
  };
  refuses_args("q is null", [](RopeArgs& a) { a.q = nullptr; });
  refuses_args("k is null", [](RopeArgs& a) { a.k = nullptr; });
  refuses_args("v is null", [](RopeArgs& a) { a.v = nullptr; });
  refuses_args("qkv (0x", [&](RopeArgs& a) { a.qkv = odd(static_cast<const char*>(a.qkv)); });
  refuses_args("bias is null", [](RopeArgs& a) { a.bias = nullptr; });
  refuses_args("table (0x", [](RopeArgs& a) { a.table += 1; });
  refuses_args("position is null", [](RopeArgs& a) { a.position = nullptr; });
  refuses_args("sequence is null", [](RopeArgs& a) { a.sequence = nullptr; });
  refuses_args("block_table is null", [](RopeArgs& a) { a.block_table = nullptr; });
  refuses_args("token_count (0x", [&](RopeArgs& a) { a.token_count = odd(a.token_count); });
}

// A pair turns by the angle of its position: known values.
absl::Status check_table() {
  const std::vector<float> table = kernels::rope_table(100001, 4, 10000);
  const auto is = [&](std::uint64_t position, std::uint64_t pair, double angle) {
    const float* const found = &table[(position * 2 + pair) * 2];
    return std::abs(static_cast<double>(found[0]) - std::cos(angle)) < 1e-7 &&
           std::abs(static_cast<double>(found[1]) - std::sin(angle)) < 1e-7;
  };
  if (is(0, 0, 0) && is(1, 0, 1) && is(1, 1, 0.01) && is(100000, 0, 100000) && is(100000, 1, 1000)) {
    return absl::OkStatus();
  }
  return absl::InternalError("the table has other angles");
}

}  // namespace

void check_rope(Report& report) {
  check_refusals(report);
  report.check("rope_table", check_table());
  for (const Heads& heads : kHeads) {
    for (const std::uint64_t tokens : {1, 34}) check_heads(report, heads, tokens, 50);
  }
  if (report.is_simulated()) return;
  for (const Heads& heads : kReal) {
    for (const std::uint64_t tokens : {1, 257}) check_heads(report, heads, tokens, 261);
  }
  check_heads(report, {5, 3, 128}, 4097, 4097);
}

void draw_rope(Draw& draw, Report& report) {
  const std::uint64_t max = draw.max_elements(2);
  RopeDesc desc{
      .type = draw.float_type(), .tokens = draw.size(3000), .heads = draw.size(64), .kv_heads = draw.size(32)};
  desc.head_size = (draw.one_in(4) ? 1 : 2) * draw.size(256);
  Draw::shrink(max / 2, {&desc.tokens, &desc.heads, &desc.head_size});
  Draw::shrink(max / 2, {&desc.tokens, &desc.kv_heads, &desc.head_size});
  desc.pairs = draw.of({RopePairs::kHalves, RopePairs::kNeighbours, RopePairs::kNone});
  if (draw.one_in(2)) desc.rotary_size = 2 * draw.size((desc.head_size + 1) / 2);
  desc.has_bias = draw.one_in(2);
  const std::uint64_t sequences = draw.size(20), row = desc.kv_heads * desc.head_size;
  // So many that no two tokens have one place.
  desc.positions = desc.tokens / sequences + 1 + draw.size(50);
  if (!draw.one_in(3)) {
    KvCacheDesc& cache = desc.cache.emplace(KvCacheDesc{.sequences = sequences});
    if (draw.one_in(3)) cache.positions = draw.size(desc.positions);
    std::uint64_t rows = desc.positions;
    if (draw.one_in(2)) {
      cache.layout = KvLayout::kPaged;
      rows = cache.page_size = draw.size(64);
      cache.pages_per_sequence = (desc.positions - 1) / cache.page_size + 1 + draw.from(0, 2);
      cache.pages = draw.size(sequences * cache.pages_per_sequence);
    }
    const auto gap = [&] { return draw.one_in(2) ? 0 : draw.of({1, 3, 8, 40}) * std::uint64_t{1}; };
    if (draw.one_in(3)) {
      cache.position_stride = desc.head_size + gap();
      cache.head_stride = rows * cache.position_stride + gap();
      cache.block_stride = desc.kv_heads * cache.head_stride + gap();
    } else if (draw.one_in(2)) {
      cache.head_stride = desc.head_size + gap();
      cache.position_stride = desc.kv_heads * cache.head_stride + gap();
      cache.block_stride = rows * cache.position_stride + gap();
    }
    if (row * rows * std::max(sequences, cache.pages) > 4 * max) desc.cache.reset();
  }
  const Setup setup{.shift = draw.shift(), .token_count = draw.one_in(3) ? draw.count_of(desc.tokens) : -1000};
  report.check(absl::StrCat("rope ", to_string(desc.type), ", ", desc.tokens, " tokens of ", desc.heads, " and ",
                            desc.kv_heads, " heads of ", desc.head_size, ", ", desc.rotary_size, " turn; shifted by ",
                            setup.shift, ", ", setup.token_count, " tokens"),
               check(desc, setup));
}

}  // namespace cgrt::testing
