// Bulk copies from the shared memory of a block to that of another one of its cluster (sm_90 and later).
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"

namespace cgrt::kernels {

#if __CUDA_ARCH__ >= 900

// To the same place as `place` in a block of the cluster, which may be this one, and whose barrier like `barrier`
// counts the bytes: a multiple of 16, as are the addresses. By one thread, behind fence_for_tensor_copies() in those
// that have written. This block stays until the bytes are there.
__device__ __forceinline__ void copy_to_block(std::uint32_t block, const void* place, const void* from,
                                              std::uint32_t bytes, const BulkBarrier& barrier) {
  std::uint32_t to, counting;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(place)), "r"(block));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(counting) : "r"(shared_address(&barrier)), "r"(block));
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "r"(shared_address(from)), "r"(bytes), "r"(counting)
               : "memory");
}

#endif

}  // namespace cgrt::kernels
