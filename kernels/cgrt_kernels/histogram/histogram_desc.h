// Histograms: what can be asked for. Plain: no Abseil. The functions that plan and launch are in histogram.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

// Bin i counts the elements from lower + i * width to below lower + (i + 1) * width, where width is
// (upper - lower) / bins: bin.h says to the last bit which they are. Those outside of [lower, upper) and NaN count
// nowhere. A bin of int32 is at least 1 wide. Counts wrap around at 2^32.
struct HistogramDesc {
  DType type = DType::kInt32;  // or float32
  std::uint64_t count = 0;
  std::int32_t bins = 0;
  double lower = 0, upper = 0;  // float32: rounded to it; int32: without their fractions, up to 2^31
};

// Device addresses of contiguous arrays that do not overlap, each aligned to its elements.
struct HistogramArgs {
  std::int32_t* counts = nullptr;  // of `bins`; overwritten
  const void* in = nullptr;        // of `count` elements
};

}  // namespace cgrt::kernels
