// nvrtc_kernel_raw: what nvrtc_kernel does, with the CUDA runtime alone. The mangled name has to come from the
// compiler, nothing compares the arguments with what the code takes, and the library must be kept by hand.

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "../common/options.h"
#include "compiler.h"

#define CHECK(call)                                                                         \
  do {                                                                                      \
    if (const cudaError_t error = (call); error != cudaSuccess) {                           \
      std::fprintf(stderr, "nvrtc_kernel_raw: %s: %s\n", #call, cudaGetErrorString(error)); \
      return 1;                                                                             \
    }                                                                                       \
  } while (false)

namespace {

constexpr int kCount = 1000;
constexpr Coefficients kFirst{{1, -2, 3, -4, 5, -6}};
constexpr Coefficients kSecond{{0.5f, 0, -1, 0, 2, 7}};

bool is_right(const char* what, const std::vector<float>& x, void* y, const Coefficients& coefficients) {
  std::vector<float> values(kCount);
  if (cudaMemcpy(values.data(), y, kCount * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) return false;
  if (cudaMemset(y, 0xff, kCount * sizeof(float)) != cudaSuccess) return false;
  for (std::size_t i = 0; i < kCount; ++i) {
    const float wanted = polynomial_5(coefficients, x[i]);
    if (std::isnan(values[i]) || std::fabs(values[i] - wanted) > 1e-4f * (1 + std::fabs(wanted))) {
      std::fprintf(stderr, "nvrtc_kernel_raw: %s y[%zu] is %f, not %f\n", what, i, static_cast<double>(values[i]),
                   static_cast<double>(wanted));
      return false;
    }
  }
  std::printf("%-28s right\n", what);
  return true;
}

int run(const Compiler& compiler) {
  int major = 0, minor = 0;
  CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  const Compiled compiled = compiler.compile(kSource, 10 * major + minor);
  if (compiled.cubin.empty()) {
    std::fprintf(stderr, "nvrtc_kernel_raw: NVRTC: %s\n", compiled.log.c_str());
    return 1;
  }
  cudaLibrary_t library = nullptr;
  CHECK(cudaLibraryLoadData(&library, compiled.cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  cudaKernel_t kernel = nullptr;
  CHECK(cudaLibraryGetKernel(&kernel, library, compiled.name.c_str()));

  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = -1 + static_cast<float>(i) / 500;
  void *x = nullptr, *y = nullptr;
  CHECK(cudaMalloc(&x, kCount * sizeof(float)));
  CHECK(cudaMalloc(&y, kCount * sizeof(float)));
  CHECK(cudaMemcpy(x, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  Coefficients coefficients = kFirst;
  int count = kCount;
  void* arguments[] = {&y, &x, &coefficients, &count};
  const dim3 grid((kCount + 255) / 256), block(256);
  CHECK(cudaLaunchKernel(kernel, grid, block, arguments, 0, stream));
  CHECK(cudaStreamSynchronize(stream));
  if (!is_right("eager:", values, y, kFirst)) return 1;

  coefficients = kSecond;
  cudaGraph_t captured = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaLaunchKernel(kernel, grid, block, arguments, 0, stream));
  CHECK(cudaStreamEndCapture(stream, &captured));
  cudaGraphExec_t captured_exec = nullptr;
  CHECK(cudaGraphInstantiate(&captured_exec, captured, 0));
  CHECK(cudaGraphLaunch(captured_exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  if (!is_right("captured:", values, y, kSecond)) return 1;

  coefficients = kFirst;
  cudaGraph_t built = nullptr;
  cudaGraphNode_t node = nullptr;
  CHECK(cudaGraphCreate(&built, 0));
  cudaKernelNodeParams params{};
  params.func = kernel;
  params.gridDim = grid;
  params.blockDim = block;
  params.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&node, built, nullptr, 0, &params));
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiate(&exec, built, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  if (!is_right("explicit:", values, y, kFirst)) return 1;

  coefficients = kSecond;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  if (!is_right("set:", values, y, kSecond)) return 1;

  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphExecDestroy(captured_exec));
  CHECK(cudaGraphDestroy(built));
  CHECK(cudaGraphDestroy(captured));
  CHECK(cudaLibraryUnload(library));  // not before: the executables would run what is gone
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const about = "nvrtc_kernel with the CUDA runtime alone, for contrast.";
  if (const auto exit_code = parse_no_options("nvrtc_kernel_raw", about, argc, argv)) return *exit_code;
  const auto compiler = Compiler::find();
  if (!compiler.has_value()) {
    std::puts("skipped: no NVRTC (libnvrtc.so.13) on this machine");
    return 77;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: no CUDA device");
    return 77;
  }
  return run(*compiler);
}
