// Softmax of scaled and masked rows: every kind of mask, each regime from both sides of its ends.
#include "cgrt_kernels/softmax/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/softmax/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::CausalMask;
using kernels::DType;
using kernels::MaskedSoftmaxArgs;
using kernels::MaskedSoftmaxDesc;
using kernels::MaskedSoftmaxPlan;
using kernels::size_of;

// Which masks there are, and how the arrays lie.
struct Variant {
  const char* name;
  bool is_added = false, is_causal = false, has_lengths = false, is_shared = false;  // one mask row for all
  bool is_in_place = false, is_misaligned = false;
};
constexpr Variant kVariants[] = {
    {.name = "scaled"},
    {.name = "added", .is_added = true},
    {.name = "added to all rows, in place", .is_added = true, .is_shared = true, .is_in_place = true},
    {.name = "causal", .is_causal = true},
    {.name = "causal, misaligned", .is_causal = true, .is_misaligned = true},
    {.name = "lengths, in place", .has_lengths = true, .is_in_place = true},
    {.name = "all", .is_added = true, .is_causal = true, .has_lengths = true},
    {.name = "all, misaligned", .is_added = true, .is_causal = true, .has_lengths = true, .is_misaligned = true},
};

// Rounding of the result, and of a sum of float powers of float arguments up to about 10.
bool is_close(DType type, double expected, double found) {
  const double rounding = type == DType::kFloat32 ? 1e-5 : type == DType::kFloat16 ? 1.0 / 1024 : 1.0 / 128;
  return std::isfinite(found) &&
         std::abs(found - expected) <= rounding * expected + (type == DType::kFloat16 ? 6e-8 : 1e-9);
}

absl::Status run(const MaskedSoftmaxPlan& plan, Trial& trial, MaskedSoftmaxArgs args) {
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  return trial.run(args.workspace,
                   [&](LaunchTarget target) { return kernels::launch_masked_softmax(target, plan, args); });
}

struct Sizes {
  std::uint64_t matrices, masks, rows, columns;
};

absl::Status check(DType type, const Sizes& sizes, const Variant& variant) {
  const std::uint64_t all_rows = sizes.matrices * sizes.rows, columns = sizes.columns;
  MaskedSoftmaxDesc desc{
      .type = type, .matrices = sizes.matrices, .rows = sizes.rows, .columns = columns, .scale = 0.5f};
  desc.causal = variant.is_causal ? CausalMask::kLowerRight : CausalMask::kNone;
  desc.mask_matrices = sizes.masks;
  desc.mask_rows = variant.is_shared ? 1 : sizes.rows;
  const std::size_t shift = variant.is_misaligned ? size_of(type) : 0;
  const Bytes x = random_elements(type, all_rows * columns, 0.5, 3, 1);
  const std::uint64_t mask_rows = desc.mask_matrices * desc.mask_rows;
  std::vector<double> masks = to_doubles(type, random_elements(type, mask_rows * columns, 0, 1, 2));
  for (std::size_t i = 0; i < masks.size(); ++i) {
    // The second row has -inf everywhere, the others here and there, and from their middle for many threads.
    const bool is_long = i % columns > columns / 2 && i % (2 * columns) < columns;
    if (i / columns == 1 || i % 7 == 3 || is_long) masks[i] = -std::numeric_limits<double>::infinity();
  }
  std::vector<std::int32_t> lengths;
  for (std::uint64_t i = 0; i < sizes.masks; ++i) {
    const auto count = static_cast<std::int32_t>(columns);
    lengths.push_back(i % 4 == 0 ? count - count / 3 : i % 4 == 1 ? 0 : i % 4 == 2 ? -5 : count + 5);
  }
  Bytes length_bytes;
  for (const std::int32_t length : lengths) {
    Bytes one(4);
    write_element(DType::kInt32, one.data(), length);
    length_bytes.insert(length_bytes.end(), one.begin(), one.end());
  }

  CGRT_ASSIGN_OR_RETURN(const MaskedSoftmaxPlan plan, kernels::plan_masked_softmax(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  MaskedSoftmaxArgs args;
  if (variant.is_in_place) {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(x, shift));
    args.in = args.out;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(x.size(), shift));
    CGRT_ASSIGN_OR_RETURN(args.in, trial.input(x, shift));
  }
  if (variant.is_added) {
    CGRT_ASSIGN_OR_RETURN(args.mask, trial.input(to_elements(type, masks)));
  }
  if (variant.has_lengths) {
    CGRT_ASSIGN_OR_RETURN(void* const device_lengths, trial.input(length_bytes));
    args.lengths = static_cast<const std::int32_t*>(device_lengths);
  }
  CGRT_RETURN_IF_ERROR(run(plan, trial, args));

  const Bytes y = trial.found(args.out);
  for (std::uint64_t row = 0; row < all_rows; ++row) {
    const std::uint64_t in_matrix = row % sizes.rows, set = row / sizes.rows / (sizes.matrices / sizes.masks);
    const std::uint64_t mask_row = set * desc.mask_rows + (variant.is_shared ? 0 : in_matrix);
    std::vector<double> expected = to_doubles(type, x, row * columns, columns);
    kernels::masked_softmax_reference(
        expected, static_cast<double>(desc.scale), variant.is_added ? &masks[mask_row * columns] : nullptr,
        kernels::seen_columns(static_cast<std::int64_t>(in_matrix), static_cast<std::int64_t>(sizes.rows),
                              static_cast<std::int64_t>(columns), variant.is_causal,
                              variant.has_lengths ? &lengths[set] : nullptr));
    const std::vector<double> found = to_doubles(type, y, row * columns, columns);
    for (std::uint64_t i = 0; i < columns; ++i) {
      if (is_close(type, expected[i], found[i])) continue;
      return absl::InternalError(
          absl::StrCat("row ", row, " column ", i, ": expected ", expected[i], ", found ", found[i]));
    }
  }
  return absl::OkStatus();
}

// Threads that see only -inf while others see little: what they contribute stays 0. The largest, and what
// is far below it, stay finite.
absl::Status check_extremes(std::uint64_t columns, double value) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> x(columns, -infinity);
  x[columns / 2] = value;
  x[columns / 2 + 1] = -3e38;
  CGRT_ASSIGN_OR_RETURN(const MaskedSoftmaxPlan plan,
                        kernels::plan_masked_softmax(kDevice, {.rows = 1, .columns = columns}));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  MaskedSoftmaxArgs args;
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(to_elements(DType::kFloat32, x)));
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output(columns * 4));
  CGRT_RETURN_IF_ERROR(run(plan, trial, args));
  const std::vector<double> found = to_doubles(DType::kFloat32, trial.found(args.out));
  for (std::uint64_t i = 0; i < columns; ++i) {
    const double expected = i == columns / 2 ? 1 : 0;
    if (found[i] == expected) continue;
    return absl::InternalError(absl::StrCat("column ", i, ": expected ", expected, ", found ", found[i]));
  }
  return absl::OkStatus();
}

// The first matrix sees a NaN or an infinity, the second has one where it does not look, by length or by order: what
// is not seen is 0, in each regime.
absl::Status check_unseen(DType type, std::uint64_t matrices, std::uint64_t columns, double bad, bool is_in_mask) {
  constexpr std::uint64_t kRows = 2;
  const std::uint64_t seen = columns - columns / 3;
  std::vector<double> x(matrices * kRows * columns, 0.5), mask(x.size(), 0);
  for (std::uint64_t row = 0; row < matrices * kRows; ++row) {
    const bool sees_it = row / kRows % 2 == 0;
    (is_in_mask ? mask : x)[row * columns + (sees_it ? seen / 2 : seen)] = bad;
  }
  std::vector<double> lengths(matrices, static_cast<double>(seen));
  CGRT_ASSIGN_OR_RETURN(const MaskedSoftmaxPlan plan,
                        kernels::plan_masked_softmax(kDevice, {.type = type,
                                                               .matrices = matrices,
                                                               .rows = kRows,
                                                               .columns = columns,
                                                               .causal = CausalMask::kLowerRight,
                                                               .mask_matrices = matrices,
                                                               .mask_rows = kRows}));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  MaskedSoftmaxArgs args;
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(to_elements(type, x)));
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output(x.size() * size_of(type)));
  if (is_in_mask) {
    CGRT_ASSIGN_OR_RETURN(args.mask, trial.input(to_elements(type, mask)));
  }
  CGRT_ASSIGN_OR_RETURN(void* const device_lengths, trial.input(to_elements(DType::kInt32, lengths)));
  args.lengths = static_cast<const std::int32_t*>(device_lengths);
  CGRT_RETURN_IF_ERROR(run(plan, trial, args));
  const std::vector<double> found = to_doubles(type, trial.found(args.out));
  for (std::uint64_t at = 0; at < found.size(); ++at) {
    const std::uint64_t row = at / columns, column = at % columns;
    const std::uint64_t last = std::min(seen, row % kRows + 1 + columns - kRows);
    const bool is_right = column >= last         ? found[at] == 0
                          : row / kRows % 2 == 0 ? std::isnan(found[at])
                                                 : is_close(type, 1 / static_cast<double>(last), found[at]);
    if (!is_right) return absl::InternalError(absl::StrCat("row ", row, " column ", column, ": found ", found[at]));
  }
  return absl::OkStatus();
}

absl::Status refuses(const absl::Status& status, const char* sentence) {
  if (absl::IsInvalidArgument(status) && absl::StrContains(std::string(status.message()), sentence)) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("expected \"", sentence, "\", found ", std::string(status.message())));
}

absl::Status check_refusals() {
  const MaskedSoftmaxDesc good{.matrices = 6, .rows = 2, .columns = 8, .mask_matrices = 3, .mask_rows = 2};
  const auto planned = [](const MaskedSoftmaxDesc& desc) {
    return kernels::plan_masked_softmax(kDevice, desc).status();
  };
  CGRT_ASSIGN_OR_RETURN(const MaskedSoftmaxPlan plan, kernels::plan_masked_softmax(kDevice, good));
  MaskedSoftmaxDesc desc = good;
  desc.columns = 0;
  CGRT_RETURN_IF_ERROR(refuses(planned(desc), "2 rows of 0 columns"));
  desc = good;
  desc.rows = desc.mask_rows = 1u << 30;
  CGRT_RETURN_IF_ERROR(refuses(planned(desc), "must be from 1 to 2147483647"));
  desc = good;
  desc.mask_matrices = 4;
  CGRT_RETURN_IF_ERROR(refuses(planned(desc), "mask_matrices (4) does not divide the 6 matrices"));
  desc = good;
  desc.mask_rows = 3;
  CGRT_RETURN_IF_ERROR(refuses(planned(desc), "mask_rows (3) is neither 1 nor the 2 rows"));
  desc = good;
  desc.type = DType::kFloat64;
  CGRT_RETURN_IF_ERROR(refuses(planned(desc), "no kernel for float64"));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  auto* const some = reinterpret_cast<unsigned char*>(4096);
  const auto launched = [&](const MaskedSoftmaxArgs& args) {
    return kernels::launch_masked_softmax(stream.ref(), plan, args);
  };
  CGRT_RETURN_IF_ERROR(refuses(launched({.in = some}), "out is null"));
  CGRT_RETURN_IF_ERROR(refuses(launched({.out = some}), "in is null"));
  return refuses(launched({.out = some, .in = some, .mask = some + 1}), "mask (0x1001) is not aligned to 4 bytes");
}

constexpr Sizes kSizes[] = {{1, 1, 1, 1},      {2, 1, 3, 7},     {4, 2, 5, 111},   {8, 4, 6, 64},    {4, 4, 7, 256},
                            {6, 3, 33, 264},   {4, 2, 64, 512},  {2, 1, 8, 1000},  {4, 4, 9, 1024},  {4, 2, 3, 1032},
                            {1, 1, 3, 4096},   {50, 2, 3, 4096}, {2, 2, 2, 4097},  {4, 4, 2, 8192},  {35, 1, 4, 8192},
                            {70, 35, 2, 8200}, {1, 1, 2, 32768}, {3, 3, 1, 33000}, {1, 1, 2, 65536}, {2, 2, 1, 70000},
                            {1, 1, 2, 600001}, {1200, 3, 2, 7},  {600, 6, 49, 49}, {300, 3, 8, 16},  {300, 3, 8, 30},
                            {300, 3, 9, 64},   {300, 3, 9, 128}, {300, 3, 9, 200}};

}  // namespace

void check_masked_softmax(Report& report) {
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const Sizes& sizes : kSizes) {
      const std::uint64_t count = sizes.matrices * sizes.rows * sizes.columns;
      if (report.is_simulated() && count > 1 << 17) continue;  // one host body serves all shapes
      for (const Variant& variant : kVariants) {
        report.check(absl::StrCat("masked_softmax ", to_string(type), " ", sizes.matrices, "x", sizes.rows, "x",
                                  sizes.columns, " ", variant.name),
                     check(type, sizes, variant));
      }
    }
  }
  for (const std::uint64_t columns : {64, 1000, 4096, 33, 70000}) {
    for (const double value : {-1000.0, -100.0, 0.0, 3e38}) {
      report.check(absl::StrCat("masked_softmax of ", columns, " where one is ", value),
                   check_extremes(columns, value));
    }
  }
  // A lane, a warp or some of its lanes, a block, a cluster, element by element, and longer than registers.
  for (const std::uint64_t columns : {5, 8, 15, 200, 1000, 33, 2000, 4097, 40000, 70001}) {
    for (const std::uint64_t matrices : {2, 100, 1100}) {
      if (matrices * columns > (report.is_simulated() ? 1u << 17 : 1u << 20)) continue;
      for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
          for (const bool is_in_mask : {false, true}) {
            report.check(absl::StrCat("masked_softmax ", to_string(type), " of ", matrices, "x2x", columns,
                                      " where one", is_in_mask ? " of the mask" : "", " is ", bad),
                         check_unseen(type, matrices, columns, bad, is_in_mask));
          }
        }
      }
    }
  }
  report.check("refusals", check_refusals());
}

void draw_masked_softmax(Draw& draw, Report& report) {
  Sizes sizes{.matrices = 1, .masks = draw.size(30), .rows = 1, .columns = 1};
  std::tie(sizes.rows, sizes.columns) = draw.matrix(draw.max_elements(4));
  Draw::shrink(draw.max_elements(4), {&sizes.masks, &sizes.rows, &sizes.columns});
  std::uint64_t of_mask = draw.size(16);
  Draw::shrink(draw.max_elements(4), {&of_mask, &sizes.masks, &sizes.rows, &sizes.columns});
  sizes.matrices = sizes.masks * of_mask;
  const Variant variant{.name = "drawn",
                        .is_added = draw.one_in(2),
                        .is_causal = draw.one_in(2),
                        .has_lengths = draw.one_in(2),
                        .is_shared = draw.one_in(3),
                        .is_in_place = draw.one_in(3),
                        .is_misaligned = draw.one_in(3)};
  const DType type = draw.float_type();
  report.check(absl::StrCat("masked_softmax ", to_string(type), " ", sizes.matrices, "x", sizes.rows, "x",
                            sizes.columns, " of ", sizes.masks, " masks", variant.is_added ? ", added" : "",
                            variant.is_causal ? ", causal" : "", variant.has_lengths ? ", lengths" : "",
                            variant.is_shared ? ", shared" : "", variant.is_misaligned ? ", misaligned" : ""),
               check(type, sizes, variant));
}

}  // namespace cgrt::testing
