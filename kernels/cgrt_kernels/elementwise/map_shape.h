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

// Bytes that a thread of a large map has on their way at once. A multiprocessor of Hopper needs about
// 48 KiB to keep its memory busy: 64 bytes are enough for 768 threads of its 2048.
inline constexpr int kMapBytesInFlight = 64;

// Blocks per multiprocessor that so many bytes per thread must make: a smaller map has more blocks, in
// which each thread takes one pack and goes straight.
inline constexpr std::uint64_t kMapFewestBlocks = 4;

struct MapShape {
  int pack;  // elements that a thread loads at once: 16 bytes of the widest type
  int held;  // elements that a thread of a large map has in registers
};

// Sizes of an element: of the widest array, of all inputs together, of the output.
constexpr MapShape map_shape(std::size_t widest, std::size_t in, std::size_t out) {
  const int pack = 16 / static_cast<int>(widest), moved = pack * static_cast<int>(std::max(in, out));
  return {pack, pack * std::clamp(kMapBytesInFlight / moved, 1, 4)};
}

template <class Out, class... In>
inline constexpr MapShape kMapShape = map_shape(std::max({sizeof(Out), sizeof(In)...}), (sizeof(In) + ...),
                                                sizeof(Out));

}  // namespace cgrt::kernels
