// The driver table: the one door through which cgrt reaches CUDA.
//
//   const CUresult result = driver::api().StreamQuery(stream);
//
// The table is filled from libcuda.so.1 on first use. With no driver on the machine every entry is
// a stub that returns CUDA_ERROR_STUB_LIBRARY, and an entry that the driver lacks returns
// CUDA_ERROR_NOT_SUPPORTED; no entry is ever null. In the child of a process that forked after first
// use, where the driver must not be called, every entry returns CUDA_ERROR_NOT_INITIALIZED. The simulator
// (simulator/simulator.h) and the instruments (driver/instrument.h) install tables of their own.
//
// Thread-safe, except that install() must not run beside other calls into cgrt.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cgrt/driver/kernel_identity.h"
#include "cgrt/driver/node_word.h"

namespace cgrt::driver {

enum class Need { kRequired, kOptional };

// Not the driver's: turns a kernel's identity into a handle. The driver's table asks cudart in the
// kernel's own translation unit, the simulator answers from the identity itself.
using PFN_ResolveKernel = CUresult (*)(CUkernel* kernel, const KernelIdentity* identity);
// Nor are these: what a device does to a device-updatable node, and to the value of a conditional handle. Host bodies
// call them, so only the simulator has them.
using PFN_PatchNode = CUresult (*)(const NodeWord* word, std::uint64_t value);
using PFN_SetConditional = CUresult (*)(CUgraphConditionalHandle handle, unsigned value);

namespace internal {

template <class Pfn>
struct Stub;
template <class... Args>
struct Stub<CUresult (*)(Args...)> {
  static CUresult no_driver(Args...) { return CUDA_ERROR_STUB_LIBRARY; }
  static CUresult not_in_driver(Args...) { return CUDA_ERROR_NOT_SUPPORTED; }
  static CUresult after_fork(Args...) { return CUDA_ERROR_NOT_INITIALIZED; }
};

}  // namespace internal

struct Api {
#define CGRT_ENTRY(name, version, need) \
  PFN_cu##name##_v##version name = &internal::Stub<PFN_cu##name##_v##version>::no_driver;
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
  PFN_ResolveKernel ResolveKernel = &internal::Stub<PFN_ResolveKernel>::no_driver;
  PFN_PatchNode PatchNode = &internal::Stub<PFN_PatchNode>::not_in_driver;
  PFN_SetConditional SetConditional = &internal::Stub<PFN_SetConditional>::not_in_driver;

  bool simulated = false;
};

namespace internal {

extern std::atomic<const Api*> current;
extern std::atomic<std::uint32_t> generation;
extern std::atomic<std::uint32_t> table_number;
const Api& load();

}  // namespace internal

// Inline functions of this library that have state behind them are hidden (visibility), so that a shared object with a
// copy of the library calls its own.

// The table in force. Never blocks after the first call.
[[gnu::visibility("hidden")]] inline const Api& api() {
  const Api* table = internal::current.load(std::memory_order_acquire);
  return table != nullptr ? *table : internal::load();
}

// What was asked of a table is remembered with this number, which is never 0 and changes when
// another table comes into force or forget_handles() is called.
[[gnu::visibility("hidden")]] inline std::uint32_t generation() {
  return internal::generation.load(std::memory_order_acquire);
}

// The same, but it changes with the table alone.
[[gnu::visibility("hidden")]] inline std::uint32_t table_number() {
  return internal::table_number.load(std::memory_order_acquire);
}

// Nothing that was remembered counts any more: kernels, functions and contexts are asked for again.
void forget_handles();

// Puts `table` in force and returns the one that was (the driver's own if none was installed). The
// table must outlive its time in force.
const Api& install(const Api& table);

// Puts back what install() returned.
void restore(const Api& table);

// Why no driver could be loaded, and what to do about it; empty if one was.
const char* load_error();

// The handle of `identity` under the table in force. Asks once per table; then two loads.
[[gnu::visibility("hidden")]] inline CUresult resolve(const KernelIdentity& identity, CUkernel* kernel) {
  const std::uint32_t now = generation();
  if (identity.resolved_generation.load(std::memory_order_acquire) == now) {
    *kernel = identity.resolved.load(std::memory_order_relaxed);
    return CUDA_SUCCESS;
  }
  if (identity.symbol == nullptr) return CUDA_ERROR_INVALID_HANDLE;           // kNoKernel
  if (identity.function_context != nullptr) return CUDA_ERROR_NOT_SUPPORTED;  // it has no CUkernel
  const CUresult result = api().ResolveKernel(kernel, &identity);
  if (result != CUDA_SUCCESS) return result;
  identity.resolved.store(*kernel, std::memory_order_relaxed);
  identity.resolved_generation.store(now, std::memory_order_release);
  return CUDA_SUCCESS;
}

namespace internal {
CUresult resolve_function_slow(const KernelIdentity& identity, CUcontext context, const ResolvedFunction** found);
}

// The kernel's function in `context`. Launches and nodes made from it are up to 100 ns cheaper than
// from the CUkernel, which the driver looks up each time (H200, driver 580).
[[gnu::visibility("hidden")]] inline CUresult resolve_function(const KernelIdentity& identity, CUcontext context,
                                                               const ResolvedFunction** found) {
  const std::uint32_t now = generation();
  // New ones stand in front, and those of former generations behind. If threads change that, one is asked for again.
  for (const ResolvedFunction* known = identity.functions.load(std::memory_order_acquire);
       known != nullptr && known->generation == now; known = known->next) {
    if (known->context == context) {
      *found = known;
      return CUDA_SUCCESS;
    }
  }
  return internal::resolve_function_slow(identity, context, found);
}

// The kernel whose function that is, in whatever context; null: of none that resolve_function has seen under this
// table.
const KernelIdentity* kernel_of(CUfunction function);

// The cluster size that `function`, of the current context, was compiled with (__cluster_dims__); (1, 1, 1): none.
CUresult compiled_cluster(CUfunction function, Dim3* cluster);

// Entries in the order of entry_points.def, then ResolveKernel.
inline constexpr const char* kEntryNames[] = {
#define CGRT_ENTRY(name, version, need) "cu" #name,
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
    "ResolveKernel",
};
inline constexpr std::size_t kEntryCount = sizeof(kEntryNames) / sizeof(kEntryNames[0]);

}  // namespace cgrt::driver
