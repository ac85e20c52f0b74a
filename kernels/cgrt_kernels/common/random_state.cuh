// How the blocks of a launch take their random numbers from one state: all of them read it, and then leave it.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/random_state.h"

namespace cgrt::kernels {

// When no thread of the block needs the state any more: the last block moves it on by `draws` from the offset that all
// have read, for the next launch.
__device__ __forceinline__ void leave_state(RandomState* state, std::uint64_t offset, std::uint64_t draws) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(&state->arrived, 1u) == gridDim.x - 1) {
    state->offset = offset + draws;
    state->arrived = 0;
  }
}

}  // namespace cgrt::kernels
