// 4 bytes of elements, a float or two halves, as floats.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/pack.cuh"

namespace cgrt::kernels {

template <class T>
struct Word {
  static constexpr int kSize = 1;  // elements
  static __device__ __forceinline__ void unpack(std::uint32_t word, float (&values)[1]) {
    values[0] = __uint_as_float(word);
  }
  static __device__ __forceinline__ std::uint32_t pack(const float (&values)[1]) { return __float_as_uint(values[0]); }
};
template <class Pair>
struct WordOfPair {
  static constexpr int kSize = 2;
  static __device__ __forceinline__ void unpack(std::uint32_t word, float (&values)[2]) {
    const float2 two = to_float2(reinterpret_cast<const Pair&>(word));
    values[0] = two.x, values[1] = two.y;
  }
  static __device__ __forceinline__ std::uint32_t pack(const float (&values)[2]) {
    std::uint32_t word;
    from_float2(reinterpret_cast<Pair&>(word), {values[0], values[1]});
    return word;
  }
};
template <>
struct Word<__half> : WordOfPair<__half2> {};
template <>
struct Word<__nv_bfloat16> : WordOfPair<__nv_bfloat162> {
  // One instruction each; of __bfloat1622float2 the second takes two.
  static __device__ __forceinline__ void unpack(std::uint32_t word, float (&values)[2]) {
    values[0] = __uint_as_float(word << 16), values[1] = __uint_as_float(word & 0xffff0000);
  }
};

}  // namespace cgrt::kernels
