// layer_norm and rms_norm of a sum with a bias and a residual, each regime from both sides of its ends.
#include "cgrt_kernels/bias_norm/bias_norm.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/norm/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::BiasNormArgs;
using kernels::BiasNormDesc;
using kernels::BiasNormPlan;
using kernels::DType;
using kernels::NormOp;
using kernels::size_of;

// kShifted: arrays lie differently between multiples of 16 bytes.
enum class Variant { kPlain, kInPlace, kCrossed, kMisaligned, kShifted, kNoWeights, kNoSum };
const char* to_string(Variant variant) {
  switch (variant) {
    case Variant::kPlain: return "";
    case Variant::kInPlace: return " in place";
    case Variant::kCrossed: return " in place, crossed";
    case Variant::kMisaligned: return " misaligned";
    case Variant::kShifted: return " shifted";
    case Variant::kNoWeights: return " without weights";
    case Variant::kNoSum: return " without the sum";
  }
  return "";
}
constexpr Variant kVariants[] = {Variant::kPlain,   Variant::kInPlace,   Variant::kCrossed, Variant::kMisaligned,
                                 Variant::kShifted, Variant::kNoWeights, Variant::kNoSum};

double rounding_of(DType type) {
  return type == DType::kFloat32 ? 1e-5 : type == DType::kFloat16 ? 1.0 / 1024 : 1.0 / 128;
}

// Of a sum of three, which the host adds in double and the device in float.
bool is_close_sum(DType type, double expected, double found) {
  return std::abs(found - expected) <= rounding_of(type) * std::abs(expected) + 1e-6;
}
// As of norm: what is left near 0 has the rounding of the values.
bool is_close(NormOp op, DType type, double expected, double found) {
  const double smallest = op == NormOp::kLayerNorm ? 2e-6 : type == DType::kFloat16 ? 6e-8 : 1e-9;
  return std::isfinite(found) &&
         std::abs(found - expected) <= rounding_of(type) * (std::abs(expected) + 1e-3) + smallest;
}

// How much an error of `last_place` of the largest value, which the mean has, is in the normalized ones: much where few
// values are close to each other, or to 0 when the sum is unknown.
double error_of_mean(const BiasNormDesc& desc, const std::vector<double>& values, double largest, double last_place) {
  double sum = 0, squares = 0;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) sum += value;
  const double mean = desc.op == NormOp::kLayerNorm ? sum / count : 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return last_place * largest / std::sqrt(squares / count + static_cast<double>(desc.epsilon));
}

struct Inputs {
  Bytes x, residual, in_bias, weight, bias;
};

absl::StatusOr<BiasNormArgs> make_args(Trial& trial, const Inputs& of, std::size_t size, Variant variant) {
  const bool is_shifted = variant == Variant::kShifted, is_crossed = variant == Variant::kCrossed;
  const std::size_t shift = variant == Variant::kMisaligned ? size : 0;
  BiasNormArgs args;
  if (variant == Variant::kInPlace || is_crossed) {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(is_crossed ? of.residual : of.x));
    CGRT_ASSIGN_OR_RETURN(args.sum, trial.output(is_crossed ? of.x : of.residual));
    args.in = is_crossed ? args.sum : args.out;
    args.residual = is_crossed ? args.out : args.sum;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(of.x.size(), shift));
    CGRT_ASSIGN_OR_RETURN(args.in, trial.input(of.x, is_shifted ? size : shift));
    CGRT_ASSIGN_OR_RETURN(args.residual, trial.input(of.residual, is_shifted ? 3 * size : shift));
    if (variant != Variant::kNoSum) {
      CGRT_ASSIGN_OR_RETURN(args.sum, trial.output(of.x.size(), is_shifted ? 2 * size : shift));
    }
  }
  CGRT_ASSIGN_OR_RETURN(args.in_bias, trial.input(of.in_bias, is_shifted ? 5 * size : 0));
  if (variant != Variant::kNoWeights) {
    CGRT_ASSIGN_OR_RETURN(args.weight, trial.input(of.weight, is_shifted ? size : 0));
    CGRT_ASSIGN_OR_RETURN(args.bias, trial.input(of.bias));
  }
  return args;
}

absl::Status check(const BiasNormDesc& desc, Variant variant) {
  const std::size_t count = desc.rows * desc.columns;
  const Inputs of{random_elements(desc.type, count, 0.5, 2, 1), random_elements(desc.type, count, 0, 2, 2),
                  random_elements(desc.type, desc.columns, 0, 1, 5), random_elements(desc.type, desc.columns, 1, 1, 3),
                  random_elements(desc.type, desc.columns, 0, 1, 4)};
  CGRT_ASSIGN_OR_RETURN(const BiasNormPlan plan, kernels::plan_bias_norm(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CGRT_ASSIGN_OR_RETURN(const BiasNormArgs args, make_args(trial, of, size_of(desc.type), variant));
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_bias_norm(target, plan, args); }));

  const Bytes y = trial.found(args.out), sums = args.sum != nullptr ? trial.found(args.sum) : Bytes();
  const std::vector<double> in_bias = to_doubles(desc.type, of.in_bias), weight = to_doubles(desc.type, of.weight),
                            bias = to_doubles(desc.type, of.bias);
  const bool is_weighted = args.weight != nullptr;
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    std::vector<double> expected = to_doubles(desc.type, of.x, row * desc.columns, desc.columns);
    const std::vector<double> added = to_doubles(desc.type, of.residual, row * desc.columns, desc.columns);
    double largest = 0;
    for (std::uint64_t i = 0; i < desc.columns; ++i) {
      largest = std::max(largest, std::abs(expected[i]) + std::abs(in_bias[i]) + std::abs(added[i]));
      expected[i] += in_bias[i] + added[i];
    }
    expected = to_doubles(desc.type, to_elements(desc.type, expected));  // rounded once
    if (!sums.empty()) {
      const std::vector<double> sum = to_doubles(desc.type, sums, row * desc.columns, desc.columns);
      for (std::uint64_t i = 0; i < desc.columns; ++i) {
        if (is_close_sum(desc.type, expected[i], sum[i])) continue;
        return absl::InternalError(
            absl::StrCat("row ", row, " column ", i, ": expected the sum ", expected[i], ", found ", sum[i]));
      }
      expected = sum;  // which may be rounded to the other side
    }
    const bool is_unknown = sums.empty() && desc.type != DType::kFloat32;  // to which side it was rounded
    const double last_place = is_unknown ? rounding_of(desc.type) / 2 : 0x1p-22;
    const double of_mean = error_of_mean(desc, expected, largest, last_place);
    kernels::norm_reference(desc.op, expected, is_weighted ? weight.data() : nullptr,
                            is_weighted ? bias.data() : nullptr, static_cast<double>(desc.epsilon));
    const std::vector<double> found = to_doubles(desc.type, y, row * desc.columns, desc.columns);
    for (std::uint64_t i = 0; i < desc.columns; ++i) {
      // Without the sum it is not known to which side it was rounded.
      const double unknown = sums.empty() ? 2 * rounding_of(desc.type) : 0;
      const double of_weight =
          is_weighted ? std::abs(weight[i]) + std::abs(expected[i] - bias[i]) : 1 + std::abs(expected[i]);
      if (is_close(desc.op, desc.type, expected[i], found[i])) continue;
      if (std::abs(expected[i] - found[i]) <= std::max(unknown, of_mean * of_weight)) continue;
      return absl::InternalError(
          absl::StrCat("row ", row, " column ", i, ": expected ", expected[i], ", found ", found[i]));
    }
  }
  return absl::OkStatus();
}

void check_refusals(Report& report) {
  const auto refuses = [&](const char* text, const BiasNormDesc& desc) {
    report.check(absl::StrCat("bias_norm refuses: ", text),
                 refused(kernels::plan_bias_norm(kDevice, desc).status(), text));
  };
  refuses("bias_add_layer_norm: 4 rows of 0 columns", {.rows = 4});
  refuses("bias_add_rms_norm: epsilon is -1", {.op = NormOp::kRmsNorm, .rows = 4, .columns = 8, .epsilon = -1});
  refuses("no kernel for int64", {.type = DType::kInt64, .rows = 4, .columns = 8});
  refuses("plan_norm takes rows of any length", {.rows = 4, .columns = 131072});

  const absl::StatusOr<BiasNormPlan> plan =
      kernels::plan_bias_norm(kDevice, {.type = DType::kFloat16, .rows = 4, .columns = 8});
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !trial.ok()) return report.check("bias_norm", absl::InternalError("no plan or no stream"));
  auto* const some = reinterpret_cast<unsigned char*>(4096);
  const auto refuses_args = [&](const char* text, const BiasNormArgs& args) {
    report.check(absl::StrCat("bias_norm refuses: ", text),
                 refused(kernels::launch_bias_norm(trial->stream(), *plan, args), text));
  };
  const BiasNormArgs args{.out = some, .in = some, .in_bias = some, .residual = some + 64};
  const auto with = [&](auto change) {
    BiasNormArgs changed = args;
    change(changed);
    return changed;
  };
  refuses_args("bias_add_layer_norm: out is null", with([](BiasNormArgs& a) { a.out = nullptr; }));
  refuses_args("in is null", with([](BiasNormArgs& a) { a.in = nullptr; }));
  refuses_args("in_bias is null", with([](BiasNormArgs& a) { a.in_bias = nullptr; }));
  refuses_args("residual is null", with([](BiasNormArgs& a) { a.residual = nullptr; }));
  refuses_args("weight (0x1001) is not aligned to 2 bytes", with([&](BiasNormArgs& a) { a.weight = some + 1; }));
  refuses_args("out and sum are the same", with([&](BiasNormArgs& a) { a.sum = some; }));
}

struct Matrix {
  std::uint64_t rows, columns;
};

// From so many rows on an H200 gives long ones a block each.
constexpr std::uint64_t kWideRows = 2 * 132 + 1;

}  // namespace

void check_bias_norm(Report& report) {
  std::vector<Matrix> matrices{
      {1, 1},       {3, 7},      {131, 64},   {5, 111},     {1001, 10},   {9, 128},     {2, 511},    {6, 512},
      {2, 520},     {33, 768},   {201, 1024}, {5, 1032},    {150, 1032},  {1, 4096},    {140, 4096}, {3, 4097},
      {140, 4104},  {2, 8192},   {140, 8192}, {2, 12288},   {133, 12288}, {133, 16384}, {2, 16385},  {2, 32768},
      {140, 32768}, {1, 50257},  {1, 65536},  {140, 65536}, {132, 128},   {133, 128},   {133, 60},   {300, 64},
      {300, 201},   {300, 256},  {300, 264},  {40000, 100}, {40000, 128}, {2112, 320},  {2113, 320}, {2113, 512},
      {2113, 520},  {130, 2001}, {132, 3001}, {133, 3001},  {528, 1999},  {529, 1999}};
  for (const std::uint64_t columns : {8204, 14336, 14340, 16384, 20480, 32768}) {
    matrices.push_back({kWideRows, columns});
  }
  matrices.push_back({kWideRows - 1, 12288});
  std::mt19937 engine(7);
  for (int i = 0; i < 12; ++i) matrices.push_back({1 + engine() % 300, 1 + engine() % 5000});
  for (const NormOp op : {NormOp::kLayerNorm, NormOp::kRmsNorm}) {
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const auto& [rows, columns] : matrices) {
        if (report.is_simulated() && (rows * columns > 1 << 17 || columns > 8192))
          continue;  // one host body serves all
        for (const Variant variant : kVariants) {
          if (variant != Variant::kPlain && rows * columns > (rows == kWideRows ? 3 << 20 : 1 << 20)) continue;
          report.check(absl::StrCat("bias_add_", to_string(op), " ", to_string(type), " ", rows, "x", columns,
                                    to_string(variant)),
                       check({op, type, rows, columns}, variant));
        }
      }
    }
  }
  check_refusals(report);
}

void draw_bias_norm(Draw& draw, Report& report) {
  BiasNormDesc desc{.op = draw.of({NormOp::kLayerNorm, NormOp::kRmsNorm}), .type = draw.float_type()};
  std::tie(desc.rows, desc.columns) = draw.matrix(draw.max_elements(8));
  desc.epsilon = draw.of({1e-5f, 1e-6f, 1e-2f});
  const Variant variant = kVariants[draw.from(0, std::size(kVariants) - 1)];
  report.check(absl::StrCat("bias_add_", to_string(desc.op), " ", to_string(desc.type), " ", desc.rows, "x",
                            desc.columns, to_string(variant)),
               check(desc, variant));
}

}  // namespace cgrt::testing
