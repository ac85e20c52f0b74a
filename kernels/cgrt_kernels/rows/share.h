// How threads share a row that stays in their registers: for the plans of rows, rows_backward, masked_softmax and
// add_norm.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/plan.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kWarp = 32;
inline constexpr std::uint32_t kMostThreads = 512;       // of most blocks: see __launch_bounds__ in kernels.cu
inline constexpr std::uint32_t kMostBlocks = 8;          // of a cluster, everywhere
inline constexpr std::uint32_t kOtherShared = 4 * 1024;  // bytes of static and reserved shared memory, at most

// Rows between those that a block works on and those that it has fetched into the L2 cache: 4 MB, where 1 to 8 were
// good on an H200. As much as all blocks work on at once is too much.
inline std::uint32_t rows_ahead(std::uint64_t row_bytes) {
  constexpr std::uint64_t kBytesAhead = std::uint64_t{4} << 20;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(kBytesAhead / row_bytes, 1));
}

template <class Regime>
struct RowShape {
  Regime regime = Regime::kAny;
  LaunchConfig config;
};

// A kernel of one of those families, and its launch.
template <class Kernel>
struct RowLaunch {
  Kernel kernel;
  LaunchConfig config;
};

// Blocks of at most `most` threads that share a row of which each thread keeps `per_thread` elements;
// false when that takes more than a cluster can have.
template <class Regime>
bool share_among_blocks(const Machine& machine, std::uint64_t rows, std::uint64_t columns, Regime regime,
                        std::uint32_t per_thread, std::uint32_t most, RowShape<Regime>& shape) {
  const std::uint32_t threads = ceil_divide(columns, per_thread);
  const std::uint32_t blocks = std::bit_ceil(ceil_divide(threads, most));
  if (blocks > (machine.has_clusters ? kMostBlocks : 1) || rows * blocks > kMostCount) return false;
  shape.regime = regime;
  shape.config = {.grid = static_cast<std::uint32_t>(rows) * blocks,
                  .block = ceil_divide(ceil_divide(threads, blocks), kWarp) * kWarp};
  shape.config.attributes.cluster = blocks;
  return true;
}

// A warp for each row, or some of its lanes.
template <class Regime>
RowShape<Regime> share_among_warps(std::uint64_t rows, Regime regime, std::uint32_t lanes = kWarp) {
  constexpr std::uint32_t kThreads = 4 * kWarp;  // of a block
  return {regime, {.grid = ceil_divide(rows, kThreads / lanes), .block = kThreads}};
}

}  // namespace cgrt::kernels
