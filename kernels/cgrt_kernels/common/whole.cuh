// Packs to and from global memory in one instruction.
#pragma once

namespace cgrt::kernels {

// 16 bytes at once. Of an assignment nvcc 13.0 makes four stores of 4 bytes, or two loads of 8, where
// the words are computed on one by one.
template <class Pack>
__device__ __forceinline__ void store_whole(void* to, const Pack& pack) {
  const uint4& words = reinterpret_cast<const uint4&>(pack);
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}
template <class Pack>
__device__ __forceinline__ Pack load_whole(const void* from) {
  uint4 words;
  asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return reinterpret_cast<const Pack&>(words);
}

}  // namespace cgrt::kernels
