// Copies as those of async_copy.cuh of what is read once: it leaves the L2 cache before anything else does.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

__device__ __forceinline__ std::uint64_t streaming_policy() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// `bytes` of 16, and zeros behind them. Both addresses are multiples of 16, also where `bytes` is 0 and nothing is
// read.
__device__ __forceinline__ void copy_streamed(void* to_shared, const void* from_global, std::uint32_t bytes,
                                              std::uint64_t policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared))),
               "l"(__cvta_generic_to_global(from_global)), "r"(bytes), "l"(policy)
               : "memory");
}

}  // namespace cgrt::kernels
