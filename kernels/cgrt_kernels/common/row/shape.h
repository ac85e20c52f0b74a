// How threads share rows: what the plans of softmax and norm choose from. Plain: kernels include it, too.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/alignment.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kMaxThreads = 512;  // of a block
inline constexpr std::uint32_t kMaxStages = 4;     // rows of a stream in flight

inline constexpr std::uint32_t kLaneThreads = 128;  // of a block whose lanes take short rows
// Rows that such a lane has at once: as many as take 32 registers.
constexpr int lane_rows(std::uint32_t bytes_of_element, int arrays, Alignment alignment) {
  return (alignment == Alignment::kAligned ? 8 / static_cast<int>(bytes_of_element) : 4) / arrays;
}

inline constexpr std::uint32_t kFewElements = 8;  // of a lane that has few short rows' elements one by one

inline constexpr int kBulkPacksOfThread = 8;  // of a row in a bulk stream

// Of rows in a bulk stream: `blocks` share a row, `share` columns each, for which shared memory has `stride` packs of
// 16 bytes, for so many rows at once.
struct RowShares {
  std::uint32_t blocks = 1, share = 0, stride = 0, stages = 0;
};

// Of rows in slices (slices.cuh). Each of `groups` of `members` blocks takes a row at a time, of which a member has a
// slice of `share` columns: `chunks` of `columns` each. A chunk is written `lag` chunks after it was read; until then
// it is kept in shared memory, if `is_kept`. Of each array shared memory has `stride` bytes for each of `stages`
// chunks. Facts of `ring` rows of a group are kept at once. Behind the stages there are `held` bytes, if not 0, for
// each array of what belongs to a slice's columns.
struct RowSlices {
  std::uint32_t groups = 0, members = 0, share = 0, chunks = 0, columns = 0;
  std::uint32_t lag = 0, stages = 0, stride = 0, ring = 0, is_kept = 0, held = 0;
};
// Of a block: threads that work on elements, warps that help them, and what there is room for.
inline constexpr std::uint32_t kSliceWorkers = 640, kSliceHelpers = 4 * 32,
                               kSliceThreads = kSliceWorkers + kSliceHelpers;
inline constexpr std::uint32_t kMaxSliceStages = 12, kMaxSlicePlaces = 256;

// Rows in chunks (chunks.cuh) have `chunks` of `columns` in RowSlices, for which shared memory has `stride` bytes of
// each array.
inline constexpr std::uint32_t kChunkThreads = 256;  // of a block

}  // namespace cgrt::kernels
