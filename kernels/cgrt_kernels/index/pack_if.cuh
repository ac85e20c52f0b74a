// Packs of 16 bytes or single elements, by one name.
#pragma once

#include <type_traits>

#include "cgrt_kernels/common/pack.cuh"

namespace cgrt::kernels {

template <class T, bool kIsPacked>
using PackIf = std::conditional_t<kIsPacked, typename PackOf<T>::Type, T>;
template <class T, bool kIsPacked>
inline constexpr int kCountIf = kIsPacked ? kPackSize<T> : 1;

}  // namespace cgrt::kernels
