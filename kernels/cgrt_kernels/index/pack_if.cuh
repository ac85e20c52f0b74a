// Packs of 16 bytes or single elements, by one name.
#pragma once

#include <type_traits>

#include "cgrt_kernels/common/pack.cuh"

namespace cgrt::kernels {

template <class T, bool kIsPacked>
using PackIf = std::conditional_t<kIsPacked, typename PackOf<T>::Type, T>;
template <class T, bool kIsPacked>
inline constexpr int kCountIf = kIsPacked ? kPackSize<T> : 1;

template <class T>
__device__ __forceinline__ void unpack(const T& element, float (&values)[1]) {
  values[0] = to_float(element);
}
template <class T>
__device__ __forceinline__ void pack_into(T& element, const float (&values)[1]) {
  element = from_float<T>(values[0]);
}

}  // namespace cgrt::kernels
