// What bias_activation's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/bias_activation/bias_activation_desc.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/wide_divisor.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kBiasActivationBlock = 256;  // threads, a pack of the output each

struct BiasActivationParams {
  BiasActivationArgs args;
  std::uint32_t rows, columns;
  WideDivisor row_items;  // packs of a row of the output, of arrays that are not aligned its elements
};

Kernel<BiasActivationParams> bias_activation_kernel(BiasActivation activation, BiasGate gate, DType type,
                                                    Alignment alignment);

}  // namespace cgrt::kernels
