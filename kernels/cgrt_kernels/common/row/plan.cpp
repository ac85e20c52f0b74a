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

std::optional<BulkShape> unaligned_bulk(const Machine& machine, const LongRows& rows) {
  if (!machine.has_clusters) return std::nullopt;
  const char* const trial = std::getenv("TRIAL_ELEMENTS");
  for (const bool is_long : {false, true}) {
    const std::uint32_t elements = is_long ? long_bulk_elements(rows.register_bytes) : kBulkElements;
    if (trial != nullptr && static_cast<int>(elements) < std::atoi(trial)) continue;
    std::uint32_t blocks =
        std::bit_ceil(ceil_divide(rows.columns, std::uint64_t{is_long ? kLongBulkThreads : kBulkThreads} * elements));
    if (const char* more = std::getenv("TRIAL_BLOCKS")) blocks *= static_cast<std::uint32_t>(std::atoi(more));
    if (blocks > kMaxClusterBlocks) continue;
    const std::uint32_t share = share_of(rows, blocks);
    const std::uint32_t of_columns = rows.column_bytes * (share + 2 * rows.pack());
    const std::uint32_t of_stage = rows.arrays * (share * rows.size + 32);
    if (of_columns + of_stage > room_of(machine)) continue;
    std::uint32_t stages = 2;
    if (const char* more = std::getenv("TRIAL_STAGES")) stages = static_cast<std::uint32_t>(std::atoi(more));
    stages = std::min({stages, (room_of(machine) - of_columns) / of_stage, kMaxStages});
    return BulkShape{blocks, ceil_divide(share, elements * kWarpThreads) * kWarpThreads, stages, is_long};
  }
  return std::nullopt;
}

// Threads of an aligned bulk stream.
BulkShape aligned_bulk(const LongRows& rows, std::uint32_t blocks, std::uint32_t stages) {
  const std::uint32_t packs = share_of(rows, blocks) / rows.pack();
  return {blocks, ceil_divide(packs, kBulkPacksOfThread * kWarpThreads) * kWarpThreads, stages};
}

absl::Status set_bulk_stream(const Machine& machine, KernelRef kernel, const LongRows& rows, Alignment alignment,
                             const BulkShape& shape, LaunchConfig& config, RowShares& shares) {
  const bool is_aligned = alignment == Alignment::kAligned;
  const std::uint32_t share = share_of(rows, shape.blocks);
  const std::uint32_t stride = share / rows.pack() + (is_aligned ? 0 : 2);  // with what is around
  const std::uint32_t of_stage = rows.arrays * stride * 16;
  shares = {.blocks = shape.blocks,
            .share = share,
            .stride = stride,
            .stages = std::min(room_of(machine) / of_stage, shape.stages)};
  config = {.grid = shape.blocks, .block = shape.threads, .shared_bytes = shares.stages * of_stage};
  if (!is_aligned) config.shared_bytes += rows.column_bytes * (share + 2 * rows.pack());
  config.attributes.cluster = shape.blocks;
  return set_persistent_grid(machine, kernel, rows.rows, config);
}

absl::Status set_chunks(const Machine& machine, KernelRef kernel, const LongRows& rows, int elements,
                        LaunchConfig& config, RowChunks& chunks) {
  const auto columns = static_cast<std::uint32_t>(kChunkThreads * elements);
  const std::uint64_t of_row = ceil_divide<std::uint64_t>(rows.columns, columns);
  const std::uint64_t groups = ceil_divide<std::uint64_t>(rows.rows, rows.rows_of_group);
  const std::uint64_t tickets = 2 * groups * of_row;
  if (tickets > kMostCount) {
    return refuse(rows.name, absl::StrCat(rows.rows, " rows of ", rows.columns, " columns are more than ", kMostCount,
                                          " chunks of ", columns, " columns."));
  }
  chunks = {.chunks = static_cast<std::uint32_t>(of_row),
            .columns = columns,
            .rows = rows.rows_of_group,
            .stages = rows.arrays * rows.size == 8 ? 2u : 3u,
            .stride = columns * rows.size + 32};  // with what is around
  config = {.grid = 1,
            .block = kChunkThreads,
            .shared_bytes = chunks.stages * rows.arrays * chunks.stride + columns * rows.column_bytes};
  CGRT_RETURN_IF_ERROR(set_persistent_grid(machine, kernel, tickets, config));
  // A block that writes should not have to wait: all that is before it has been drawn, and worked on, long ago.
  std::uint64_t ahead = config.grid.x * std::uint64_t{2 + ceil_divide(chunks.stages, chunks.rows)};
  if (const char* trial = std::getenv("TRIAL_LAG")) ahead = ahead * static_cast<std::uint64_t>(std::atoi(trial)) / 100;
  const std::uint32_t max_ring =
      (WorkspaceHeader::kCounters - kChunkCounters) / kCountersOfRow / chunks.rows;  // groups
  const std::uint64_t lag = ceil_divide<std::uint64_t>(ahead, 2 * of_row) + 1;
  chunks.lag = static_cast<std::uint32_t>(std::min({lag, groups, std::uint64_t{max_ring} / 2 - 1}));
  chunks.ring = std::min(2 * chunks.lag + 2, max_ring) * chunks.rows;
  return absl::OkStatus();
}

}  // namespace cgrt::kernels
