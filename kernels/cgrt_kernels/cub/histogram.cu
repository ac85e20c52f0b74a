#include <cub/device/device_histogram.cuh>

#include "cgrt_kernels/cub/op.h"

namespace cgrt::kernels {
namespace {

template <class T>
cudaError_t histogram(const HistogramDesc& desc, const HistogramArgs& args, std::size_t& bytes, cudaStream_t stream) {
  return cub::DeviceHistogram::HistogramEven(args.workspace, bytes, static_cast<const T*>(args.in), args.counts,
                                             desc.bins + 1, static_cast<T>(desc.lower), static_cast<T>(desc.upper),
                                             static_cast<std::int64_t>(desc.count), stream);
}

}  // namespace

cudaError_t call_cub(const HistogramDesc& desc, const HistogramArgs& args, std::size_t& bytes, cudaStream_t stream) {
  if (desc.type == DType::kInt32) return histogram<std::int32_t>(desc, args, bytes, stream);
  return histogram<float>(desc, args, bytes, stream);
}

}  // namespace cgrt::kernels
