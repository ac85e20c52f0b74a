// Asynchronous products of a warpgroup, which is four warps that begin at a multiple of four. For sm_90a only: for
// files named hopper.cu.
//
//   fence_registers(sums), fence_products();
//   for (int i = 0; i < 4; ++i) multiply_add_shared<__half, 256>(sums, a + 2 * i, b + 2 * i);
//   commit_products();
//   wait_for_products<0>();   // the sums are there, and a and b can be overwritten
//   fence_registers(sums);
//
// A matrix in shared memory is rows of 128 bytes that begin at a multiple of 1024 bytes. The pieces of 16 bytes of a
// row change places by its number, piece ^ row % 8: as copies with a tensor map leave it (tensor_map.h).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace cgrt::kernels {

// What the 64 elements of a row are.
enum class MatrixMajor : std::uint8_t {
  kK,   // of k, in a row for each of m or n; the next 16 of k are 32 bytes on
  kMn,  // of m or n, in a row for each of k; the next 16 of k are 2048 bytes on, the next 64 of m or n `next_bytes`
};

// A matrix, as products take it. One that begins `bytes` later, a multiple of 16, is `bytes` / 16 more.
template <MatrixMajor kMajor>
__device__ __forceinline__ std::uint64_t matrix_descriptor(const void* shared, std::uint32_t next_bytes = 16) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kEightRows = std::uint64_t{1024 / 16} << 32;
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  return kSwizzle128 | kEightRows | std::uint64_t{next_bytes / 16} << 16 | (address & 0x3ffff) / 16;
}

// Products take registers and shared memory as this thread has left them here. Memory that it wrote needs
// fence_for_tensor_copies (tensor_copy.cuh), too.
__device__ __forceinline__ void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Ends a group of products.
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Until all groups but the last kPending are done.
template <int kPending>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// No access to these registers moves across it: the compiler does not know that products still write them.
template <int kCount>
__device__ __forceinline__ void fence_registers(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

// So many registers for each thread of this warpgroup from here on.
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// clang-format off
#define CGRT_SUMS_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define CGRT_SUMS_16(i) CGRT_SUMS_4(i), CGRT_SUMS_4(i + 4), CGRT_SUMS_4(i + 8), CGRT_SUMS_4(i + 12)
#define CGRT_SUMS_32 CGRT_SUMS_16(0), CGRT_SUMS_16(16)
#define CGRT_SUMS_64 CGRT_SUMS_32, CGRT_SUMS_16(32), CGRT_SUMS_16(48)
#define CGRT_SUMS_128 CGRT_SUMS_64, CGRT_SUMS_16(64), CGRT_SUMS_16(80), CGRT_SUMS_16(96), CGRT_SUMS_16(112)
#define CGRT_REGISTERS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CGRT_REGISTERS_64 CGRT_REGISTERS_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define CGRT_REGISTERS_128 CGRT_REGISTERS_64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define CGRT_UNPACK(...) __VA_ARGS__
// The operands of a product behind d, then that of `accumulates`, and what they are.
#define CGRT_PRODUCT(N, TYPE, SUMS, OPERANDS, ACCUMULATES, INPUTS)                                             \
  asm volatile("{\n.reg .pred accumulates;\nsetp.ne.b32 accumulates, " ACCUMULATES ", 0;\n"                    \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" CGRT_REGISTERS_##SUMS "}, " \
               OPERANDS ";\n}"                                                                                  \
               : CGRT_SUMS_##SUMS : CGRT_UNPACK INPUTS)
#define CGRT_PRODUCT_OF_TYPE(N, ...)                      \
  if constexpr (std::is_same_v<T, __half>) {              \
    CGRT_PRODUCT(N, "f16", __VA_ARGS__);                  \
  } else {                                                \
    CGRT_PRODUCT(N, "bf16", __VA_ARGS__);                 \
  }

// d += a * b, or d = a * b unless `accumulates`: a of 64 x 16, b of 16 x kN, which is 64, 128 or 256, both in shared
// memory. Warp i of the warpgroup has rows 16 i to 16 i + 15 of d. Of these a lane has columns 8 j + 2 (lane % 4) and
// the next, of row lane / 4 in d[4 j] and d[4 j + 1], of row lane / 4 + 8 in d[4 j + 2] and d[4 j + 3].
template <class T, int kN, MatrixMajor kMajorOfB = MatrixMajor::kK>
__device__ __forceinline__ void multiply_add_shared(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b,
                                                    bool accumulates = true) {
  static_assert(kN == 64 || kN == 128 || kN == 256);
  constexpr int kIsTransposed = kMajorOfB == MatrixMajor::kMn;
#define CGRT_INPUTS ("l"(a), "l"(b), "n"(kIsTransposed), "r"(static_cast<std::uint32_t>(accumulates)))
  if constexpr (kN == 64) {
    CGRT_PRODUCT_OF_TYPE(64, 32, "%32, %33, accumulates, 1, 1, 0, %34", "%35", CGRT_INPUTS)
  } else if constexpr (kN == 128) {
    CGRT_PRODUCT_OF_TYPE(128, 64, "%64, %65, accumulates, 1, 1, 0, %66", "%67", CGRT_INPUTS)
  } else {
    CGRT_PRODUCT_OF_TYPE(256, 128, "%128, %129, accumulates, 1, 1, 0, %130", "%131", CGRT_INPUTS)
  }
#undef CGRT_INPUTS
}

// The same with a in registers, as multiply_add of mma.cuh takes it: warp i has rows 16 i to 16 i + 15. They are not
// written before the product is done.
template <class T, int kN, MatrixMajor kMajorOfB = MatrixMajor::kK>
__device__ __forceinline__ void multiply_add_registers(float (&d)[kN / 2], const std::uint32_t (&a)[4],
                                                       std::uint64_t b, bool accumulates = true) {
  static_assert(kN == 64 || kN == 128 || kN == 256);
  constexpr int kIsTransposed = kMajorOfB == MatrixMajor::kMn;
#define CGRT_INPUTS ("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kIsTransposed), \
                     "r"(static_cast<std::uint32_t>(accumulates)))
  if constexpr (kN == 64) {
    CGRT_PRODUCT_OF_TYPE(64, 32, "{%32, %33, %34, %35}, %36, accumulates, 1, 1, %37", "%38", CGRT_INPUTS)
  } else if constexpr (kN == 128) {
    CGRT_PRODUCT_OF_TYPE(128, 64, "{%64, %65, %66, %67}, %68, accumulates, 1, 1, %69", "%70", CGRT_INPUTS)
  } else {
    CGRT_PRODUCT_OF_TYPE(256, 128, "{%128, %129, %130, %131}, %132, accumulates, 1, 1, %133", "%134", CGRT_INPUTS)
  }
#undef CGRT_INPUTS
}

#undef CGRT_PRODUCT_OF_TYPE
#undef CGRT_PRODUCT
#undef CGRT_UNPACK
#undef CGRT_REGISTERS_128
#undef CGRT_REGISTERS_64
#undef CGRT_REGISTERS_32
#undef CGRT_SUMS_128
#undef CGRT_SUMS_64
#undef CGRT_SUMS_32
#undef CGRT_SUMS_16
#undef CGRT_SUMS_4
// clang-format on

}  // namespace cgrt::kernels
