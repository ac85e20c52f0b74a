// What bias_activation's plan and device code have in common. Internal.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/bias_activation/bias_activation_desc.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/wide_divisor.h"

namespace cgrt::kernels {

// Threads, each with `bytes` of the output: 16, 8, or an element.
__host__ __device__ constexpr std::uint32_t bias_activation_block(std::uint32_t bytes) {
  return bytes == 16 ? 256 : 128;
}

struct BiasActivationParams {
  BiasActivationArgs args;
  std::uint32_t rows, columns;
  WideDivisor row_items;  // packs of a row of the output, of arrays that are not aligned its elements
};

// `bytes`: 16, of aligned arrays also 8, of unaligned ones also those of an element.
Kernel<BiasActivationParams> bias_activation_kernel(BiasActivation activation, BiasGate gate, DType type,
                                                    Alignment alignment, std::uint32_t bytes);

}  // namespace cgrt::kernels
