#include "kernels/bench/gemm_ladder/hopper.h"

#include "kernels/bench/gemm_ladder/cluster.cuh"
#include "kernels/bench/gemm_ladder/specialised.cuh"
#include "kernels/bench/gemm_ladder/wgmma.cuh"

namespace cgrt::bench {

HopperStep hopper_step(int i) {
  const HopperStep steps[kHopperSteps] = {{"gemm_wgmma", make_kernel<gemm_wgmma>(), 256, 1},
                                          {"gemm_specialised", make_kernel<gemm_specialised>(), 384, 1},
                                          {"gemm_cluster", make_kernel<gemm_cluster>(), 384, 2}};
  return steps[i];
}

}  // namespace cgrt::bench
