// What histogram's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/histogram/bin.h"
#include "cgrt_kernels/histogram/shape.h"

namespace cgrt::kernels {

template <class T>
struct HistogramParams {
  std::int32_t* counts;
  const T* in;
  std::uint64_t count;
  BinOf<T> bin_of;
  HistogramShape shape;
};

template <class T>
using HistogramKernel = Kernel<HistogramParams<T>>;
using ClearCountsKernel = Kernel<std::int32_t*, std::uint32_t>;  // counts, how many

inline constexpr std::uint32_t kHistogramBlock = 1024;
inline constexpr std::uint32_t kClearCountsBlock = 256;

// Of float and std::int32_t.
template <class T>
HistogramKernel<T> histogram_kernel(HistogramRegime regime);
ClearCountsKernel clear_counts_kernel();

}  // namespace cgrt::kernels
