// nvrtc_kernel: a kernel that is compiled while the program runs, and then launched as any other: eagerly, captured, as
// an explicit node, and again with other arguments on a finished executable. Its graphs keep its code loaded.

#include <cgrt/cgrt.h>
#include <cgrt/simulator/simulator.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "../common/options.h"
#include "compiler.h"

namespace {

constexpr int kCount = 1000;
constexpr Coefficients kFirst{{1, -2, 3, -4, 5, -6}};
constexpr Coefficients kSecond{{0.5f, 0, -1, 0, 2, 7}};

// The same for machines without a GPU.
void polynomial_on_host(cgrt::HostGrid, float* y, const float* x, Coefficients coefficients, int count) {
  for (int i = 0; i < count; ++i) y[i] = polynomial_5(coefficients, x[i]);
}

using Polynomial = cgrt::Kernel<float*, const float*, Coefficients, int>;

absl::StatusOr<Polynomial> compile(const Compiler& compiler, cgrt::DeviceRef device, cgrt::Library& library) {
  CGRT_ASSIGN_OR_RETURN(const int major, device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  CGRT_ASSIGN_OR_RETURN(const int minor, device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  const Compiled compiled = compiler.compile(kSource, 10 * major + minor);
  if (compiled.cubin.empty()) return absl::InternalError("NVRTC: " + compiled.log);
  CGRT_ASSIGN_OR_RETURN(library, cgrt::Library::load(device, compiled.cubin));
  // By its plain name. The types are compared with what the code takes: with a double for the count, say, this is an
  // error that names the parameter.
  return library.kernel<polynomial_on_host>("polynomial<5>");
}

class Check {
 public:
  Check(cgrt::StreamRef stream, const cgrt::DeviceBuffer& y, std::vector<float> x)
      : stream_(stream), y_(y), x_(std::move(x)) {}

  // Whether y has what `coefficients` make of x; poisons it for the next time.
  absl::Status operator()(const char* what, const Coefficients& coefficients) const {
    std::vector<float> values(kCount);
    CGRT_RETURN_IF_ERROR(cgrt::copy(stream_, values.data(), y_.data(), kCount * sizeof(float)));
    CGRT_RETURN_IF_ERROR(cgrt::fill32(stream_, y_.data(), 0xffffffff, kCount));
    CGRT_RETURN_IF_ERROR(stream_.synchronize());
    for (int i = 0; i < kCount; ++i) {
      const float wanted = polynomial_5(coefficients, x_[static_cast<std::size_t>(i)]);
      const float found = values[static_cast<std::size_t>(i)];
      if (std::fabs(found - wanted) > 1e-4f * (1 + std::fabs(wanted)) || std::isnan(found)) {
        return absl::InternalError(std::string(what) + ": y[" + std::to_string(i) + "] is " + std::to_string(found) +
                                   ", not " + std::to_string(wanted));
      }
    }
    std::printf("%-28s right\n", what);
    return absl::OkStatus();
  }

 private:
  cgrt::StreamRef stream_;
  const cgrt::DeviceBuffer& y_;
  std::vector<float> x_;
};

absl::Status run(const Compiler& compiler, cgrt::DeviceRef device) {
  CGRT_ASSIGN_OR_RETURN(const cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(const cgrt::DeviceBuffer x, cgrt::DeviceBuffer::create(device, kCount * sizeof(float)));
  CGRT_ASSIGN_OR_RETURN(const cgrt::DeviceBuffer y, cgrt::DeviceBuffer::create(device, kCount * sizeof(float)));
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = -1 + static_cast<float>(i) / 500;
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, x.data(), values.data(), kCount * sizeof(float)));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  const Check check(stream, y, values);

  cgrt::Library library;
  CGRT_ASSIGN_OR_RETURN(const Polynomial kernel, compile(compiler, device, library));
  std::printf("compiled %s\n", kernel.name());
  CGRT_ASSIGN_OR_RETURN(const cgrt::LaunchConfig config, cgrt::suggest_config(kernel, device, kCount));
  const auto step = [&](cgrt::LaunchTarget target, const Coefficients& coefficients) {
    return cgrt::launch(target, config, kernel, y.as<float>(), x.as<const float>(), coefficients, kCount);
  };

  CGRT_RETURN_IF_ERROR(step(stream, kFirst));
  CGRT_RETURN_IF_ERROR(check("eager:", kFirst));

  CGRT_ASSIGN_OR_RETURN(const cgrt::Graph captured,
                        cgrt::capture(stream, [&](cgrt::StreamRef s) { return step(s, kSecond); }));
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec captured_exec, cgrt::instantiate(captured));
  CGRT_RETURN_IF_ERROR(captured_exec.launch(stream));
  CGRT_RETURN_IF_ERROR(check("captured:", kSecond));

  CGRT_ASSIGN_OR_RETURN(cgrt::Graph built, cgrt::Graph::create(device));
  CGRT_RETURN_IF_ERROR(step(built.cursor(), kFirst));
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate_rebindable(built));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(check("explicit:", kFirst));
  CGRT_RETURN_IF_ERROR(exec.rebind([&](cgrt::LaunchTarget target) { return step(target, kSecond); }));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(check("rebound:", kSecond));

  CGRT_ASSIGN_OR_RETURN(const cgrt::KernelNode node, cgrt::find_node<cgrt::KernelNode>(captured, {"polynomial"}));
  CGRT_RETURN_IF_ERROR(
      captured_exec.set_params(node, config, kernel, y.as<float>(), x.as<const float>(), kFirst, kCount));
  library = cgrt::Library();  // the executables keep the code
  CGRT_RETURN_IF_ERROR(captured_exec.launch(stream));
  return check("set, the library given up:", kFirst);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const about = "Compiles a kernel with NVRTC and launches it eagerly, captured, explicitly and rebound.";
  if (const auto exit_code = parse_no_options("nvrtc_kernel", about, argc, argv)) return *exit_code;
  const auto compiler = Compiler::find();
  if (!compiler.has_value()) {
    std::puts("skipped: no NVRTC (libnvrtc.so.13) on this machine");
    return 77;
  }
  const auto simulator = cgrt::Simulator::if_no_device();
  const absl::Status status = run(*compiler, cgrt::DeviceRef(0));
  if (status.ok()) return 0;
  std::fprintf(stderr, "nvrtc_kernel: %s\n", status.ToString().c_str());
  return 1;
}
