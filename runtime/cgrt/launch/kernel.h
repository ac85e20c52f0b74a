// Kernel<Args...>: a __global__ function with its parameter types. Plain: include it in a .cu file.
//
//   __global__ void scale(float* out, const float* in, float factor, int count);
//
//   cgrt::Kernel<float*, const float*, float, int> kernel = cgrt::make_kernel<scale>();
//
// The kernel is a template argument, so its identity is a type: its name is known on a machine with
// no driver, kernels of one signature never mix, and two shared objects that hold the same template
// do not either. make_kernel must be called in a translation unit that can name the kernel; the
// Kernel it returns can be passed anywhere. It costs nothing and cannot fail: the code is found at
// the first launch.
//
// To run on the simulator a kernel needs a host body, a function with the same parameters behind a
// HostGrid, named before the first make_kernel of that kernel in the file:
//
//   void scale_on_host(cgrt::HostGrid, float* out, const float* in, float factor, int count) {
//     for (int i = 0; i < count; ++i) out[i] = factor * in[i];
//   }
//   template <>
//   inline constexpr auto cgrt::host_body<scale> = cgrt::HostBody(scale_on_host, {.registers = 16});
//
// Without one it builds into graphs on the simulator, and its replay is refused by name.
//
// A kernel that calls cudaGridDependencySynchronize, in all of its threads and before it reads what a predecessor
// writes or writes what one reads, may say so, also before the first make_kernel of it; see graph/programmatic.h:
//
//   template <>
//   inline constexpr bool cgrt::waits_for_predecessors<scale> = true;
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "cgrt/driver/kernel_identity.h"

namespace cgrt {

// A kernel whose parameter types are forgotten. A value; thread-safe; valid while the program or shared
// object that holds the kernel is loaded. Two are equal when they name the same __global__ function. Empty by default:
// every call that takes one is then kFailedPrecondition.
class KernelRef {
 public:
  KernelRef() = default;
  explicit KernelRef(const driver::KernelIdentity* identity) : identity_(identity) {}
  const char* name() const { return identity_->name; }
  const driver::KernelIdentity* identity() const { return identity_; }
  bool operator==(const KernelRef& other) const { return identity_->symbol == other.identity_->symbol; }

 private:
  const driver::KernelIdentity* identity_ = &driver::kNoKernel;
};

template <class... Args>
class Kernel : public KernelRef {
 public:
  using KernelRef::KernelRef;
};

template <class... Args>
struct HostBody {
  void (*function)(HostGrid, Args...);
  KernelResources resources;
  constexpr HostBody(void (*function_)(HostGrid, Args...), KernelResources resources_ = {})
      : function(function_), resources(resources_) {}
};

struct NoHostBody {};

template <auto kKernel>
inline constexpr auto host_body = NoHostBody{};

namespace internal {

template <class... Args>
struct ParameterLayout {
  static constexpr std::size_t kCount = sizeof...(Args);
  std::uint32_t sizes[kCount + 1] = {static_cast<std::uint32_t>(sizeof(Args))..., 0};
  std::uint32_t offsets[kCount + 1] = {};
  bool pointers[kCount + 1] = {std::is_pointer_v<Args>..., false};
  constexpr ParameterLayout() {
    const std::uint32_t alignments[] = {static_cast<std::uint32_t>(alignof(Args))..., 1};
    std::uint32_t end = 0;
    for (std::size_t i = 0; i < kCount + 1; ++i) {  // and the 0 bytes at the end: nvcc warns of empty loops
      offsets[i] = (end + alignments[i] - 1) / alignments[i] * alignments[i];
      end = offsets[i] + sizes[i];
    }
  }
};
template <class... Args>
inline constexpr ParameterLayout<Args...> parameter_layout;

// The name of this type holds the mangled name of the kernel.
template <auto kKernel>
struct KernelTag {};

template <std::size_t kSize>
struct SpelledName {
  char text[kSize] = {};
};
// "constexpr auto cgrt::internal::spelled() [with auto kKernel = ns::scale]" -> "ns::scale". The
// names that nvcc gives to unnamed namespaces are cut out.
template <auto kKernel>
constexpr auto spelled() {
  constexpr const char* kUnnamed = "_GLOBAL__N__";
  SpelledName<sizeof(__PRETTY_FUNCTION__)> name;
  const char* pretty = __PRETTY_FUNCTION__;
  while (*pretty != '=') ++pretty;
  pretty += 2;
  std::size_t length = 0;
  while (pretty[0] != '\0' && !(pretty[0] == ']' && pretty[1] == '\0')) {
    std::size_t match = 0;
    while (kUnnamed[match] != '\0' && pretty[match] == kUnnamed[match]) ++match;
    if (kUnnamed[match] == '\0') {
      while (*pretty != ':' && *pretty != '\0') ++pretty;
      if (*pretty == ':') pretty += 2;
      continue;
    }
    name.text[length++] = *pretty++;
  }
  return name;
}

// Of namespace cgrt::kernels: their common/programmatic.cuh has the wait.
template <auto kKernel>
constexpr bool is_of_cgrt() {
  constexpr auto name = spelled<kKernel>();
  return std::string_view(name.text).starts_with("cgrt::kernels::");
}

// Internal linkage throughout: in a process with two shared objects, each with a cudart of its own,
// a merged inline function would ask the wrong one.
static inline CUresult lookup_in_cudart(const void* symbol, CUkernel* kernel) {
  cudaKernel_t found = nullptr;
  const cudaError_t error = cudaGetKernel(&found, symbol);
  *kernel = reinterpret_cast<CUkernel>(found);
  switch (error) {
    case cudaSuccess: return CUDA_SUCCESS;
    case cudaErrorInsufficientDriver:  // what cudart says when there is no driver as well
      return CUDA_ERROR_STUB_LIBRARY;
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice: return CUDA_ERROR_NO_BINARY_FOR_GPU;
    default: return static_cast<CUresult>(error);  // the other codes have the driver's values
  }
}

}  // namespace internal

template <auto kKernel>
inline constexpr bool waits_for_predecessors = internal::is_of_cgrt<kKernel>();

namespace internal {
namespace {  // as above: each translation unit has its own identity of a kernel

// kHostFunction: null when there is none.
template <auto kKernel, auto kHostFunction, KernelResources kResources, class Function>
struct KernelTraits;
template <auto kKernel, auto kHostFunction, KernelResources kResources, class... Args>
struct KernelTraits<kKernel, kHostFunction, kResources, void (*)(Args...)> {
  using Type = Kernel<Args...>;

  template <std::size_t... kIndex>
  static void run(const HostGrid& grid, void* const* arguments, std::index_sequence<kIndex...>) {
    kHostFunction(grid, *static_cast<std::remove_const_t<Args>*>(arguments[kIndex])...);
  }
  static void run_on_host(const HostGrid& grid, void* const* arguments) {
    run(grid, arguments, std::index_sequence_for<Args...>{});
  }

  static const driver::KernelIdentity* identity() {
    static constexpr auto name = spelled<kKernel>();
    const std::type_info* tag = nullptr;
#if defined(__GXX_RTTI) || defined(__cpp_rtti)
    tag = &typeid(KernelTag<kKernel>);
#endif
    static constexpr const ParameterLayout<Args...>& layout = parameter_layout<Args...>;
    driver::KernelIdentity::HostFunction body = nullptr;
    if constexpr (!std::is_same_v<decltype(kHostFunction), std::nullptr_t>) {
      static_assert(std::is_same_v<decltype(kHostFunction), void (*)(HostGrid, Args...)>,
                    "The host body must take a HostGrid and then the kernel's own parameters.");
      body = &run_on_host;
    }
    static const driver::KernelIdentity identity{name.text,
                                                 reinterpret_cast<const void*>(kKernel),
                                                 &lookup_in_cudart,
                                                 body,
                                                 kResources,
                                                 layout.sizes,
                                                 layout.offsets,
                                                 sizeof...(Args),
                                                 tag,
                                                 layout.pointers,
                                                 waits_for_predecessors<kKernel>};
    return &identity;
  }
};

}  // namespace
}  // namespace internal

// The typed kernel of a __global__ function or of an instance of a __global__ template.
template <auto kKernel>
static auto make_kernel() {
  if constexpr (std::is_same_v<decltype(host_body<kKernel>), const NoHostBody>) {
    using Traits = internal::KernelTraits<kKernel, nullptr, KernelResources{}, decltype(kKernel)>;
    return typename Traits::Type(Traits::identity());
  } else {
    constexpr auto body = host_body<kKernel>;
    using Traits = internal::KernelTraits<kKernel, body.function, body.resources, decltype(kKernel)>;
    return typename Traits::Type(Traits::identity());
  }
}

// The same with its host body, for templates: make_kernel<scale<T>, scale_on_host<T>>().
template <auto kKernel, auto kHostFunction, KernelResources kResources = KernelResources{}>
static auto make_kernel() {
  using Traits = internal::KernelTraits<kKernel, kHostFunction, kResources, decltype(kKernel)>;
  return typename Traits::Type(Traits::identity());
}

}  // namespace cgrt
