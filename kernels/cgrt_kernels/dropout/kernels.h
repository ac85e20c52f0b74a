// What dropout's plan and device code have in common. Internal.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/dropout/dropout_desc.h"

namespace cgrt::kernels {

inline constexpr int kDropoutBlock = 256;  // threads
inline constexpr int kDropoutPacks = 2;    // that a thread of dropout has in flight, of arrays that fill the device

struct DropoutParams {
  DropoutArgs args;
  std::uint64_t count;
  std::uint32_t threshold;  // numbers below it drop their element
  float scale;
};

// `is_small`: a thread has one pack, and all are there at once. Of dropout_backward a thread always has one.
Kernel<DropoutParams> dropout_kernel(DropoutOp op, DType type, Alignment alignment, bool is_small);

// What a launch adds to the offset of its state.
__host__ __device__ constexpr std::uint64_t dropout_draws(std::uint64_t count) { return (count + 3) / 4; }

}  // namespace cgrt::kernels
