// What cgrt knows of a __global__ function without asking a driver. Plain: no Abseil, cheap to
// include in a .cu file. Made by cgrt::make_kernel (launch/kernel.h), never by hand.
#pragma once

#include "cgrt/base/language.h"  // first

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <typeinfo>

namespace cgrt {

// Counts of threads or blocks; `x` varies fastest.
struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  constexpr Dim3() = default;
  constexpr Dim3(std::uint32_t x_, std::uint32_t y_ = 1, std::uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
  // From CUDA's dim3, which is not known here.
  template <class Dim>
  requires requires(const Dim& dim) {
    requires std::is_same_v<decltype(dim.x), unsigned> && std::is_same_v<decltype(dim.y), unsigned> &&
        std::is_same_v<decltype(dim.z), unsigned>;
  }
  constexpr Dim3(const Dim& dim) : x(dim.x), y(dim.y), z(dim.z) {}
  // 2^64 - 1 when the product is larger.
  constexpr std::uint64_t count() const {
    const std::uint64_t plane = std::uint64_t{x} * y;
    return z != 0 && plane > UINT64_MAX / z ? UINT64_MAX : plane * z;
  }
  bool operator==(const Dim3&) const = default;
};

// The launch that a host body stands in for: it does the work of every thread of the grid.
struct HostGrid {
  Dim3 grid, block;
  std::uint32_t shared_bytes = 0;  // dynamic shared memory
  Dim3 cluster = {};               // (1, 1, 1): none
};

// What the simulator answers for a kernel's resources, as `nvcc -Xptxas -v` prints them.
struct KernelResources {
  int registers = 32;           // per thread
  int static_shared_bytes = 0;  // per block
  int max_threads = 1024;       // per block, from __launch_bounds__
  Dim3 cluster = {};            // from __cluster_dims__; (1, 1, 1): none
};

namespace driver {

// A kernel's function in one context, as one table gave it. Never changes, never freed: a program
// has few of them.
struct ResolvedFunction {
  std::uint32_t generation;
  CUcontext context;
  CUfunction function;
  // The primary context has the same function, so that it does not say where a node made from it runs
  // (green contexts; H200, driver 580).
  bool is_shared;
  Dim3 cluster;  // compiled in with __cluster_dims__; (1, 1, 1): none
  // Whether the code may wait for its predecessor (cudaGridDependencySynchronize): compiled for 9.0 or later.
  bool can_wait;
  const ResolvedFunction* next;
};

struct KernelIdentity {
  // Runs the whole grid on the host, from the same argument array as cuLaunchKernel.
  using HostFunction = void (*)(const HostGrid& grid, void* const* arguments);

  const char* name;    // for messages, as in the source: "scale", "ns::norm<ns::Op::kRms>"
  const void* symbol;  // the address of the host stub
  // Asks the CUDA runtime of the kernel's own translation unit, which alone knows the symbol.
  CUresult (*lookup)(const void* symbol, CUkernel* kernel);
  HostFunction host_body;  // null: none
  KernelResources resources;
  const std::uint32_t* parameter_sizes;  // bytes, in order
  const std::uint32_t* parameter_offsets;
  std::size_t parameter_count;
  // A type whose name holds the kernel's mangled name, so that graphs of the simulator and of a device name it
  // alike: "ns::norm<(ns::Op)3>", see launch/function_name.h. Null where the kernel was compiled without RTTI.
  const std::type_info* tag = nullptr;
  const bool* parameter_is_pointer = nullptr;  // null: not known
  bool waits = false;                          // for its predecessors, by itself: launch/kernel.h

  // Of a kernel that was loaded or found at run time (launch/library.h): its internal::LoadedLibrary. Null: it is part
  // of the program.
  const void* library = nullptr;
  // Of a kernel that somebody made as a CUfunction, which is then `symbol`: the context that it is of. It has no
  // CUkernel. Null: others.
  CUcontext function_context = nullptr;

  // What was asked before. See driver::resolve and driver::resolve_function in api.h.
  mutable std::atomic<std::uint32_t> resolved_generation{0};
  mutable std::atomic<CUkernel> resolved{nullptr};
  mutable std::atomic<const ResolvedFunction*> functions{nullptr};
};

// Of an empty Kernel. Names no function, so that resolving it fails.
[[gnu::visibility("hidden")]] inline constinit const KernelIdentity kNoKernel{"(empty)", nullptr, nullptr, nullptr,
                                                                              {},        nullptr, nullptr, 0};

}  // namespace driver
}  // namespace cgrt
