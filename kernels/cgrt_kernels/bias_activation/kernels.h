// What bias_activation's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/bias_activation/bias_activation_desc.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/wide_divisor.h"

namespace cgrt::kernels {

inline constexpr int kBiasActivationBlock = 256;  // threads, a pack each

struct BiasActivationParams {
  BiasActivationArgs args;
  std::uint32_t rows, columns;
  WideDivisor row_packs;  // of a row of the output
};

Kernel<BiasActivationParams> bias_activation_kernel(BiasActivation activation, BiasGate gate, DType type,
                                                    Alignment alignment);

}  // namespace cgrt::kernels
