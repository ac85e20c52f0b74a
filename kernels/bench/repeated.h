// Numbers for arrays that would take long to fill on the host.
#pragma once

#include <algorithm>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

// As make_numbers, but the same 2^23 numbers again and again.
inline absl::StatusOr<DeviceBuffer> make_repeated_numbers(StreamRef stream, kernels::DType type, std::uint64_t count,
                                                          std::uint32_t seed) {
  std::size_t filled = std::min(count, std::uint64_t{1} << 23);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer some, make_numbers(stream, type, filled, seed));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer all, DeviceBuffer::create(kDevice, count * size_of(type)));
  CGRT_RETURN_IF_ERROR(copy(stream, all.data(), some.data(), some.size_bytes()));
  filled *= size_of(type);
  while (filled < all.size_bytes()) {
    const std::size_t bytes = std::min(filled, all.size_bytes() - filled);
    CGRT_RETURN_IF_ERROR(copy(stream, all.as<unsigned char>() + filled, all.data(), bytes));
    filled += bytes;
  }
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return all;
}

}  // namespace cgrt::bench
