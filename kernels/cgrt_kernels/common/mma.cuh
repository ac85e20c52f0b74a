// Products of small matrices that the lanes of a warp hold together, for tensor cores (sm_80 and later).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace cgrt::kernels {

// d += a * b: a of 16 x 16, b of 16 x 8, d of 16 x 8. With g = lane / 4 and t = lane % 4 a lane holds
//   a0, a1: columns 2 t and 2 t + 1 of rows g and g + 8;  a2, a3: columns 2 t + 8 and 2 t + 9 of them
//   b0, b1: rows 2 t and 2 t + 1, and rows 2 t + 8 and 2 t + 9, of column g
//   d0, d1: columns 2 t and 2 t + 1 of row g;             d2, d3: of row g + 8
template <class T>
__device__ __forceinline__ void multiply_add(float (&d)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                             std::uint32_t a3, std::uint32_t b0, std::uint32_t b1);

template <>
__device__ __forceinline__ void multiply_add<__half>(float (&d)[4], std::uint32_t a0, std::uint32_t a1,
                                                     std::uint32_t a2, std::uint32_t a3, std::uint32_t b0,
                                                     std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void multiply_add<__nv_bfloat16>(float (&d)[4], std::uint32_t a0, std::uint32_t a1,
                                                            std::uint32_t a2, std::uint32_t a3, std::uint32_t b0,
                                                            std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace cgrt::kernels
