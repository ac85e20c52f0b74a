// softmax and log_softmax, forward and backward, each regime from both sides of its ends.
#include "cgrt_kernels/softmax/softmax.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/softmax/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::size_of;
using kernels::SoftmaxArgs;
using kernels::SoftmaxBackwardArgs;
using kernels::SoftmaxBackwardDesc;
using kernels::SoftmaxDesc;
using kernels::SoftmaxOp;

// kShifted: arrays lie differently between multiples of 16 bytes.
enum class Variant { kPlain, kInPlace, kMisaligned, kShifted, kAlmostAllInfinite };
const char* to_string(Variant variant) {
  switch (variant) {
    case Variant::kPlain: return "";
    case Variant::kInPlace: return " in place";
    case Variant::kMisaligned: return " misaligned";
    case Variant::kShifted: return " shifted";
    case Variant::kAlmostAllInfinite: return " of -inf but for one -100";
  }
  return "";
}

// Rounding of the result, and of a sum of `columns` floats.
bool is_close(SoftmaxOp op, DType type, double expected, double found) {
  const double rounding = type == DType::kFloat32 ? 1e-5 : type == DType::kFloat16 ? 1.0 / 1024 : 1.0 / 128;
  // Differences of numbers of about 10 are as exact as these.
  const double smallest = op == SoftmaxOp::kLogSoftmax ? 1e-6 : type == DType::kFloat16 ? 6e-8 : 1e-9;
  if (expected == found) return true;
  return std::isfinite(found) && std::abs(found - expected) <= rounding * (std::abs(expected) + 1e-3) + smallest;
}

absl::Status differs(std::uint64_t row, std::uint64_t column, double expected, double found) {
  return absl::InternalError(absl::StrCat("row ", row, " column ", column, ": expected ", expected, ", found ", found));
}

absl::Status check(const SoftmaxDesc& desc, Variant variant) {
  const std::size_t size = size_of(desc.type), count = desc.rows * desc.columns;
  const std::size_t shift = variant == Variant::kMisaligned ? size : variant == Variant::kShifted ? 3 * size : 0;
  Bytes x = random_elements(desc.type, count, 0.5, 3, 1);
  if (variant == Variant::kAlmostAllInfinite) {
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_the_one = i % desc.columns == i / desc.columns % desc.columns;
      write_element(desc.type, &x[i * size], is_the_one ? -100 : -INFINITY);
    }
  }
  CGRT_ASSIGN_OR_RETURN(const kernels::SoftmaxPlan plan, kernels::plan_softmax(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  SoftmaxArgs args;
  if (variant == Variant::kInPlace) {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(x, shift));
    args.in = args.out;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(x.size(), variant == Variant::kShifted ? 0 : shift));
    CGRT_ASSIGN_OR_RETURN(args.in, trial.input(x, shift));
  }
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  CGRT_RETURN_IF_ERROR(
      trial.run(args.workspace, [&](LaunchTarget target) { return kernels::launch_softmax(target, plan, args); }));

  const Bytes y = trial.found(args.out);
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    std::vector<double> expected = to_doubles(desc.type, x, row * desc.columns, desc.columns);
    kernels::softmax_reference(desc.op, expected);
    const std::vector<double> found = to_doubles(desc.type, y, row * desc.columns, desc.columns);
    for (std::uint64_t i = 0; i < desc.columns; ++i) {
      if (!is_close(desc.op, desc.type, expected[i], found[i])) return differs(row, i, expected[i], found[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status check_backward(const SoftmaxBackwardDesc& desc, Variant variant) {
  const std::size_t size = size_of(desc.type), count = desc.rows * desc.columns, columns = desc.columns;
  const std::size_t shift = variant == Variant::kMisaligned ? size : 0;
  // What a softmax of so many columns gives is about 1 / columns, and its logarithm what belongs to that.
  const bool is_log = desc.op == SoftmaxOp::kLogSoftmax;
  const double typical = 1 / static_cast<double>(columns), mean = is_log ? std::log(typical) : typical;
  const Bytes y = random_elements(desc.type, count, mean, is_log ? 1 : 0.3 * typical, 1),
              dy = random_elements(desc.type, count, 0.25, 1, 2);
  CGRT_ASSIGN_OR_RETURN(const kernels::SoftmaxBackwardPlan plan, kernels::plan_softmax_backward(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  SoftmaxBackwardArgs args;
  CGRT_ASSIGN_OR_RETURN(args.y, trial.input(y, variant == Variant::kShifted ? size : shift));
  if (variant == Variant::kInPlace) {
    CGRT_ASSIGN_OR_RETURN(args.dx, trial.output(dy, shift));
    args.dy = args.dx;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.dx, trial.output(dy.size(), shift));
    CGRT_ASSIGN_OR_RETURN(args.dy, trial.input(dy, 3 * shift));
  }
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  CGRT_RETURN_IF_ERROR(trial.run(
      args.workspace, [&](LaunchTarget target) { return kernels::launch_softmax_backward(target, plan, args); }));

  const double rounding = desc.type == DType::kFloat32 ? 1e-6 : desc.type == DType::kFloat16 ? 1.0 / 1024 : 1.0 / 128;
  const double smallest = desc.type == DType::kFloat16 ? 6e-8 : 1e-30;
  const Bytes dx = trial.found(args.dx);
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    const std::vector<double> saved = to_doubles(desc.type, y, row * columns, columns);
    const std::vector<double> g = to_doubles(desc.type, dy, row * columns, columns);
    std::vector<double> expected = g;
    kernels::softmax_backward_reference(desc.op, expected, saved, static_cast<double>(desc.scale));
    const std::vector<double> found = to_doubles(desc.type, dx, row * columns, columns);
    double largest = 0, sum = 0;
    for (const double one : g) largest = std::max(largest, std::abs(one)), sum += std::abs(one);
    for (std::uint64_t i = 0; i < columns; ++i) {
      // Rounding of the result, and that of float arithmetic in proportion to the terms it has: they may cancel.
      const double terms =
          is_log ? largest + std::exp(saved[i]) * sum : std::abs(saved[i]) * (largest + sum * 2 * std::abs(mean));
      const bool is_close = std::isfinite(found[i]) && std::abs(found[i] - expected[i]) <=
                                                           rounding * std::abs(expected[i]) + 1e-5 * terms + smallest;
      if (!is_close) return differs(row, i, expected[i], found[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status run(const SoftmaxDesc& desc, Trial& trial, void* out, const void* in) {
  CGRT_ASSIGN_OR_RETURN(const kernels::SoftmaxPlan plan, kernels::plan_softmax(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(const kernels::Workspace workspace, trial.workspace(plan.workspace_bytes));
  return trial.run(workspace, [&](LaunchTarget target) {
    return kernels::launch_softmax(target, plan, {.out = out, .in = in, .workspace = workspace});
  });
}

// Nothing of a row with a NaN is a number, also what is far from it.
absl::Status check_nan(SoftmaxOp op, std::uint64_t columns) {
  std::vector<double> values(columns, -INFINITY);
  values[columns - 1] = 1, values[columns - 2] = NAN;
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CGRT_ASSIGN_OR_RETURN(void* in, trial.input(to_elements(DType::kFloat32, values)));
  CGRT_ASSIGN_OR_RETURN(void* out, trial.output(columns * sizeof(float)));
  CGRT_RETURN_IF_ERROR(run({op, DType::kFloat32, 1, columns}, trial, out, in));
  const std::vector<double> found = to_doubles(DType::kFloat32, trial.found(out));
  const auto number = std::find_if(found.begin(), found.end(), [](double value) { return !std::isnan(value); });
  if (number == found.end()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("column ", number - found.begin(), " is ", *number));
}

// A maximum so large that the logarithm of a row's sum is less than its rounding, and many equal to it.
absl::Status check_large(SoftmaxOp op, DType type, std::uint64_t rows, std::uint64_t columns) {
  const double largest = type == DType::kFloat16 ? 60000 : 1e30, next = largest * (1 - 1.0 / 128);
  std::vector<double> values(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % columns % 3 == 0 ? next : largest;
  const Bytes x = to_elements(type, values);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CGRT_ASSIGN_OR_RETURN(void* in, trial.input(x));
  CGRT_ASSIGN_OR_RETURN(void* out, trial.output(x.size()));
  CGRT_RETURN_IF_ERROR(run({op, type, rows, columns}, trial, out, in));
  std::vector<double> expected = to_doubles(type, x, 0, columns);
  kernels::softmax_reference(op, expected);
  const std::vector<double> found = to_doubles(type, trial.found(out));
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (is_close(op, type, expected[i % columns], found[i])) continue;
    return differs(i / columns, i % columns, expected[i % columns], found[i]);
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
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  auto* const some = reinterpret_cast<unsigned char*>(4096);
  CGRT_ASSIGN_OR_RETURN(const kernels::SoftmaxPlan forward,
                        kernels::plan_softmax(kDevice, {SoftmaxOp::kSoftmax, DType::kFloat32, 4, 8}));
  CGRT_RETURN_IF_ERROR(refuses(kernels::launch_softmax(stream.ref(), forward, {.out = some}), "softmax: in is null"));
  CGRT_ASSIGN_OR_RETURN(const kernels::SoftmaxBackwardPlan plan,
                        kernels::plan_softmax_backward(kDevice, {SoftmaxOp::kLogSoftmax, DType::kFloat32, 4, 8}));
  const auto back = [&](const SoftmaxBackwardArgs& args) {
    return kernels::launch_softmax_backward(stream.ref(), plan, args);
  };
  CGRT_RETURN_IF_ERROR(refuses(back({.dx = some, .y = some}), "log_softmax backward: dy is null"));
  CGRT_RETURN_IF_ERROR(refuses(back({.dx = some, .dy = some, .y = some + 2}), "y (0x1002) is not aligned to 4 bytes"));
  CGRT_ASSIGN_OR_RETURN(const kernels::SoftmaxPlan long_rows,
                        kernels::plan_softmax(kDevice, {SoftmaxOp::kSoftmax, DType::kFloat32, 3, 1000003}));
  return refuses(kernels::launch_softmax(stream.ref(), long_rows, {.out = some, .in = some}),
                 "softmax: workspace is null");
}

struct Matrix {
  std::uint64_t rows, columns;
};
constexpr Matrix kMatrices[] = {
    {1, 1},       {1001, 10},   {77, 500},     {300, 100},   {1001, 16},   {70, 32},     {131, 64},    {3, 7},
    {5, 111},     {4096, 111},  {7, 8},        {9, 128},     {4, 256},     {33, 264},    {6, 512},     {2, 520},
    {6, 1000},    {201, 1024},  {5, 1032},     {150, 1032},  {1, 4096},    {300, 4096},  {3, 4097},    {2, 5120},
    {140, 5120},  {3, 8192},    {133, 8192},   {1, 16384},   {133, 16384}, {2, 32768},   {133, 32768}, {40, 100008},
    {1, 128256},  {2, 131072},  {133, 131072}, {1, 151936},  {1, 262144},  {17, 262144}, {2, 50257},   {2500, 1024},
    {300, 50257}, {17, 151935}, {150, 151935}, {17, 250002}, {3, 1000003}, {2, 4000001}, {1, 9000001}, {1, 30000001},
    {1001, 24},   {1001, 40},   {999, 128},    {70000, 10},  {40000, 111}, {40000, 130}, {264, 2048},  {1056, 1985},
    {1056, 1986}, {1057, 300},  {5, 4095},     {200, 1},     {7096, 1},    {5000, 3},    {100001, 7},  {20000, 15},
    {3001, 17},   {70001, 31},  {5, 300001},   {5, 300008},  {3, 250002}};
constexpr Matrix kBackwardMatrices[] = {
    {1, 1},      {1001, 10},   {130, 500},   {77, 36},    {3, 7},       {5, 111},     {7, 8},       {9, 128},
    {4, 256},    {33, 264},    {2, 520},     {6, 1000},   {201, 1024},  {5, 1032},    {2500, 64},   {1, 4096},
    {300, 4096}, {3, 4097},    {3, 8192},    {140, 8192}, {3, 8200},    {2, 16384},   {70, 16384},  {2, 32768},
    {1, 65544},  {2, 50257},   {300, 50257}, {1, 131072}, {1, 151936},  {3, 262144},  {9001, 10},   {300, 9001},
    {1001, 16},  {1001, 24},   {999, 128},   {40, 99999}, {17, 250002}, {3, 1000003}, {1, 9000001}, {1056, 300},
    {1057, 300}, {1056, 1985}, {1056, 1986}, {200, 1},    {7096, 1},    {5000, 3},    {100001, 7},  {20000, 15},
    {3001, 17},  {70001, 31},  {5, 300001},  {5, 151937}, {5, 151936},  {3, 250000}};

}  // namespace

void check_softmax(Report& report) {
  for (const SoftmaxOp op : {SoftmaxOp::kSoftmax, SoftmaxOp::kLogSoftmax}) {
    for (const std::uint64_t columns : {40, 1024, 4096, 4097, 131072, 300001, 1500000}) {
      if (report.is_simulated() && columns > 1 << 19) continue;
      report.check(absl::StrCat(to_string(op), " of ", columns, " with a NaN"), check_nan(op, columns));
    }
    // Lanes, a warp, blocks, clusters, unaligned, streams, and over the whole device.
    for (const auto& [rows, columns] : {Matrix{9, 40},
                                        {9, 64},
                                        {9, 1000},
                                        {2, 4096},
                                        {300, 4096},
                                        {3, 4097},
                                        {2, 131072},
                                        {140, 131072},
                                        {1, 300001},
                                        {2, 1500000}}) {
      if (report.is_simulated() && rows * columns > 1 << 19) continue;
      for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        report.check(absl::StrCat(to_string(op), " ", to_string(type), " of ", rows, "x", columns, " large values"),
                     check_large(op, type, rows, columns));
      }
    }
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const Variant variant :
           {Variant::kPlain, Variant::kInPlace, Variant::kMisaligned, Variant::kShifted, Variant::kAlmostAllInfinite}) {
        const auto is_left_out = [&](const Matrix& matrix) {
          const std::uint64_t count = matrix.rows * matrix.columns;
          if (report.is_simulated() && count > 1 << 18) return true;  // one host body serves all shapes
          return variant != Variant::kPlain && count > 1 << 22;
        };
        const auto name = [&](const Matrix& matrix) {
          return absl::StrCat(to_string(type), " ", matrix.rows, "x", matrix.columns, to_string(variant));
        };
        for (const Matrix& matrix : kMatrices) {
          if (is_left_out(matrix)) continue;
          report.check(absl::StrCat(to_string(op), " ", name(matrix)),
                       check({op, type, matrix.rows, matrix.columns}, variant));
        }
        if (variant == Variant::kAlmostAllInfinite) continue;
        for (const Matrix& matrix : kBackwardMatrices) {
          if (is_left_out(matrix)) continue;
          report.check(absl::StrCat(to_string(op), " backward ", name(matrix)),
                       check_backward({op, type, matrix.rows, matrix.columns, 0.5f}, variant));
        }
      }
    }
  }
  report.check("refusals", check_refusals());
}

void draw_softmax(Draw& draw, Report& report) {
  const SoftmaxOp op = draw.of({SoftmaxOp::kSoftmax, SoftmaxOp::kLogSoftmax});
  const DType type = draw.float_type();
  const auto [rows, columns] = draw.matrix(draw.max_elements(4));
  const Variant variant = draw.of({Variant::kPlain, Variant::kInPlace, Variant::kMisaligned, Variant::kShifted});
  const std::string name = absl::StrCat(to_string(type), " ", rows, "x", columns, to_string(variant));
  if (draw.one_in(2)) {
    const Variant other = draw.one_in(4) ? Variant::kAlmostAllInfinite : variant;
    report.check(absl::StrCat(to_string(op), " ", name), check({op, type, rows, columns}, other));
  } else {
    report.check(absl::StrCat(to_string(op), " backward ", name),
                 check_backward({op, type, rows, columns, draw.of({0.5f, 1.0f, -3.0f})}, variant));
  }
}

}  // namespace cgrt::testing
