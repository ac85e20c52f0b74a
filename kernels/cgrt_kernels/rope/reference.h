// Rotary position embedding in double, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "cgrt_kernels/rope/rope_desc.h"

namespace cgrt::kernels {

// The elements of one query or key behind the bias, turned by a row of the table.
inline std::vector<double> rope_reference(RopePairs pairs, std::uint64_t rotary_size, const std::vector<double>& head,
                                          const float* row) {
  std::vector<double> turned = head;
  for (std::uint64_t i = 0; i < rotary_size / 2; ++i) {
    const std::uint64_t a = pairs == RopePairs::kHalves ? i : 2 * i;
    const std::uint64_t b = pairs == RopePairs::kHalves ? i + rotary_size / 2 : 2 * i + 1;
    const auto cosine = static_cast<double>(row[2 * i]), sine = static_cast<double>(row[2 * i + 1]);
    turned[a] = head[a] * cosine - head[b] * sine;
    turned[b] = head[b] * cosine + head[a] * sine;
  }
  return turned;
}

}  // namespace cgrt::kernels
