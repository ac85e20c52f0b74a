// Products of sm_90a: tiles that are full and not, both layouts of b, every epilogue, clusters of one and two blocks.
#include "cgrt_kernels/gemm/gemm.h"

#include <array>
#include <cmath>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/gemm/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::GemmPlan;
using kernels::MatmulArgs;
using kernels::MatmulDesc;
using kernels::MatmulEpilogue;
using kernels::MatmulLayout;
using kernels::size_of;

std::string name_of(const MatmulDesc& desc) {
  return absl::StrCat("gemm ", to_string(desc.type), " ", desc.m, "x", desc.n, "x", desc.k,
                      desc.b_layout == MatmulLayout::kTransposed ? " transposed, " : ", ", to_string(desc.epilogue));
}

// One rounding of the result, sums of floats in some order, and gelu's exponential.
double tolerance(const MatmulDesc& desc, double expected, double magnitude) {
  const double of_result = desc.type == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
  const double of_sum = 0x1p-23 * (4 + std::sqrt(static_cast<double>(desc.k)));
  return of_result * std::abs(expected) + of_sum * magnitude + (has_gelu(desc.epilogue) ? 1e-4 : 1e-6);
}

absl::Status check(const MatmulDesc& desc) {
  CGRT_ASSIGN_OR_RETURN(const GemmPlan plan, kernels::plan_gemm(kDevice, desc));
  const Bytes a = random_elements(desc.type, desc.m * desc.k, 0, 1, 1),
              b = random_elements(desc.type, desc.k * columns_of_b(desc), 0, 1, 2),
              bias = random_elements(desc.type, desc.n, 0, 3, 3),
              residual = random_elements(desc.type, desc.m * desc.n, 0, 3, 4);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  MatmulArgs args;
  CGRT_ASSIGN_OR_RETURN(args.d, trial.output(desc.m * desc.n * size_of(desc.type), 16));
  CGRT_ASSIGN_OR_RETURN(args.a, trial.input(a, 32));
  CGRT_ASSIGN_OR_RETURN(args.b, trial.input(b, 48));
  if (has_bias(desc.epilogue)) {
    CGRT_ASSIGN_OR_RETURN(args.bias, trial.input(bias, 16));
  }
  if (has_residual(desc.epilogue)) {
    CGRT_ASSIGN_OR_RETURN(args.residual, trial.input(residual, 16));
  }
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_gemm(target, plan, args); }));

  const std::vector<double> x = to_doubles(desc.type, a), y = to_doubles(desc.type, b), z = to_doubles(desc.type, bias),
                            r = to_doubles(desc.type, residual), d = to_doubles(desc.type, trial.found(args.d));
  const std::uint64_t step = desc.m * desc.n * desc.k > 1 << 24 ? 997 : 1;  // a sample of what is large
  for (std::uint64_t i = 0; i < d.size(); i += step) {
    const auto product = [&](auto change) {
      return kernels::matmul_reference(
          desc, i / desc.n, i % desc.n, [&](std::uint64_t at) { return change(x[at]); },
          [&](std::uint64_t at) { return change(y[at]); }, [&](std::uint64_t at) { return change(z[at]); },
          [&](std::uint64_t at) { return change(r[at]); });
    };
    const double expected = product([](double value) { return value; });
    const double magnitude = product([](double value) { return std::abs(value); });
    if (std::abs(d[i] - expected) <= tolerance(desc, expected, magnitude)) continue;
    return absl::InternalError(
        absl::StrCat("row ", i / desc.n, " column ", i % desc.n, ": expected ", expected, ", found ", d[i]));
  }
  return absl::OkStatus();
}

absl::Status check_refusals() {
  const auto refuses = [](const char* text, const MatmulDesc& desc) {
    return refused(kernels::plan_gemm(kDevice, desc).status(), text);
  };
  CGRT_RETURN_IF_ERROR(refuses("gemm: m is 0; it can be 1 to 2147483647.", {.m = 0, .n = 8, .k = 8}));
  CGRT_RETURN_IF_ERROR(refuses("n is 2147483648;", {.m = 8, .n = std::uint64_t{1} << 31, .k = 8}));
  CGRT_RETURN_IF_ERROR(
      refuses("n is 12, not a multiple of 8: rows of d must be multiples of 16 bytes.", {.m = 8, .n = 12, .k = 8}));
  CGRT_RETURN_IF_ERROR(refuses("k is 20, not a multiple of 8: rows of a", {.m = 8, .n = 8, .k = 20}));
  CGRT_RETURN_IF_ERROR(refuses("elements of d are more than", {.m = 1 << 30, .n = 1 << 30, .k = 8}));
  CGRT_RETURN_IF_ERROR(refuses("float32", {.m = 8, .n = 8, .k = 8, .type = DType::kFloat32}));
  const MatmulDesc desc{.m = 8, .n = 8, .k = 8, .epilogue = MatmulEpilogue::kBias};
  CGRT_ASSIGN_OR_RETURN(const GemmPlan plan, kernels::plan_gemm(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, 1 << 12));
  unsigned char* const data = buffer.as<unsigned char>();
  const auto launch = [&](void* d, const void* a, const void* b, const void* bias) {
    return kernels::launch_gemm(stream.ref(), plan, {d, a, b, bias});
  };
  CGRT_RETURN_IF_ERROR(refused(launch(nullptr, data, data, data), "d is null"));
  CGRT_RETURN_IF_ERROR(refused(launch(data, data + 8, data, data), "is not aligned to 16 bytes"));
  CGRT_RETURN_IF_ERROR(refused(launch(data, data, nullptr, data), "b is null"));
  return refused(launch(data, data, data, nullptr), "bias is null");
}

struct Shape {
  std::uint64_t m, n, k;
};

}  // namespace

void check_gemm(Report& report) {
  const absl::Status planned = kernels::plan_gemm(kDevice, {.m = 8, .n = 8, .k = 8}).status();
  if (absl::IsUnimplemented(planned)) {
    return report.check("gemm says that there is no code for the device",
                        absl::StrContains(planned.message(), "has no code of compute capability 9.0")
                            ? absl::OkStatus()
                            : absl::InternalError(planned.ToString()));
  }
  const auto try_one = [&](const MatmulDesc& desc) { report.check(name_of(desc), check(desc)); };
  const auto try_all = [&](const Shape& shape, DType type, MatmulEpilogue epilogue) {
    for (const MatmulLayout layout : {MatmulLayout::kPlain, MatmulLayout::kTransposed}) {
      try_one({.m = shape.m, .n = shape.n, .k = shape.k, .type = type, .b_layout = layout, .epilogue = epilogue});
    }
  };
  using enum MatmulEpilogue;
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    for (const Shape& shape : {Shape{1, 8, 8}, Shape{127, 136, 72}, Shape{129, 264, 200}, Shape{65, 8, 320}}) {
      for (const MatmulEpilogue epilogue : {kNone, kBias, kGelu, kGeluBias, kResidual, kResidualBias, kSiluGate})
        try_all(shape, type, epilogue);
    }
    for (const Shape& shape : {Shape{64, 128, 64}, Shape{128, 256, 64}, Shape{256, 128, 448}, Shape{257, 40, 512}}) {
      try_all(shape, type, kNone);
    }
  }
  std::minstd_rand draw(7);
  const auto up_to = [&](std::uint64_t max) { return 1 + draw() / 7 % max; };
  for (int i = 0; i < 24; ++i) {
    try_all({up_to(400), 8 * up_to(70), 8 * up_to(50)}, i % 2 == 0 ? DType::kFloat16 : DType::kBFloat16,
            std::array{kGeluBias, kResidualBias, kSiluGate}[i % 3]);
  }
  report.check("gemm refuses", check_refusals());
  if (report.is_simulated()) return;
  // More tiles than multiprocessors: blocks take several, of groups that are full and not.
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    try_all({2064, 4104, 520}, type, kBias);
    try_all({2056, 4104, 136}, type, kResidualBias);
    try_all({2056, 4104, 136}, type, kSiluGate);
    try_all({300, 2056, 512}, type, kSiluGate);
    try_all({1000, 10008, 72}, type, kGeluBias);
    try_all({10001, 264, 1032}, type, kNone);
  }
}

void draw_gemm(Draw& draw, Report& report) {
  using enum MatmulEpilogue;
  const std::uint64_t max = draw.max_elements(2), step = draw.one_in(20) ? 1 : 8;
  MatmulDesc desc{.m = draw.size(20000), .n = step * draw.size(3000), .k = step * draw.size(3000)};
  Draw::shrink(max, {&desc.m, &desc.n});
  Draw::shrink(max, {&desc.m, &desc.k});
  Draw::shrink(max / 2, {&desc.n, &desc.k});
  if (step == 8) desc.n = (desc.n + 7) / 8 * 8, desc.k = (desc.k + 7) / 8 * 8;
  desc.type = draw.half_type();
  desc.b_layout = draw.of({MatmulLayout::kPlain, MatmulLayout::kTransposed});
  desc.epilogue = draw.of({kNone, kBias, kGelu, kGeluBias, kResidual, kResidualBias, kSiluGate});
  report.check(name_of(desc), check(desc));
}

}  // namespace cgrt::testing
