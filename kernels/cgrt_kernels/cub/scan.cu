#include <cub/device/device_scan.cuh>

#include "cgrt_kernels/cub/calls.h"

namespace cgrt::kernels {
namespace {

template <class T, class Count>
cudaError_t scan(const CubScanDesc& desc, const CubScanArgs& args, void* scratch, std::size_t& bytes,
                 cudaStream_t stream) {
  const T* const in = static_cast<const T*>(args.in);
  T* const out = static_cast<T*>(args.out);
  const auto count = static_cast<Count>(desc.count);
  if (desc.kind == ScanKind::kInclusive) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, in, out, count, stream);
  }
  return cub::DeviceScan::ExclusiveSum(scratch, bytes, in, out, count, stream);
}

// CUB's kernels with offsets of 64 bits need more registers.
template <class T>
cudaError_t scan(const CubScanDesc& desc, const CubScanArgs& args, void* scratch, std::size_t& bytes,
                 cudaStream_t stream) {
  return desc.count <= UINT32_MAX ? scan<T, std::uint32_t>(desc, args, scratch, bytes, stream)
                                  : scan<T, std::uint64_t>(desc, args, scratch, bytes, stream);
}

}  // namespace

cudaError_t call_cub(const CubScanDesc& desc, const CubScanArgs& args, void* scratch, std::size_t& bytes,
                     cudaStream_t stream) {
  switch (desc.type) {
    case DType::kFloat32: return scan<float>(desc, args, scratch, bytes, stream);
    case DType::kInt32: return scan<std::uint32_t>(desc, args, scratch, bytes, stream);  // which may wrap around
    default: return scan<unsigned long long>(desc, args, scratch, bytes, stream);  // plan_cub_scan lets no other pass
  }
}

}  // namespace cgrt::kernels
