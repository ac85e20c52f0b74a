// The mask of one row, and how many of its columns it sees.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/softmax/kernels.h"

namespace cgrt::kernels {

template <class T>
struct MaskedRow {
  const T *mask, *end;  // null: none
  std::uint32_t seen;

  __device__ __forceinline__ MaskedRow(const SoftmaxParams& p, std::uint32_t row)
      : mask(nullptr), end(nullptr), seen(p.columns) {
    const std::uint32_t matrix = row / p.rows_of_matrix, in_matrix = row - matrix * p.rows_of_matrix;
    const std::uint32_t set = matrix / p.matrices_of_mask;
    if (p.mask != nullptr) {
      const std::uint64_t mask_row = std::uint64_t{set} * p.mask_rows + (p.mask_rows == 1 ? 0 : in_matrix);
      const std::uint32_t sets = p.rows / p.rows_of_matrix / p.matrices_of_mask;
      mask = static_cast<const T*>(p.mask) + mask_row * p.columns;
      end = static_cast<const T*>(p.mask) + std::uint64_t{sets} * p.mask_rows * p.columns;
    }
    if (p.lengths != nullptr) seen = static_cast<std::uint32_t>(max(min(p.lengths[set], static_cast<int>(seen)), 0));
    if (p.is_causal != 0) {
      const int last =
          static_cast<int>(in_matrix) + 1 + static_cast<int>(p.columns) - static_cast<int>(p.rows_of_matrix);
      seen = min(seen, static_cast<std::uint32_t>(max(last, 0)));
    }
  }
};

}  // namespace cgrt::kernels
