// The bias of a projection with each activation and gate: packs and single elements, short and long rows.
#include "cgrt_kernels/bias_activation/bias_activation.h"

#include <cmath>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/bias_activation/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::BiasActivation;
using kernels::BiasActivationArgs;
using kernels::BiasActivationDesc;
using kernels::BiasActivationPlan;
using kernels::BiasGate;
using kernels::DType;
using kernels::size_of;

// `shift`: elements that arrays are behind an aligned address.
absl::Status check(const BiasActivationDesc& desc, std::size_t shift, bool in_place) {
  CGRT_ASSIGN_OR_RETURN(const BiasActivationPlan plan, kernels::plan_bias_activation(kDevice, desc));
  const bool is_gated = desc.gate == BiasGate::kGated;
  const std::uint64_t stride = is_gated ? 2 * desc.columns : desc.columns;
  const Bytes a = random_elements(desc.type, desc.rows * stride, 0.2, 3, 1);
  const Bytes bias = random_elements(desc.type, stride, 0, 2, 2);
  const std::size_t bytes = shift * size_of(desc.type);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  BiasActivationArgs args;
  if (in_place) {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(a, bytes));
    args.a = args.out;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(desc.rows * desc.columns * size_of(desc.type), bytes));
    CGRT_ASSIGN_OR_RETURN(args.a, trial.input(a, bytes));
  }
  CGRT_ASSIGN_OR_RETURN(args.bias, trial.input(bias, bytes));
  CGRT_RETURN_IF_ERROR(
      trial.run([&](LaunchTarget target) { return kernels::launch_bias_activation(target, plan, args); }));

  const std::vector<double> values = to_doubles(desc.type, a), added = to_doubles(desc.type, bias);
  const std::vector<double> found = to_doubles(desc.type, trial.found(args.out));
  const double rounding = desc.type == DType::kFloat32 ? 1e-6 : desc.type == DType::kFloat16 ? 1.0 / 2048 : 1.0 / 256;
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    for (std::uint64_t column = 0; column < desc.columns; ++column) {
      const double x = values[row * stride + column] + added[column];
      const double factor = is_gated ? values[row * stride + desc.columns + column] + added[desc.columns + column] : 1;
      const double expected = kernels::bias_activation_reference(desc.activation, x) * factor;
      const double result = found[row * desc.columns + column];
      // Activations are precise beside x: far below 0 they are close to 0.
      if (std::abs(result - expected) <= rounding * std::abs(expected) + 2e-6 * (1 + std::abs(x * factor))) continue;
      return absl::InternalError(
          absl::StrCat("row ", row, " column ", column, ": expected ", expected, ", found ", result));
    }
  }
  return absl::OkStatus();
}

void check_refusals(Report& report) {
  const auto refuses = [&](const char* text, const BiasActivationDesc& desc) {
    report.check(absl::StrCat("bias_activation refuses: ", text),
                 refused(kernels::plan_bias_activation(kDevice, desc).status(), text));
  };
  constexpr std::uint64_t kMany = (std::uint64_t{1} << 31) - 1;
  refuses("bias_activation: 4 rows of 0 columns", {.rows = 4});
  refuses("no kernel for int64", {.type = DType::kInt64, .rows = 4, .columns = 8});
  refuses("2147483647 rows of 2147483647 columns are more than", {.rows = kMany, .columns = kMany});

  const absl::StatusOr<BiasActivationPlan> plan =
      kernels::plan_bias_activation(kDevice, {.gate = BiasGate::kGated, .rows = 4, .columns = 8});
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !trial.ok()) return report.check("bias_activation", absl::InternalError("no plan or no stream"));
  auto* const some = reinterpret_cast<unsigned char*>(4096);
  const auto refuses_args = [&](const char* text, const BiasActivationArgs& args) {
    report.check(absl::StrCat("bias_activation refuses: ", text),
                 refused(kernels::launch_bias_activation(trial->stream(), *plan, args), text));
  };
  refuses_args("out is null", {nullptr, some, some});
  refuses_args("a (0x1002) is not aligned", {some, some + 2, some});
  refuses_args("bias is null", {some, some + 64, nullptr});
  refuses_args("out is a, whose rows are twice as long", {some, some, some});
}

struct Matrix {
  std::uint64_t rows, columns;
};

}  // namespace

void check_bias_activation(Report& report) {
  check_refusals(report);
  std::vector<Matrix> matrices{{1, 1},    {1, 8},    {3, 7},     {17, 31}, {1, 4096}, {9, 768},
                               {5, 3072}, {64, 513}, {2, 11008}, {40, 36}, {30, 38},  {6, 1026}};
  if (!report.is_simulated())
    matrices.insert(
        matrices.end(),
        {{4096, 3072}, {1000, 4097}, {90, 2249}, {16, 12673}, {30001, 36}, {20003, 38}, {900, 1026}, {700, 1028}});
  std::mt19937 engine(3);
  for (int i = 0; i < 6; ++i) matrices.push_back({1 + engine() % 50, 1 + engine() % 600});
  const char* const names[] = {"relu", "silu", "gelu", "gelu_tanh"};
  for (const BiasActivation activation :
       {BiasActivation::kRelu, BiasActivation::kSilu, BiasActivation::kGelu, BiasActivation::kGeluTanh}) {
    for (const BiasGate gate : {BiasGate::kNone, BiasGate::kGated}) {
      for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        for (const auto& [rows, columns] : matrices) {
          const BiasActivationDesc desc{activation, gate, type, rows, columns};
          const std::string name =
              absl::StrCat("bias, ", names[static_cast<int>(activation)], gate == BiasGate::kGated ? " gate " : " ",
                           to_string(type), " ", rows, "x", columns);
          for (const std::size_t shift : {0, 1}) {
            report.check(absl::StrCat(name, " shifted by ", shift), check(desc, shift, false));
          }
          if (gate == BiasGate::kNone) report.check(absl::StrCat(name, " in place"), check(desc, 0, true));
        }
      }
    }
  }
}

void draw_bias_activation(Draw& draw, Report& report) {
  BiasActivationDesc desc{.activation = draw.of({BiasActivation::kRelu, BiasActivation::kSilu, BiasActivation::kGelu,
                                                 BiasActivation::kGeluTanh}),
                          .gate = draw.of({BiasGate::kNone, BiasGate::kGated}),
                          .type = draw.float_type()};
  std::tie(desc.rows, desc.columns) = draw.matrix(draw.max_elements(8));
  const std::size_t shift = draw.shift();
  report.check(absl::StrCat("bias, activation ", static_cast<int>(desc.activation),
                            desc.gate == BiasGate::kGated ? " gate " : " ", to_string(desc.type), " ", desc.rows, "x",
                            desc.columns, " shifted by ", shift),
               check(desc, shift, desc.gate == BiasGate::kNone && draw.one_in(3)));
}

}  // namespace cgrt::testing
