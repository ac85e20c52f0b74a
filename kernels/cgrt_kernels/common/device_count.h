// Numbers of tokens that change between launches of one executable. Internal.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

namespace cgrt::kernels {

// How many of at most `max` there are: what is at `count`, in device memory, but no more than `max` and no less than 0;
// all where it is null.
__host__ __device__ inline std::uint32_t count_at(const std::int32_t* count, std::uint32_t max) {
  if (count == nullptr) return max;
  const std::int32_t given = *count;
  return given <= 0 ? 0 : static_cast<std::uint32_t>(given) < max ? static_cast<std::uint32_t>(given) : max;
}

}  // namespace cgrt::kernels
