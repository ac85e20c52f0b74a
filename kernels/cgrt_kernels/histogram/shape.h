// How a plan counts. Internal.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// Where a block counts before it adds to the result.
enum class HistogramRegime : std::uint8_t {
  kWords,   // in shared memory, by counters of 32 bits; of few bins, lanes have copies of their own
  kHalves,  // by counters of 16 bits, which are added to the result before they overflow
  kGlobal,  // nowhere: many bins of few elements each
};

struct HistogramShape {
  std::uint32_t bins = 0;
  std::uint32_t words = 0;   // of shared memory: for one more bin, of elements that are in none
  std::uint32_t copies = 0;  // kWords: counters of each bin, side by side; a power of two
};

}  // namespace cgrt::kernels
