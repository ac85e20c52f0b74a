// Step 10 mends meetings of the whole block. A warpgroup of its own asks for tiles, with few registers; the other two
// take more and only multiply. Two barriers for each stage are all that joins them: one says that it is full, one that
// it is empty. Products of a stage are in flight while those of the next are asked for.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/mbarrier.cuh"
#include "kernels/bench/gemm_ladder/wgmma.cuh"

namespace cgrt::bench {

__global__ void __launch_bounds__(384, 1) gemm_specialised(const __grid_constant__ HopperParams p) {
#if __CUDA_ARCH__ >= 900
  constexpr std::uint32_t kStages = kHopperStages;
  extern __shared__ __align__(1024) unsigned char stages[];
  __shared__ kernels::BulkBarrier full[kStages];
  __shared__ kernels::Mbarrier empty[kStages];
  const std::uint32_t row = blockIdx.y * kHopperRows, column = blockIdx.x * kHopperColumns;
  const std::uint32_t count = p.k / kHopperDepth;
  if (threadIdx.x == 0) {
    for (kernels::BulkBarrier& barrier : full) barrier.initialize();
    for (kernels::Mbarrier& barrier : empty) barrier.initialize(2);
    kernels::make_barriers_visible();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    kernels::give_registers<40>();
    if (threadIdx.x != 0) return;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t stage = i % kStages;
      if (i >= kStages) empty[stage].wait(i / kStages % 2 ^ 1);
      unsigned char* const to = stages + stage * kStageBytes;
      full[stage].expect(kStageBytes);
      kernels::copy_box(to, p.a, i * kHopperDepth, row, full[stage]);
      kernels::copy_box(to + kBytesOfA, p.b, i * kHopperDepth, column, full[stage]);
    }
    return;
  }
  kernels::take_registers<232>();
  const std::uint32_t consumer = threadIdx.x / 128 - 1;
  float sums[128] = {};
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t stage = i % kStages;
    full[stage].wait(i / kStages % 2);
    const unsigned char* const a = stages + stage * kStageBytes;
    multiply_stage(sums, a + consumer * kBytesOfA / 2, a + kBytesOfA);
    kernels::wait_for_products<1>();
    if (i > 0 && threadIdx.x % 128 == 0) empty[(i - 1) % kStages].arrive();
  }
  kernels::wait_for_products<0>();
  kernels::fence_registers(sums);
  store_sums(p, sums, row + consumer * 64, column);
#endif
}

}  // namespace cgrt::bench
