// Barriers of some warps of a block, by number: 1 to 15, since 0 is that of __syncthreads.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// Waits until kThreads threads, a multiple of 32, are at the barrier, those that only arrive among them.
template <int kThreads>
__device__ __forceinline__ void wait_at_named_barrier(std::uint32_t number) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(kThreads) : "memory");
}
template <int kThreads>
__device__ __forceinline__ void arrive_at_named_barrier(std::uint32_t number) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "n"(kThreads) : "memory");
}

}  // namespace cgrt::kernels
