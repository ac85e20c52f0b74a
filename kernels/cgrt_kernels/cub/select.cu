#include <cub/device/device_select.cuh>

#include "cgrt_kernels/cub/calls.h"

namespace cgrt::kernels {
namespace {

template <class T>
cudaError_t select(const SelectDesc& desc, const SelectArgs& args, void* scratch, std::size_t& bytes,
                   cudaStream_t stream) {
  return cub::DeviceSelect::Flagged(scratch, bytes, static_cast<const T*>(args.in), args.flags,
                                    static_cast<T*>(args.out), args.selected, static_cast<std::int64_t>(desc.count),
                                    stream);
}

}  // namespace

cudaError_t call_cub(const SelectDesc& desc, const SelectArgs& args, void* scratch, std::size_t& bytes,
                     cudaStream_t stream) {
  switch (size_of(desc.type)) {
    case 2: return select<std::uint16_t>(desc, args, scratch, bytes, stream);
    case 4: return select<std::uint32_t>(desc, args, scratch, bytes, stream);
    default: return select<unsigned long long>(desc, args, scratch, bytes, stream);
  }
}

}  // namespace cgrt::kernels
