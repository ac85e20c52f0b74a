// Whether arrays let kernels move 16 bytes at a time. Plain: no Abseil.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// kAligned: all arrays, and all rows in them, begin at multiples of 16 bytes.
enum class Alignment : std::uint8_t { kAligned, kUnaligned };

}  // namespace cgrt::kernels
