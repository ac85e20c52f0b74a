#include <bit>
#include <cstdint>
#include <numeric>

#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/row/plan.h"
#include "cgrt_kernels/norm/kernels.h"
#include "cgrt_kernels/norm/norm.h"

namespace cgrt::kernels {
namespace {

using Shape = RowShape<NormRegime>;

struct Problem {
  OperationName name;
  NormOp op;
  DType type;
  std::uint64_t rows, columns;
  bool has_residual, is_backward;
  std::uint32_t size() const { return static_cast<std::uint32_t>(size_of(type)); }
  std::uint32_t pack() const { return 16 / size(); }
  std::uint64_t row_bytes() const { return columns * size(); }
  std::uint32_t arrays() const { return has_residual || is_backward ? 2 : 1; }  // that are read
};

Problem problem_of(const NormDesc& desc) {
  const bool has_residual = desc.residual == Residual::kAdded;
  return {{has_residual ? "add_" : "", to_string(desc.op)},
          desc.op,
          desc.type,
          desc.rows,
          desc.columns,
          has_residual,
          false};
}
bool is_summed(const NormBackwardDesc& desc) { return desc.weight_gradients == WeightGradients::kSummed; }
Problem problem_of(const NormBackwardDesc& desc) {
  return {{to_string(desc.op), " backward"}, desc.op, desc.type, desc.rows, desc.columns, false, true};
}

std::uint32_t narrow(std::uint64_t count) { return static_cast<std::uint32_t>(count); }

LongRows long_rows(const Problem& problem) {
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
std::uint32_t bulk_blocks(const Problem& problem) { return bulk_blocks_of(long_rows(problem)); }

// A block of all the threads that a multiprocessor has registers for takes a row in less time than a cluster does.
constexpr std::uint32_t kMaxWideBytes = kMaxWideThreads * kWidePacks * 16;

// Forward rows that would need a cluster each: streams keep their weights.
bool gains_from_bulk(const Machine& machine, const Problem& problem) {
  if (problem.is_backward || !machine.has_clusters) return false;
  const std::uint32_t blocks = bulk_blocks(problem);
  if (blocks > kMaxClusterBlocks || problem.rows * blocks <= machine.sms) return false;
  if (problem.has_residual) return problem.row_bytes() > kMaxWideBytes && problem.row_bytes() <= 128 * 1024;
  const bool fills_a_block = problem.row_bytes() == 64 * 1024;
  return blocks > 1 || (fills_a_block && problem.op == NormOp::kLayerNorm && problem.type == DType::kFloat32);
}

// How many blocks share a row, and how many rows each has in flight: smaller blocks wait less for each other, until
// what they exchange costs more, and rows that are fetched too early push each other out of the L2 cache.
std::pair<std::uint32_t, std::uint32_t> bulk_depth(const Problem& problem) {
  if (problem.has_residual) return {kMaxClusterBlocks, 2};
  const std::uint32_t fewest = bulk_blocks(problem);
  const bool is_half = problem.pack() == 8, is_rms = problem.op == NormOp::kRmsNorm;
  const std::uint32_t stages = is_half == is_rms ? kMaxStages : 2;
  if (fewest == 1 || (!is_half && !is_rms)) return {fewest == 1 ? 1 : std::max(fewest, 4u), stages};
  const std::uint64_t share = std::uint64_t{is_half ? 32u : 16u} * 1024;  // bytes of a block
  const auto blocks = static_cast<std::uint32_t>(std::bit_floor(problem.row_bytes() / share));
  return {std::clamp(blocks, fewest, kMaxClusterBlocks), stages};
}

// Rows that do not fit the registers of a cluster, or gain nothing there.
template <class Params, class KernelOf>
absl::StatusOr<RowLaunch<Params>> long_launch(const Machine& machine, const Problem& problem, Alignment alignment,
                                              KernelOf kernel_of) {
  const LongRows rows = long_rows(problem);
  if (alignment == Alignment::kAligned && gains_from_bulk(machine, problem)) {
    const auto [blocks, stages] = bulk_depth(problem);
    const Alignment as = problem.has_residual ? Alignment::kUnaligned : alignment;  // whose weights take no registers
    return bulk_stream(machine, kernel_of(NormRegime::kBulkStream, as), rows, as, {blocks, stages});
  }
  const auto bulk = unaligned_bulk(machine, rows);
  if (alignment == Alignment::kUnaligned && bulk && !gains_from_chunks(machine, rows, bulk->blocks)) {
    return bulk_stream(machine, kernel_of(NormRegime::kBulkStream, alignment), rows, alignment, *bulk);
  }
  // Of the longest rows a group of slices would be the whole device.
  const bool are_longest = problem.op == NormOp::kLayerNorm && problem.row_bytes() * problem.arrays() >= 3'000'000;
  if (are_cached(rows) || are_longest) {
    return in_chunks(machine, kernel_of(NormRegime::kFindInChunks, alignment),
                     kernel_of(NormRegime::kWriteChunks, alignment), rows);
  }
  return in_slices(machine, kernel_of(NormRegime::kSlices, alignment), rows);
}

// In registers, where a row fits those of a cluster. What is fastest on an H200, where it was measured.
std::optional<Shape> register_shape(const Machine& machine, const Problem& problem, Alignment alignment) {
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
    // Streams wait less than clusters of many blocks do.
    const std::uint32_t packs = problem.is_backward ? 2 : 4;
    if (columns > std::uint64_t{kMaxThreads} * packs * problem.pack() && problem.rows > machine.sms)
      return std::nullopt;
    if (!problem.is_backward) return share(NormRegime::kCluster, packs * problem.pack());
    return share(NormRegime::kCluster, 16, is_half ? kMaxThreads : kMaxThreads / 2);
  }
  // Few rows leave multiprocessors idle: more threads for each, with less to do.
  if (problem.rows <= machine.sms) {
    if (auto shape = share(NormRegime::kClusterShort, 8)) return shape;
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
  if (is_half ? problem.has_residual && columns <= 4096 : problem.has_residual || !is_long) {
    if (auto shape = share(NormRegime::kClusterMiddle, 16)) return shape;
  }
  if (is_half && is_long && !problem.has_residual) {
    const std::uint32_t max_threads = columns < 128 * kMaxThreads ? kMaxThreads : kMaxThreads / 2;
    if (auto shape = share(NormRegime::kClusterLong, 64, max_threads)) return shape;
  }
  return share(NormRegime::kCluster, 32);
}

template <class Params, class KernelOf>
absl::StatusOr<RowLaunch<Params>> row_launch(const Machine& machine, const Problem& problem, Alignment alignment,
                                             KernelOf kernel_of) {
  const std::optional<Shape> shape = register_shape(machine, problem, alignment);
  if (!shape) return long_launch<Params>(machine, problem, alignment, kernel_of);
  return RowLaunch<Params>{.kernel = kernel_of(shape->regime, alignment), .config = shape->config};
}

std::uint32_t planes_of(const NormBackwardDesc& desc) { return desc.op == NormOp::kLayerNorm ? 2 : 1; }

// Few short rows: one block, with which no second kernel is needed.
bool are_few(const NormBackwardDesc& desc) { return desc.rows <= kMaxFewRows && desc.columns <= kMaxFewColumns; }
RowLaunch<NormBackwardParams> few_launch(const NormBackwardDesc& desc) {
  const std::uint32_t columns = narrow(desc.columns), warps = std::min(narrow(desc.rows), few_warps(columns));
  return {.kernel = norm_summed_few(desc.op, desc.type, columns),
          .config = {.grid = 1,
                     .block = warps * kWarpThreads,
                     .shared_bytes = planes_of(desc) * warps * columns * static_cast<std::uint32_t>(sizeof(float))}};
}

// Short rows that are not whole packs, in aligned arrays: chunks of rows that are, in bulk.
std::uint32_t tile_words(const NormBackwardDesc& desc) {
  return ceil_divide(desc.columns * size_of(desc.type), sizeof(std::uint32_t));
}
bool are_tiled(const Machine& machine, const NormBackwardDesc& desc) {
  const std::uint64_t row_bytes = problem_of(desc).row_bytes();
  return machine.has_clusters && row_bytes % 16 != 0 && row_bytes > 64 && row_bytes <= 4 * kMaxTileWords;
}
absl::StatusOr<RowLaunch<NormBackwardParams>> tiled_launch(const Machine& machine, const NormBackwardDesc& desc) {
  const Problem problem = problem_of(desc);
  const std::uint32_t words = tile_words(desc), columns = narrow(desc.columns), row_bytes = columns * problem.size();
  const std::uint32_t of_packs = problem.pack() * row_bytes;
  const std::uint32_t rows = std::max(kTileBytes / of_packs, 1u) * problem.pack();
  const std::uint32_t warp_bytes = kTileStages * 2 * rows * row_bytes;
  const std::uint32_t chunks = ceil_divide(desc.rows, rows);
  const std::uint32_t max_warps = std::min(kMaxTileWarps, (machine.shared_per_block - kOtherShared) / warp_bytes);
  const std::uint32_t warps = std::min(ceil_divide(chunks, machine.sms), max_warps);
  const std::uint32_t sums = planes_of(desc) * warps * (words <= 64 ? 4 : 2) * columns * 4;
  RowLaunch<NormBackwardParams> launch{
      .kernel = norm_summed_tiled(desc.op, desc.type, words),
      .config = {.grid = 1, .block = warps * kWarpThreads, .shared_bytes = std::max(warps * warp_bytes, sums)},
      .shares = {.share = rows}};
  CGRT_RETURN_IF_ERROR(set_persistent_grid(machine, launch.kernel, ceil_divide(chunks, warps), launch.config));
  return launch;
}

// Short rows: some lanes of a warp for each, several one after the other where there are enough for all
// multiprocessors.
std::optional<RowLaunch<NormParams>> lanes_launch(const Machine& machine, const NormDesc& desc, Alignment alignment) {
  const Problem problem = problem_of(desc);
  const bool is_aligned = alignment == Alignment::kAligned;
  if (desc.columns > kMaxLaneColumns) return std::nullopt;
  const std::uint64_t columns = desc.columns;
  if (are_few_short(machine, desc.rows, columns, kFewElements / 2)) {
    return RowLaunch<NormParams>{.kernel = norm_few_kernel(desc.op, desc.residual, desc.type),
                                 .config = {.grid = narrow(desc.rows), .block = kWarpThreads}};
  }
  if (!is_aligned && !problem.has_residual) {
    if (const auto shape = share_among_stages(machine, desc.rows, columns, problem.size())) {
      return RowLaunch<NormParams>{.kernel = norm_staged_kernel(desc.op, desc.type, narrow(columns)),
                                   .config = shape->config,
                                   .shares = shape->shares};
    }
  }
  const std::uint32_t lanes = is_aligned ? (columns <= 64 ? 4 : columns <= 128 ? 8 : 16) : (columns <= 128 ? 16 : 32);
  const std::uint32_t at_once = kWarpThreads / lanes;
  const auto rows =
      static_cast<std::uint32_t>(norm_lane_rows(problem.size(), static_cast<int>(problem.arrays()), alignment));
  const std::uint32_t of_warp = are_enough_warps(machine, desc.rows, at_once * rows) ? at_once * rows : at_once;
  return RowLaunch<NormParams>{
      .kernel = norm_lanes_kernel(desc.op, desc.residual, desc.type, alignment, lanes),
      .config = {.grid = narrow(ceil_divide<std::uint64_t>(desc.rows, kLaneThreads / kWarpThreads * of_warp)),
                 .block = kLaneThreads}};
}

// Long rows: what their chunks have is found first.
RowLaunch<NormBackwardParams> summed_chunks_launch(const Machine& machine, const NormBackwardDesc& desc) {
  constexpr std::uint32_t kMaxColumns = 16384, kBlocksOfSm = 4, kWaves = 2, kRowsOfGroup = 16;
  const Problem problem = problem_of(desc);
  const std::uint32_t words = ceil_divide(desc.columns * problem.size(), 4), at_once = kBlocksOfSm * machine.sms;
  const auto grid_of = [&](std::uint32_t words_of_thread) {
    const std::uint32_t blocks = ceil_divide(words, kSumColumnThreads * words_of_thread);
    const std::uint64_t max_groups = std::max<std::uint64_t>(desc.rows / kRowsOfGroup, 1);
    return Dim3(blocks, narrow(std::clamp<std::uint64_t>(kWaves * at_once / blocks, 1, max_groups)));
  };
  const Dim3 of_stream = grid_of(kSumWords);
  const bool is_stream = machine.has_clusters && of_stream.x * of_stream.y >= at_once / 2;
  const std::uint32_t run_bytes = kSumColumnThreads * (is_stream ? kSumWords : 1) * 4;
  RowLaunch<NormBackwardParams> launch{
      .kernel = norm_backward_kernel(desc.op, desc.type, NormRegime::kFindInChunks, Alignment::kUnaligned),
      .shares = {.share = run_bytes / problem.size(),
                 .stride = run_bytes / 16 + 2,  // with what is around
                 .stages = kMaxStages}};
  set_chunks(machine, long_rows(problem), kMaxColumns, launch.config, launch.slices);
  launch.config.shared_bytes = 0;  // the first kernel reads what it needs when it needs it
  const LaunchConfig sums = {.grid = is_stream ? of_stream : grid_of(1),
                             .block = kSumColumnThreads,
                             .shared_bytes = is_stream ? kMaxStages * 2 * launch.shares.stride * 16 : 0};
  set_second(machine, norm_summed_chunks(desc.op, desc.type, is_stream), sums, long_rows(problem), launch);
  return launch;
}

// With sums of columns: persistent blocks or clusters, as many as run at once. A block has as many rows at once as its
// threads can take, if there are so many for it.
absl::StatusOr<RowLaunch<NormBackwardParams>> summed_launch(const Machine& machine, const NormBackwardDesc& desc,
                                                            Alignment alignment) {
  const Problem problem = problem_of(desc);
  constexpr std::uint32_t kStaticShared = 16 * 1024;  // at most: what the warps of a row tell each other
  const std::uint32_t warp_bytes =
      kSumStages *
      (alignment == Alignment::kAligned ? kSumStageBytes<Alignment::kAligned> : kSumStageBytes<Alignment::kUnaligned>);
  // Of a block's share of a row. The few elements before and after aligned packs are nobody's own.
  const auto share_of = [&](std::uint32_t blocks) {
    if (blocks == 1) return narrow(desc.columns);
    return ceil_divide(ceil_divide(desc.columns, blocks), problem.pack()) * problem.pack();
  };
  const auto warps_of = [&](std::uint32_t blocks) {
    return ceil_divide(std::max(share_of(blocks) / problem.pack(), 1u), kSumPacks * kWarpThreads);
  };
  // As many warps as were fastest on an H200, or as many as fit where a row needs them.
  const std::uint32_t max_blocks = machine.has_clusters ? kMaxClusterBlocks : 1;
  const std::uint32_t fitting =
      std::min((machine.shared_per_block - kStaticShared) / warp_bytes, kMaxThreads / kWarpThreads);
  constexpr std::uint32_t kWarps = 12;
  const std::uint32_t of_row = warps_of(1);
  const bool is_wasteful = of_row > kWarps / 2 && of_row < kWarps - 2;  // one row where 16 warps have two
  const std::uint32_t max_warps = std::min(fitting, is_wasteful ? fitting : std::max(warps_of(max_blocks), kWarps));
  std::uint32_t blocks = 1;
  while (blocks <= max_blocks && warps_of(blocks) > max_warps) blocks *= 2;
  // In chunks a thread has two columns of a 16-bit type, so a row occupies half as many threads as one of floats. Once
  // clusters occupy two fifths of the multiprocessors they take less time (H200: 17 rows 12.2 us against 16.3).
  const bool is_for_few = problem.size() == 4 || desc.rows * blocks * 5 < std::uint64_t{machine.sms} * 2;
  if (blocks > max_blocks || desc.rows * blocks > kMaxCount ||
      (blocks > 1 && is_for_few && gains_from_chunks(machine, long_rows(problem), blocks))) {
    return summed_chunks_launch(machine, desc);
  }
  const std::uint32_t share = share_of(blocks), warps = warps_of(blocks);
  const std::uint32_t packs = share / problem.pack();
  const NormSumRegime regime = alignment == Alignment::kAligned && packs <= 4 * kSumPacks ? NormSumRegime::kLanes4
                               : packs <= 16 * kSumPacks                                  ? NormSumRegime::kLanes16
                                                                                          : NormSumRegime::kWarps;
  const std::uint32_t row_threads = regime == NormSumRegime::kLanes4    ? 4
                                    : regime == NormSumRegime::kLanes16 ? 16
                                                                        : warps * kWarpThreads;
  const std::uint32_t unit = std::max(row_threads, kWarpThreads);  // threads that come together
  const std::uint32_t max_units = blocks == 1 ? max_warps * kWarpThreads / unit : 1;
  const std::uint64_t threads = ceil_divide<std::uint64_t>(desc.rows, machine.sms) * row_threads;
  const std::uint32_t units = narrow(std::min<std::uint64_t>(ceil_divide<std::uint64_t>(threads, unit), max_units));
  RowLaunch<NormBackwardParams> launch{
      .kernel = norm_summed_kernel(desc.op, desc.type, regime, alignment),
      .config = {.grid = blocks, .block = units * unit, .shared_bytes = units * unit / kWarpThreads * warp_bytes},
      .shares = {.blocks = blocks, .share = share, .stride = row_threads * kSumPacks}};
  LaunchConfig& config = launch.config;
  config.attributes.cluster = blocks;
  const std::uint32_t rows_of_block = config.block.x / row_threads;
  CGRT_RETURN_IF_ERROR(set_persistent_grid(machine, launch.kernel, ceil_divide(desc.rows, rows_of_block), config));
  // All rows of a thread begin alike between multiples of 16 bytes.
  const std::uint64_t step_bytes = rows_of_block * problem.row_bytes();
  const auto of_alike = narrow(16 / std::gcd<std::uint64_t>(step_bytes, 16));
  const std::uint32_t groups = config.grid.x / blocks;
  if (std::uint64_t{groups} * rows_of_block < desc.rows) {
    config.grid = std::max(groups / of_alike, 1u) * of_alike * blocks;
  }
  return launch;
}

// That leave sums of columns; 0: the launch itself writes what they are.
std::uint32_t groups_of(const RowLaunch<NormBackwardParams>& launch) {
  if (launch.second) return launch.second->config.grid.y > 1 ? launch.second->config.grid.y : 0;
  return launch.config.grid.x / launch.config.attributes.cluster.x;
}

}  // namespace

absl::StatusOr<NormPlan> plan_norm(ContextRef context, const NormDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("norm", "op", desc.op, NormOp::kRmsNorm));
  CGRT_RETURN_IF_ERROR(check_enum("norm", "residual", desc.residual, Residual::kAdded));
  const Problem problem = problem_of(desc);
  CGRT_RETURN_IF_ERROR(check_not_negative(problem.name, "epsilon", desc.epsilon));
  CGRT_RETURN_IF_ERROR(check_matrix(problem.name, desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(problem.name, desc.type));
  const auto kernel_of = [&](NormRegime regime, Alignment alignment) {
    return norm_kernel(desc.op, desc.residual, desc.type, regime, alignment);
  };
  CGRT_ASSIGN_OR_RETURN(const Machine machine,
                        machine_of(context, kernel_of(NormRegime::kCluster, Alignment::kAligned)));
  CGRT_ASSIGN_OR_RETURN(const RowLaunches<NormParams> launches,
                        plan_row_launches<NormParams>(
                            machine, problem.row_bytes(),
                            [&](const Machine& some, Alignment alignment) -> absl::StatusOr<RowLaunch<NormParams>> {
                              if (const auto launch = lanes_launch(some, desc, alignment)) return *launch;
                              return row_launch<NormParams>(some, problem, alignment, kernel_of);
                            }));
  return NormPlan{desc, launches, launches.workspace_bytes()};
}

absl::Status launch_norm(LaunchTarget target, const NormPlan& plan, const NormArgs& args) {
  const NormDesc& desc = plan.desc;
  const OperationName name = problem_of(desc).name;
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "weight", args.weight, desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(name, "bias", args.bias, desc.type, Need::kOptional));
  if (desc.residual == Residual::kAdded) {
    CGRT_RETURN_IF_ERROR(check_array(name, "residual", args.residual, desc.type));
    CGRT_RETURN_IF_ERROR(check_array(name, "sum", args.sum, desc.type, Need::kOptional));
    if (args.out == args.sum) return refuse(name, "out and sum are the same array.");
  } else if (args.residual != nullptr || args.sum != nullptr) {
    return refuse(name, "residual and sum are for a plan with Residual::kAdded.");
  }
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  const RowLaunch<NormParams>& chosen =
      plan.launches.of(alignment_of(args.out, args.sum, args.in, args.residual, args.weight, args.bias));
  const std::uint32_t arrays = problem_of(desc).arrays();
  // Clusters that add a residual leave the L2 cache to the weights.
  const bool is_ahead = arrays == 1 || chosen.config.attributes.cluster.x == 1;
  NormParams params{.out = args.out,
                    .sum = args.sum,
                    .in = args.in,
                    .residual = args.residual,
                    .weight = args.weight,
                    .bias = args.bias,
                    .epsilon = desc.epsilon,
                    .one_of_columns = 1.0f / static_cast<float>(desc.columns),
                    .rows = narrow(desc.rows),
                    .columns = narrow(desc.columns),
                    .rows_ahead = is_ahead ? rows_ahead(arrays * desc.columns * size_of(desc.type)) : narrow(desc.rows),
                    .shares = chosen.shares,
                    .slices = chosen.slices,
                    .workspace = args.workspace.data};
  return launch_rows(target, chosen, params);
}

absl::StatusOr<NormBackwardPlan> plan_norm_backward(ContextRef context, const NormBackwardDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("norm backward", "op", desc.op, NormOp::kRmsNorm));
  CGRT_RETURN_IF_ERROR(
      check_enum("norm backward", "weight_gradients", desc.weight_gradients, WeightGradients::kSummed));
  const Problem problem = problem_of(desc);
  CGRT_RETURN_IF_ERROR(check_not_negative(problem.name, "epsilon", desc.epsilon));
  CGRT_RETURN_IF_ERROR(check_matrix(problem.name, desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(problem.name, desc.type));
  const auto kernel_of = [&](NormRegime regime, Alignment alignment) {
    return norm_backward_kernel(desc.op, desc.type, regime, alignment);
  };
  CGRT_ASSIGN_OR_RETURN(const Machine machine,
                        machine_of(context, kernel_of(NormRegime::kCluster, Alignment::kAligned)));
  CGRT_ASSIGN_OR_RETURN(const RowLaunches<NormBackwardParams> launches,
                        plan_row_launches<NormBackwardParams>(
                            machine, problem.row_bytes(), [&](const Machine& some, Alignment alignment) {
                              return is_summed(desc)
                                         ? summed_launch(some, desc, alignment)
                                         : row_launch<NormBackwardParams>(some, problem, alignment, kernel_of);
                            }));
  NormBackwardPlan plan{.desc = desc,
                        .launches = launches,
                        .sum_kernel = sum_partials_kernel(desc.type),
                        .workspace_bytes = launches.workspace_bytes()};
  if (!machine.has_programmatic_edges) plan.edges = EdgeKind::kFull;
  if (is_summed(desc) && are_few(desc)) {
    plan.launches.aligned = plan.launches.unaligned = few_launch(desc);
    plan.workspace_bytes = 0;
  } else if (is_summed(desc)) {
    if (are_tiled(machine, desc)) {
      CGRT_ASSIGN_OR_RETURN(plan.launches.aligned, tiled_launch(machine, desc));
    }
    plan.groups[0] = groups_of(plan.launches.aligned);
    plan.groups[1] = groups_of(plan.launches.unaligned);
    // Behind what long rows need.
    plan.partials_offset = ceil_divide<std::size_t>(std::max(plan.workspace_bytes, workspace_with(0)), 16) * 16;
    plan.workspace_bytes = plan.partials_offset + std::size_t{planes_of(desc)} *
                                                      std::max(plan.groups[0], plan.groups[1]) * desc.columns *
                                                      sizeof(float);
  }
  return plan;
}

std::uint64_t NormBackwardPlan::topology_id(std::size_t alignment) const {
  const bool is_aligned = alignment % 16 == 0;
  std::vector<LaunchAttributes> kernels = (is_aligned ? launches.aligned : launches.unaligned).attributes();
  if (groups[is_aligned ? 0 : 1] != 0) kernels.push_back({});
  return topology_of_kernels(kernels, edges);
}

absl::Status launch_norm_backward(LaunchTarget target, const NormBackwardPlan& plan, const NormBackwardArgs& args) {
  const NormBackwardDesc& desc = plan.desc;
  const OperationName name = problem_of(desc).name;
  CGRT_RETURN_IF_ERROR(check_array(name, "dx", args.dx, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "dy", args.dy, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "x", args.x, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "weight", args.weight, desc.type, Need::kOptional));
  if (is_summed(desc)) {
    CGRT_RETURN_IF_ERROR(check_array(name, "dweight", args.dweight, desc.type));
    CGRT_RETURN_IF_ERROR(check_array(name, "dbias", args.dbias, desc.type, Need::kOptional));
  }
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  const Alignment alignment = alignment_of(args.dx, args.dy, args.x, args.weight);
  const RowLaunch<NormBackwardParams>& chosen = plan.launches.of(alignment);
  const std::uint32_t groups = plan.groups[alignment == Alignment::kAligned ? 0 : 1];
  auto* const partials =
      groups != 0 ? reinterpret_cast<float*>(static_cast<unsigned char*>(args.workspace.data) + plan.partials_offset)
                  : nullptr;
  const bool writes_sums = is_summed(desc) && groups == 0;
  NormBackwardParams params{.dx = args.dx,
                            .dweight = writes_sums ? args.dweight : nullptr,
                            .dbias = writes_sums && desc.op == NormOp::kLayerNorm ? args.dbias : nullptr,
                            .dy = args.dy,
                            .x = args.x,
                            .weight = args.weight,
                            .partials = partials,
                            .epsilon = desc.epsilon,
                            .one_of_columns = 1.0f / static_cast<float>(desc.columns),
                            .rows = narrow(desc.rows),
                            .columns = narrow(desc.columns),
                            .groups = groups,
                            .shares = chosen.shares,
                            .slices = chosen.slices,
                            .workspace = args.workspace.data};
  CGRT_RETURN_IF_ERROR(launch_rows(target, chosen, params));
  if (groups == 0) return absl::OkStatus();
  const bool has_bias = desc.op == NormOp::kLayerNorm && args.dbias != nullptr;
  // Up to 8 groups for a thread, if that takes no more than 32 threads.
  const std::uint32_t lanes = std::min(std::bit_ceil(ceil_divide(groups, 8)), 32u),
                      columns = std::max(256 / lanes, 32u);
  const LaunchConfig config{.grid = {ceil_divide(desc.columns, columns), has_bias ? 2u : 1u},
                            .block = {columns, lanes}};
  return launch(plan.edges == EdgeKind::kProgrammatic ? target.programmatic() : target, config, plan.sum_kernel,
                SumPartialsParams{args.dweight, args.dbias, partials, groups, narrow(desc.columns)});
}

}  // namespace cgrt::kernels
