#include "smooth.h"

__global__ void smooth(float* out, const float* in, int count) {
  extern __shared__ float tile[];
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.x) * threads * kPerThread;
  const int size = min(threads * kPerThread, count - first);
  for (int i = thread; i < size; i += threads) tile[i] = in[first + i];
  __syncthreads();
  for (int i = thread; i < size; i += threads) {  // the ends of the array are their own neighbours
    const int at = first + i;
    const float left = i > 0 ? tile[i - 1] : in[max(at - 1, 0)];
    const float right = i + 1 < size ? tile[i + 1] : in[min(at + 1, count - 1)];
    out[at] = smoothed(left, tile[i], right);
  }
}

void smooth_on_host(cgrt::HostGrid, float* out, const float* in, int count) {
  for (int i = 0; i < count; ++i) {
    out[i] = smoothed(in[i > 0 ? i - 1 : 0], in[i], in[i + 1 < count ? i + 1 : i]);
  }
}
template <>
inline constexpr auto cgrt::host_body<smooth> = cgrt::HostBody(smooth_on_host, {.registers = 30});

cgrt::Kernel<float*, const float*, int> smooth_kernel() { return cgrt::make_kernel<smooth>(); }
