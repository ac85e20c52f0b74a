#include "cgrt_kernels/norm/row_plan.h"

#include <algorithm>
#include <bit>

namespace cgrt::kernels {
namespace {

using Shape = RowShape<NormRegime>;

// A block of all the threads that a multiprocessor has registers for takes a row in less time than a cluster does.
constexpr std::uint32_t kMaxWideBytes = kMaxWideThreads * kWidePacks * 16;

std::uint32_t bulk_blocks(const NormProblem& problem) { return bulk_blocks_of(long_rows(problem)); }

}  // namespace

LongRows long_rows(const NormProblem& problem) {
  const std::uint32_t planes = problem.op == NormOp::kLayerNorm ? 2 : 1;
  const std::uint32_t part = problem.is_backward ? (planes == 2 ? 6 : 2) : planes == 2 ? 4 : 1;  // words
  return {problem.name,
          problem.rows,
          problem.columns,
          problem.size(),
          problem.arrays(),
          part * 4,
          problem.is_backward ? 1 : planes};
}

bool gains_from_bulk(const Machine& machine, const NormProblem& problem) {
  if (problem.is_backward || !machine.has_clusters) return false;
  const std::uint32_t blocks = bulk_blocks(problem);
  if (blocks > kMaxClusterBlocks || problem.rows * blocks <= machine.sms) return false;
  if (problem.has_residual) return problem.row_bytes() > kMaxWideBytes && problem.row_bytes() <= 128 * 1024;
  const bool fills_a_block = problem.row_bytes() == 64 * 1024;
  return blocks > 1 || (fills_a_block && problem.op == NormOp::kLayerNorm && problem.type == DType::kFloat32);
}

// Smaller blocks wait less for each other, until what they exchange costs more, and rows that are fetched too early
// push each other out of the L2 cache.
std::pair<std::uint32_t, std::uint32_t> bulk_depth(const NormProblem& problem) {
  if (problem.has_residual) return {kMaxClusterBlocks, 2};
  const std::uint32_t fewest = bulk_blocks(problem);
  const bool is_half = problem.pack() == 8, is_rms = problem.op == NormOp::kRmsNorm;
  const std::uint32_t stages = is_half == is_rms ? kMaxStages : 2;
  if (fewest == 1 || (!is_half && !is_rms)) return {fewest == 1 ? 1 : std::max(fewest, 4u), stages};
  const std::uint64_t share = std::uint64_t{is_half ? 32u : 16u} * 1024;  // bytes of a block
  const auto blocks = static_cast<std::uint32_t>(std::bit_floor(problem.row_bytes() / share));
  return {std::clamp(blocks, fewest, kMaxClusterBlocks), stages};
}

// What is fastest on an H200, where it was measured.
std::optional<Shape> register_shape(const Machine& machine, const NormProblem& problem, Alignment alignment) {
  const bool is_aligned = alignment == Alignment::kAligned, is_half = problem.pack() == 8;
  const std::uint64_t columns = problem.columns;
  const bool is_layer = problem.op == NormOp::kLayerNorm, is_long = problem.row_bytes() >= 64 * 1024;
  const auto share = [&](NormRegime regime, std::uint32_t per_thread, std::uint32_t max_threads = kMaxThreads) {
    return share_among_blocks(machine, problem.rows, columns, regime, per_thread, max_threads);
  };
  if (are_few_short(machine, problem.rows, columns, kFewElements)) {
    return share_few_short(problem.rows, columns, NormRegime::kFew4, NormRegime::kFew8);
  }
  if (is_aligned && columns <= 16 * 4) return share_among_lanes(problem.rows, NormRegime::kLanes4, 4);
  if (columns <= 16 * 16) return share_among_lanes(problem.rows, NormRegime::kLanes16, 16);
  if (columns <= (is_aligned ? 32u : 4 * problem.pack()) * kWarpThreads) {
    return share_among_lanes(problem.rows, NormRegime::kWarp);
  }
  if (!is_aligned) {
    const std::uint32_t packs = problem.is_backward ? 2 : 4;
    // Streams wait less than clusters of many blocks do.
    if (columns > std::uint64_t{kMaxThreads} * packs * problem.pack() && problem.rows > machine.sms)
      return std::nullopt;
    if (!problem.is_backward) {
      // While all blocks run at once, more threads with less of a row are the faster ones (H100).
      if (problem.rows * columns <= 6000 * std::uint64_t{machine.sms}) {
        if (auto shape = share(NormRegime::kClusterShort, 8)) return shape;
      }
      return share(NormRegime::kCluster, packs * problem.pack());
    }
    return share(NormRegime::kCluster, 16, is_half ? kMaxThreads : kMaxThreads / 2);
  }
  // Few rows leave multiprocessors idle: more threads for each, with less to do. Unless, for 16-bit types, they do not
  // all run at once: then fewer threads, with more to do each, are faster.
  if (problem.rows <= machine.sms) {
    const auto shape = share(NormRegime::kClusterShort, 8);
    if (shape && (!is_half || shape->config.grid.x <= 2 * machine.sms)) return shape;
  }
  if (problem.is_backward) {
    if ((!is_half && !is_layer) || columns <= 4096) {
      if (auto shape = share(NormRegime::kClusterMiddle, 16)) return shape;
    }
    if (!is_half || is_layer) {
      // Threads that have more than 64 registers: small blocks waste less of a multiprocessor.
      if (auto shape = share(NormRegime::kCluster, 32, kMaxThreads / 2)) return shape;
    }
    return share(NormRegime::kCluster, 32);
  }
  if (gains_from_bulk(machine, problem)) return std::nullopt;
  if (problem.has_residual && problem.row_bytes() > kMaxWideBytes / 2 && problem.row_bytes() <= kMaxWideBytes) {
    const std::uint32_t warps = ceil_divide(problem.row_bytes(), kWidePacks * 16 * kWarpThreads);
    return Shape{NormRegime::kWideBlock, {.grid = narrow(problem.rows), .block = warps * kWarpThreads}};
  }
  if (!is_half && (problem.has_residual || !is_long)) {
    if (auto shape = share(NormRegime::kClusterMiddle, 16)) return shape;
  }
  if (is_half && is_long && !problem.has_residual) {
    const std::uint32_t max_threads = columns < 128 * kMaxThreads ? kMaxThreads : kMaxThreads / 2;
    if (auto shape = share(NormRegime::kClusterLong, 64, max_threads)) return shape;
  }
  if (auto shape = share(NormRegime::kCluster, 32); shape || is_half || problem.has_residual) return shape;
  return share_among_blocks(machine, problem.rows, columns, NormRegime::kCluster, 32, kMaxThreads,
                            kMaxLargeClusterBlocks);
}

void limit_threads(const Machine& machine, std::uint32_t threads_of_sm, LaunchConfig& config) {
  const std::uint32_t blocks = config.attributes.cluster.x;
  const std::uint32_t of_sm = std::max(threads_of_sm / config.block.x, 2u);
  config.grid = std::min(config.grid.x, std::max(of_sm * machine.sms / blocks, 1u) * blocks);
}

std::optional<LaunchConfig> held_columns_config(const Machine& machine, const NormProblem& problem,
                                                Alignment alignment) {
  const bool is_half = problem.pack() == 8, is_layer = problem.op == NormOp::kLayerNorm;
  const bool is_few = problem.rows <= machine.sms;
  const std::uint64_t columns = problem.columns;
  if (!machine.has_clusters || problem.is_backward || problem.has_residual) return std::nullopt;
  // What was measured on an H200.
  if (alignment == Alignment::kAligned) {
    if (columns <= 128 * 1024) return std::nullopt;
    const bool is_stream = is_half && columns <= 256 * 1024 && (!is_layer || columns > 192 * 1024);
    if (is_stream && !is_few) return std::nullopt;
  } else {
    if (columns <= (is_half && is_layer ? 16 : 32) * 1024) return std::nullopt;
    if (is_few && columns <= (is_half ? 128 : 64) * 1024) return std::nullopt;  // clusters with more threads
    if (is_half && columns > 256 * 1024) return std::nullopt;                   // too few clusters begin alike
  }
  constexpr std::uint32_t kOfThread = kHeldColumnPacks * 16;
  const auto threads_of = [&](std::uint32_t blocks) {
    return ceil_divide(ceil_divide<std::uint64_t>(problem.row_bytes(), blocks), kOfThread * kWarpThreads) *
           kWarpThreads;
  };
  std::uint32_t blocks = 1;
  while (blocks < kMaxClusterBlocks && threads_of(blocks) > kHeldColumnThreads * 2 / 3) blocks *= 2;
  if (threads_of(blocks) > kHeldColumnThreads) blocks = kMaxLargeClusterBlocks;
  const std::uint32_t threads = threads_of(blocks);
  if (threads > kHeldColumnThreads || gains_from_chunks(machine, long_rows(problem), blocks)) return std::nullopt;
  LaunchConfig config{.grid = blocks, .block = threads, .shared_bytes = (is_layer ? 2 : 1) * threads * kOfThread};
  config.attributes.cluster = blocks;
  return config;
}

LaunchConfig lanes_config(const Machine& machine, const NormProblem& problem, Alignment alignment) {
  const NormLanes of = norm_lanes(problem.columns, alignment);
  const std::uint32_t at_once = kWarpThreads / of.lanes;
  const int arrays = static_cast<int>(problem.arrays());
  const auto rows = static_cast<std::uint32_t>(norm_lane_rows(problem.size(), arrays, alignment, of.elements));
  const std::uint32_t of_warp = are_enough_warps(machine, problem.rows, at_once * rows) ? at_once * rows : at_once;
  return {.grid = narrow(ceil_divide<std::uint64_t>(problem.rows, kLaneThreads / kWarpThreads * of_warp)),
          .block = kLaneThreads};
}

std::optional<RowShape<HeldRegime>> held_shape(const Machine& machine, const NormProblem& problem,
                                               Alignment alignment) {
  const std::uint64_t rows = problem.rows, columns = problem.columns;
  const bool is_half = problem.pack() == 8, is_many = rows > 16 * std::uint64_t{machine.sms};
  const auto share = [&](HeldRegime regime, std::uint32_t per_thread) {
    return RowShape<HeldRegime>{
        regime, {.grid = narrow(rows), .block = ceil_divide(ceil_divide(columns, std::uint64_t{per_thread}), 32) * 32}};
  };
  if (alignment == Alignment::kUnaligned) {
    // What was faster on an H100 than packs that are put together: as long as a row has not much to wait for.
    if (rows * columns > 8000 * std::uint64_t{machine.sms}) return std::nullopt;
    if (columns <= 4 * 256) return share(HeldRegime::kSingles8, 4);
    if (columns <= 4 * 512) return share(HeldRegime::kSingles16, 4);
    const std::uint32_t of_thread = held_singles(problem.has_residual);
    if (!is_half || rows > machine.sms || columns > 1024 * of_thread) return std::nullopt;
    return share(HeldRegime::kSingles32, of_thread);
  }
  // Many short rows of halves: what a block costs is more than what it has to do.
  if (is_half && !problem.has_residual && is_many && columns <= 768) return std::nullopt;
  if (columns <= 8 * kWarpThreads) return share_among_lanes(rows, HeldRegime::kWarp);
  if (is_half && is_many && columns <= 16 * kWarpThreads) return share_among_lanes(rows, HeldRegime::kWarpLong);
  if (columns <= 8 * 128) return share(HeldRegime::kBlock4, 8);
  if (columns <= 8 * 256) return share(HeldRegime::kBlock8, 8);
  // Of longer rows a cluster is faster while they are few, in a chain at least.
  if (columns <= (is_half && rows > machine.sms ? 16 : 8) * kMaxThreads) {
    return share(HeldRegime::kBlock16, is_half ? 16 : 8);
  }
  return std::nullopt;
}

}  // namespace cgrt::kernels
