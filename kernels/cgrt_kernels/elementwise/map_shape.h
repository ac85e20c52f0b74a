// How the threads of a map share its elements: what the kernels (map.cuh) and the plans agree on. Plain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cgrt/launch/kernel.h"

namespace cgrt::kernels {

// out, functor, count, inputs
template <class F, class Out, class... In>
using MapKernel = Kernel<Out*, F, std::uint64_t, const In*...>;

inline constexpr int kMapBlock = 256;  // threads

// Elements that a thread has: 16 bytes of the widest array's.
constexpr int map_pack(std::size_t widest) { return 16 / static_cast<int>(widest); }

// Blocks of a map: a thread for each pack, and for each element behind the last one.
constexpr std::uint64_t map_blocks(std::uint64_t count, std::uint64_t pack) {
  return (count / pack + count % pack + kMapBlock - 1) / kMapBlock;
}

template <class Out, class... In>
inline constexpr int kMapPack = map_pack(std::max({sizeof(Out), sizeof(In)...}));

}  // namespace cgrt::kernels
