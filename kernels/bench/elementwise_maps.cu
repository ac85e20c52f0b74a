#include "kernels/bench/elementwise_maps.h"

#include "cgrt_kernels/elementwise/map.cuh"

namespace cgrt::bench {
namespace {

template <class T>
__global__ void mul_naive(void* out, const void* a, const void* b, std::uint64_t count) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) static_cast<T*>(out)[i] = static_cast<const T*>(a)[i] * static_cast<const T*>(b)[i];
}

}  // namespace

NaiveKernel mul_naive_kernel(kernels::DType type) {
  return type == kernels::DType::kFloat32 ? make_kernel<mul_naive<float>>() : make_kernel<mul_naive<__half>>();
}

template <>
kernels::MapKernel<FourOps, float, float> four_ops_kernel<float>() {
  return kernels::map_kernel<FourOps, float, float>();
}
template <>
kernels::MapKernel<FourOps, __half, __half> four_ops_kernel<__half>() {
  return kernels::map_kernel<FourOps, __half, __half>();
}

}  // namespace cgrt::bench
