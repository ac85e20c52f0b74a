#include "kernels/bench/raw_cub.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_transform.cuh>
#include <cuda/std/functional>
#include <cuda/std/tuple>

namespace cgrt::bench {

bool raw_cub_scan(void* workspace, std::size_t bytes, const float* in, float* out, int count, CUstream stream) {
  return cub::DeviceScan::InclusiveSum(workspace, bytes, in, out, count, stream) == cudaSuccess;
}

bool raw_cub_sort(void* workspace, std::size_t bytes, const std::uint32_t* in, std::uint32_t* out, int count,
                  int end_bit, CUstream stream) {
  return cub::DeviceRadixSort::SortKeys(workspace, bytes, in, out, count, 0, end_bit, stream) == cudaSuccess;
}

bool raw_cub_mul(const float* a, const float* b, float* out, int count, CUstream stream) {
  return cub::DeviceTransform::Transform(cuda::std::make_tuple(a, b), out, count, cuda::std::multiplies<float>(),
                                         stream) == cudaSuccess;
}

}  // namespace cgrt::bench
