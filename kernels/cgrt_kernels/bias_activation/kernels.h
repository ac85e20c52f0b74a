// What bias_activation's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/bias_activation/bias_activation_desc.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/wide_divisor.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kBiasActivationBlock = 256;  // threads
// Packs of a thread, a block's threads apart: single elements need more in flight.
inline constexpr std::uint32_t kBiasActivationPacks = 1, kBiasActivationElements = 8;

struct BiasActivationParams {
  BiasActivationArgs args;
  std::uint32_t rows, columns;
  WideDivisor row_packs;                // of a row of the output
  std::uint32_t step_rows, step_packs;  // of a block's threads: rows, and packs of the next one
};

Kernel<BiasActivationParams> bias_activation_kernel(BiasActivation activation, BiasGate gate, DType type,
                                                    Alignment alignment);

}  // namespace cgrt::kernels
