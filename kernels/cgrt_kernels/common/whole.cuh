// Loads and stores of a whole pack by one instruction: the compiler copies pairs of 16-bit numbers one
// by one, since they have constructors.
#pragma once

#include <cuda_runtime_api.h>  // uint4

namespace cgrt::kernels {

template <class Pack>
__device__ __forceinline__ Pack load_whole(const Pack* from) {
  if constexpr (sizeof(Pack) == 16) {
    uint4 bits = *reinterpret_cast<const uint4*>(from);
    return *reinterpret_cast<Pack*>(&bits);
  } else {
    return *from;
  }
}
template <class Pack>
__device__ __forceinline__ void store_whole(Pack* to, const Pack& pack) {
  if constexpr (sizeof(Pack) == 16) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&pack);
  } else {
    *to = pack;
  }
}

}  // namespace cgrt::kernels
