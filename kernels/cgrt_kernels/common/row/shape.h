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

inline constexpr int kBulkPacksOfThread = 8;  // of a row in a bulk stream

// Of rows in a bulk stream: `blocks` share a row, `share` columns each, for which shared memory has `stride` packs of
// 16 bytes, for so many rows at once.
struct RowShares {
  std::uint32_t blocks = 1, share = 0, stride = 0, stages = 0;
};

// Of rows in chunks (chunks.cuh): `chunks` a row, of `columns` each. `rows` are a group, which is written `lag` groups
// after it was read. Facts of `ring` rows, whole groups, are kept at once. Of each array shared memory has `stride`
// bytes for each of `stages` chunks in flight.
struct RowChunks {
  std::uint32_t chunks = 0, columns = 0, rows = 1, lag = 0, ring = 0, stages = 0, stride = 0;
};
inline constexpr std::uint32_t kChunkThreads = 256;  // of a block
// Of a thread, of each array: packs, or single elements.
constexpr int chunk_packs(int arrays) { return arrays == 2 ? 4 : 8; }
constexpr int chunk_elements(std::uint32_t bytes_of_element, int arrays) {
  return bytes_of_element == 4 || arrays == 2 ? 16 : 20;
}
// Of a workspace: counters of the launch and of each place in the ring, and bytes of scratch memory.
inline constexpr std::uint32_t kChunkCounters = 2, kCountersOfRow = 2;
constexpr std::uint64_t chunk_scratch_bytes(const RowChunks& rows, std::uint64_t bytes_of_part) {
  return std::uint64_t{rows.ring} * rows.chunks * bytes_of_part;
}

}  // namespace cgrt::kernels
