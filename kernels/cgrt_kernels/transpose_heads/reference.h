// Where each row of a transposition comes from, for tests and the simulator's host body.
#pragma once

#include <cstdint>

#include "cgrt_kernels/transpose_heads/transpose_heads_desc.h"

namespace cgrt::kernels {

// The row of tokens of a position, or -1 when it is padding. `offsets` are null with padded rows.
inline std::int64_t token_row_reference(const std::int32_t* offsets, std::uint64_t positions, std::uint64_t tokens,
                                        std::uint64_t sequence, std::uint64_t position) {
  if (offsets == nullptr) return static_cast<std::int64_t>(sequence * positions + position);
  const std::int64_t row = std::int64_t{offsets[sequence]} + static_cast<std::int64_t>(position);
  return offsets[sequence] >= 0 && row < offsets[sequence + 1] && row < static_cast<std::int64_t>(tokens) ? row : -1;
}

}  // namespace cgrt::kernels
