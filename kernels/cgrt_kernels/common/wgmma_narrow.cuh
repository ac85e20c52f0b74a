// The products of wgmma.cuh with 16 or 32 columns, too. For sm_90a only.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/wgmma.cuh"

namespace cgrt::kernels {

// clang-format off
#define CGRT_SUMS_8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                       "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define CGRT_SUMS_OF_16 CGRT_SUMS_8(0)
#define CGRT_SUMS_OF_32 CGRT_SUMS_8(0), CGRT_SUMS_8(8)
#define CGRT_REGISTERS_OF_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define CGRT_REGISTERS_OF_32 CGRT_REGISTERS_OF_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define CGRT_UNPACK(...) __VA_ARGS__
// The operands of a product behind d, then that of `accumulates`, and what they are.
#define CGRT_PRODUCT(N, TYPE, OPERANDS, ACCUMULATES, INPUTS)                                                     \
  asm volatile("{\n.reg .pred accumulates;\nsetp.ne.b32 accumulates, " ACCUMULATES ", 0;\n"                      \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" CGRT_REGISTERS_OF_##N "}, " \
               OPERANDS ";\n}" : CGRT_SUMS_OF_##N : CGRT_UNPACK INPUTS)
#define CGRT_PRODUCT_OF_TYPE(N, ...)          \
  if constexpr (std::is_same_v<T, __half>) {  \
    CGRT_PRODUCT(N, "f16", __VA_ARGS__);      \
  } else {                                    \
    CGRT_PRODUCT(N, "bf16", __VA_ARGS__);     \
  }

// As multiply_add_shared, with kN 16, 32, 64, 128 or 256.
template <class T, int kN>
__device__ __forceinline__ void multiply_add_shared_narrow(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b,
                                                           bool accumulates = true) {
#define CGRT_INPUTS ("l"(a), "l"(b), "r"(static_cast<std::uint32_t>(accumulates)))
  if constexpr (kN == 16) {
    CGRT_PRODUCT_OF_TYPE(16, "%8, %9, accumulates, 1, 1, 0, 0", "%10", CGRT_INPUTS)
  } else if constexpr (kN == 32) {
    CGRT_PRODUCT_OF_TYPE(32, "%16, %17, accumulates, 1, 1, 0, 0", "%18", CGRT_INPUTS)
  } else {
    multiply_add_shared<T, kN>(d, a, b, accumulates);
  }
#undef CGRT_INPUTS
}

// As multiply_add_registers, with kN 16, 32, 64, 128 or 256.
template <class T, int kN>
__device__ __forceinline__ void multiply_add_registers_narrow(float (&d)[kN / 2], const std::uint32_t (&a)[4],
                                                              std::uint64_t b, bool accumulates = true) {
#define CGRT_INPUTS \
  ("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<std::uint32_t>(accumulates)))
  if constexpr (kN == 16) {
    CGRT_PRODUCT_OF_TYPE(16, "{%8, %9, %10, %11}, %12, accumulates, 1, 1, 0", "%13", CGRT_INPUTS)
  } else if constexpr (kN == 32) {
    CGRT_PRODUCT_OF_TYPE(32, "{%16, %17, %18, %19}, %20, accumulates, 1, 1, 0", "%21", CGRT_INPUTS)
  } else {
    multiply_add_registers<T, kN>(d, a, b, accumulates);
  }
#undef CGRT_INPUTS
}

#undef CGRT_PRODUCT_OF_TYPE
#undef CGRT_PRODUCT
#undef CGRT_UNPACK
#undef CGRT_REGISTERS_OF_32
#undef CGRT_REGISTERS_OF_16
#undef CGRT_SUMS_OF_32
#undef CGRT_SUMS_OF_16
#undef CGRT_SUMS_8
// clang-format on

}  // namespace cgrt::kernels
