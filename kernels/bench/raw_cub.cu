#include "kernels/bench/raw_cub.h"

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cub/device/device_transform.cuh>
#include <cuda/std/functional>
#include <cuda/std/tuple>

namespace cgrt::bench {

bool raw_cub_scan(void* workspace, std::size_t bytes, const float* in, float* out, int count, CUstream stream) {
  return cub::DeviceScan::InclusiveSum(workspace, bytes, in, out, count, stream) == cudaSuccess;
}

bool raw_cub_mul(const float* a, const float* b, float* out, int count, CUstream stream) {
  return cub::DeviceTransform::Transform(cuda::std::make_tuple(a, b), out, count, cuda::std::multiplies<float>(),
                                         stream) == cudaSuccess;
}

bool raw_cub_sort(const RawSort& sort, CUstream stream) {
  std::size_t bytes = sort.workspace_bytes;
  if (sort.values_in == nullptr) {
    return cub::DeviceRadixSort::SortKeys(sort.workspace, bytes, sort.in, sort.out, sort.count, 0, sort.end_bit,
                                          stream) == cudaSuccess;
  }
  return cub::DeviceRadixSort::SortPairs(sort.workspace, bytes, sort.in, sort.out, sort.values_in, sort.values_out,
                                         sort.count, 0, sort.end_bit, stream) == cudaSuccess;
}

bool raw_cub_select(void* workspace, std::size_t& bytes, const float* in, const std::uint8_t* flags, float* out,
                    std::int64_t* selected, std::int64_t count, CUstream stream) {
  return cub::DeviceSelect::Flagged(workspace, bytes, in, flags, out, selected, count, stream) == cudaSuccess;
}

bool raw_cub_histogram(void* workspace, std::size_t& bytes, const float* in, std::int32_t* counts, int bins,
                       float lower, float upper, std::int64_t count, CUstream stream) {
  return cub::DeviceHistogram::HistogramEven(workspace, bytes, in, counts, bins + 1, lower, upper, count, stream) ==
         cudaSuccess;
}

}  // namespace cgrt::bench
