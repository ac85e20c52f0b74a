// set_conditional: sets the value of a conditional handle from a kernel of the graph, so that a conditional node behind
// that kernel, or the `while` node that the kernel is inside of, does what it says.
//
//   __global__ void count_down(cudaGraphConditionalHandle again, int* left) {
//     *left -= 1;
//     cgrt::set_conditional(again, *left > 0 ? 1 : 0);
//   }
//
// One thread at a time: two that may run beside each other are undefined behaviour. Plain. Host bodies of kernels
// (launch/kernel.h) call it as their kernels do, and set the value on the simulator; elsewhere the host cannot set it.
#pragma once

#include <cuda_runtime.h>

namespace cgrt {
namespace internal {

void set_conditional_on_host(cudaGraphConditionalHandle handle, unsigned value);

}  // namespace internal

__host__ __device__ inline void set_conditional(cudaGraphConditionalHandle handle, unsigned value) {
#ifdef __CUDA_ARCH__
  cudaGraphSetConditional(handle, value);
#else
  internal::set_conditional_on_host(handle, value);
#endif
}

}  // namespace cgrt
