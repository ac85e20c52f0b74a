#include "kernel.h"
__global__ void fill(float* out, float value, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = value;
}
void fill_on_host(cgrt::HostGrid, float* out, float value, int count) {
  for (int i = 0; i < count; ++i) out[i] = value;
}
template <>
inline constexpr auto cgrt::host_body<fill> = cgrt::HostBody(fill_on_host);
cgrt::Kernel<float*, float, int> fill_kernel() { return cgrt::make_kernel<fill>(); }
