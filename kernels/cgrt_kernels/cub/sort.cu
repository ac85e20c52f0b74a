#include <cub/device/device_radix_sort.cuh>

#include "cgrt_kernels/cub/calls.h"

namespace cgrt::kernels {
namespace {

template <class Key, class Count>
cudaError_t sort(const RadixSortDesc& desc, const RadixSortArgs& args, void* scratch, std::size_t& bytes,
                 cudaStream_t stream) {
  const Key* const in = static_cast<const Key*>(args.keys_in);
  Key* const out = static_cast<Key*>(args.keys_out);
  const auto count = static_cast<Count>(desc.count);
  if (!desc.has_values) {
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, in, out, count, desc.begin_bit, desc.end_bit, stream);
  }
  return cub::DeviceRadixSort::SortPairs(scratch, bytes, in, out, static_cast<const std::uint32_t*>(args.values_in),
                                         static_cast<std::uint32_t*>(args.values_out), count, desc.begin_bit,
                                         desc.end_bit, stream);
}

// CUB's kernels with offsets of 64 bits are slower.
template <class Key>
cudaError_t sort(const RadixSortDesc& desc, const RadixSortArgs& args, void* scratch, std::size_t& bytes,
                 cudaStream_t stream) {
  return desc.count <= UINT32_MAX ? sort<Key, std::uint32_t>(desc, args, scratch, bytes, stream)
                                  : sort<Key, std::uint64_t>(desc, args, scratch, bytes, stream);
}

}  // namespace

cudaError_t call_cub(const RadixSortDesc& desc, const RadixSortArgs& args, void* scratch, std::size_t& bytes,
                     cudaStream_t stream) {
  switch (desc.key) {
    case SortKey::kUInt32: return sort<std::uint32_t>(desc, args, scratch, bytes, stream);
    case SortKey::kUInt64: return sort<unsigned long long>(desc, args, scratch, bytes, stream);
    case SortKey::kFloat32: break;
  }
  return sort<float>(desc, args, scratch, bytes, stream);
}

}  // namespace cgrt::kernels
