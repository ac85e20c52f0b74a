#include "kernels/bench/repeated.h"

#include <algorithm>

#include "cgrt/base/status_macros.h"

namespace cgrt::bench {

absl::StatusOr<DeviceBuffer> make_repeated_numbers(StreamRef stream, kernels::DType type, std::uint64_t count,
                                                   std::uint32_t seed) {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer first, make_numbers(stream, type, std::min(count, std::uint64_t{1} << 20), seed));
  if (first.size_bytes() == count * size_of(type)) return first;
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer all, DeviceBuffer::create(kDevice, count * size_of(type)));
  const DeviceBuffer* from = &first;
  for (std::size_t done = 0; done < all.size_bytes(); from = &all) {
    const std::size_t bytes = std::min(std::max(done, first.size_bytes()), all.size_bytes() - done);
    CGRT_RETURN_IF_ERROR(copy(stream, all.as<unsigned char>() + done, from->data(), bytes));
    done += bytes;
  }
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return all;
}

}  // namespace cgrt::bench
