// 16 bytes of elements, loaded and stored at once and computed on as floats.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "cgrt_kernels/common/alignment.h"

namespace cgrt::kernels {

__host__ __device__ inline float to_float(float value) { return value; }
__host__ __device__ inline float to_float(__half value) { return __half2float(value); }
__host__ __device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <class T>
__host__ __device__ inline T from_float(float value);
template <>
__host__ __device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__host__ __device__ inline __half from_float<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__host__ __device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

template <class T>
inline constexpr int kPackSize = 16 / sizeof(T);

__device__ __forceinline__ void unpack(const float4& pack, float (&values)[4]) {
  values[0] = pack.x, values[1] = pack.y, values[2] = pack.z, values[3] = pack.w;
}
__device__ __forceinline__ void pack_into(float4& pack, const float (&values)[4]) {
  pack = {values[0], values[1], values[2], values[3]};
}

// Eight halves. Words, not the pairs that they are: assigning a __half2 calls a function of its own, and
// the compiler then loads and stores 4 bytes at a time.
template <class Pair>
struct Pairs {
  uint4 words;
};

__device__ __forceinline__ float2 to_float2(__half2 pair) { return __half22float2(pair); }
__device__ __forceinline__ float2 to_float2(__nv_bfloat162 pair) { return __bfloat1622float2(pair); }
__device__ __forceinline__ void from_float2(__half2& pair, float2 values) { pair = __float22half2_rn(values); }
__device__ __forceinline__ void from_float2(__nv_bfloat162& pair, float2 values) {
  pair = __float22bfloat162_rn(values);
}

template <class Pair>
__device__ __forceinline__ void unpack(const Pairs<Pair>& pack, float (&values)[8]) {
  const unsigned words[4] = {pack.words.x, pack.words.y, pack.words.z, pack.words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 two = to_float2(reinterpret_cast<const Pair&>(words[i]));
    values[2 * i] = two.x, values[2 * i + 1] = two.y;
  }
}
template <class Pair>
__device__ __forceinline__ void pack_into(Pairs<Pair>& pack, const float (&values)[8]) {
  unsigned words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) from_float2(reinterpret_cast<Pair&>(words[i]), {values[2 * i], values[2 * i + 1]});
  pack.words = {words[0], words[1], words[2], words[3]};
}

// A pack of one element.
template <class T>
__device__ __forceinline__ void unpack(const T& element, float (&values)[1]) {
  values[0] = to_float(element);
}
template <class T>
__device__ __forceinline__ void pack_into(T& element, const float (&values)[1]) {
  element = from_float<T>(values[0]);
}

template <class T>
struct PackOf;
template <>
struct PackOf<float> {
  using Type = float4;
};
template <>
struct PackOf<__half> {
  using Type = Pairs<__half2>;
};
template <>
struct PackOf<__nv_bfloat16> {
  using Type = Pairs<__nv_bfloat162>;
};

// What is moved at once: a pack of aligned arrays, an element of others.
template <class T, Alignment kAlignment>
using PackFor = std::conditional_t<kAlignment == Alignment::kAligned, typename PackOf<T>::Type, T>;
template <class T, Alignment kAlignment>
inline constexpr int kPackSizeFor = kAlignment == Alignment::kAligned ? kPackSize<T> : 1;

}  // namespace cgrt::kernels
