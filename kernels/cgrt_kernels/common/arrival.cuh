// Blocks of one launch that count each other: the last of some does what needs the results of all.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// The number of those that came before with this counter, which is zero again after the last of `parts`.
__device__ __forceinline__ std::uint32_t arrive(std::uint32_t* counter, std::uint32_t parts) {
  std::uint32_t before;  // counts up to parts - 1 and then from 0 again
  asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(counter)), "r"(parts - 1)
               : "memory");
  return before;
}

// True in the block that is the last of `parts` to come here with this counter. What the threads of the
// others wrote before, its threads see.
__device__ __forceinline__ bool is_last_to_arrive(std::uint32_t* counter, std::uint32_t parts) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    is_last = arrive(counter, parts) == parts - 1;
    if (is_last) asm volatile("fence.acq_rel.gpu;" ::: "memory");
  }
  __syncthreads();
  return is_last;
}

}  // namespace cgrt::kernels
