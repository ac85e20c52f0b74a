// The transposition between heads and tokens: packs of each width, padded rows, and packed ones whose offsets are odd.
#include "cgrt_kernels/transpose_heads/transpose_heads.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/transpose_heads/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::size_of;
using kernels::TokenRows;
using kernels::TransposeHeadsArgs;
using kernels::TransposeHeadsDesc;
using kernels::TransposeHeadsOp;
using kernels::TransposeHeadsPlan;

// Lengths of 0, of one, of all positions and of some.
std::vector<std::int32_t> packed_offsets(const TransposeHeadsDesc& desc) {
  std::vector<std::int32_t> offsets{0};
  std::mt19937 engine(5);
  for (std::uint64_t sequence = 0; sequence < desc.sequences; ++sequence) {
    const std::uint64_t lengths[] = {desc.positions, 0, 1, 1 + engine() % desc.positions};
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(lengths[sequence % 4]));
  }
  return offsets;
}

Bytes expected_of(const TransposeHeadsDesc& desc, const std::int32_t* offsets, const Bytes& in, Bytes out) {
  const std::size_t bytes = desc.head_size * size_of(desc.type);
  for (std::uint64_t sequence = 0; sequence < desc.sequences; ++sequence) {
    for (std::uint64_t position = 0; position < desc.positions; ++position) {
      const std::int64_t row = kernels::token_row_reference(offsets, desc.positions, desc.tokens, sequence, position);
      for (std::uint64_t head = 0; head < desc.heads; ++head) {
        const std::size_t in_heads = ((sequence * desc.heads + head) * desc.positions + position) * bytes;
        const std::size_t in_rows = row < 0 ? 0 : (static_cast<std::size_t>(row) * desc.heads + head) * bytes;
        if (desc.op == TransposeHeadsOp::kMerge) {
          if (row >= 0) std::copy_n(&in[in_heads], bytes, &out[in_rows]);
        } else if (row >= 0) {
          std::copy_n(&in[in_rows], bytes, &out[in_heads]);
        } else {
          std::fill_n(&out[in_heads], bytes, static_cast<unsigned char>(0));
        }
      }
    }
  }
  return out;
}

// `shift`: bytes that arrays are behind an aligned address.
absl::Status check(const TransposeHeadsDesc& desc, std::size_t shift, const std::vector<std::int32_t>& offsets) {
  CGRT_ASSIGN_OR_RETURN(const TransposeHeadsPlan plan, kernels::plan_transpose_heads(kDevice, desc));
  const bool is_packed = desc.rows == TokenRows::kPacked;
  const std::uint64_t row = desc.heads * desc.head_size, of_heads = desc.sequences * desc.positions * row;
  const std::uint64_t of_rows = is_packed ? desc.tokens * row : of_heads;
  const bool is_merge = desc.op == TransposeHeadsOp::kMerge;
  const Bytes in = random_elements(desc.type, is_merge ? of_heads : of_rows, 0, 1, 1);
  const Bytes before = random_elements(desc.type, is_merge ? of_rows : of_heads, 9, 1, 2);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  TransposeHeadsArgs args;
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output(before, shift));
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(in, shift));
  if (is_packed) {
    CGRT_ASSIGN_OR_RETURN(void* const data, trial.input(bytes_of(offsets)));
    args.offsets = static_cast<const std::int32_t*>(data);
  }
  CGRT_RETURN_IF_ERROR(
      trial.run([&](LaunchTarget target) { return kernels::launch_transpose_heads(target, plan, args); }));
  const Bytes expected = expected_of(desc, is_packed ? offsets.data() : nullptr, in, before);
  const Bytes found = trial.found(args.out);
  const auto at = std::mismatch(expected.begin(), expected.end(), found.begin()).first - expected.begin();
  if (static_cast<std::size_t>(at) == expected.size()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("byte ", at, " of ", expected.size(), " is another"));
}

void check_refusals(Report& report) {
  const TransposeHeadsDesc desc{.sequences = 2, .positions = 3, .heads = 4, .head_size = 8};
  const auto refuses = [&](const char* text, auto change) {
    TransposeHeadsDesc changed = desc;
    change(changed);
    report.check(absl::StrCat("transpose_heads refuses: ", text),
                 refused(kernels::plan_transpose_heads(kDevice, changed).status(), text));
  };
  constexpr std::uint64_t kMany = std::uint64_t{1} << 31;
  refuses("merge_heads: sequences is 0; it can be 1 to 2147483647", [](auto& d) { d.sequences = 0; });
  refuses("positions is 2147483648", [](auto& d) { d.positions = kMany; });
  refuses("heads is 0", [](auto& d) { d.heads = 0; });
  refuses("head_size is 0", [](auto& d) { d.head_size = 0; });
  refuses("split_heads: tokens is 0", [](auto& d) { d.op = TransposeHeadsOp::kSplit, d.rows = TokenRows::kPacked; });
  refuses("a token has 1073741824 heads of 8 elements", [](auto& d) { d.heads = kMany / 2; });
  refuses("1073741824 sequences of 64 positions are 64 tiles each; all together can be 2147483391.",
          [](auto& d) { d.sequences = kMany / 2, d.positions = 64; });
  refuses("no kernel for float64", [](auto& d) { d.type = DType::kFloat64; });

  TransposeHeadsDesc packed = desc;
  packed.rows = TokenRows::kPacked, packed.tokens = 6;
  const absl::StatusOr<TransposeHeadsPlan> plan = kernels::plan_transpose_heads(kDevice, packed);
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !trial.ok()) return report.check("transpose_heads", absl::InternalError("no plan or no stream"));
  auto* const some = reinterpret_cast<unsigned char*>(4096);
  const auto* const offsets = reinterpret_cast<const std::int32_t*>(some);
  const auto refuses_args = [&](const char* text, const TransposeHeadsArgs& args) {
    report.check(absl::StrCat("transpose_heads refuses: ", text),
                 refused(kernels::launch_transpose_heads(trial->stream(), *plan, args), text));
  };
  refuses_args("merge_heads: out is null", {nullptr, some, offsets});
  refuses_args("in (0x1001)", {some, some + 1, offsets});
  refuses_args("out is in", {some, some, offsets});
  refuses_args("offsets is null", {some, some + 512, nullptr});
}

struct Shape {
  std::uint64_t sequences, positions, heads, head_size;
};

}  // namespace

void check_transpose_heads(Report& report) {
  check_refusals(report);
  std::vector<Shape> shapes{{1, 1, 1, 1},     {1, 1, 32, 128},  {64, 1, 8, 64}, {3, 17, 5, 64},
                            {2, 128, 12, 64}, {5, 33, 4, 80},   {4, 31, 3, 36}, {4, 9, 7, 6},
                            {3, 5, 11, 7},    {2, 300, 2, 256}, {7, 50, 1, 96}, {1, 257, 1, 770}};
  if (!report.is_simulated())
    shapes.insert(shapes.end(), {{4, 2048, 32, 128}, {3, 777, 16, 64}, {16, 1000, 12, 64}, {2, 4097, 5, 33}});
  std::mt19937 engine(11);
  for (int i = 0; i < 10; ++i) {
    shapes.push_back({1 + engine() % 9, 1 + engine() % 70, 1 + engine() % 9, 1 + engine() % 40});
  }
  for (const TransposeHeadsOp op : {TransposeHeadsOp::kMerge, TransposeHeadsOp::kSplit}) {
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const auto& [sequences, positions, heads, head_size] : shapes) {
        TransposeHeadsDesc desc{op, type, TokenRows::kPadded, sequences, positions, heads, head_size, 0};
        const std::string name = absl::StrCat(to_string(op), " ", to_string(type), " ", sequences, "x", positions, "x",
                                              heads, "x", head_size);
        for (const std::size_t shift : {std::size_t{0}, std::size_t{8}, std::size_t{4}, size_of(type)}) {
          desc.rows = TokenRows::kPadded;
          report.check(absl::StrCat(name, " shifted by ", shift), check(desc, shift, {}));
          desc.rows = TokenRows::kPacked, desc.tokens = sequences * positions;
          report.check(absl::StrCat(name, " packed, shifted by ", shift), check(desc, shift, packed_offsets(desc)));
        }
      }
    }
    // What is at no place: behind the last token, before the first, more than the positions, and backwards.
    const TransposeHeadsDesc desc{op, DType::kFloat16, TokenRows::kPacked, 4, 8, 2, 8, 20};
    const std::vector<std::int32_t> odd[] = {
        {0, 8, 16, 24, 32}, {-3, 4, 6, 6, 20}, {5, 9, 2, 2, 2}, {100, 200, 300, 400, 500}, {0, 0, 0, 0, 0}};
    for (const auto& offsets : odd) {
      report.check(absl::StrCat(to_string(op), " with offsets up to ", offsets.back(), " from ", offsets.front()),
                   check(desc, 0, offsets));
    }
  }
}

void draw_transpose_heads(Draw& draw, Report& report) {
  TransposeHeadsDesc desc{.op = draw.of({TransposeHeadsOp::kMerge, TransposeHeadsOp::kSplit}),
                          .type = draw.float_type()};
  desc.sequences = draw.size(300), desc.positions = draw.size(5000);
  desc.heads = draw.size(64), desc.head_size = draw.size(1000);
  Draw::shrink(draw.max_elements(4), {&desc.sequences, &desc.positions, &desc.heads, &desc.head_size});
  std::vector<std::int32_t> offsets{0};
  if (draw.one_in(2)) {
    desc.rows = TokenRows::kPacked;
    for (std::uint64_t i = 0; i < desc.sequences; ++i) {
      offsets.push_back(offsets.back() +
                        std::clamp(draw.count_of(desc.positions), 0, static_cast<std::int32_t>(desc.positions)));
    }
    // Some of them may be behind the last row.
    desc.tokens =
        draw.one_in(4) ? draw.size(desc.sequences * desc.positions) : static_cast<std::uint64_t>(offsets.back()) + 1;
  }
  const std::size_t shift = draw.shift() * size_of(desc.type);
  report.check(absl::StrCat(to_string(desc.op), " ", to_string(desc.type), " ", desc.sequences, "x", desc.positions,
                            "x", desc.heads, "x", desc.head_size, desc.rows == TokenRows::kPacked ? " packed" : "",
                            " shifted by ", shift),
               check(desc, shift, offsets));
}

}  // namespace cgrt::testing
