// A barrier of all threads of a cluster that costs no fence (sm_90 and later).
#pragma once

namespace cgrt::kernels {

#if __CUDA_ARCH__ >= 900

// All threads arrive, and one that waits knows that they have. By whole warps. Unlike the barrier of cooperative groups
// this orders nothing but barriers that were made visible to the cluster: a fence would take half a microsecond.
__device__ __forceinline__ void arrive_in_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

#endif

}  // namespace cgrt::kernels
