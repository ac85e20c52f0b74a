// Copies of 16 bytes from global to shared memory that a thread does not wait for until it has to.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// Both addresses are multiples of 16. Only the thread that asked may read the bytes without a barrier.
__device__ __forceinline__ void copy_asynchronously(void* to_shared, const void* from_global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared))),
               "l"(__cvta_generic_to_global(from_global))
               : "memory");
}

// 4 bytes. Both addresses are multiples of 4.
__device__ __forceinline__ void copy_word_asynchronously(void* to_shared, const void* from_global) {
  asm volatile(
      "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared))),
      "l"(__cvta_generic_to_global(from_global))
      : "memory");
}

// Ends a group of copies, which may be empty.
__device__ __forceinline__ void end_copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all groups of this thread but the last kPending have landed.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace cgrt::kernels
