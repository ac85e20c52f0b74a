// Step 11 mends repeated reads of the L2 cache. Two blocks, one below the other, are a cluster and need the same
// columns of b: each copies half of them to both. A stage is empty when the consumers of both blocks are done with it.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "cgrt_kernels/common/cluster_barrier.cuh"
#include "kernels/bench/gemm_ladder/wgmma.cuh"

namespace cgrt::bench {

__global__ void __launch_bounds__(384, 1) gemm_cluster(const __grid_constant__ HopperParams p) {
#if __CUDA_ARCH__ >= 900
  constexpr std::uint32_t kStages = kHopperStages;
  extern __shared__ __align__(1024) unsigned char stages[];
  __shared__ kernels::BulkBarrier full[kStages];
  __shared__ kernels::Mbarrier empty[kStages];
  const std::uint32_t rank = blockIdx.x % 2;  // in the cluster
  const std::uint32_t row = (blockIdx.y * 2 + rank) * kHopperRows, column = blockIdx.x / 2 * kHopperColumns;
  const std::uint32_t count = p.k / kHopperDepth;
  if (threadIdx.x == 0) {
    for (kernels::BulkBarrier& barrier : full) barrier.initialize();
    for (kernels::Mbarrier& barrier : empty) barrier.initialize(4);
    kernels::make_barriers_visible_to_cluster();
  }
  cooperative_groups::this_cluster().sync();
  if (threadIdx.x < 128) {
    kernels::give_registers<40>();
    for (std::uint32_t i = 0; i < count && threadIdx.x == 0; ++i) {
      const std::uint32_t stage = i % kStages;
      if (i >= kStages) empty[stage].wait(i / kStages % 2 ^ 1);
      unsigned char* const to = stages + stage * kStageBytes;
      full[stage].expect(kStageBytes);
      kernels::copy_box(to, p.a, i * kHopperDepth, row, full[stage]);
      kernels::copy_box_to_blocks(to + kBytesOfA + rank * kBytesOfB / 2, p.b, i * kHopperDepth,
                                  column + rank * kHopperColumns / 2, full[stage], 0b11);
    }
    __syncwarp();
  } else {
    kernels::take_registers<232>();
    const std::uint32_t consumer = threadIdx.x / 128 - 1;
    float sums[128] = {};
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t stage = i % kStages;
      full[stage].wait(i / kStages % 2);
      const unsigned char* const a = stages + stage * kStageBytes;
      multiply_stage(sums, a + consumer * kBytesOfA / 2, a + kBytesOfA);
      kernels::wait_for_products<1>();
      if (i > 0 && threadIdx.x % 128 < 2) kernels::arrive_in_block(empty[(i - 1) % kStages], threadIdx.x % 128);
    }
    kernels::wait_for_products<0>();
    kernels::fence_registers(sums);
    store_sums(p, sums, row + consumer * 64, column);
  }
  cooperative_groups::this_cluster().sync();  // no block leaves before the other has arrived at its barriers
#endif
}

}  // namespace cgrt::bench
