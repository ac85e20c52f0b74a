// An array of a row's columns, weight or bias, as a block needs it.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/row/tile.cuh"

namespace cgrt::kernels {

template <class T>
struct Columns {
  const T *begin, *end;  // from this block's first column to the array's end; null: none

  __device__ __forceinline__ Columns(const void* array, std::uint32_t first, std::uint32_t columns)
      : begin(array != nullptr ? static_cast<const T*>(array) + first : nullptr),
        end(static_cast<const T*>(array) + columns) {}
  __device__ __forceinline__ bool is_there() const { return begin != nullptr; }

  // `count` of them lie in shared memory from now on, once the block has met. Returns what is free behind them: a
  // multiple of 16 bytes, one pack further than they need.
  template <Alignment kAlignment>
  __device__ __forceinline__ T* hold(T* shared, std::uint32_t count) {
    const std::uint32_t packs = (count + kPackSize<T> - 1) / kPackSize<T> + 1;
    if (is_there()) {
      for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) shared[i] = begin[i];
      begin = shared, end = shared + packs * kPackSize<T>;
    }
    return shared + packs * kPackSize<T>;
  }
};

}  // namespace cgrt::kernels
