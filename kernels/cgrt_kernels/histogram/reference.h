// What a histogram means, in plain C++: the tests' reference and the kernels' host bodies.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cgrt_kernels/histogram/bin.h"
#include "cgrt_kernels/histogram/histogram_desc.h"

namespace cgrt::kernels {

template <class T>
void add_to_histogram(std::int32_t* counts, const T* in, std::uint64_t count, const BinOf<T>& bin_of) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int32_t bin = bin_of(in[i]);
    if (bin != bin_of.bins()) ++counts[bin];
  }
}

inline void histogram_reference(const HistogramDesc& desc, const HistogramArgs& args) {
  std::fill_n(args.counts, desc.bins, 0);
  if (desc.type == DType::kInt32) {
    add_to_histogram(args.counts, static_cast<const std::int32_t*>(args.in), desc.count, BinOf<std::int32_t>(desc));
  } else {
    add_to_histogram(args.counts, static_cast<const float*>(args.in), desc.count, BinOf<float>(desc));
  }
}

}  // namespace cgrt::kernels
