// matmul_tests simulator|gpu: plan_matmul's products against their reference in double, over types, layouts
// and epilogues, eager, captured and explicit with the same bits; and on a GPU, captured graphs of them that take other
// buffers. Exit 0: all equal; 1: some are not; 77: no device.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/cublaslt/matmul.h"
#include "cgrt_kernels/gemm/reference.h"
#include "cgrt_kernels/softmax/softmax.h"
#include "kernels/support.h"
#include "support/no_device.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::Float32Products;
using kernels::MatmulArgs;
using kernels::MatmulDesc;
using kernels::MatmulEpilogue;
using kernels::MatmulLayout;
using kernels::MatmulPlan;

// Rounding of the result, and of k products in an order that we do not know.
double tolerance(const MatmulDesc& desc, double expected, double magnitude) {
  const double of_result = desc.type == DType::kFloat16    ? std::exp2(-10)
                           : desc.type == DType::kBFloat16 ? std::exp2(-7)
                                                           : std::exp2(-22);
  const double of_product = desc.products == Float32Products::kTf32 ? std::exp2(-10) : 0;
  // Epilogues may take gelu's tanh from an approximation.
  const double of_gelu = has_gelu(desc.epilogue) ? 2e-3 : 0;
  return of_result * std::abs(expected) +
         (of_product + std::sqrt(static_cast<double>(desc.k)) * std::exp2(-22)) * magnitude +
         of_gelu * std::min(1.0, std::abs(expected)) + (has_gelu(desc.epilogue) ? 1e-3 : 1e-6);
}

absl::Status check(const MatmulDesc& desc) {
  const Bytes a = random_elements(desc.type, desc.m * desc.k, 0, 1, 1),
              b = random_elements(desc.type, desc.k * columns_of_b(desc), 0, 1, 2),
              bias = random_elements(desc.type, desc.n, 0, 3, 3),
              residual = random_elements(desc.type, desc.m * desc.n, 0, 3, 4);
  CGRT_ASSIGN_OR_RETURN(const MatmulPlan plan, kernels::plan_matmul(kDevice, desc));
  if (plan.workspace_bytes > desc.max_workspace_bytes) return absl::InternalError("more workspace than allowed");
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, DeviceBuffer::create(kDevice, plan.workspace_bytes + 256));
  MatmulArgs args{.workspace = {workspace.data(), workspace.size_bytes()}};
  CGRT_ASSIGN_OR_RETURN(args.d, trial.output(desc.m * desc.n * size_of(desc.type)));
  CGRT_ASSIGN_OR_RETURN(args.a, trial.input(a));
  CGRT_ASSIGN_OR_RETURN(args.b, trial.input(b));
  if (has_bias(desc.epilogue)) {
    CGRT_ASSIGN_OR_RETURN(args.bias, trial.input(bias));
  }
  if (has_residual(desc.epilogue)) {
    CGRT_ASSIGN_OR_RETURN(args.residual, trial.input(residual));
  }
  // Twice, since it leaves nothing behind in its workspace that the next launch would see.
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) {
    const absl::Status first = kernels::launch_matmul(target, plan, args);
    return first.ok() ? kernels::launch_matmul(target, plan, args) : first;
  }));
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

absl::Status refused(const absl::Status& status, const char* text) {
  if (absl::IsInvalidArgument(status) && absl::StrContains(status.message(), text)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("wanted \"", text, "\", found: ", status.ToString()));
}

absl::Status check_refusals() {
  kernels::MatmulDesc odd{.m = 8, .n = 8, .k = 8};
  odd.epilogue = static_cast<kernels::MatmulEpilogue>(77);
  CGRT_RETURN_IF_ERROR(refused(kernels::plan_matmul(kDevice, odd).status(), "epilogue is 77"));
  MatmulDesc of_nobody{.m = 8, .n = 8, .k = 8};
  of_nobody.kernel = static_cast<kernels::MatmulKernel>(77);
  CGRT_RETURN_IF_ERROR(refused(kernels::plan_matmul(kDevice, of_nobody).status(), "kernel is 77"));
  CGRT_RETURN_IF_ERROR(refused(kernels::plan_matmul(kDevice, {.m = 8, .n = 0, .k = 8}).status(),
                               "matmul of 8x8 and 8x0 float16: m, n and k must each be from 1"));
  CGRT_RETURN_IF_ERROR(
      refused(kernels::plan_matmul(kDevice, {.m = std::uint64_t{1} << 31, .n = 8, .k = 8}).status(), "to 2147483647"));
  CGRT_RETURN_IF_ERROR(refused(kernels::plan_matmul(kDevice, {.m = 8, .n = 8, .k = 8, .type = DType::kInt32}).status(),
                               "the type must be"));
  const MatmulDesc desc{.m = 64, .n = 64, .k = 64, .epilogue = MatmulEpilogue::kBias};
  CGRT_ASSIGN_OR_RETURN(const MatmulPlan plan, kernels::plan_matmul(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, 1 << 16));
  unsigned char* const data = buffer.as<unsigned char>();
  const auto launch = [&](void* d, const void* a, const void* b, const void* bias) {
    return kernels::launch_matmul(stream.ref(), plan, {d, a, b, bias, {data}});
  };
  CGRT_RETURN_IF_ERROR(refused(launch(nullptr, data, data, data), "d is null"));
  CGRT_RETURN_IF_ERROR(refused(launch(data, data + 8, data, data), "is not aligned to 16 bytes"));
  CGRT_RETURN_IF_ERROR(refused(launch(data, data, nullptr, data), "b is null"));
  return refused(launch(data, data, data, nullptr), "bias is null");
}

// Large products and gates are gemm's where there is gemm; and whose kernels were asked for are taken.
absl::Status check_choice() {
  using enum kernels::MatmulKernel;
  const MatmulDesc small{.m = 64, .n = 64, .k = 64}, large{.m = 8192, .n = 8192, .k = 8192};
  const MatmulDesc gate{.m = 33, .n = 72, .k = 40, .epilogue = MatmulEpilogue::kSiluGate};
  const absl::Status planned = kernels::plan_gemm(kDevice, small).status();
  CGRT_ASSIGN_OR_RETURN(const MatmulPlan of_small, kernels::plan_matmul(kDevice, small));
  CGRT_ASSIGN_OR_RETURN(const MatmulPlan of_large, kernels::plan_matmul(kDevice, large));
  if (of_small.desc.kernel != kLibrary || of_large.desc.kernel != (planned.ok() ? kGemm : kLibrary)) {
    return absl::InternalError("wanted gemm for the large product alone");
  }
  for (const kernels::MatmulKernel kernel : {kLibrary, kGemm}) {
    MatmulDesc desc{.m = 96, .n = 128, .k = 64, .kernel = kernel};
    const absl::StatusOr<MatmulPlan> plan = kernels::plan_matmul(kDevice, desc);
    if (kernel == kGemm && !planned.ok()) {
      if (plan.ok()) return absl::InternalError("wanted no plan of gemm");
      continue;
    }
    CGRT_RETURN_IF_ERROR(plan.status());
    if (plan->desc.kernel != kernel || plan->gemm.has_value() != (kernel == kGemm)) {
      return absl::InternalError(absl::StrCat("wanted the kernels of ", to_string(kernel)));
    }
    CGRT_RETURN_IF_ERROR(check(desc));
  }
  MatmulDesc gate_of_library = gate;
  gate_of_library.kernel = kLibrary;
  CGRT_RETURN_IF_ERROR(refused(kernels::plan_matmul(kDevice, gate_of_library).status(), "cuBLASLt has no silu gate"));
  if (planned.ok()) return check(gate);
  const absl::Status refusal = kernels::plan_matmul(kDevice, gate).status();
  return absl::IsUnimplemented(refusal) ? absl::OkStatus() : absl::InternalError(refusal.ToString());
}

// A measured plan computes what the planned one does, needs no more workspace than it was given, and is of the kernels
// that were asked for.
absl::Status check_tuned(MatmulDesc desc) {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, DeviceBuffer::create(kDevice, 8 << 20));
  MatmulArgs args{.workspace = {workspace.data(), workspace.size_bytes()}};
  CGRT_RETURN_IF_ERROR(kernels::initialize_workspace(stream.ref(), args.workspace));
  const std::size_t bytes = desc.m * desc.n * size_of(desc.type);
  CGRT_ASSIGN_OR_RETURN(args.d, trial.output(bytes));
  CGRT_ASSIGN_OR_RETURN(args.a, trial.input(random_elements(desc.type, desc.m * desc.k, 0, 1, 1)));
  CGRT_ASSIGN_OR_RETURN(args.b, trial.input(random_elements(desc.type, desc.k * desc.n, 0, 1, 2)));
  CGRT_ASSIGN_OR_RETURN(args.bias, trial.input(random_elements(desc.type, desc.n, 0, 1, 3)));
  const auto result_of = [&](const MatmulPlan& plan) -> absl::StatusOr<std::vector<double>> {
    Bytes found(bytes);
    CGRT_RETURN_IF_ERROR(fill8(stream, args.d, 0xff, bytes));
    CGRT_RETURN_IF_ERROR(kernels::launch_matmul(stream.ref(), plan, args));
    CGRT_RETURN_IF_ERROR(copy(stream, found.data(), args.d, bytes));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    return to_doubles(desc.type, found);
  };
  CGRT_ASSIGN_OR_RETURN(const MatmulPlan planned, kernels::plan_matmul(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(const std::vector<double> expected, result_of(planned));
  for (const auto kernel :
       {kernels::MatmulKernel::kBest, kernels::MatmulKernel::kLibrary, kernels::MatmulKernel::kGemm}) {
    desc.kernel = kernel;
    const absl::StatusOr<MatmulPlan> tuned = kernels::tune_matmul(stream.ref(), desc, args);
    if (kernel == kernels::MatmulKernel::kGemm && !kernels::plan_gemm(kDevice, desc).ok()) {
      if (tuned.ok()) return absl::InternalError("wanted no plan of gemm");
      continue;
    }
    CGRT_RETURN_IF_ERROR(tuned.status());
    if (tuned->workspace_bytes > args.workspace.bytes || tuned->desc.kernel == kernels::MatmulKernel::kBest ||
        (kernel != kernels::MatmulKernel::kBest && tuned->desc.kernel != kernel)) {
      return absl::InternalError("the measured plan is not what was asked for");
    }
    CGRT_ASSIGN_OR_RETURN(const std::vector<double> found, result_of(*tuned));
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (std::abs(found[i] - expected[i]) <= tolerance(desc, expected[i], static_cast<double>(desc.k)) * 2) continue;
      return absl::InternalError(absl::StrCat("element ", i, ": planned ", expected[i], ", measured ", found[i]));
    }
  }
  absl::Status in_capture;
  CGRT_RETURN_IF_ERROR(capture(stream.ref(), [&](LaunchTarget) {
                         in_capture = kernels::tune_matmul(stream.ref(), desc, args).status();
                         return absl::OkStatus();
                       }).status());
  return absl::IsFailedPrecondition(in_capture) ? absl::OkStatus() : absl::InternalError(in_capture.ToString());
}

// An executable takes over the graph of an equal plan, whose topology_id is the same.
absl::Status check_topology() {
  const MatmulDesc desc{.m = 64, .n = 64, .k = 64};
  CGRT_ASSIGN_OR_RETURN(const MatmulPlan plan, kernels::plan_matmul(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(const MatmulPlan equal, kernels::plan_matmul(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(const MatmulPlan longer, kernels::plan_matmul(kDevice, {.m = 4096, .n = 64, .k = 64}));
  if (plan.topology_id() != equal.topology_id() || plan.topology_id() == longer.topology_id()) {
    return absl::InternalError("wanted equal plans to have one topology_id, and others another");
  }
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, 1 << 16));
  const kernels::MatmulArgs args{buffer.data(), buffer.data(), buffer.data(), nullptr, {buffer.data()}};
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(kDevice));
  CGRT_RETURN_IF_ERROR(kernels::launch_matmul(graph.cursor(), plan, args));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(kDevice));
  CGRT_RETURN_IF_ERROR(kernels::launch_matmul(other.cursor(), equal, args));
  return exec.update(other);
}

// What stands at the head of matmul.h.
absl::Status check_example() {
  using namespace kernels;
  constexpr std::uint64_t tokens = 16, out = 64, in = 32;
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer arrays, DeviceBuffer::create(kDevice, 1 << 16));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_RETURN_IF_ERROR(fill8(stream, arrays.data(), 0, arrays.size_bytes()));
  unsigned char* const y = arrays.as<unsigned char>();
  const void *const x = y + (1 << 14), *const weights = y + (1 << 15), *const bias = y + (3 << 14);
#include "heads/cgrt_kernels/cublaslt/matmul.h.1.inc"
  return stream.ref().synchronize();
}

// A captured graph of cuBLASLt's kernels and one of ours, which reads x and writes y: given other buffers without a
// copy, it does what a graph captured with them does.
absl::Status check_rebound_buffers(const MatmulDesc& desc) {
  const MatmulDesc second{.m = desc.m, .n = desc.k, .k = desc.n, .type = desc.type};
  CGRT_ASSIGN_OR_RETURN(const MatmulPlan up, kernels::plan_matmul(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(const MatmulPlan down, kernels::plan_matmul(kDevice, second));
  CGRT_ASSIGN_OR_RETURN(const kernels::SoftmaxPlan softmax,
                        kernels::plan_softmax(kDevice, {kernels::SoftmaxOp::kSoftmax, desc.type, desc.m, desc.n}));
  const std::size_t bytes = desc.m * desc.k * size_of(desc.type), weight_bytes = desc.k * desc.n * size_of(desc.type),
                    inner_bytes = desc.m * desc.n * size_of(desc.type);
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  const auto make = [&](std::size_t size, std::uint32_t seed) -> absl::StatusOr<DeviceBuffer> {
    const Bytes values = random_elements(desc.type, size / size_of(desc.type), 0, 0.3, seed);
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, size));
    CGRT_RETURN_IF_ERROR(copy(stream, buffer.data(), values.data(), size));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    return buffer;
  };
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, make(bytes, 1));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer other_x, make(bytes, 2));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer up_weights, make(weight_bytes, 3));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer down_weights, make(weight_bytes, 4));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer inner, make(inner_bytes, 5));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, make(bytes, 6));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer other_y, make(bytes, 7));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace,
                        DeviceBuffer::create(kDevice, std::max(up.workspace_bytes, down.workspace_bytes) + 256));
  const kernels::Workspace scratch{workspace.data(), workspace.size_bytes()};
  CGRT_RETURN_IF_ERROR(kernels::initialize_workspace(stream.ref(), scratch));
  const auto captured = [&](const DeviceBuffer& in, const DeviceBuffer& out) {
    return capture(stream.ref(), [&](LaunchTarget target) -> absl::Status {
      CGRT_RETURN_IF_ERROR(kernels::launch_matmul(
          target, up, {.d = inner.data(), .a = in.data(), .b = up_weights.data(), .workspace = scratch}));
      CGRT_RETURN_IF_ERROR(kernels::launch_softmax(target, softmax, {.out = inner.data(), .in = inner.data()}));
      return kernels::launch_matmul(
          target, down, {.d = out.data(), .a = inner.data(), .b = down_weights.data(), .workspace = scratch});
    });
  };
  const auto result = [&](GraphExec& exec, const DeviceBuffer& out) -> absl::StatusOr<Bytes> {
    Bytes found(bytes);
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(copy(stream, found.data(), out.data(), bytes));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    return found;
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, captured(x, y));
  CGRT_ASSIGN_OR_RETURN(Graph expected_graph, captured(other_x, other_y));
  CGRT_ASSIGN_OR_RETURN(GraphExec expected_exec, instantiate(expected_graph));
  CGRT_ASSIGN_OR_RETURN(const Bytes expected, result(expected_exec, other_y));
  CGRT_RETURN_IF_ERROR(fill8(stream, other_y.data(), 0, bytes));

  CGRT_RETURN_IF_ERROR(remove_programmatic_edges(graph).status());  // cuBLASLt's own
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_ASSIGN_OR_RETURN(const Bytes before, result(exec, y));
  CGRT_ASSIGN_OR_RETURN(const std::size_t read, exec.rebind_buffer(x.data(), bytes, other_x.data()));
  CGRT_ASSIGN_OR_RETURN(const std::size_t written, exec.rebind_buffer(y.data(), bytes, other_y.data()));
  if (read == 0 || written == 0) {
    return absl::InternalError(absl::StrCat("found ", read, " addresses of x and ", written, " of y"));
  }
  CGRT_ASSIGN_OR_RETURN(const Bytes found, result(exec, other_y));
  if (found != expected)
    return absl::InternalError("with other buffers, it is not what a graph captured with them does");
  if (found == before) return absl::InternalError("both inputs have one result: nothing was shown");
  return absl::OkStatus();
}

struct Shape {
  std::uint64_t m, n, k;
};

void check_matmul(Report& report) {
  const auto try_one = [&](const MatmulDesc& desc) {
    report.check(
        absl::StrCat("matmul ", to_string(desc.type), desc.products == Float32Products::kTf32 ? " tf32 " : " ", desc.m,
                     "x", desc.n, "x", desc.k, desc.b_layout == MatmulLayout::kTransposed ? " transposed, " : ", ",
                     to_string(desc.epilogue)),
        check(desc));
  };
  for (const DType type : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    for (const auto& [m, n, k] :
         {Shape{1, 8, 16}, Shape{16, 32, 8}, Shape{33, 64, 40}, Shape{7, 13, 19}, Shape{128, 72, 256}}) {
      for (const MatmulLayout layout : {MatmulLayout::kPlain, MatmulLayout::kTransposed}) {
        for (const MatmulEpilogue epilogue :
             {MatmulEpilogue::kNone, MatmulEpilogue::kBias, MatmulEpilogue::kGelu, MatmulEpilogue::kGeluBias,
              MatmulEpilogue::kResidual, MatmulEpilogue::kResidualBias}) {
          // Odd sizes only without epilogues: not all of them have algorithms.
          if (n % 8 != 0 && epilogue != MatmulEpilogue::kNone) continue;
          try_one({.m = m, .n = n, .k = k, .type = type, .b_layout = layout, .epilogue = epilogue});
        }
      }
    }
  }
  try_one({.m = 64, .n = 64, .k = 64, .type = DType::kFloat32, .products = Float32Products::kTf32});
  report.check("matmul refuses", check_refusals());
  report.check("matmul chooses", check_choice());
  report.check("matmul has the topology of an equal one", check_topology());
  report.check("matmul measures", check_tuned({.m = 40, .n = 64, .k = 96, .epilogue = MatmulEpilogue::kBias}));
  report.check("matmul measures float32", check_tuned({.m = 24, .n = 32, .k = 16, .type = DType::kFloat32}));
  report.check("the example of the header", check_example());
  if (report.is_simulated()) return;
  try_one({.m = 16, .n = 6144, .k = 4096, .type = DType::kBFloat16, .b_layout = MatmulLayout::kTransposed});
  try_one({.m = 1024, .n = 1024, .k = 1024, .type = DType::kFloat16, .epilogue = MatmulEpilogue::kGeluBias});
  try_one({.m = 512, .n = 768, .k = 3072, .type = DType::kFloat32, .max_workspace_bytes = 0});
  report.check("matmul measures a large product",
               check_tuned({.m = 2048, .n = 4096, .k = 1024, .epilogue = MatmulEpilogue::kGeluBias}));
  for (const DType type : {DType::kBFloat16, DType::kFloat16, DType::kFloat32}) {
    for (const auto& [m, n, k] : {Shape{16, 4096, 1024}, Shape{1, 512, 8192}, Shape{300, 1024, 768}}) {
      report.check(absl::StrCat("a captured graph takes other buffers: ", to_string(type), " ", m, "x", n, "x", k),
                   check_rebound_buffers({.m = m, .n = n, .k = k, .type = type}));
    }
  }
}

}  // namespace
}  // namespace cgrt::testing

int main(int argc, char** argv) {
  const std::string backend = argc == 2 ? argv[1] : "";
  if (backend != "simulator" && backend != "gpu") {
    std::fputs("usage: matmul_tests simulator|gpu\n", stderr);
    return 2;
  }
  std::unique_ptr<cgrt::Simulator> simulator;
  if (backend == "simulator") simulator = std::make_unique<cgrt::Simulator>();
  if (const auto code = cgrt::testing::exit_code_without_device()) return *code;
  cgrt::testing::Report report(backend == "simulator");
  cgrt::testing::check_matmul(report);
  std::printf("products on %s: %d passed, %d failed\n", cgrt::testing::kDevice.name().value_or("?").c_str(),
              report.passed(), report.failed());
  return report.failed() == 0 && report.passed() > 0 ? 0 : 1;
}
