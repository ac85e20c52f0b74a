// Examples that hold device code, and kernels of the others.
#include <cuda_fp16.h>

#include "cgrt/graph/set_conditional.cuh"
#include "cgrt_kernels/elementwise/map.cuh"
#include "cgrt_kernels/elementwise/map.h"
#include "examples/examples.h"

namespace {
#include "heads/cgrt_kernels/elementwise/map.cuh.1.inc"

#include "heads/cgrt/graph/set_conditional.cuh.1.inc"

#include "heads/cgrt/launch/kernel.h.1.inc"
__global__ void scale(float* out, const float* in, float factor, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  if (i < count) out[i] = in[i] * factor;
}

__global__ void copy_elements(float* out, const float* in, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = in[i];
}
void copy_on_host(cgrt::HostGrid, float* out, const float* in, int count) {
  for (int i = 0; i < count; ++i) out[i] = in[i];
}
__global__ void count_elements(float* x, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] += 1;
}
void count_down_on_host(cgrt::HostGrid, cudaGraphConditionalHandle again, int* left) {
  *left -= 1;
  cgrt::set_conditional(again, *left > 0 ? 1 : 0);
}
void count_on_host(cgrt::HostGrid, float* x, int count) {
  for (int i = 0; i < count; ++i) x[i] += 1;
}
}  // namespace

#include "heads/cgrt/launch/kernel.h.3.inc"
#include "heads/cgrt/launch/kernel.h.4.inc"
template <>
inline constexpr auto cgrt::host_body<copy_elements> = cgrt::HostBody(copy_on_host);
template <>
inline constexpr auto cgrt::host_body<count_down> = cgrt::HostBody(count_down_on_host);
template <>
inline constexpr auto cgrt::host_body<count_elements> = cgrt::HostBody(count_on_host);

namespace cgrt::examples {

Kernel<float*, const float*, int> copy_kernel() { return make_kernel<copy_elements>(); }
Kernel<cudaGraphConditionalHandle, int*> count_down_kernel() { return make_kernel<count_down>(); }
Kernel<float*, int> count_kernel() { return make_kernel<count_elements>(); }

namespace {

constexpr int n = 1000;

CGRT_EXAMPLE(launch_kernel) {
  CGRT_ASSIGN_OR_RETURN(float* const out, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(const float* const in, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
#include "heads/cgrt/launch/kernel.h.2.inc"
  CGRT_RETURN_IF_ERROR(launch(graph.cursor(), {.grid = 4, .block = 256}, kernel, out, in, 2.0f, n));
  return runs(graph, 1);
}

CGRT_EXAMPLE(elementwise_map) {
  using namespace kernels;
  CGRT_ASSIGN_OR_RETURN(__half* const out, memory.make_output<__half>(n));
  CGRT_ASSIGN_OR_RETURN(const __half* const in, memory.make<__half>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/elementwise/map.h.1.inc"
  return stream.ref().synchronize();
}

}  // namespace
}  // namespace cgrt::examples
