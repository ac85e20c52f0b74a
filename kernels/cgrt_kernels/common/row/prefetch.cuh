// What lies ahead of a row that is in registers, so that more is in flight than registers have room for.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"

namespace cgrt::kernels {

// Asks for what lies `ahead` rows behind that which this block begins with.
template <class Row, class Group, class T>
__device__ __forceinline__ void prefetch_ahead(const Group& group, const T* in, std::uint32_t rows,
                                               std::uint32_t columns, std::uint32_t ahead) {
  if (threadIdx.x != 0) return;
  constexpr std::uint32_t kOfThread = Row::kPackCount * Row::kSize;
  const std::uint64_t begin =
      (std::uint64_t{group.row()} + ahead) * columns + std::uint64_t{group.block()} * blockDim.x * kOfThread;
  const std::uint64_t end = std::uint64_t{rows} * columns;
  const std::uint32_t count =
      Group::kIsWarp ? blockDim.x / Group::kLanes * columns : min(blockDim.x * kOfThread, columns);
  if (begin < end) prefetch_to_l2(in + begin, min(std::uint64_t{count}, end - begin) * sizeof(T));
}

// Asks for an array of a row's columns, which all rows need, once. Also before predecessors have ended: what they write
// to it passes through the L2 cache, too.
__device__ __forceinline__ void prefetch_once(const void* array, std::uint32_t bytes) {
  if (array != nullptr && blockIdx.x == 0 && threadIdx.x == 0) prefetch_to_l2(array, bytes);
}

}  // namespace cgrt::kernels
