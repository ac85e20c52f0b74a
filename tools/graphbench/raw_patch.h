// The patch kernel that somebody writes who knows what to change: pointers of one argument, or grids. Plain.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "cgrt/launch/kernel.h"

namespace graphbench {

struct RawPatch {
  CUgraphDeviceNode node;
  std::uint64_t value;  // the pointer, or the grid's x
};

template <std::size_t kCapacity>
struct RawPatches {
  std::uint32_t count;
  std::uint32_t offset;  // of the argument; kGridOffset: the grid
  RawPatch patches[kCapacity];
};
inline constexpr std::uint32_t kGridOffset = UINT32_MAX;

// The largest just below the 32,764 bytes that CUDA lets a kernel have; a launch copies all of them.
inline constexpr std::size_t kFewRaw = 16, kThousandRaw = 1000, kMostRaw = 2040;

template <std::size_t kCapacity>
cgrt::Kernel<RawPatches<kCapacity>> raw_patch_kernel();  // of the capacities above

}  // namespace graphbench
