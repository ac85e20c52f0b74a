// Arriving at barriers of other blocks of a cluster (sm_90 and later).
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/mbarrier.cuh"

namespace cgrt::kernels {

// At the same barrier of a block of the cluster. What this thread has written to global memory need not be there for
// the other block: that would take a fence, which costs a microsecond.
__device__ __forceinline__ void arrive_in_block(Mbarrier& barrier, std::uint32_t block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(
          static_cast<std::uint32_t>(__cvta_generic_to_shared(&barrier))),
      "r"(block)
      : "memory");
}

}  // namespace cgrt::kernels
