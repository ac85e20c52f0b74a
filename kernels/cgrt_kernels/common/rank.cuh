// Floats in their order as integers.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// A number that is larger for larger values and never 0; equal for 0 and -0, least, 1, for NaN.
__device__ __forceinline__ std::uint32_t rank_of(float value) {
  if (value != value) return 1;
  const std::uint32_t bits = __float_as_uint(value + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
}

// The value that has the rank.
__device__ __forceinline__ float value_of(std::uint32_t rank) {
  return __uint_as_float((rank >> 31) != 0 ? rank & 0x7FFFFFFF : ~rank);
}

}  // namespace cgrt::kernels
