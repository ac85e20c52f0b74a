// Floats in their order as integers.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// A number that is larger for larger logits and never 0; equal for 0 and -0, least, 1, for NaN.
__device__ __forceinline__ std::uint32_t rank_of(float logit) {
  if (logit != logit) return 1;
  const std::uint32_t bits = __float_as_uint(logit + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
}

}  // namespace cgrt::kernels
