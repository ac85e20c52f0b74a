// Step 9: a tensor map and wgmma (sm_90a). One thread asks for whole tiles of 64 elements of k, and two warpgroups
// multiply 64 x 256 elements of d each, straight from shared memory. All wait for each tile, and all are done with it
// before the next is asked for in its place.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "cgrt_kernels/common/tensor_copy.cuh"
#include "cgrt_kernels/common/wgmma.cuh"
#include "cgrt_kernels/common/word.cuh"
#include "kernels/bench/gemm_ladder/hopper.h"

namespace cgrt::bench {

#if __CUDA_ARCH__ >= 900
// 64 rows of sums of a warpgroup.
__device__ __forceinline__ void store_sums(const HopperParams& p, const float (&sums)[128], std::uint32_t row,
                                           std::uint32_t column) {
  const std::uint32_t thread = threadIdx.x % 128, lane = thread % 32;
  row += thread / 32 * 16 + lane / 4, column += lane % 4 * 2;
#pragma unroll
  for (std::uint32_t i = 0; i < 64; ++i) {
    auto* const to = static_cast<__nv_bfloat16*>(p.d) + (row + i % 2 * 8) * p.n + column + i / 2 * 8;
    *reinterpret_cast<std::uint32_t*>(to) = kernels::Word<__nv_bfloat16>::pack({sums[2 * i], sums[2 * i + 1]});
  }
}

// 64 elements of k for 64 rows and 256 columns.
__device__ __forceinline__ void multiply_stage(float (&sums)[128], const unsigned char* a, const unsigned char* b) {
  using enum kernels::MatrixMajor;
  const std::uint64_t of_a = kernels::matrix_descriptor<kK>(a), of_b = kernels::matrix_descriptor<kK>(b);
  kernels::fence_registers(sums);
  kernels::fence_products();
#pragma unroll
  for (int i = 0; i < 4; ++i) kernels::multiply_add_shared<__nv_bfloat16, 256>(sums, of_a + 2 * i, of_b + 2 * i);
  kernels::commit_products();
  kernels::fence_registers(sums);
}
#endif

__global__ void __launch_bounds__(256, 1) gemm_wgmma(const __grid_constant__ HopperParams p) {
#if __CUDA_ARCH__ >= 900
  constexpr std::uint32_t kStages = kHopperStages;
  extern __shared__ __align__(1024) unsigned char stages[];
  __shared__ kernels::BulkBarrier full[kStages];
  const std::uint32_t row = blockIdx.y * kHopperRows, column = blockIdx.x * kHopperColumns;
  const std::uint32_t warpgroup = threadIdx.x / 128, count = p.k / kHopperDepth;
  const auto load = [&](std::uint32_t i) {
    if (threadIdx.x != 0 || i >= count) return;
    unsigned char* const to = stages + i % kStages * kStageBytes;
    full[i % kStages].expect(kStageBytes);
    kernels::copy_box(to, p.a, i * kHopperDepth, row, full[i % kStages]);
    kernels::copy_box(to + kBytesOfA, p.b, i * kHopperDepth, column, full[i % kStages]);
  };
  if (threadIdx.x == 0) {
    for (kernels::BulkBarrier& barrier : full) barrier.initialize();
    kernels::make_barriers_visible();
  }
  __syncthreads();
  for (std::uint32_t i = 0; i + 1 < kStages; ++i) load(i);
  float sums[128] = {};
  for (std::uint32_t i = 0; i < count; ++i) {
    load(i + kStages - 1);
    full[i % kStages].wait(i / kStages % 2);
    const unsigned char* const a = stages + i % kStages * kStageBytes;
    multiply_stage(sums, a + warpgroup * kBytesOfA / 2, a + kBytesOfA);
    kernels::wait_for_products<0>();
    __syncthreads();
  }
  kernels::fence_registers(sums);
  store_sums(p, sums, row + warpgroup * 64, column);
#endif
}

}  // namespace cgrt::bench
