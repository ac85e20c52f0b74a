// Histograms: what can be asked for. Plain: no Abseil. The functions that plan and launch are in histogram.h.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

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

// Device addresses of contiguous arrays that do not overlap.
struct HistogramArgs {
  std::int32_t* counts = nullptr;  // of bins
  const void* in = nullptr;
  Workspace workspace = {};
};

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

template <class T>
class BinOf;  // bin.h
// counts, in, count, bin_of, shape
template <class T>
using HistogramKernel = Kernel<std::int32_t*, const T*, std::uint64_t, BinOf<T>, HistogramShape>;
using ClearCountsKernel = Kernel<std::int32_t*, std::uint32_t>;  // counts, how many

inline constexpr std::uint32_t kHistogramBlock = 1024;
inline constexpr std::uint32_t kClearCountsBlock = 256;

// The device code (kernels.cu); of float and std::int32_t.
template <class T>
HistogramKernel<T> histogram_kernel(HistogramRegime regime);
ClearCountsKernel clear_counts_kernel();

}  // namespace cgrt::kernels
