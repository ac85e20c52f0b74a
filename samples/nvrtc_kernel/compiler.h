// NVRTC, which is looked for when the program runs: a machine without it can start the program, and hears why it stops.
#pragma once

#include <dlfcn.h>
#include <nvrtc.h>

#include <optional>
#include <string>

// The program that both samples compile: y = ((c[0] x + c[1]) x + ...) x + c[kDegree], with the degree known to the
// compiler. A file of its own, or a string made at run time, would do as well.
inline constexpr const char* kSource = R"(
struct Coefficients {
  float c[8];
};
template <int kDegree>
__global__ void polynomial(float* y, const float* x, Coefficients coefficients, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = coefficients.c[0];
  for (int k = 1; k <= kDegree; ++k) sum = sum * x[i] + coefficients.c[k];
  y[i] = sum;
}
template __global__ void polynomial<5>(float*, const float*, Coefficients, int);
)";

struct Compiled {
  std::string cubin;  // empty: it did not compile
  std::string name;   // of polynomial<5>, mangled
  std::string log;    // the compiler's words
};

class Compiler {
 public:
  // Nullopt where there is no NVRTC of CUDA 13.
  static std::optional<Compiler> find() {
    for (const char* name : {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13"}) {
      Compiler compiler(dlopen(name, RTLD_NOW | RTLD_LOCAL));
      if (compiler.library_ != nullptr) return compiler;
    }
    return std::nullopt;
  }

  // For devices of `architecture`, 90 for 9.0.
  Compiled compile(const char* source, int architecture) const {
    Compiled out;
    nvrtcProgram program = nullptr;
    const std::string option = "--gpu-architecture=sm_" + std::to_string(architecture);
    const char* options[] = {option.c_str()};
    constexpr const char* kInstance = "polynomial<5>";
    if (get<decltype(&nvrtcCreateProgram)>("nvrtcCreateProgram")(&program, source, "polynomial.cu", 0, nullptr,
                                                                 nullptr) != NVRTC_SUCCESS) {
      return out;
    }
    get<decltype(&nvrtcAddNameExpression)>("nvrtcAddNameExpression")(program, kInstance);
    const nvrtcResult result = get<decltype(&nvrtcCompileProgram)>("nvrtcCompileProgram")(program, 1, options);
    size_t size = 0;
    get<decltype(&nvrtcGetProgramLogSize)>("nvrtcGetProgramLogSize")(program, &size);
    out.log.resize(size);
    get<decltype(&nvrtcGetProgramLog)>("nvrtcGetProgramLog")(program, out.log.data());
    if (result == NVRTC_SUCCESS) {
      get<decltype(&nvrtcGetCUBINSize)>("nvrtcGetCUBINSize")(program, &size);
      out.cubin.resize(size);
      get<decltype(&nvrtcGetCUBIN)>("nvrtcGetCUBIN")(program, out.cubin.data());
      const char* lowered = nullptr;
      get<decltype(&nvrtcGetLoweredName)>("nvrtcGetLoweredName")(program, kInstance, &lowered);
      if (lowered != nullptr) out.name = lowered;
    }
    get<decltype(&nvrtcDestroyProgram)>("nvrtcDestroyProgram")(&program);
    return out;
  }

 private:
  explicit Compiler(void* library) : library_(library) {}
  template <class Function>
  Function get(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
  void* library_;
};

// The same on the host, for the check.
struct Coefficients {
  float c[8];
};
inline float polynomial_5(const Coefficients& coefficients, float x) {
  float sum = coefficients.c[0];
  for (int k = 1; k <= 5; ++k) sum = sum * x + coefficients.c[k];
  return sum;
}
