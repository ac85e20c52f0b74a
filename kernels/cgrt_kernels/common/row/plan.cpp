#include "cgrt_kernels/common/row/plan.h"

#include <numeric>

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

// Of a block of a bulk stream.
struct BulkBytes {
  std::uint32_t threads, of_stage, of_columns;
};
BulkBytes bulk_bytes(const LongRows& rows, Alignment alignment, std::uint32_t blocks) {
  const bool is_aligned = alignment == Alignment::kAligned;
  const std::uint32_t packs = share_of(rows, blocks) / rows.pack();
  const std::uint32_t threads = ceil_divide(packs, kBulkPacksOfThread * kWarpThreads) * kWarpThreads;
  return {threads, rows.arrays * (packs + (is_aligned ? 0 : 2)) * 16,  // with what is around
          is_aligned ? 0 : rows.column_bytes / rows.size * threads * kBulkPacksOfThread * 16};
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
  // Smaller blocks wait less for each other, until what they do alone costs more.
  std::uint32_t blocks = bulk_blocks_of(rows);
  if (rows.size == 4 && blocks < kMaxClusterBlocks) blocks *= 2;
  for (; blocks <= kMaxClusterBlocks; blocks *= 2) {
    const BulkBytes bytes = bulk_bytes(rows, Alignment::kUnaligned, blocks);
    if (bytes.of_columns + bytes.of_stage <= room_of(machine)) return BulkShape{blocks, 2};
  }
  return std::nullopt;
}

absl::Status set_bulk_stream(const Machine& machine, KernelRef kernel, const LongRows& rows, Alignment alignment,
                             const BulkShape& shape, LaunchConfig& config, RowShares& shares) {
  const BulkBytes bytes = bulk_bytes(rows, alignment, shape.blocks);
  shares = {.blocks = shape.blocks,
            .share = share_of(rows, shape.blocks),
            .stride = bytes.of_stage / rows.arrays / 16,
            .stages = std::min((room_of(machine) - bytes.of_columns) / bytes.of_stage, shape.stages)};
  config = {
      .grid = shape.blocks, .block = bytes.threads, .shared_bytes = shares.stages * bytes.of_stage + bytes.of_columns};
  config.attributes.cluster = shape.blocks;
  CGRT_RETURN_IF_ERROR(set_persistent_grid(machine, kernel, rows.rows, config));
  // All rows of a block begin alike between multiples of 16 bytes.
  const std::uint32_t groups = config.grid.x / shape.blocks;
  const auto alike = static_cast<std::uint32_t>(16 / std::gcd<std::uint64_t>(rows.columns * rows.size, 16));
  if (groups < rows.rows) {
    const std::uint64_t all_alike = std::max(groups / alike, 1u) * std::uint64_t{alike};
    config.grid = static_cast<std::uint32_t>(std::min(all_alike, rows.rows)) * shape.blocks;
  }
  return absl::OkStatus();
}

absl::Status set_chunks(const Machine& machine, KernelRef kernel, const LongRows& rows, int elements,
                        LaunchConfig& config, RowChunks& chunks) {
  const auto columns = static_cast<std::uint32_t>(kChunkThreads * elements);
  const std::uint64_t of_row = ceil_divide<std::uint64_t>(rows.columns, columns);
  const std::uint64_t groups = ceil_divide<std::uint64_t>(rows.rows, rows.rows_of_group);
  const std::uint64_t tickets = 2 * groups * of_row;
  if (tickets > kMostCount) {
    return refuse(rows.name, absl::StrCat(rows.rows, " rows of ", rows.columns, " columns are ", groups, " groups of ",
                                          of_row, " chunks; the limit is ", kMostCount / 2, " in all."));
  }
  chunks = {.chunks = static_cast<std::uint32_t>(of_row),
            .columns = columns,
            .rows = rows.rows_of_group,
            .stages = 3,
            .stride = columns * rows.size + 32};  // with what is around
  const auto shared_bytes = [&] { return chunks.stages * rows.arrays * chunks.stride + columns * rows.column_bytes; };
  constexpr std::uint32_t kOfTwo = 112 * 1024;  // two blocks have room
  if (shared_bytes() > kOfTwo) chunks.stages = 2;
  config = {.grid = 1, .block = kChunkThreads, .shared_bytes = shared_bytes()};
  CGRT_RETURN_IF_ERROR(set_persistent_grid(machine, kernel, tickets, config));
  // A block that writes should not have to wait: all that is before it has been drawn, and worked on, long ago.
  const std::uint64_t ahead = config.grid.x * std::uint64_t{2 + ceil_divide(chunks.stages, chunks.rows)};
  const std::uint32_t max_rows = std::min((WorkspaceHeader::kCounters - kChunkCounters) / kCountersOfRow,
                                          WorkspaceHeader::kPartWords * 4 / rows.part_bytes);
  const std::uint32_t max_ring = max_rows / chunks.rows;  // groups
  const std::uint64_t lag = ceil_divide<std::uint64_t>(ahead, 2 * of_row) + 1;
  chunks.lag = static_cast<std::uint32_t>(std::min({lag, groups, std::uint64_t{max_ring} / 2 - 1}));
  chunks.ring = std::min(2 * chunks.lag + 2, max_ring) * chunks.rows;
  return absl::OkStatus();
}

}  // namespace cgrt::kernels
