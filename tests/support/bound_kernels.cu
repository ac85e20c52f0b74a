// Kernels that are bound to what a bundle does not have: textures, surfaces, the heap of the device. Images of them are
// read by tests, and not run.

extern "C" __global__ void reads_texture(cudaTextureObject_t texture, float* out, int i) {
  *out = tex1Dfetch<float>(texture, i);
}
extern "C" __global__ void filters_texture(cudaTextureObject_t texture, float* out, float x) {
  *out = tex2D<float>(texture, x, x);
}
extern "C" __global__ void gathers_texture(const cudaTextureObject_t* textures, float4* out, float x) {
  *out = tex2Dgather<float4>(textures[threadIdx.x], x, x, 1);
}
extern "C" __global__ void reads_surface(cudaSurfaceObject_t surface, float* out, int i) {
  *out = surf2Dread<float>(surface, i, i);
}
extern "C" __global__ void writes_surface(const cudaSurfaceObject_t* surfaces, float x, int i) {
  surf2Dwrite<float>(x, surfaces[threadIdx.x], i, i);
}
extern "C" __global__ void adds_to_surface(cudaSurfaceObject_t surface, int i, int x) {
  asm volatile("sured.b.add.1d.u32.trap [%0, {%1}], %2;" ::"l"(surface), "r"(i), "r"(x));
}

__device__ __noinline__ int* make(int count) { return new int[count]; }
extern "C" __global__ void allocates(int** out, int count) { *out = make(count); }
extern "C" __global__ void frees(int* memory) { delete[] memory; }

__device__ __noinline__ int twice(int x) { return x * x * 2; }
extern "C" __global__ void is_free(int* out, int x) { *out = twice(x) % 7; }
