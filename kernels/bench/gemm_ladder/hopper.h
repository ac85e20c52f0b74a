// What the ladder's steps with instructions of sm_90a have in common with what launches them.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cgrt/launch/kernel.h"

namespace cgrt::bench {

// A block's tile. m is a multiple of 256, n of kHopperColumns, k of kHopperDepth.
inline constexpr std::uint32_t kHopperRows = 128, kHopperColumns = 256, kHopperDepth = 64, kHopperStages = 4;
inline constexpr std::uint32_t kBytesOfA = kHopperRows * kHopperDepth * 2,
                               kBytesOfB = kHopperColumns * kHopperDepth * 2;
inline constexpr std::uint32_t kStageBytes = kBytesOfA + kBytesOfB;

// Of bfloat16: a, m rows of k, and b, n rows of k, in boxes of 64 elements of k; d, m rows of n, has no map.
struct HopperParams {
  CUtensorMap a, b;
  void* d;
  std::uint32_t n, k;
};

struct HopperStep {
  const char* name;
  Kernel<HopperParams> kernel;
  std::uint32_t threads, cluster;  // blocks: one below the other
};
inline constexpr int kHopperSteps = 3;
HopperStep hopper_step(int i);  // in hopper.cu

}  // namespace cgrt::bench
