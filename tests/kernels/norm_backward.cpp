// Backward of layer_norm and rms_norm, each regime from both sides of its ends.
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
using kernels::NormBackwardArgs;
using kernels::NormBackwardDesc;
using kernels::NormBackwardPlan;
using kernels::NormOp;
using kernels::size_of;
using kernels::WeightGradients;

enum class Variant { kPlain, kInPlace, kInPlaceOfX, kMisaligned, kNoWeights };
const char* to_string(Variant variant) {
  switch (variant) {
    case Variant::kPlain: return "";
    case Variant::kInPlace: return " in place";
    case Variant::kInPlaceOfX: return " in place of x";
    case Variant::kMisaligned: return " misaligned";
    case Variant::kNoWeights: return " without weights";
  }
  return "";
}

// Rounding of the result to its type, and that of float arithmetic in proportion to the terms it has: they
// may cancel.
bool is_close(DType type, double expected, double found, double terms) {
  const double rounding = type == DType::kFloat32 ? 1e-6 : type == DType::kFloat16 ? 1.0 / 1024 : 1.0 / 128;
  const double smallest = type == DType::kFloat16 ? 6e-8 : 1e-30;
  const double allowed = rounding * std::abs(expected) + 1e-5 * terms + smallest;
  if (std::isfinite(found)) return std::abs(found - expected) <= allowed;
  return to_doubles(type, to_elements(type, {expected}))[0] == found;  // too large for float16
}

absl::Status differs(const std::string& where, double expected, double found) {
  return absl::InternalError(absl::StrCat(where, ": expected ", expected, ", found ", found));
}

absl::Status check(const NormBackwardDesc& desc, Variant variant) {
  const std::size_t size = size_of(desc.type), count = desc.rows * desc.columns, columns = desc.columns;
  const std::size_t shift = variant == Variant::kMisaligned ? size : 0;
  const bool is_weighted = variant != Variant::kNoWeights;
  const bool is_summed = desc.weight_gradients == WeightGradients::kSummed;
  const bool has_dbias = is_summed && desc.op == NormOp::kLayerNorm && is_weighted;
  const Bytes saved = random_elements(desc.type, count, 0.5, 3, 1), dy = random_elements(desc.type, count, 0.25, 1, 2),
              weight = random_elements(desc.type, columns, 1, 1, 3);
  CGRT_ASSIGN_OR_RETURN(const NormBackwardPlan plan, kernels::plan_norm_backward(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  NormBackwardArgs args;
  if (variant == Variant::kInPlace) {
    CGRT_ASSIGN_OR_RETURN(args.dx, trial.output(dy));
    args.dy = args.dx;
  } else if (variant == Variant::kInPlaceOfX) {
    CGRT_ASSIGN_OR_RETURN(args.dx, trial.output(saved));
    args.x = args.dx;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.dx, trial.output(dy.size(), shift));
  }
  if (args.x == nullptr) {
    CGRT_ASSIGN_OR_RETURN(args.x, trial.input(saved, shift));
  }
  if (args.dy == nullptr) {
    CGRT_ASSIGN_OR_RETURN(args.dy, trial.input(dy, 3 * shift));
  }
  if (is_weighted) {
    CGRT_ASSIGN_OR_RETURN(args.weight, trial.input(weight));
  }
  if (is_summed) {
    CGRT_ASSIGN_OR_RETURN(args.dweight, trial.output(columns * size, shift));
  }
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  if (has_dbias) {
    CGRT_ASSIGN_OR_RETURN(args.dbias, trial.output(columns * size, shift));
  }
  CGRT_RETURN_IF_ERROR(trial.run(
      args.workspace, [&](LaunchTarget target) { return kernels::launch_norm_backward(target, plan, args); }));

  const Bytes dx = trial.found(args.dx);
  const std::vector<double> w = to_doubles(desc.type, weight);
  std::vector<double> dweight(columns), dbias(columns), dweight_terms(columns), dbias_terms(columns);
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    const std::vector<double> x = to_doubles(desc.type, saved, row * columns, columns);
    const std::vector<double> g = to_doubles(desc.type, dy, row * columns, columns);
    std::vector<double> expected = g;
    std::vector<double> before = dweight;
    kernels::norm_backward_reference(desc.op, expected, x, is_weighted ? w.data() : nullptr,
                                     static_cast<double>(desc.epsilon), dweight.data(), dbias.data());
    const std::vector<double> found = to_doubles(desc.type, dx, row * columns, columns);
    double largest = 0;
    for (std::uint64_t i = 0; i < columns; ++i) {
      largest = std::max(largest, std::abs(g[i] * (is_weighted ? w[i] : 1)));
      dweight_terms[i] += std::abs(dweight[i] - before[i]) + std::abs(g[i]);
      dbias_terms[i] += std::abs(g[i]);
    }
    for (std::uint64_t i = 0; i < columns; ++i) {
      double terms = largest * (2 + std::abs(expected[i]));  // of x with a deviation of about 3, or few
      if (columns < 8) terms *= 1e3;                         // hardly any deviation is left to divide by
      if (!is_close(desc.type, expected[i], found[i], terms)) {
        return differs(absl::StrCat("row ", row, " column ", i), expected[i], found[i]);
      }
    }
  }
  const auto compare = [&](const char* name, const void* data, const std::vector<double>& expected,
                           const std::vector<double>& terms) {
    const std::vector<double> found = to_doubles(desc.type, trial.found(data));
    for (std::uint64_t i = 0; i < columns; ++i) {
      const double of_few = columns < 8 ? 1e3 : 1;
      if (!is_close(desc.type, expected[i], found[i], terms[i] * of_few)) {
        return differs(absl::StrCat(name, " ", i), expected[i], found[i]);
      }
    }
    return absl::OkStatus();
  };
  if (is_summed) CGRT_RETURN_IF_ERROR(compare("dweight", args.dweight, dweight, dweight_terms));
  if (has_dbias) CGRT_RETURN_IF_ERROR(compare("dbias", args.dbias, dbias, dbias_terms));
  return absl::OkStatus();
}

// Rows whose dx is known: constant dy gives none, and values far from 0 must not change that, nor what they add to the
// gradients of the weights.
absl::Status check_far_from_zero(const NormBackwardDesc& desc) {
  const std::size_t count = desc.rows * desc.columns, size = size_of(desc.type);
  const bool is_summed = desc.weight_gradients == WeightGradients::kSummed;
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 1024 + static_cast<double>(i % desc.columns % 4);
  CGRT_ASSIGN_OR_RETURN(const NormBackwardPlan plan, kernels::plan_norm_backward(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  NormBackwardArgs args;
  CGRT_ASSIGN_OR_RETURN(args.x, trial.input(to_elements(desc.type, values)));
  CGRT_ASSIGN_OR_RETURN(args.dy, trial.input(to_elements(desc.type, std::vector<double>(count, 3))));
  CGRT_ASSIGN_OR_RETURN(args.dx, trial.output(count * size));
  if (is_summed) {
    CGRT_ASSIGN_OR_RETURN(args.dweight, trial.output(desc.columns * size));
  }
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  CGRT_RETURN_IF_ERROR(trial.run(
      args.workspace, [&](LaunchTarget target) { return kernels::launch_norm_backward(target, plan, args); }));
  for (const double found : to_doubles(desc.type, trial.found(args.dx))) {
    if (!(std::abs(found) <= 1e-3)) return differs("constant dy", 0, found);
  }
  if (!is_summed) return absl::OkStatus();
  const std::vector<double> found = to_doubles(desc.type, trial.found(args.dweight));
  const std::vector<double> first_row(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(desc.columns));
  std::vector<double> g(desc.columns, 3), expected(desc.columns), dbias(desc.columns);
  kernels::norm_backward_reference(desc.op, g, first_row, nullptr, static_cast<double>(desc.epsilon), expected.data(),
                                   dbias.data());
  for (std::uint64_t i = 0; i < desc.columns; ++i) {
    const double wanted = expected[i] * static_cast<double>(desc.rows);
    if (!(std::abs(found[i] - wanted) <= 1e-3 * std::abs(wanted))) return differs("dweight", wanted, found[i]);
  }
  return absl::OkStatus();
}

// Of one kernel, whose limit of shared memory both plans need.
absl::Status check_second_plan() {
  const auto plan_of = [](std::uint64_t columns) {
    return kernels::plan_norm_backward(
        kDevice, {NormOp::kRmsNorm, DType::kFloat32, 4, columns, 1e-5f, WeightGradients::kSummed});
  };
  CGRT_ASSIGN_OR_RETURN(const NormBackwardPlan plan, plan_of(8192));
  CGRT_RETURN_IF_ERROR(plan_of(4096).status());
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(kDevice));
  auto* const some = reinterpret_cast<void*>(4096);
  return kernels::launch_norm_backward(
      graph.cursor(), plan,
      {.dx = some, .dy = some, .x = some, .dweight = some, .workspace = {some, plan.workspace_bytes}});
}

absl::Status refuses(const absl::Status& status, const char* sentence) {
  if (absl::IsInvalidArgument(status) && absl::StrContains(std::string(status.message()), sentence)) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("expected \"", sentence, "\", found ", std::string(status.message())));
}

absl::Status check_refusals() {
  const auto plan_of = [](const NormBackwardDesc& desc) { return kernels::plan_norm_backward(kDevice, desc); };
  const NormBackwardDesc desc{NormOp::kLayerNorm, DType::kFloat32, 4, 800, 1e-5f, WeightGradients::kSummed};
  CGRT_ASSIGN_OR_RETURN(const NormBackwardPlan plan, plan_of(desc));
  CGRT_RETURN_IF_ERROR(refuses(plan_of({desc.op, desc.type, 0, 8}).status(), "0 rows of 8 columns"));
  CGRT_RETURN_IF_ERROR(refuses(plan_of({desc.op, desc.type, 1, 1ull << 31}).status(), "from 1 to 2147483647"));
  CGRT_RETURN_IF_ERROR(refuses(plan_of({desc.op, DType::kInt32, 4, 8}).status(), "no kernel for int32"));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  auto* const some = reinterpret_cast<unsigned char*>(4096);
  const NormBackwardArgs good{
      .dx = some, .dy = some, .x = some, .dweight = some, .workspace = {some, plan.workspace_bytes}};
  const auto launched = [&](NormBackwardArgs args) { return kernels::launch_norm_backward(stream.ref(), plan, args); };
  NormBackwardArgs args = good;
  args.dy = nullptr;
  CGRT_RETURN_IF_ERROR(refuses(launched(args), "layer_norm backward: dy is null"));
  args = good;
  args.x = some + 2;
  CGRT_RETURN_IF_ERROR(refuses(launched(args), "x (0x1002) is not aligned to 4 bytes"));
  args = good;
  args.dweight = nullptr;
  CGRT_RETURN_IF_ERROR(refuses(launched(args), "dweight is null"));
  args = good;
  args.workspace.data = some + 128;
  CGRT_RETURN_IF_ERROR(refuses(launched(args), "aligned to 256"));
  return absl::OkStatus();
}

struct Matrix {
  std::uint64_t rows, columns;
};
constexpr Matrix kMatrices[] = {
    {1, 1},      {1001, 10},   {130, 500},   {77, 36},     {3, 7},       {5, 111},     {7, 8},     {9, 128},
    {4, 256},    {33, 264},    {2, 520},     {6, 1000},    {201, 1024},  {5, 1032},    {2500, 64}, {1, 4096},
    {300, 4096}, {3, 4097},    {2, 5120},    {3, 8192},    {140, 8192},  {3, 8200},    {2, 12288}, {2, 16384},
    {70, 16384}, {2, 32768},   {1, 65544},   {2, 33000},   {2, 41000},   {2, 50000},   {2, 50257}, {1, 131072},
    {40, 200},   {1001, 111},  {300, 201},   {67, 127},    {1, 151936},  {3, 262144},  {9001, 10}, {300, 9001},
    {50, 50257}, {17, 250002}, {3, 1000003}, {3, 1200007}, {66, 130001}, {1, 9000001}, {128, 768}, {64, 1025},
    {132, 4096}, {16, 9000},   {31, 16383},  {33, 16384},  {34, 16384},  {133, 300},   {65, 257}};
// What certain kernels take on a device of 132 multiprocessors with clusters.
struct Taken {
  const char* kernel;
  NormBackwardDesc desc;
};
constexpr Taken kTaken[] = {
    // So many rows that sums of columns are in shared memory; comments: blocks of a row.
    {"norm_backward_column_sums", {.type = DType::kFloat32, .rows = 6401, .columns = 1031}},   // 1
    {"norm_backward_column_sums", {.type = DType::kFloat16, .rows = 541, .columns = 16391}},   // 2
    {"norm_backward_column_sums", {.type = DType::kFloat32, .rows = 271, .columns = 16391}},   // 4
    {"norm_backward_column_sums", {.type = DType::kBFloat16, .rows = 137, .columns = 50257}},  // 8
    {"norm_backward_column_sums",
     {.type = DType::kFloat32, .rows = 137, .columns = 50257}},  // 8, of threads with more of a row
    {"norm_backward_column_sums", {.type = DType::kFloat16, .rows = 67, .columns = 151936}},  // 16
    {"norm_backward_column_sums", {.type = DType::kFloat16, .rows = 67, .columns = 300001}},  // 16, of more threads
    {"norm_backward_column_sums", {.type = DType::kFloat32, .rows = 67, .columns = 250002}},  // 16, both
    // Few long rows; comments: groups of warps that have all columns.
    {"norm_backward_spread", {.type = DType::kFloat16, .rows = 17, .columns = 50257}},   // 5
    {"norm_backward_spread", {.type = DType::kBFloat16, .rows = 9, .columns = 50264}},   // 5, rows that are aligned
    {"norm_backward_spread", {.type = DType::kFloat32, .rows = 22, .columns = 60001}},   // 2
    {"norm_backward_spread", {.type = DType::kFloat16, .rows = 3, .columns = 135000}},   // 2, which are all warps
    {"norm_backward_spread", {.type = DType::kBFloat16, .rows = 3, .columns = 250002}},  // 1
    {"norm_backward_spread", {.type = DType::kFloat16, .rows = 2, .columns = 1000003}},  // 1, several words each
    {"norm_backward_spread", {.type = DType::kFloat32, .rows = 1, .columns = 1300001}},
    {"norm_backward_spread", {.type = DType::kFloat16, .rows = 32, .columns = 20001}},  // of rms_norm only
};
absl::Status check_taken(const Taken& taken, Variant variant) {
  CGRT_ASSIGN_OR_RETURN(const NormBackwardPlan plan, kernels::plan_norm_backward(kDevice, taken.desc));
  CGRT_ASSIGN_OR_RETURN(const int sms, kDevice.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const std::string kernel(plan.launches.unaligned.kernel.name());
  if (sms == 132 && !absl::StrContains(kernel, taken.kernel)) {
    return absl::InternalError(absl::StrCat("another kernel: ", kernel));
  }
  return check(taken.desc, variant);
}
}  // namespace

void check_norm_backward(Report& report) {
  for (const NormOp op : {NormOp::kLayerNorm, NormOp::kRmsNorm}) {
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const auto& [rows, columns] : kMatrices) {
        if (report.is_simulated() && rows * columns > 1 << 17) continue;  // one host body serves all shapes
        if (type == DType::kBFloat16 && rows * columns > 1 << 18) continue;
        for (const WeightGradients gradients : {WeightGradients::kNone, WeightGradients::kSummed}) {
          for (const Variant variant :
               {Variant::kPlain, Variant::kInPlace, Variant::kInPlaceOfX, Variant::kMisaligned, Variant::kNoWeights}) {
            if (variant != Variant::kPlain && rows * columns > 1 << 17) continue;
            report.check(absl::StrCat(to_string(op), " ", to_string(type), " ", rows, "x", columns, to_string(variant),
                                      gradients == WeightGradients::kSummed ? " with weight gradients" : ""),
                         check({op, type, rows, columns, 1e-5f, gradients}, variant));
          }
        }
      }
    }
  }
  if (!report.is_simulated()) {
    for (Taken taken : kTaken) {
      NormBackwardDesc& desc = taken.desc;
      desc.weight_gradients = WeightGradients::kSummed;
      for (const NormOp op : {NormOp::kLayerNorm, NormOp::kRmsNorm}) {
        desc.op = op;
        if (op == NormOp::kLayerNorm && desc.rows == 32) continue;
        for (const Variant variant :
             {Variant::kPlain, Variant::kInPlace, Variant::kInPlaceOfX, Variant::kMisaligned, Variant::kNoWeights}) {
          report.check(absl::StrCat(taken.kernel, ": ", to_string(op), " ", to_string(desc.type), " ", desc.rows, "x",
                                    desc.columns, to_string(variant)),
                       check_taken(taken, variant));
        }
      }
    }
  }
  for (const DType type : {DType::kFloat32, DType::kFloat16}) {
    const auto far_from_zero = [&](std::uint64_t rows, std::uint64_t columns, WeightGradients gradients) {
      if (report.is_simulated() && rows * columns > 1 << 17) return;
      report.check(absl::StrCat("layer_norm far from zero ", to_string(type), " ", rows, "x", columns),
                   check_far_from_zero({NormOp::kLayerNorm, type, rows, columns, 1e-5f, gradients}));
    };
    far_from_zero(1, 4096, WeightGradients::kNone);
    far_from_zero(9, 4096, WeightGradients::kSummed);
    far_from_zero(3, 500001, WeightGradients::kSummed);   // spread over all blocks
    far_from_zero(150, 50257, WeightGradients::kSummed);  // sums of columns in shared memory
    far_from_zero(9, 2000001, WeightGradients::kSummed);  // in chunks
  }
  report.check("a plan after which a smaller one was made", check_second_plan());
  report.check("refusals", check_refusals());
}

void draw_norm_backward(Draw& draw, Report& report) {
  NormBackwardDesc desc{.op = draw.of({NormOp::kLayerNorm, NormOp::kRmsNorm}), .type = draw.float_type()};
  std::tie(desc.rows, desc.columns) = draw.matrix(draw.max_elements(4));
  desc.epsilon = draw.of({1e-5f, 1e-6f, 1e-2f});
  desc.weight_gradients = draw.of({WeightGradients::kNone, WeightGradients::kSummed});
  const Variant variant =
      draw.of({Variant::kPlain, Variant::kInPlace, Variant::kInPlaceOfX, Variant::kMisaligned, Variant::kNoWeights});
  report.check(absl::StrCat(to_string(desc.op), " backward ", to_string(desc.type), " ", desc.rows, "x", desc.columns,
                            to_string(variant),
                            desc.weight_gradients == WeightGradients::kSummed ? " with weight gradients" : ""),
               check(desc, variant));
}

}  // namespace cgrt::testing
