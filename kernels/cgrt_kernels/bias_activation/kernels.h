// What bias_activation's plan and device code have in common. Internal.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/bias_activation/bias_activation_desc.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/wide_divisor.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kBiasActivationBlock = 256;  // threads, at most

struct BiasActivationParams {
  BiasActivationArgs args;
  std::uint32_t rows, columns;
  WideDivisor row_items;  // packs of a row of the output, of arrays that are not aligned its elements
};

// `bytes` of the output that a thread has: 16, of aligned arrays also 8 and 4, of unaligned ones also those of an
// element.
Kernel<BiasActivationParams> bias_activation_kernel(BiasActivation activation, BiasGate gate, DType type,
                                                    Alignment alignment, std::uint32_t bytes);

}  // namespace cgrt::kernels
