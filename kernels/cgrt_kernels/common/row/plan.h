// What the plans of softmax and norm share: how many threads and blocks take a row. For their .cpp files.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/common/row/shape.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kWarpThreads = 32;
inline constexpr std::uint32_t kMaxClusterBlocks = 8;    // that every device with clusters has
inline constexpr std::uint32_t kOtherShared = 4 * 1024;  // bytes of static and reserved shared memory, at most

// Rows between those that a block works on and those that it has fetched into the L2 cache: 4 MB, where 1 to 8 were
// good on an H200. As much as all blocks work on at once is too much.
inline std::uint32_t rows_ahead(std::uint64_t row_bytes) {
  constexpr std::uint64_t kBytesAhead = std::uint64_t{4} << 20;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(kBytesAhead / row_bytes, 1));
}

// A kernel and its launch; `shares` where rows are streamed.
template <class Regime>
struct RowShape {
  Regime regime;
  LaunchConfig config;
  RowShares shares = {};
};

// A warp for each row, or some of its lanes.
template <class Regime>
RowShape<Regime> share_among_lanes(std::uint64_t rows, Regime regime, std::uint32_t lanes = kWarpThreads) {
  constexpr std::uint32_t kThreads = 4 * kWarpThreads;  // of a block
  return {regime, {.grid = ceil_divide(rows, kThreads / lanes), .block = kThreads}};
}

// A block, or a cluster of blocks of at most `max_threads`, for each row, of which each thread keeps `per_thread`
// elements; nothing when that takes more than a cluster can have.
template <class Regime>
std::optional<RowShape<Regime>> share_among_blocks(const Machine& machine, std::uint64_t rows, std::uint64_t columns,
                                                   Regime regime, std::uint32_t per_thread,
                                                   std::uint32_t max_threads = kMaxThreads) {
  const std::uint32_t threads = ceil_divide(columns, per_thread);
  const std::uint32_t blocks = std::bit_ceil(ceil_divide(threads, max_threads));
  if (blocks > (machine.has_clusters ? kMaxClusterBlocks : 1) || rows * blocks > kMostCount) return std::nullopt;
  RowShape<Regime> shape{regime,
                         {.grid = static_cast<std::uint32_t>(rows) * blocks,
                          .block = ceil_divide(ceil_divide(threads, blocks), kWarpThreads) * kWarpThreads}};
  shape.config.attributes.cluster = blocks;
  return shape;
}

// Rows that are streamed through shared memory.
struct RowStream {
  std::uint64_t rows, columns;
  std::uint32_t pack;          // elements in 16 bytes
  std::uint32_t staged_bytes;  // of a column of a row that is in flight or worked on
  std::uint32_t column_bytes;  // of a column, that all rows need
};

// Persistent blocks or clusters, as many as run at once.
absl::StatusOr<std::pair<LaunchConfig, RowShares>> stream_in_clusters(const Machine& machine, KernelRef kernel,
                                                                      const RowStream& rows, std::uint32_t blocks);

// Blocks or clusters of `blocks` whose registers have a row, and as many of `stages` in flight as shared memory has
// room for. `blocks` is at least bulk_blocks_of(rows).
absl::StatusOr<std::pair<LaunchConfig, RowShares>> bulk_stream(const Machine& machine, KernelRef kernel,
                                                               const RowStream& rows, std::uint32_t blocks,
                                                               std::uint32_t stages);
std::uint32_t bulk_blocks_of(const RowStream& rows);

// The fewest blocks of a cluster whose shared memory has room for two rows and all that belongs to them; or as many as
// a cluster can have, when that is not enough.
std::uint32_t cluster_blocks_of(const Machine& machine, const RowStream& rows);

}  // namespace cgrt::kernels
