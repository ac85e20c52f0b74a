// layer_norm and rms_norm, with and without a residual, each regime from both sides of its ends.
#include "cgrt_kernels/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/norm/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::NormArgs;
using kernels::NormDesc;
using kernels::NormOp;
using kernels::NormPlan;
using kernels::Residual;
using kernels::size_of;

// kShifted: arrays lie differently between multiples of 16 bytes. kNoSum: nobody wants the sum with the residual.
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

// How much an error of the last place of the largest value, which the mean has, is in the normalized ones: much where
// few values are close to each other.
double error_of_mean(const NormDesc& desc, const std::vector<double>& values) {
  if (desc.op == NormOp::kRmsNorm) return 0;
  double largest = 0, sum = 0, squares = 0;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) largest = std::max(largest, std::abs(value)), sum += value;
  for (const double value : values) squares += (value - sum / count) * (value - sum / count);
  return 0x1p-22 * largest / std::sqrt(squares / count + static_cast<double>(desc.epsilon));
}

// Rounding of the result, and of a sum of `columns` floats. A norm of values around 0.5 subtracts their
// mean, so what is left near 0 has the rounding of the values.
bool is_close(NormOp op, DType type, double expected, double found) {
  const double rounding = type == DType::kFloat32 ? 1e-5 : type == DType::kFloat16 ? 1.0 / 1024 : 1.0 / 128;
  const double smallest = op == NormOp::kLayerNorm ? 1e-6 : type == DType::kFloat16 ? 6e-8 : 1e-9;
  return std::isfinite(found) && std::abs(found - expected) <= rounding * (std::abs(expected) + 1e-3) + smallest;
}

absl::Status check(const NormDesc& desc, Variant variant) {
  const std::size_t size = size_of(desc.type), count = desc.rows * desc.columns;
  const bool is_added = desc.residual == Residual::kAdded, is_shifted = variant == Variant::kShifted;
  const std::size_t shift = variant == Variant::kMisaligned ? size : 0;
  const bool is_weighted = variant != Variant::kNoWeights;
  const Bytes x = random_elements(desc.type, count, 0.5, 2, 1), residual = random_elements(desc.type, count, 0, 2, 2),
              weight = random_elements(desc.type, desc.columns, 1, 1, 3),
              bias = random_elements(desc.type, desc.columns, 0, 1, 4);
  CGRT_ASSIGN_OR_RETURN(const NormPlan plan, kernels::plan_norm(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  NormArgs args;
  if (variant == Variant::kInPlace || variant == Variant::kCrossed) {
    const bool is_crossed = variant == Variant::kCrossed;
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(is_crossed ? residual : x));
    args.in = args.out;
    if (is_added) {
      CGRT_ASSIGN_OR_RETURN(args.sum, trial.output(is_crossed ? x : residual));
      args.in = is_crossed ? args.sum : args.out;
      args.residual = is_crossed ? args.out : args.sum;
    }
  } else {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(x.size(), shift));
    CGRT_ASSIGN_OR_RETURN(args.in, trial.input(x, is_shifted ? size : shift));
    if (is_added) {
      CGRT_ASSIGN_OR_RETURN(args.residual, trial.input(residual, is_shifted ? 3 * size : shift));
      if (variant != Variant::kNoSum) {
        CGRT_ASSIGN_OR_RETURN(args.sum, trial.output(x.size(), is_shifted ? 2 * size : shift));
      }
    }
  }
  if (is_weighted) {
    CGRT_ASSIGN_OR_RETURN(args.weight, trial.input(weight, is_shifted ? size : 0));
    CGRT_ASSIGN_OR_RETURN(args.bias, trial.input(bias));
  }
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  CGRT_RETURN_IF_ERROR(
      trial.run(args.workspace, [&](LaunchTarget target) { return kernels::launch_norm(target, plan, args); }));

  const Bytes y = trial.found(args.out), sum = args.sum != nullptr ? trial.found(args.sum) : Bytes();
  const std::vector<double> w = to_doubles(desc.type, weight), b = to_doubles(desc.type, bias);
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    std::vector<double> expected = to_doubles(desc.type, is_added || variant != Variant::kCrossed ? x : residual,
                                              row * desc.columns, desc.columns);
    if (is_added) {
      const std::vector<double> other = to_doubles(desc.type, residual, row * desc.columns, desc.columns);
      for (std::uint64_t i = 0; i < desc.columns; ++i) expected[i] += other[i];
      expected = to_doubles(desc.type, to_elements(desc.type, expected));  // the sum is rounded once
    }
    if (!sum.empty() && to_doubles(desc.type, sum, row * desc.columns, desc.columns) != expected) {
      return absl::InternalError(absl::StrCat("row ", row, ": the sum differs"));
    }
    const double of_mean = error_of_mean(desc, expected);
    kernels::norm_reference(desc.op, expected, is_weighted ? w.data() : nullptr, is_weighted ? b.data() : nullptr,
                            static_cast<double>(desc.epsilon));
    const std::vector<double> found = to_doubles(desc.type, y, row * desc.columns, desc.columns);
    for (std::uint64_t i = 0; i < desc.columns; ++i) {
      const double of_weight = is_weighted ? std::abs(w[i]) + std::abs(expected[i] - b[i]) : 1 + std::abs(expected[i]);
      if (is_close(desc.op, desc.type, expected[i], found[i])) continue;
      if (std::abs(expected[i] - found[i]) <= of_mean * of_weight) continue;
      return absl::InternalError(
          absl::StrCat("row ", row, " column ", i, ": expected ", expected[i], ", found ", found[i]));
    }
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
  const auto planned = [](const NormDesc& desc) { return kernels::plan_norm(kDevice, desc).status(); };
  CGRT_RETURN_IF_ERROR(refuses(planned({NormOp::kRmsNorm, DType::kFloat32, 4, 0, 1e-5f, Residual::kAdded}),
                               "add_rms_norm: 4 rows of 0 columns"));
  CGRT_RETURN_IF_ERROR(refuses(planned({NormOp::kRmsNorm, DType::kInt64, 4, 8}), "no kernel for int64"));
  CGRT_ASSIGN_OR_RETURN(const NormPlan plan, kernels::plan_norm(kDevice, {NormOp::kLayerNorm, DType::kFloat16, 4, 8,
                                                                          1e-5f, Residual::kAdded}));
  CGRT_ASSIGN_OR_RETURN(const NormPlan plain, kernels::plan_norm(kDevice, {NormOp::kLayerNorm, DType::kFloat16, 4, 8}));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  auto* const some = reinterpret_cast<unsigned char*>(4096);
  const auto launched = [&](const NormArgs& args) { return kernels::launch_norm(stream.ref(), plan, args); };
  CGRT_RETURN_IF_ERROR(refuses(launched({.out = some, .in = some, .sum = some + 64}), "residual is null"));
  CGRT_RETURN_IF_ERROR(
      refuses(launched({.out = some, .in = some, .residual = some, .sum = some}), "out and sum are the same"));
  CGRT_RETURN_IF_ERROR(refuses(kernels::launch_norm(stream.ref(), plain, {.out = some, .in = some, .residual = some}),
                               "layer_norm: residual and sum are for a plan with Residual::kAdded"));
  CGRT_RETURN_IF_ERROR(refuses(launched({.out = some, .in = some, .residual = some, .sum = some + 65}),
                               "add_layer_norm: sum (0x1041) is not aligned to 2 bytes"));
  CGRT_ASSIGN_OR_RETURN(const NormPlan long_rows,
                        kernels::plan_norm(kDevice, {NormOp::kRmsNorm, DType::kFloat32, 3, 1000003}));
  return refuses(kernels::launch_norm(stream.ref(), long_rows,
                                      {.out = some, .in = some, .workspace = {some, long_rows.workspace_bytes - 1}}),
                 "the plan needs");
}

struct Matrix {
  std::uint64_t rows, columns;
};
constexpr Matrix kMatrices[] = {
    {1, 1},       {1, 2},       {1001, 10},    {300, 100},   {131, 64},     {3, 7},       {5, 111},     {9, 128},
    {4, 256},     {33, 264},    {6, 512},      {2, 520},     {6, 1000},     {201, 1024},  {5, 1032},    {150, 1032},
    {1, 4096},    {140, 4096},  {3, 4097},     {2, 7168},    {140, 8192},   {133, 8200},  {2, 16384},   {133, 16384},
    {2, 32768},   {1, 65544},   {2, 50257},    {77, 40001},  {1, 131072},   {2500, 1024}, {133, 32768}, {1, 262144},
    {17, 262144}, {300, 50257}, {150, 151935}, {3, 250002},  {100, 250002}, {3, 1000003}, {1, 9000001}, {70000, 10},
    {140, 12000}, {140, 20008}, {140, 24576},  {70000, 12},  {40000, 111},  {40000, 128}, {40000, 130}, {128, 2001},
    {5, 2500},    {130, 3001},  {133, 3001},   {3, 6643},    {2, 8191},     {500, 1999},  {2600, 320},  {2600, 501},
    {2600, 512},  {70, 2047},   {264, 2040},   {133, 7000},  {1056, 300},   {528, 1999},  {529, 1999},  {2112, 320},
    {2113, 776},  {65, 131081}, {133, 17001},  {40, 151936}, {20, 300008},  {20, 150001}};

}  // namespace

void check_norm(Report& report) {
  for (const NormOp op : {NormOp::kLayerNorm, NormOp::kRmsNorm}) {
    for (const Residual residual : {Residual::kNone, Residual::kAdded}) {
      for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        for (const auto& [rows, columns] : kMatrices) {
          if (report.is_simulated() && rows * columns > 1 << 17) continue;  // one host body serves all shapes
          for (const Variant variant : {Variant::kPlain, Variant::kInPlace, Variant::kCrossed, Variant::kMisaligned,
                                        Variant::kShifted, Variant::kNoWeights, Variant::kNoSum}) {
            const std::uint64_t max_count = variant == Variant::kShifted && columns > 1 << 17 ? 1 << 24
                                            : columns > 1 << 14                               ? 1 << 22
                                                                                              : 1 << 20;
            if (variant != Variant::kPlain && rows * columns > max_count) continue;
            if (residual == Residual::kNone && (variant == Variant::kNoSum || variant == Variant::kCrossed)) continue;
            report.check(absl::StrCat(residual == Residual::kAdded ? "add_" : "", to_string(op), " ", to_string(type),
                                      " ", rows, "x", columns, to_string(variant)),
                         check({op, type, rows, columns, 1e-5f, residual}, variant));
          }
        }
      }
    }
  }
  report.check("refusals", check_refusals());
}

void draw_norm(Draw& draw, Report& report) {
  NormDesc desc{.op = draw.of({NormOp::kLayerNorm, NormOp::kRmsNorm}), .type = draw.float_type()};
  std::tie(desc.rows, desc.columns) = draw.matrix(draw.max_elements(4));
  desc.epsilon = draw.of({1e-5f, 1e-6f, 1e-2f});
  desc.residual = draw.of({Residual::kNone, Residual::kAdded});
  const Variant variant =
      desc.residual == Residual::kNone
          ? draw.of({Variant::kPlain, Variant::kInPlace, Variant::kMisaligned, Variant::kShifted, Variant::kNoWeights})
          : draw.of({Variant::kPlain, Variant::kInPlace, Variant::kCrossed, Variant::kMisaligned, Variant::kShifted,
                     Variant::kNoWeights, Variant::kNoSum});
  report.check(absl::StrCat(desc.residual == Residual::kAdded ? "add_" : "", to_string(desc.op), " ",
                            to_string(desc.type), " ", desc.rows, "x", desc.columns, to_string(variant)),
               check(desc, variant));
}

}  // namespace cgrt::testing
