#include "support/test_kernels.h"

#include "cgrt/graph/set_conditional.cuh"
#include "support/shift_template.cuh"

namespace cgrt::testing {
namespace {

__global__ void scale(float* out, const float* in, float factor, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = in[i] * factor;
}
void scale_on_host(HostGrid, float* out, const float* in, float factor, int count) {
  for (int i = 0; i < count; ++i) out[i] = in[i] * factor;
}

__global__ void add(float* out, const float* a, const float* b, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = a[i] + b[i];
}
void add_on_host(HostGrid, float* out, const float* a, const float* b, int count) {
  for (int i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

__global__ void __launch_bounds__(64) bounded(float* out, const float* in, float factor, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = in[i] * factor;
}

__global__ void bodiless(float* out) { *out = 1.0f; }

__global__ void cluster_size(int* out) {
#if __CUDA_ARCH__ >= 900
  unsigned blocks = 1;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  if (blockIdx.x == 0 && threadIdx.x == 0) *out = static_cast<int>(blocks);
#else
  if (blockIdx.x == 0 && threadIdx.x == 0) *out = 1;
#endif
}
void cluster_size_on_host(HostGrid grid, int* out) { *out = static_cast<int>(grid.cluster.x); }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define CGRT_PAIRED
#else
#define CGRT_PAIRED __cluster_dims__(2, 1, 1)
#endif
__global__ void CGRT_PAIRED paired(int* out) {
#if __CUDA_ARCH__ >= 900
  unsigned blocks = 1;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  if (blockIdx.x == 0 && threadIdx.x == 0) *out = static_cast<int>(blocks);
#endif
}

__global__ void meet(int* arrived, int* out, int value) {
  constexpr long long kPatience = 100'000'000;  // clocks, of 0.5 ns each or more
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1);
  const long long start = clock64();
  while (*static_cast<volatile int*>(arrived) < static_cast<int>(gridDim.x) && clock64() - start < kPatience) {
  }
  const bool has_met = clock64() - start < kPatience;
  if (blockIdx.x == 0 || !has_met) *out = has_met ? value : -value;
}
void meet_on_host(HostGrid, int*, int* out, int value) { *out = value; }

__global__ void copy_aligned(unsigned char* out, Aligned in) { out[threadIdx.x] = in.bytes[threadIdx.x]; }
// Reads the argument where it lies: a misaligned one is undefined behaviour, which UBSan reports.
void copy_aligned_on_host(HostGrid, unsigned char* out, Aligned in) {
  for (int i = 0; i < 64; ++i) out[i] = in.bytes[i];
}

__global__ void grid_size(int* out) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *out = static_cast<int>(gridDim.x * gridDim.y * gridDim.z);
}
void grid_size_on_host(HostGrid grid, int* out) { *out = static_cast<int>(grid.grid.count()); }

__global__ void scale_and_wait(float* out, const float* in, float factor, int count) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = factor * in[i];
}

__host__ __device__ void read_both(float* out, const PairOfAddresses& pair, std::uint64_t more) {
  *out = *pair.in + static_cast<float>(pair.number & 0xff) + static_cast<float>(more & 0xff);
}
__global__ void read_pair(float* out, PairOfAddresses pair, std::uint64_t more) {
  if (blockIdx.x == 0 && threadIdx.x == 0) read_both(out, pair, more);
}
void read_pair_on_host(HostGrid, float* out, PairOfAddresses pair, std::uint64_t more) { read_both(out, pair, more); }

__global__ void count_down(cudaGraphConditionalHandle handle, float* left) {
  *left -= 1;
  set_conditional(handle, *left > 0 ? 1 : 0);
}
void count_down_on_host(HostGrid, cudaGraphConditionalHandle handle, float* left) {
  *left -= 1;
  set_conditional(handle, *left > 0 ? 1 : 0);
}

__global__ void set_value(cudaGraphConditionalHandle handle, const float* value) {
  set_conditional(handle, static_cast<unsigned>(*value));
}
void set_value_on_host(HostGrid, cudaGraphConditionalHandle handle, const float* value) {
  set_conditional(handle, static_cast<unsigned>(*value));
}

__global__ void wait(volatile int* flag) {
  while (*flag == 0) {
  }
}

}  // namespace
}  // namespace cgrt::testing

template <>
inline constexpr auto cgrt::host_body<cgrt::testing::scale> = cgrt::HostBody(cgrt::testing::scale_on_host,
                                                                             {.registers = 10});
template <>
inline constexpr auto cgrt::host_body<cgrt::testing::add> = cgrt::HostBody(cgrt::testing::add_on_host,
                                                                           {.registers = 12});
template <>
inline constexpr auto cgrt::host_body<cgrt::testing::bounded> = cgrt::HostBody(cgrt::testing::scale_on_host,
                                                                               {.registers = 10, .max_threads = 64});
template <>
inline constexpr auto cgrt::host_body<cgrt::testing::cluster_size> = cgrt::HostBody(cgrt::testing::cluster_size_on_host,
                                                                                    {.registers = 8});

template <>
inline constexpr auto cgrt::host_body<cgrt::testing::paired> = cgrt::HostBody(cgrt::testing::cluster_size_on_host,
                                                                              {.registers = 8, .cluster = {2}});
template <>
inline constexpr auto cgrt::host_body<cgrt::testing::meet> = cgrt::HostBody(cgrt::testing::meet_on_host,
                                                                            {.registers = 16});
template <>
inline constexpr auto cgrt::host_body<cgrt::testing::copy_aligned> = cgrt::HostBody(cgrt::testing::copy_aligned_on_host,
                                                                                    {.registers = 8});

template <>
inline constexpr auto cgrt::host_body<cgrt::testing::grid_size> = cgrt::HostBody(cgrt::testing::grid_size_on_host,
                                                                                 {.registers = 8});

template <>
inline constexpr auto cgrt::host_body<cgrt::testing::scale_and_wait> = cgrt::HostBody(cgrt::testing::scale_on_host,
                                                                                      {.registers = 10});
template <>
inline constexpr bool cgrt::waits_for_predecessors<cgrt::testing::scale_and_wait> = true;

template <>
inline constexpr auto cgrt::host_body<cgrt::testing::read_pair> = cgrt::HostBody(cgrt::testing::read_pair_on_host,
                                                                                 {.registers = 8});

template <>
inline constexpr auto cgrt::host_body<cgrt::testing::count_down> = cgrt::HostBody(cgrt::testing::count_down_on_host,
                                                                                  {.registers = 8});
template <>
inline constexpr auto cgrt::host_body<cgrt::testing::set_value> = cgrt::HostBody(cgrt::testing::set_value_on_host,
                                                                                 {.registers = 8});

namespace cgrt::testing {

Kernel<float*, const float*, float, int> scale_kernel() { return make_kernel<scale>(); }
Kernel<float*, const float*, const float*, int> add_kernel() { return make_kernel<add>(); }
Kernel<float*, const float*, float, int> shift_kernel() { return make_kernel<shift<float>>(); }
Kernel<float*, const float*, float, int> bounded_kernel() { return make_kernel<bounded>(); }
Kernel<float*> bodiless_kernel() { return make_kernel<bodiless>(); }
Kernel<int*> cluster_kernel() { return make_kernel<cluster_size>(); }
Kernel<int*, int*, int> meet_kernel() { return make_kernel<meet>(); }
Kernel<int*> paired_kernel() { return make_kernel<paired>(); }
Kernel<unsigned char*, Aligned> aligned_kernel() { return make_kernel<copy_aligned>(); }
Kernel<float*, PairOfAddresses, std::uint64_t> pair_kernel() { return make_kernel<read_pair>(); }
Kernel<float*, const float*, float, int> waiting_kernel() { return make_kernel<scale_and_wait>(); }
Kernel<int*> grid_kernel() { return make_kernel<grid_size>(); }
Kernel<cudaGraphConditionalHandle, float*> count_down_kernel() { return make_kernel<count_down>(); }
Kernel<cudaGraphConditionalHandle, const float*> set_conditional_kernel() { return make_kernel<set_value>(); }
Kernel<volatile int*> wait_kernel() { return make_kernel<wait>(); }

}  // namespace cgrt::testing
