// Matrices of 8 x 8 elements of 16 bits, from shared memory to the registers of a warp as its tensor cores take them.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// Four matrices, one a register. Lanes 8 i to 8 i + 7 say where the rows of matrix i are, each of 16 bytes and aligned
// to them. A lane gets elements 2 (lane % 4) and the next of row lane / 4.
__device__ __forceinline__ void load_matrices(std::uint32_t (&matrices)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

// The same of the transposed matrices: element lane / 4 of rows 2 (lane % 4) and the next.
__device__ __forceinline__ void load_transposed_matrices(std::uint32_t (&matrices)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

}  // namespace cgrt::kernels
