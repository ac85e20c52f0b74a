// softmax, log_softmax, layer_norm and rms_norm, each regime from both sides of its ends.
#include "cgrt_kernels/rows/rows.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/rows/reference.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::RowOp;
using kernels::RowsArgs;
using kernels::RowsDesc;
using kernels::RowsPlan;
using kernels::size_of;

enum class Variant { kPlain, kInPlace, kMisaligned, kNoWeights, kAlmostAllInfinite };
const char* to_string(Variant variant) {
  switch (variant) {
    case Variant::kPlain: return "";
    case Variant::kInPlace: return " in place";
    case Variant::kMisaligned: return " misaligned";
    case Variant::kNoWeights: return " without weights";
    case Variant::kAlmostAllInfinite: return " of -inf but for one -100";
  }
  return "";
}

// Rounding of the result, and of a sum of `columns` floats. A norm of values around 0.5 subtracts
// their mean, so what is left near 0 has the rounding of the values.
bool is_close(RowOp op, DType type, double expected, double found) {
  const double rounding = type == DType::kFloat32 ? 1e-5 : type == DType::kFloat16 ? 1.0 / 1024 : 1.0 / 128;
  // Differences of numbers of about 10 are as exact as these.
  const bool is_difference = op == RowOp::kLayerNorm || op == RowOp::kLogSoftmax;
  const double smallest = is_difference ? 1e-6 : type == DType::kFloat16 ? 6e-8 : 1e-9;
  if (expected == found) return true;
  return std::isfinite(found) && std::abs(found - expected) <= rounding * (std::abs(expected) + 1e-3) + smallest;
}

absl::Status check(const RowsDesc& desc, Variant variant) {
  const std::size_t size = size_of(desc.type), count = desc.rows * desc.columns;
  const std::size_t shift = variant == Variant::kMisaligned ? size : 0;
  const bool is_in_place = variant == Variant::kInPlace, is_weighted = variant != Variant::kNoWeights;
  Bytes x = random_elements(desc.type, count, 0.5, 3, 1);
  const Bytes weight = random_elements(desc.type, desc.columns, 1, 1, 2),
              bias = random_elements(desc.type, desc.columns, 0, 1, 3);
  if (variant == Variant::kAlmostAllInfinite) {
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_the_one = i % desc.columns == i / desc.columns % desc.columns;
      write_element(desc.type, &x[i * size], is_the_one ? -100 : -INFINITY);
    }
  }
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  RowsArgs args;
  if (is_in_place) {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(x, shift));
    args.in = args.out;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(x.size(), shift));
    CGRT_ASSIGN_OR_RETURN(args.in, trial.input(x, shift));
  }
  if (is_weighted) {
    CGRT_ASSIGN_OR_RETURN(args.weight, trial.input(weight));
    CGRT_ASSIGN_OR_RETURN(args.bias, trial.input(bias));
  }
  CGRT_ASSIGN_OR_RETURN(const RowsPlan plan, kernels::plan_rows(kDevice, desc));
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_rows(target, plan, args); }));

  const Bytes y = trial.found(args.out);
  const std::vector<double> w = to_doubles(desc.type, weight), b = to_doubles(desc.type, bias);
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    std::vector<double> expected = to_doubles(desc.type, x, row * desc.columns, desc.columns);
    kernels::row_reference(desc.op, expected, is_weighted ? w.data() : nullptr, is_weighted ? b.data() : nullptr,
                           static_cast<double>(desc.epsilon));
    const std::vector<double> found = to_doubles(desc.type, y, row * desc.columns, desc.columns);
    for (std::uint64_t i = 0; i < desc.columns; ++i) {
      if (is_close(desc.op, desc.type, expected[i], found[i])) continue;
      return absl::InternalError(
          absl::StrCat("row ", row, " column ", i, ": expected ", expected[i], ", found ", found[i]));
    }
  }
  return absl::OkStatus();
}

// Nothing of a row with a NaN is a number, also what is far from it.
absl::Status check_nan(RowOp op, std::uint64_t columns) {
  std::vector<double> values(columns, -INFINITY);
  values[columns - 1] = 1, values[columns - 2] = NAN;
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CGRT_ASSIGN_OR_RETURN(void* in, trial.input(to_elements(DType::kFloat32, values)));
  CGRT_ASSIGN_OR_RETURN(void* out, trial.output(columns * sizeof(float)));
  CGRT_ASSIGN_OR_RETURN(const kernels::RowsPlan plan, kernels::plan_rows(kDevice, {op, DType::kFloat32, 1, columns}));
  CGRT_RETURN_IF_ERROR(
      trial.run([&](LaunchTarget target) { return kernels::launch_rows(target, plan, {.out = out, .in = in}); }));
  const std::vector<double> found = to_doubles(DType::kFloat32, trial.found(out));
  const auto number = std::find_if(found.begin(), found.end(), [](double value) { return !std::isnan(value); });
  if (number == found.end()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("column ", number - found.begin(), " is ", *number));
}

// A maximum so large that the logarithm of a row's sum is less than its rounding, and many equal to it.
absl::Status check_large(RowOp op, DType type, std::uint64_t rows, std::uint64_t columns) {
  const double largest = type == DType::kFloat16 ? 60000 : 1e30, next = largest * (1 - 1.0 / 128);
  std::vector<double> values(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % columns % 3 == 0 ? next : largest;
  const Bytes x = to_elements(type, values);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CGRT_ASSIGN_OR_RETURN(void* in, trial.input(x));
  CGRT_ASSIGN_OR_RETURN(void* out, trial.output(x.size()));
  CGRT_ASSIGN_OR_RETURN(const RowsPlan plan, kernels::plan_rows(kDevice, {op, type, rows, columns}));
  CGRT_RETURN_IF_ERROR(
      trial.run([&](LaunchTarget target) { return kernels::launch_rows(target, plan, {.out = out, .in = in}); }));
  std::vector<double> expected = to_doubles(type, x, 0, columns);
  kernels::row_reference(op, expected, nullptr, nullptr, 0);
  const std::vector<double> found = to_doubles(type, trial.found(out));
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (is_close(op, type, expected[i % columns], found[i])) continue;
    return absl::InternalError(absl::StrCat("row ", i / columns, " column ", i % columns, ": expected ",
                                            expected[i % columns], ", found ", found[i]));
  }
  return absl::OkStatus();
}

struct Matrix {
  std::uint64_t rows, columns;
};
constexpr Matrix kMatrices[] = {
    {1, 1},      {1001, 10},    {77, 500},   {300, 100},   {1001, 16},   {70, 32},     {131, 64},    {3, 7},
    {5, 111},    {7, 8},        {9, 128},    {4, 256},     {33, 264},    {6, 512},     {2, 520},     {6, 1000},
    {201, 1024}, {5, 1032},     {150, 1032}, {1, 4096},    {300, 4096},  {3, 4097},    {2, 5120},    {140, 5120},
    {3, 8192},   {133, 8192},   {1, 16384},  {133, 16384}, {2, 32768},   {133, 32768}, {40, 100008}, {1, 128256},
    {2, 131072}, {133, 131072}, {1, 151936}, {1, 262144},  {17, 262144}, {2, 50257},   {2500, 1024}};

}  // namespace

void check_rows(Report& report) {
  for (const RowOp op : {RowOp::kSoftmax, RowOp::kLogSoftmax}) {
    for (const std::uint64_t columns : {40, 1024, 4096, 4097, 131072, 300001}) {
      report.check(absl::StrCat(to_string(op), " of ", columns, " with a NaN"), check_nan(op, columns));
    }
    // Lanes, a warp, blocks, clusters, single elements, blocks that stay, and longer than registers.
    for (const auto& [rows, columns] : {Matrix{9, 40},
                                        {9, 64},
                                        {9, 1000},
                                        {2, 4096},
                                        {300, 4096},
                                        {3, 4097},
                                        {2, 131072},
                                        {140, 131072},
                                        {1, 300001}}) {
      if (report.is_simulated() && rows * columns > 1 << 19) continue;
      for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        report.check(absl::StrCat(to_string(op), " ", to_string(type), " of ", rows, "x", columns, " large values"),
                     check_large(op, type, rows, columns));
      }
    }
  }
  for (const RowOp op : {RowOp::kSoftmax, RowOp::kLogSoftmax, RowOp::kLayerNorm, RowOp::kRmsNorm}) {
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const auto& [rows, columns] : kMatrices) {
        if (report.is_simulated() && rows * columns > 1 << 18) continue;  // one host body serves all shapes
        for (const Variant variant : {Variant::kPlain, Variant::kInPlace, Variant::kMisaligned, Variant::kNoWeights,
                                      Variant::kAlmostAllInfinite}) {
          if (variant != Variant::kPlain && rows * columns > 1 << 21) continue;
          if (variant == Variant::kAlmostAllInfinite && op != RowOp::kSoftmax && op != RowOp::kLogSoftmax) continue;
          report.check(absl::StrCat(to_string(op), " ", to_string(type), " ", rows, "x", columns, to_string(variant)),
                       check({op, type, rows, columns}, variant));
        }
      }
    }
  }
}

}  // namespace cgrt::testing
