// Two bitwise operations in one instruction.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// (a & b) | c. Of two constants the compiler makes two instructions.
__device__ __forceinline__ std::uint32_t and_or(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

}  // namespace cgrt::kernels
