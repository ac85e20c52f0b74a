// What of a device-updatable kernel node a kernel can change while the node's executable is not running
// (cudaGraphKernelNodeSetParam, ...SetGridDim, ...SetEnabled). Plain: included by .cu files. Internal.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace cgrt::driver {

struct NodeWord {
  enum class Kind : std::uint8_t { kArgument, kGrid, kEnabled };

  CUgraphDeviceNode node;
  std::uint16_t offset;  // kArgument: into the kernel's parameters, in bytes
  std::uint8_t bytes;    // kArgument: 1 to 8, the low ones of its value
  Kind kind;             // the value of kGrid is a grid_value, that of kEnabled 0 or 1
};
static_assert(sizeof(NodeWord) == 16);

// y and z are at most 65,535: CUDA's limit.
constexpr std::uint64_t grid_value(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return x | std::uint64_t{y} << 32 | std::uint64_t{z} << 48;
}

}  // namespace cgrt::driver
