#include "cgrt_kernels/common/row/plan.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"

namespace cgrt::kernels {
namespace {

std::uint32_t room_of(const Machine& machine) { return machine.shared_per_block - kOtherShared; }

// Columns of a block's share: whole packs.
std::uint32_t share_of(const LongRows& rows, std::uint32_t blocks) {
  return ceil_divide(ceil_divide(rows.columns, blocks), rows.pack()) * rows.pack();
}

}  // namespace

absl::Status set_persistent_grid(const Machine& machine, KernelRef kernel, std::uint64_t rows, LaunchConfig& config) {
  const std::uint32_t blocks = config.attributes.cluster.x;
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(kernel, machine, config.shared_bytes));
  std::uint32_t at_once = 0;
  if (blocks > 1) {
    CGRT_ASSIGN_OR_RETURN(const int clusters, max_active_clusters(kernel, machine.context, config.attributes.cluster,
                                                                  config.block, config.shared_bytes));
    at_once = static_cast<std::uint32_t>(clusters);
  } else {
    CGRT_ASSIGN_OR_RETURN(const Occupancy of_sm, occupancy(kernel, machine.context, config.block, config.shared_bytes));
    at_once = static_cast<std::uint32_t>(of_sm.blocks_per_sm) * machine.sms;
  }
  config.grid = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::max(at_once, 1u), rows)) * blocks;
  return absl::OkStatus();
}

std::uint32_t bulk_blocks_of(const LongRows& rows) {
  return std::bit_ceil(ceil_divide(rows.columns, std::uint64_t{kMaxThreads} * kBulkPacksOfThread * rows.pack()));
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> unaligned_bulk(const Machine& machine, const LongRows& rows) {
  if (!machine.has_clusters) return std::nullopt;
  std::uint32_t min_stages = 2;
  std::uint32_t blocks = bulk_blocks_of(rows);
  if (const char* trial = std::getenv("TRIAL_BLOCKS")) blocks *= static_cast<std::uint32_t>(std::atoi(trial));
  for (; blocks <= kMaxClusterBlocks; blocks *= 2) {
    const std::uint32_t share = share_of(rows, blocks);
    const std::uint32_t of_columns = rows.column_bytes * (share + 2 * rows.pack());
    const std::uint32_t of_stage = rows.arrays * (share * rows.size + 32);
    if (of_columns + min_stages * of_stage > room_of(machine)) continue;
    std::uint32_t stages = min_stages;
    if (const char* trial = std::getenv("TRIAL_STAGES")) stages = static_cast<std::uint32_t>(std::atoi(trial));
    stages = std::min(stages, (room_of(machine) - of_columns) / of_stage);
    return std::pair(blocks, std::min(stages, kMaxStages));
  }
  return std::nullopt;
}

absl::Status set_bulk_stream(const Machine& machine, KernelRef kernel, const LongRows& rows, Alignment alignment,
                             std::uint32_t blocks, std::uint32_t stages, LaunchConfig& config, RowShares& shares) {
  const bool is_aligned = alignment == Alignment::kAligned;
  const std::uint32_t share = share_of(rows, blocks), packs = share / rows.pack();
  const std::uint32_t stride = packs + (is_aligned ? 0 : 2);  // with what is around
  shares = {.blocks = blocks,
            .share = share,
            .stride = stride,
            .stages = std::min(room_of(machine) / (rows.arrays * stride * 16), stages)};
  config = {.grid = blocks,
            .block = ceil_divide(packs, kBulkPacksOfThread * kWarpThreads) * kWarpThreads,
            .shared_bytes = shares.stages * rows.arrays * stride * 16};
  if (!is_aligned) config.shared_bytes += rows.column_bytes * (share + 2 * rows.pack());
  config.attributes.cluster = blocks;
  return set_persistent_grid(machine, kernel, rows.rows, config);
}

absl::Status set_chunks(const Machine& machine, KernelRef kernel, const LongRows& rows, LaunchConfig& config,
                        RowChunks& chunks) {
  const std::uint32_t columns = kChunkThreads * kChunkPacks * rows.pack();
  const std::uint64_t of_row = ceil_divide<std::uint64_t>(rows.columns, columns);
  const std::uint64_t groups = ceil_divide<std::uint64_t>(rows.rows, rows.rows_of_group);
  const std::uint64_t tickets = groups * of_row * (rows.rows_of_group + 1);
  if (tickets > kMostCount) {
    return refuse(rows.name, absl::StrCat(rows.rows, " rows of ", rows.columns, " columns are more than ", kMostCount,
                                          " chunks of ", columns, " columns."));
  }
  CGRT_RETURN_IF_ERROR(set_persistent_grid(machine, kernel, tickets, config));
  // A block that writes should not have to wait: all that is before it has been drawn, and worked on, long ago.
  const std::uint64_t ahead = 5 * std::uint64_t{config.grid.x} / 2;
  const std::uint32_t max_ring =
      (WorkspaceHeader::kCounters - kChunkCounters) / kCountersOfRow / rows.rows_of_group;  // groups
  const std::uint64_t lag = ceil_divide<std::uint64_t>(ahead, of_row * (rows.rows_of_group + 1)) + 1;
  chunks = {.chunks = static_cast<std::uint32_t>(of_row), .columns = columns, .rows = rows.rows_of_group};
  chunks.lag = static_cast<std::uint32_t>(std::min({lag, groups, std::uint64_t{max_ring} / 2 - 1}));
  chunks.ring = std::min(2 * chunks.lag + 2, max_ring) * rows.rows_of_group;
  return absl::OkStatus();
}

}  // namespace cgrt::kernels
