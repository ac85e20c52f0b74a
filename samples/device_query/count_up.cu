#include "count_up.h"

__global__ void count_up(int* counter) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  if (threadIdx.x == 0 && blockIdx.x == 0) ++*counter;
}

void count_up_on_host(cgrt::HostGrid, int* counter) { ++*counter; }
template <>
inline constexpr auto cgrt::host_body<count_up> = cgrt::HostBody(count_up_on_host, {.registers = 8});

cgrt::Kernel<int*> count_up_kernel() { return cgrt::make_kernel<count_up>(); }
