#include "cgrt_kernels/common/row/plan.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/status.h"
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
          is_aligned ? 0 : rows.column_arrays * threads * kBulkPacksOfThread * 16};
}

}  // namespace

absl::StatusOr<bool> can_have_cluster(const Machine& machine, KernelRef kernel, const LaunchConfig& config) {
  const Dim3 cluster = config.attributes.cluster;
  if (cluster.count() <= kMaxClusterBlocks) return true;
  CGRT_RETURN_IF_ERROR(allow_large_clusters(kernel, machine.device));
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(kernel, machine, config.shared_bytes));
  const auto clusters = max_active_clusters(kernel, machine.context, cluster, config.block, config.shared_bytes);
  if (cuda_result(clusters.status()) == CUDA_ERROR_INVALID_CLUSTER_SIZE) return false;
  if (!clusters.ok()) return clusters.status();
  return *clusters > 0;
}

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

void keep_alike(const LongRows& rows, LaunchConfig& config) {
  const std::uint32_t blocks = config.attributes.cluster.x, groups = config.grid.x / blocks;
  if (groups >= rows.rows) return;
  const auto alike = static_cast<std::uint32_t>(16 / std::gcd<std::uint64_t>(rows.columns * rows.size, 16));
  const std::uint64_t all_alike = std::max(groups / alike, 1u) * std::uint64_t{alike};
  config.grid = static_cast<std::uint32_t>(std::min(all_alike, rows.rows)) * blocks;
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
    // Small blocks of large clusters have too little in flight, for many rows of halves of two arrays.
    const bool is_half = rows.size == 2;
    if (is_half && rows.arrays == 2 && blocks == kMaxClusterBlocks && bytes.threads < 384 && rows.rows > 64) {
      return std::nullopt;
    }
    if (bytes.of_columns + bytes.of_stage > room_of(machine)) continue;
    return BulkShape{blocks, std::min((room_of(machine) - bytes.of_columns) / bytes.of_stage, 2u)};
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
  keep_alike(rows, config);
  return absl::OkStatus();
}

absl::Status set_slices(const Machine& machine, KernelRef kernel, const LongRows& rows, LaunchConfig& config,
                        RowSlices& slices) {
  // As was measured on an H200: what a multiprocessor reads and writes at full speed, what it has in flight then, what
  // each row costs a group beside it, and how long facts are on their way.
  constexpr double kBytesPerUs = 33'000, kRowUs = 0.7, kTwiceRead = 1.4;
  constexpr std::uint32_t kLatencyUs = 8, kBytesInFlight = 32 * 1024;
  // Of a chunk.
  const std::uint32_t max_columns = 48 * 1024 / rows.arrays / rows.size;
  const std::uint32_t room = room_of(machine);
  const std::uint32_t sms = std::min<std::uint32_t>(machine.sms, kMaxSlicePlaces);
  const auto with_members = [&](std::uint32_t members) {
    RowSlices some{.groups = static_cast<std::uint32_t>(std::min<std::uint64_t>(sms / members, rows.rows)),
                   .members = members,
                   .share = static_cast<std::uint32_t>(ceil_divide<std::uint64_t>(rows.columns, members))};
    some.chunks = ceil_divide(some.share, max_columns);
    some.columns = ceil_divide(some.share, some.chunks);
    some.stride = ceil_divide(some.columns * rows.size, 16) * 16 + 32;  // with what is around
    const auto stages_in = [&](std::uint32_t bytes) {
      return std::min(bytes / (rows.arrays * some.stride), kMaxSliceStages);
    };
    const std::uint64_t held = ceil_divide<std::uint64_t>(std::uint64_t{some.share} * rows.size, 16) * 16 + 32;
    const bool is_held = held * rows.column_arrays < room &&
                         stages_in(room - static_cast<std::uint32_t>(held) * rows.column_arrays) >= some.chunks + 2;
    if (is_held && rows.column_arrays != 0) some.held = static_cast<std::uint32_t>(held);
    some.stages = stages_in(room - some.held * rows.column_arrays);
    const std::uint32_t chunk_bytes = (rows.arrays + 1) * some.stride;
    const auto latency = static_cast<std::uint32_t>(kLatencyUs * kBytesPerUs / chunk_bytes) + 1;
    const std::uint32_t in_flight = std::max(ceil_divide(kBytesInFlight, rows.arrays * some.stride), 2u);
    some.lag = std::max(some.chunks, std::min(latency, some.stages > in_flight ? some.stages - in_flight : 1u));
    some.is_kept = some.lag + 1 < some.stages ? 1 : 0;
    if (some.is_kept == 0) some.lag = some.chunks - 1 + latency;
    return some;
  };
  const auto time_of = [&](const RowSlices& some) {
    const double bytes = static_cast<double>(some.share) * rows.size * (rows.arrays + 1);
    const bool is_slow = some.is_kept == 0 || (rows.column_arrays != 0 && some.held == 0);
    return static_cast<double>(ceil_divide<std::uint64_t>(rows.rows, some.groups)) *
           (bytes / kBytesPerUs * (is_slow ? kTwiceRead : 1) + kRowUs * some.chunks);
  };
  slices = with_members(sms);
  for (std::uint32_t members = 1; members < sms; ++members) {
    if (rows.columns / members > 64 * 1024) continue;
    const RowSlices some = with_members(members);
    if (time_of(some) < time_of(slices)) slices = some;
  }
  // See publish_parts: a block is so many rows behind, with one that it works on, and the ring has twice as many.
  const std::uint32_t row_words = slices.groups * slices.members * rows.part_bytes / 4;
  const std::uint32_t max_behind = WorkspaceHeader::kTaggedWords / row_words / 2 - 1;
  slices.lag = std::min(slices.lag, max_behind * slices.chunks);
  slices.ring = 2 * (ceil_divide(slices.lag, slices.chunks) + 1);
  config = {.grid = slices.groups * slices.members,
            .block = kSliceThreads,
            .shared_bytes = slices.stages * rows.arrays * slices.stride + rows.column_arrays * slices.held};
  return allow_shared_bytes(kernel, machine, config.shared_bytes);
}

bool are_cached(const LongRows& rows) {
  constexpr std::uint64_t kCachedBytes = std::uint64_t{24} << 20;
  return rows.rows * rows.columns <= kCachedBytes / rows.size / rows.arrays;
}

bool gains_from_chunks(const Machine& machine, const LongRows& rows, std::uint32_t blocks) {
  const std::uint64_t at_once = std::max(machine.sms / blocks, 1u);
  return are_cached(rows) && rows.rows * 5 < ceil_divide<std::uint64_t>(rows.rows, at_once) * at_once * 3;
}

void set_chunks(const Machine& machine, const LongRows& rows, std::uint32_t max_columns, LaunchConfig& config,
                RowSlices& chunks) {
  // As many as run at once where there are few rows; but a block begins and ends for each.
  constexpr std::uint32_t kMinColumns = 1024, kBlocksOfSm = 4;
  const std::uint64_t wanted = kBlocksOfSm * machine.sms / rows.rows;
  const std::uint64_t count = std::max(ceil_divide<std::uint64_t>(rows.columns, max_columns),
                                       std::min(wanted, ceil_divide<std::uint64_t>(rows.columns, kMinColumns)));
  // Of whole warps' units, so that most of them lie alike.
  chunks.columns = ceil_divide(ceil_divide<std::uint64_t>(rows.columns, count), 64) * 64;
  chunks.chunks = ceil_divide(rows.columns, chunks.columns);
  chunks.stride = ceil_divide(chunks.columns * rows.size, 16) * 16 + 32;  // with what is around
  config = {.grid = static_cast<std::uint32_t>(std::min(rows.rows * chunks.chunks, kMaxCount)),
            .block = kChunkThreads,
            .shared_bytes = rows.arrays * chunks.stride};
}

}  // namespace cgrt::kernels
