// Where a kernel's random numbers begin. Plain: no Abseil.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// In device memory, aligned to 8 bytes: copy RandomState{.seed = ...} there once. Each launch takes its numbers
// (philox.h) from `offset` on and adds to `offset` how many all rows of its plan take, also where a launch has fewer,
// so that every replay of a graph has others. Launches that may run at the same time need a state each, with seeds of
// their own. To repeat a launch, copy the state before it.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;   // of four numbers each
  std::uint32_t arrived = 0;  // blocks; 0 between launches
  std::uint32_t unused = 0;
};

}  // namespace cgrt::kernels
