// Matrices of 8 x 8 elements of 16 bits, from the registers of a warp to shared memory: the way back of matrix_load.cuh
// (sm_90 and later).
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// Four matrices. Lanes 8 i to 8 i + 7 say where the rows of matrix i go, each of 16 bytes and aligned to them. A lane
// has elements 2 (lane % 4) and the next of row lane / 4.
__device__ __forceinline__ void store_matrices(void* row, const std::uint32_t (&matrices)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(row))),
               "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
               : "memory");
}

}  // namespace cgrt::kernels
