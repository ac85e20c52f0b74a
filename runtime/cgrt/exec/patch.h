// The kernel that changes nodes of a rebindable executable on the device. Plain. Internal to exec/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "cgrt/driver/node_word.h"
#include "cgrt/launch/kernel.h"

namespace cgrt::internal {

struct Patch {
  std::uint32_t word;       // into PatchList::words
  std::uint32_t low, high;  // halves of its value: 12 bytes without padding
};

// By value, so that every launch in flight has its own. A longer list begins as a shorter one does.
template <std::size_t kCapacity>
struct PatchList {
  const driver::NodeWord* words;  // of the whole executable, in device memory
  std::uint32_t count;
  Patch patches[kCapacity];
};

// A launch copies all of its parameters, at 0.2 us a KB on an H200, so there is a list for few words and one for as
// many as CUDA lets a kernel have, 32,764 bytes.
inline constexpr std::size_t kPatchCapacities[] = {32, 128, 512, 1024, 2729};
inline constexpr std::size_t kMaxPatches = kPatchCapacities[std::size(kPatchCapacities) - 1];
static_assert(sizeof(PatchList<kMaxPatches>) <= 32764);

// One warp a word: lanes set their nodes one after the other (H200: 12 words by 12 warps 0.7 us faster than by one).
inline constexpr std::uint32_t kPatchBlock = 128;  // threads
inline constexpr std::uint32_t kPatchesPerBlock = kPatchBlock / 32;

// Of the capacities above.
template <std::size_t kCapacity>
Kernel<PatchList<kCapacity>> patch_kernel();

}  // namespace cgrt::internal
