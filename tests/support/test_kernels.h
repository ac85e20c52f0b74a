// Kernels that tests launch. Plain.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"

namespace cgrt::testing {

// out[i] = in[i] * factor, i < count
Kernel<float*, const float*, float, int> scale_kernel();
// out[i] = a[i] + b[i]
Kernel<float*, const float*, const float*, int> add_kernel();
// Same signature as scale: out[i] = in[i] + offset. An instance of a template.
Kernel<float*, const float*, float, int> shift_kernel();
// Same signature as scale; at most 64 threads per block.
Kernel<float*, const float*, float, int> bounded_kernel();
// Has no host body.
Kernel<float*> bodiless_kernel();
// Runs until *flag is not 0. For devices; on the simulator, see Gate.
Kernel<volatile int*> wait_kernel();
// Writes the width of its cluster, in blocks; 1 outside clusters.
Kernel<int*> cluster_kernel();
// The same, compiled with a cluster of 2 blocks (__cluster_dims__).
Kernel<int*> paired_kernel();
// *out = value when all blocks have run at once, else -value; *arrived is 0 before. On the simulator always at once.
Kernel<int*, int*, int> meet_kernel();
// Writes the number of its blocks.
Kernel<int*> grid_kernel();
// *left -= 1, and the handle's value is whether any are left.
Kernel<cudaGraphConditionalHandle, float*> count_down_kernel();
// The handle's value is *value.
Kernel<cudaGraphConditionalHandle, const float*> set_conditional_kernel();
// Copies 64 bytes that must lie at a multiple of 64, as a tensor map does.
struct alignas(64) Aligned {
  unsigned char bytes[64];
};
Kernel<unsigned char*, Aligned> aligned_kernel();
// A struct with an address and a number: out[0] = *pair.in + the low bytes of both numbers.
struct PairOfAddresses {
  const float* in;
  std::uint64_t number;
};
Kernel<float*, PairOfAddresses, std::uint64_t> pair_kernel();
// Same signature as scale; waits for its predecessors.
Kernel<float*, const float*, float, int> waiting_kernel();
// The identity of the same template instance as shift_kernel, from another translation unit.
Kernel<float*, const float*, float, int> shift_kernel_of_another_file();

}  // namespace cgrt::testing
