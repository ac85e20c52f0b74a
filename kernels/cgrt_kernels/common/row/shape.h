// How threads share rows: what the plans of softmax and norm choose from. Plain: kernels include it, too.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

inline constexpr std::uint32_t kMaxThreads = 512;  // of a block
inline constexpr std::uint32_t kMaxStages = 4;     // rows of a stream in flight

inline constexpr std::uint32_t kBulkPacksOfThread = 8;  // of a row in a bulk stream

// Of rows in a stream: `blocks` share a row, `share` columns each, of which `held` packs of 16 bytes lie in shared
// memory, for so many rows at once. holds_columns: what all rows need of a share's columns lies there, too.
struct RowShares {
  std::uint32_t blocks = 1, share = 0, held = 0, stages = 0, holds_columns = 0;
};

}  // namespace cgrt::kernels
