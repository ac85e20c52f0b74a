// What the plans of softmax and norm share: how many threads and blocks take a row. For their .cpp files.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/launch.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/common/row/launch.h"
#include "cgrt_kernels/common/row/shape.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kWarpThreads = 32;
inline constexpr std::uint32_t kMaxClusterBlocks = 8;        // that every device with clusters has
inline constexpr std::uint32_t kMaxLargeClusterBlocks = 16;  // that an H200 has
inline constexpr std::uint32_t kOtherShared = 4 * 1024;      // bytes of static and reserved shared memory, at most

// Rows between those that a block works on and those that it has fetched into the L2 cache: 4 MB, where 1 to 8 were
// good on an H200. As much as all blocks work on at once is too much.
inline std::uint32_t rows_ahead(std::uint64_t row_bytes) {
  constexpr std::uint64_t kBytesAhead = std::uint64_t{4} << 20;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(kBytesAhead / row_bytes, 1));
}

// How the threads share a row that stays in registers.
template <class Regime>
struct RowShape {
  Regime regime;
  LaunchConfig config;
};

// A warp for each row, or some of its lanes.
template <class Regime>
RowShape<Regime> share_among_lanes(std::uint64_t rows, Regime regime, std::uint32_t lanes = kWarpThreads) {
  constexpr std::uint32_t kThreads = 4 * kWarpThreads;  // of a block
  return {regime, {.grid = ceil_divide(rows, kThreads / lanes), .block = kThreads}};
}

// Few short rows: what counts is how soon a kernel is done, and that is how little code it has to fetch. A lane has up
// to `of_lane` elements.
inline bool are_few_short(const Machine& machine, std::uint64_t rows, std::uint64_t columns, std::uint32_t of_lane) {
  return rows <= machine.sms && columns <= of_lane * kWarpThreads;
}
// A warp for each: `half` where so many elements suffice.
template <class Regime>
RowShape<Regime> share_few_short(std::uint64_t rows, std::uint64_t columns, Regime half, Regime all) {
  return {columns <= kFewElements / 2 * kWarpThreads ? half : all,
          {.grid = static_cast<std::uint32_t>(rows), .block = kWarpThreads}};
}

// Whether so many rows for each warp leave no multiprocessor without work.
inline bool are_enough_warps(const Machine& machine, std::uint64_t rows, std::uint32_t of_warp) {
  constexpr std::uint32_t kWarpsOfSm = 16;
  return rows / of_warp >= std::uint64_t{kWarpsOfSm} * machine.sms;
}

// Many rows of up to 255 columns, which pass through a warp's shared memory (lanes.cuh).
struct StageShape {
  LaunchConfig config;
  RowShares shares;
};
inline std::optional<StageShape> share_among_stages(const Machine& machine, std::uint64_t rows, std::uint64_t columns,
                                                    std::uint32_t size) {
  constexpr std::uint32_t kBytes = 3584, kMaxRounds = 16, kBehind = 1024;  // of a stage; that lanes may read behind it
  const std::uint32_t at_once = size == 4 && columns > 128 ? 1 : 2;        // rows of a warp
  if (columns > 255) return std::nullopt;
  const std::uint32_t bytes = at_once * static_cast<std::uint32_t>(columns) * size;
  const std::uint32_t rounds = std::clamp(kBytes / bytes, 1u, kMaxRounds);
  if (!are_enough_warps(machine, rows, at_once * rounds)) return std::nullopt;
  const std::uint32_t warps = kLaneThreads / kWarpThreads,
                      stride = ceil_divide(bytes * rounds, 16) + 2;  // what is around
  return StageShape{{.grid = ceil_divide(rows, warps * at_once * rounds),
                     .block = kLaneThreads,
                     .shared_bytes = warps * stride * 16 + kBehind},
                    {.stride = stride, .stages = rounds}};
}

// A block, or a cluster of up to `max_blocks` of at most `max_threads`, for each row, of which each thread keeps
// `per_thread` elements; nothing when that takes more than a cluster can have.
template <class Regime>
std::optional<RowShape<Regime>> share_among_blocks(const Machine& machine, std::uint64_t rows, std::uint64_t columns,
                                                   Regime regime, std::uint32_t per_thread,
                                                   std::uint32_t max_threads = kMaxThreads,
                                                   std::uint32_t max_blocks = kMaxClusterBlocks) {
  const std::uint32_t threads = ceil_divide(columns, per_thread);
  const std::uint32_t blocks = std::bit_ceil(ceil_divide(threads, max_threads));
  if (blocks > (machine.has_clusters ? max_blocks : 1) || rows * blocks > kMaxCount) return std::nullopt;
  RowShape<Regime> shape{regime,
                         {.grid = static_cast<std::uint32_t>(rows) * blocks,
                          .block = ceil_divide(ceil_divide(threads, blocks), kWarpThreads) * kWarpThreads}};
  shape.config.attributes.cluster = blocks;
  return shape;
}

// Rows that do not stay in registers.
struct LongRows {
  OperationName name;
  std::uint64_t rows, columns;
  std::uint32_t size, arrays;   // bytes of an element, arrays that are read
  std::uint32_t part_bytes;     // what is found out about a part of a row
  std::uint32_t column_arrays;  // that all rows need
  std::uint32_t pack() const { return 16 / size; }
};

absl::Status set_slices(const Machine& machine, KernelRef kernel, const LongRows& rows, LaunchConfig& config,
                        RowSlices& slices);
// What is read twice without harm, as the L2 cache keeps it.
bool are_cached(const LongRows& rows);
// The same where clusters of so many blocks would leave much of the device without rows.
bool gains_from_chunks(const Machine& machine, const LongRows& rows, std::uint32_t blocks);
void set_chunks(const Machine& machine, const LongRows& rows, std::uint32_t max_columns, LaunchConfig& config,
                RowSlices& chunks);

// Whether the device has room for the launch's clusters where they have more than kMaxClusterBlocks, which the kernel
// is then allowed to ask for; true for others. An error of the driver is none of these answers.
absl::StatusOr<bool> can_have_cluster(const Machine& machine, KernelRef kernel, const LaunchConfig& config);

// Sets the grid of a launch of persistent blocks or clusters: as many as run at once, but not more than rows.
absl::Status set_persistent_grid(const Machine& machine, KernelRef kernel, std::uint64_t rows, LaunchConfig& config);
// Leaves so many of them that all rows of a block begin alike between multiples of 16 bytes.
void keep_alike(const LongRows& rows, LaunchConfig& config);

// The fewest blocks whose registers have a row.
std::uint32_t bulk_blocks_of(const LongRows& rows);
// Persistent blocks, or clusters, whose registers have a row, and so many in flight.
struct BulkShape {
  std::uint32_t blocks, stages;
};
// Of rows that are not aligned; none where a cluster has no room.
std::optional<BulkShape> unaligned_bulk(const Machine& machine, const LongRows& rows);
absl::Status set_bulk_stream(const Machine& machine, KernelRef kernel, const LongRows& rows, Alignment alignment,
                             const BulkShape& shape, LaunchConfig& config, RowShares& shares);
// As many stages as shared memory has room for, if fewer.
template <class Params>
absl::StatusOr<RowLaunch<Params>> bulk_stream(const Machine& machine, const Kernel<Params>& kernel,
                                              const LongRows& rows, Alignment alignment, const BulkShape& shape) {
  RowLaunch<Params> launch{.kernel = kernel};
  CGRT_RETURN_IF_ERROR(set_bulk_stream(machine, kernel, rows, alignment, shape, launch.config, launch.shares));
  return launch;
}

// Slices for groups of blocks of the whole device: rows of any length.
template <class Params>
absl::StatusOr<RowLaunch<Params>> in_slices(const Machine& machine, const Kernel<Params>& kernel,
                                            const LongRows& rows) {
  RowLaunch<Params> launch{.kernel = kernel};
  CGRT_RETURN_IF_ERROR(set_slices(machine, kernel, rows, launch.config, launch.slices));
  launch.workspace_bytes = workspace_with(0);
  return launch;
}

// A second kernel for what the first one has left of each chunk in the workspace.
template <class Params>
void set_second(const Machine& machine, const Kernel<Params>& kernel, const LaunchConfig& config, const LongRows& rows,
                RowLaunch<Params>& launch) {
  launch.second = {kernel, config, machine.has_programmatic_edges ? EdgeKind::kProgrammatic : EdgeKind::kFull};
  launch.workspace_bytes = workspace_with(rows.rows * launch.slices.chunks * rows.part_bytes);
}

// Chunks, for two kernels that pass through them.
template <class Params>
RowLaunch<Params> in_chunks(const Machine& machine, const Kernel<Params>& find, const Kernel<Params>& write,
                            const LongRows& rows) {
  constexpr std::uint32_t kMaxBytes = 32 * 1024;  // of a chunk
  RowLaunch<Params> launch{.kernel = find};
  set_chunks(machine, rows, kMaxBytes / rows.arrays / rows.size, launch.config, launch.slices);
  set_second(machine, write, launch.config, rows, launch);
  return launch;
}

// The kernel of a launch, or the two.
template <class Params>
absl::Status launch_rows(LaunchTarget target, const RowLaunch<Params>& rows, const Params& params) {
  CGRT_RETURN_IF_ERROR(launch(target, rows.config, rows.kernel, params));
  if (!rows.second) return absl::OkStatus();
  return launch(rows.second->edge == EdgeKind::kProgrammatic ? target.programmatic() : target, rows.second->config,
                rows.second->kernel, params);
}

// The launches for aligned arrays, if rows of so many bytes are aligned, and for others: launch_for(machine, alignment)
// gives each, without clusters where none of those that it asks for fits.
template <class Params, class LaunchFor>
absl::StatusOr<RowLaunches<Params>> plan_row_launches(const Machine& machine, std::uint64_t row_bytes,
                                                      LaunchFor launch_for) {
  const auto plan = [&](Alignment alignment) {
    return choose_with_room(
        machine, [&](const Machine& some) -> absl::StatusOr<RowLaunch<Params>> { return launch_for(some, alignment); });
  };
  const absl::StatusOr<RowLaunch<Params>> unaligned = plan(Alignment::kUnaligned);
  if (!unaligned.ok()) return unaligned.status();
  CGRT_RETURN_IF_ERROR(preload(unaligned->kernel, machine.context));
  if (unaligned->second) CGRT_RETURN_IF_ERROR(preload(unaligned->second->kernel, machine.context));
  if (row_bytes % 16 != 0) return RowLaunches<Params>{*unaligned, *unaligned};
  const absl::StatusOr<RowLaunch<Params>> aligned = plan(Alignment::kAligned);
  if (!aligned.ok()) return aligned.status();
  CGRT_RETURN_IF_ERROR(preload(aligned->kernel, machine.context));
  if (aligned->second) CGRT_RETURN_IF_ERROR(preload(aligned->second->kernel, machine.context));
  return RowLaunches<Params>{*aligned, *unaligned};
}

}  // namespace cgrt::kernels
