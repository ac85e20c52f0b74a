// Dropout, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/philox.h"
#include "cgrt_kernels/dropout/dropout_desc.h"

namespace cgrt::kernels {

// Which elements a forward launch keeps.
inline std::vector<bool> dropout_mask_reference(const DropoutDesc& desc, const RandomState& state) {
  std::vector<bool> kept(desc.count);
  const double threshold = static_cast<double>(desc.probability) * 4294967296.0;
  for (std::uint64_t i = 0; i < desc.count; ++i) {
    kept[i] = static_cast<double>(random4(state.seed, state.offset + i / 4).of[i % 4]) >= threshold;
  }
  return kept;
}

}  // namespace cgrt::kernels
