#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_histogram.cuh>

#include "cgrt_kernels/cub/bin.h"

namespace cgrt::kernels {
namespace {

// CUB finds bins of floats in float, where the quotient of the last ones below `upper` is the number of bins, and
// those of integers by differences that may overflow. So it is given the numbers of the bins, as floats, which are
// exact up to 2^24: then its scale is 1.
template <class T>
struct NumberOfBin {
  BinOf<T> bin_of;
  __host__ __device__ float operator()(T number) const { return static_cast<float>(bin_of(number)); }
};

template <class T>
cudaError_t histogram(const HistogramDesc& desc, const HistogramArgs& args, void* scratch, std::size_t& bytes,
                      cudaStream_t stream) {
  const auto numbers = thrust::make_transform_iterator(static_cast<const T*>(args.in), NumberOfBin<T>{BinOf<T>(desc)});
  return cub::DeviceHistogram::HistogramEven(scratch, bytes, numbers, args.counts, desc.bins + 1, 0.0f,
                                             static_cast<float>(desc.bins), static_cast<std::int64_t>(desc.count),
                                             stream);
}

}  // namespace

cudaError_t call_cub(const HistogramDesc& desc, const HistogramArgs& args, void* scratch, std::size_t& bytes,
                     cudaStream_t stream) {
  if (desc.type == DType::kInt32) return histogram<std::int32_t>(desc, args, scratch, bytes, stream);
  return histogram<float>(desc, args, scratch, bytes, stream);
}

}  // namespace cgrt::kernels
