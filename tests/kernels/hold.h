// A kernel that holds multiprocessors until the host lets go of them, and one that needs all of them. Plain. For
// devices: they have no host bodies.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"

namespace cgrt::testing {

// What the host and the blocks tell each other, in page-locked memory.
struct Hold {
  std::uint32_t released;        // by the host
  std::uint32_t begun[1 << 10];  // by each block
  std::uint32_t gave_up;         // a block, since nobody released it
};

// hold, most nanoseconds
using HoldKernel = Kernel<Hold*, std::uint64_t>;
HoldKernel hold_kernel();

// What no kernel of a family may do: each block waits until all have begun. A counter of them, zero before; most
// nanoseconds.
using MeetKernel = Kernel<std::uint32_t*, std::uint64_t>;
MeetKernel meet_kernel();

}  // namespace cgrt::testing
