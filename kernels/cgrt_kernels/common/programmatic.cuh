// The two ends of a programmatic edge. Without such an edge both are free.
#pragma once

namespace cgrt::kernels {

// Nothing that a predecessor wrote is read, and nothing that it reads is written, before this.
__device__ __forceinline__ void wait_for_predecessors() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Dependents may be set up from here on; what they wait for is the end of this kernel.
__device__ __forceinline__ void let_dependents_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace cgrt::kernels
