// Eight weights of neighbouring k as the pairs that tensor cores take, and eight elements of x in the same order.
// The order of k within a product is free as long as both have the same.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

#include "cgrt_kernels/common/and_or.cuh"

namespace cgrt::kernels {

template <class T>
struct PairOf;
template <>
struct PairOf<__half> {
  using Type = __half2;
};
template <>
struct PairOf<__nv_bfloat16> {
  using Type = __nv_bfloat162;
};

// combine(a, b) of the pairs that the words are.
template <class T, class Combine>
__device__ __forceinline__ std::uint32_t of_pairs(std::uint32_t a, std::uint32_t b, Combine combine) {
  typename PairOf<T>::Type x, y;
  memcpy(&x, &a, 4), memcpy(&y, &b, 4);
  x = combine(x, y);
  memcpy(&a, &x, 4);
  return a;
}
template <class T>
__device__ __forceinline__ std::uint32_t subtract(std::uint32_t a, std::uint32_t b) {
  return of_pairs<T>(a, b, [](auto x, auto y) { return __hsub2(x, y); });
}
template <class T>
__device__ __forceinline__ std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  return of_pairs<T>(a, b, [](auto x, auto y) { return __hmul2(x, y); });
}

// A pair of numbers whose last bit counts 1: an integer put into their last bits is added to them. 1024 and 128.
template <class T>
inline constexpr std::uint32_t kOnes = 0;
template <>
inline constexpr std::uint32_t kOnes<__half> = 0x64006400;
template <>
inline constexpr std::uint32_t kOnes<__nv_bfloat16> = 0x43004300;

// Two of four bytes; `selector`: 0x5150 or 0x5352, for __byte_perm. Exact.
template <class T>
__device__ __forceinline__ std::uint32_t pair_of_bytes(std::uint32_t bytes, std::uint32_t selector);
template <>
__device__ __forceinline__ std::uint32_t pair_of_bytes<__half>(std::uint32_t bytes, std::uint32_t selector) {
  return subtract<__half>(__byte_perm(bytes ^ 0x80808080, kOnes<__half>, selector), kOnes<__half> + 0x00800080);
}
// There is room for seven bits. The eighth becomes the last of the exponent: 256 in place of 128 is subtracted.
template <>
__device__ __forceinline__ std::uint32_t pair_of_bytes<__nv_bfloat16>(std::uint32_t bytes, std::uint32_t selector) {
  const std::uint32_t both = __byte_perm(bytes, kOnes<__nv_bfloat16>, selector);
  return subtract<__nv_bfloat16>(both & 0xff7fff7f, both & 0xff80ff80);
}

// Weights i and i + 4 of a word of eight. Exact.
template <class T>
__device__ __forceinline__ std::uint32_t pair_of_halves(std::uint32_t word, int i) {
  return subtract<T>(and_or(word >> 4 * i, 0x000f000f, kOnes<T>), kOnes<T> + 0x00080008);
}

// The eight at `index` of the weights in 16 bytes, as four pairs.
template <class T, int kBits>
__device__ __forceinline__ void unpack_weights(const uint4& pack, int index, std::uint32_t (&pairs)[4]) {
  const std::uint32_t words[4] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kBits == 16) {
      pairs[i] = words[i];
    } else if constexpr (kBits == 8) {
      pairs[i] = pair_of_bytes<T>(words[2 * index + i / 2], i % 2 == 0 ? 0x5150 : 0x5352);
    } else {
      pairs[i] = pair_of_halves<T>(words[index], i);
    }
  }
}

// Of the weights in 16 bytes, in their own order, a lane's of four: two neighbours of each eight.
template <class T, int kBits>
__device__ __forceinline__ void unpack_of_lane(const uint4& pack, std::uint32_t lane,
                                               std::uint32_t (&pairs)[16 / kBits]) {
  const std::uint32_t words[4] = {pack.x, pack.y, pack.z, pack.w};
  if constexpr (kBits == 8) {
    const std::uint32_t selector = lane * 0x22 + 0x10;  // bytes 2 lane and the next
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      pairs[i] = pair_of_bytes<T>(__byte_perm(words[2 * i], words[2 * i + 1], selector), 0x5150);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // The lower half of the byte, and 16 bits on the higher one.
      pairs[i] = pair_of_halves<T>(__byte_perm(words[i], 0, 0x4440 + lane) * 0x1001, 0);
    }
  }
}

// Eight elements of x in the order of the weights.
template <int kBits>
__device__ __forceinline__ uint4 in_order_of_weights(const uint4& x) {
  if constexpr (kBits != 4) return x;
  return {__byte_perm(x.x, x.z, 0x5410), __byte_perm(x.x, x.z, 0x7632), __byte_perm(x.y, x.w, 0x5410),
          __byte_perm(x.y, x.w, 0x7632)};
}

}  // namespace cgrt::kernels
