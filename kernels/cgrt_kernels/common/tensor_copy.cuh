// Copies of boxes of an array between global and shared memory by tensor maps (tensor_map.h), and what waits for them
// (sm_90 and later). One thread asks for a box.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"

namespace cgrt::kernels {

#if __CUDA_ARCH__ >= 900

// A hint, before the first copy.
__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// What this thread has read and written of shared memory comes before the copies and products that follow.
__device__ __forceinline__ void fence_for_tensor_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The box at element (x, y), x in the contiguous dimension, to shared memory. What lies outside of the array is zeros.
// `barrier` counts its bytes, with those outside.
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap& map, std::uint32_t x, std::uint32_t y,
                                         BulkBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(&barrier))
      : "memory");
}

// The same to all blocks of the cluster whose bits are set in `blocks`, in each to the same place, which its own
// barrier counts.
__device__ __forceinline__ void copy_box_to_blocks(void* to, const CUtensorMap& map, std::uint32_t x, std::uint32_t y,
                                                   BulkBarrier& barrier, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(&barrier)), "h"(blocks)
      : "memory");
}

// The box at an element of an array of five dimensions.
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap& map, const std::uint32_t (&at)[5],
                                         BulkBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(shared_address(to)),
      "l"(&map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]), "r"(shared_address(&barrier))
      : "memory");
}

// A box from shared memory to element (x, y). What lies outside of the array is left out.
__device__ __forceinline__ void store_box(const CUtensorMap& map, std::uint32_t x, std::uint32_t y, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x),
               "r"(y), "r"(shared_address(from))
               : "memory");
}

// Ends a group of stores of this thread.
__device__ __forceinline__ void end_store_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until all groups of this thread but the last kPending have read shared memory.
template <int kPending>
__device__ __forceinline__ void wait_for_reads_of_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

#endif

}  // namespace cgrt::kernels
