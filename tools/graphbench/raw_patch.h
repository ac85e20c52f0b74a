// The patch kernel that somebody writes who knows what to change: pointers of one argument, or grids. Plain.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "cgrt/launch/kernel.h"

namespace graphbench {

inline constexpr std::size_t kRawPatches = 2040;  // with their count just below the 32,764 bytes that CUDA allows

struct RawPatches {
  struct One {
    CUgraphDeviceNode node;
    std::uint64_t value;  // the pointer, or the grid's x
  };
  One patches[kRawPatches];
  std::uint32_t count;
  std::uint32_t offset;  // of the argument; kGrid: the grid
  static constexpr std::uint32_t kGrid = UINT32_MAX;
};

cgrt::Kernel<RawPatches> raw_patch_kernel();

}  // namespace graphbench
