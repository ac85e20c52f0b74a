// Images of the kernels of loaded_kernels.cu, to be loaded at run time, and what the simulator runs in their stead.
#pragma once

#include <string_view>
#include <utility>

#include "cgrt/launch/kernel.h"

namespace cgrt::testing {

// PTX is for devices of 8.0 and later, the others have code for 9.0.
std::string_view loaded_ptx();
std::string_view loaded_cubin();
std::string_view loaded_fatbin();
// Of bound_kernels.cu, for 8.0 with functions that are linked, and for 9.0.
std::string_view bound_cubin_80();
std::string_view bound_cubin_90();
inline std::pair<const char*, std::string_view> loaded_images(int i) {
  const std::pair<const char*, std::string_view> images[] = {
      {"PTX", loaded_ptx()}, {"cubin", loaded_cubin()}, {"fatbin", loaded_fatbin()}};
  return images[i];
}

// As in loaded_kernels.cu.
struct Range {
  double first;
  char step;
};

inline void loaded_scale(HostGrid, float* out, const float* in, float factor, int count) {
  for (int i = 0; i < count; ++i) out[i] = in[i] * factor;
}
inline void loaded_fill(HostGrid, Range range, float* out, short count) {
  for (int i = 0; i < count; ++i) {
    out[i] = static_cast<float>(range.first) + static_cast<float>(i) * static_cast<float>(range.step);
  }
}

inline void loaded_cluster_width(HostGrid grid, int* out) { *out = static_cast<int>(grid.cluster.x); }

}  // namespace cgrt::testing
