// Loads of what a kernel reads once.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// 16 bytes, which take no place in the L1 cache.
__device__ __forceinline__ uint4 load_once(const void* from) {
  uint4 words;
  asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return words;
}

}  // namespace cgrt::kernels
