// Kernels that tests load at run time, from images that tests/CMakeLists.txt has nvcc make of this file. It is part of
// no program.

__device__ int counter = 7;
__device__ int* address_of_counter = &counter;
__device__ float untouched[3];
__constant__ float weights[2] = {1.0f, 2.0f};

extern "C" __global__ void scale(float* out, const float* in, float factor, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = in[i] * factor;
}

namespace loaded {

struct Range {
  double first;
  char step;
};

__global__ void fill(Range range, float* out, short count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) out[i] = static_cast<float>(range.first) + static_cast<float>(i) * range.step;
}

template <class T>
__global__ void twice(T* x) {
  *x = *x + *x;
}
template __global__ void twice<float>(float* x);
template __global__ void twice<int>(int* x);

__global__ void nothing() {}

}  // namespace loaded

extern "C" __global__ void cluster_width(int* out) {
#if __CUDA_ARCH__ >= 900
  unsigned blocks = 1;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  if (blockIdx.x == 0 && threadIdx.x == 0) *out = static_cast<int>(blocks);
#endif
}
