#include "cgrt_kernels/common/row/plan.h"

#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"

namespace cgrt::kernels {
namespace {

std::uint32_t room_of(const Machine& machine) { return machine.shared_per_block - kOtherShared; }

// Columns of a block's share: whole packs.
std::uint32_t share_of(const RowStream& rows, std::uint32_t blocks) {
  return ceil_divide(ceil_divide(rows.columns, blocks), rows.pack) * rows.pack;
}

// Bytes of shared memory that a share takes. Each array of columns may be a pack longer.
std::uint64_t bytes_of(const RowStream& rows, std::uint32_t share, std::uint32_t stages) {
  const std::uint64_t of_columns = rows.column_bytes == 0 ? 0 : std::uint64_t{share + 64} * rows.column_bytes;
  return std::uint64_t{share} * rows.staged_bytes * stages + of_columns;
}

// Four packs for each thread, so that several small blocks share a multiprocessor.
std::uint32_t threads_of(const RowStream& rows, std::uint32_t share) {
  constexpr std::uint32_t kPacks = 4;
  const std::uint32_t threads = ceil_divide(share / rows.pack, kPacks * kWarpThreads) * kWarpThreads;
  return std::clamp(threads, 2 * kWarpThreads, kMaxThreads);
}

// What of a share lies in shared memory, when not all does: that comes before what all rows need of its columns.
RowShares shares_of(const Machine& machine, const RowStream& rows, std::uint32_t blocks, std::uint32_t stages) {
  const std::uint32_t share = share_of(rows, blocks);
  RowShares shares{.blocks = blocks, .share = share, .held = share / rows.pack, .stages = stages};
  if (bytes_of(rows, share, stages) <= room_of(machine)) {
    shares.holds_columns = rows.column_bytes != 0 ? 1 : 0;
  } else {
    shares.held = std::min(shares.held, room_of(machine) / (rows.staged_bytes * rows.pack * stages));
  }
  return shares;
}

std::uint32_t shared_bytes(const RowStream& rows, const RowShares& shares) {
  const std::uint32_t staged = shares.held * rows.pack * rows.staged_bytes * shares.stages;
  return staged + (shares.holds_columns != 0 ? (shares.share + 64) * rows.column_bytes : 0);
}

std::uint32_t cluster_blocks_of(const Machine& machine, const RowStream& rows) {
  const std::uint32_t max_blocks = machine.has_clusters ? kMaxClusterBlocks : 1;
  if (rows.rows * max_blocks <= machine.sms) return max_blocks;
  std::uint32_t blocks = 1;
  while (blocks < max_blocks && bytes_of(rows, share_of(rows, blocks), 2) > room_of(machine)) blocks *= 2;
  return blocks;
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

std::uint32_t bulk_blocks_of(const RowStream& rows) {
  return std::bit_ceil(ceil_divide(rows.columns, std::uint64_t{kMaxThreads} * kBulkPacksOfThread * rows.pack));
}

absl::StatusOr<std::pair<LaunchConfig, RowShares>> bulk_stream(const Machine& machine, KernelRef kernel,
                                                               const RowStream& rows, std::uint32_t blocks,
                                                               std::uint32_t stages) {
  const std::uint32_t share = share_of(rows, blocks), packs = share / rows.pack;
  const RowShares shares{
      .blocks = blocks, .share = share, .held = packs, .stages = std::min(room_of(machine) / (packs * 16), stages)};
  LaunchConfig config{.grid = blocks,
                      .block = ceil_divide(packs, kBulkPacksOfThread * kWarpThreads) * kWarpThreads,
                      .shared_bytes = shares.stages * packs * 16};
  config.attributes.cluster = blocks;
  CGRT_RETURN_IF_ERROR(set_persistent_grid(machine, kernel, rows.rows, config));
  return std::pair(config, shares);
}

absl::StatusOr<std::pair<LaunchConfig, RowShares>> stream_in_clusters(const Machine& machine, KernelRef kernel,
                                                                      const RowStream& rows) {
  const std::uint32_t blocks = cluster_blocks_of(machine, rows);
  // More rows in flight where shares are small.
  constexpr std::uint32_t kEnough = 16 * 1024;
  const std::uint32_t of_stage = share_of(rows, blocks) * rows.staged_bytes;
  const RowShares shares = shares_of(machine, rows, blocks, of_stage <= kEnough ? 3 : 2);
  LaunchConfig config{.grid = blocks, .block = threads_of(rows, shares.share)};
  config.shared_bytes = shared_bytes(rows, shares);
  config.attributes.cluster = blocks;
  CGRT_RETURN_IF_ERROR(set_persistent_grid(machine, kernel, rows.rows, config));
  return std::pair(config, shares);
}

}  // namespace cgrt::kernels
