#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>

#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/norm/row_plan.h"

namespace cgrt::kernels {
namespace {

bool is_summed(const NormBackwardDesc& desc) { return desc.weight_gradients == WeightGradients::kSummed; }
NormProblem problem_of(const NormBackwardDesc& desc) {
  return {{to_string(desc.op), " backward"}, desc.op, desc.type, desc.rows, desc.columns, false, true};
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
  const NormProblem problem = problem_of(desc);
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

// Long rows: what their chunks have is found first.
RowLaunch<NormBackwardParams> summed_chunks_launch(const Machine& machine, const NormBackwardDesc& desc) {
  constexpr std::uint32_t kMaxColumns = 16384, kBlocksOfSm = 4, kWaves = 2, kRowsOfGroup = 16;
  const NormProblem problem = problem_of(desc);
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

// Few rows: two kernels that more multiprocessors have a part of than there are rows.
bool are_few_rows(const Machine& machine, const NormBackwardDesc& desc) {
  return desc.rows <= machine.sms && desc.columns <= 16384 &&
         desc.rows * desc.columns <= 4096 * std::uint64_t{machine.sms};
}
RowLaunch<NormBackwardParams> few_rows_launch(const Machine& machine, const NormBackwardDesc& desc) {
  const NormProblem problem = problem_of(desc);
  const std::uint32_t rows = narrow(desc.rows), columns = narrow(desc.columns);
  RowLaunch<NormBackwardParams> launch;
  if (columns <= kMaxFoundColumns) {
    const std::uint32_t threads = ceil_divide(columns, found_of_thread(columns));
    launch.kernel = norm_find_in_rows(desc.op, desc.type, columns);
    launch.config = {.grid = rows, .block = ceil_divide(threads, kWarpThreads) * kWarpThreads};
    launch.slices.chunks = 1;
  } else {
    launch.kernel = norm_backward_kernel(desc.op, desc.type, NormRegime::kFindInChunks, Alignment::kUnaligned);
    set_chunks(machine, long_rows(problem), columns, launch.config, launch.slices);
    launch.config.shared_bytes = 0;  // the first kernel reads what it needs when it needs it
  }
  const LaunchConfig sums = {.grid = ceil_divide(columns, 32), .block = Dim3(32, std::min(rows, kMaxSumWarps))};
  set_second(machine, norm_summed_few_rows(desc.op, desc.type), sums, long_rows(problem), launch);
  return launch;
}

// Few long rows, spread over a block on each multiprocessor, which has its columns of all rows in shared memory.
// Where this was faster on an H200: with fewer elements the two kernels of chunks take less time.
absl::StatusOr<std::optional<RowLaunch<NormBackwardParams>>> spread_launch(const Machine& machine,
                                                                           const NormBackwardDesc& desc) {
  const NormProblem problem = problem_of(desc);
  const std::uint32_t size = problem.size(), blocks = machine.sms, warps = kSpreadThreads / kWarpThreads;
  const std::uint64_t min_elements = size == 2 ? 400'000 : 1'200'000;
  if (!machine.has_clusters || blocks > kMaxSpreadBlocks || desc.rows > std::min(kMaxSpreadRows, blocks) ||
      desc.rows * desc.columns < min_elements ||
      spread_words(desc.op, desc.rows, blocks) > WorkspaceHeader::kTaggedWords) {
    return std::nullopt;
  }
  // Runs of a warp's words: in a block's share, and in what a warp takes of it to begin with. Each part of a row costs
  // about as much as 8 runs.
  const std::uint32_t rows = narrow(desc.rows), run = kWarpThreads * 4 / size;
  const std::uint32_t runs = ceil_divide(ceil_divide(desc.columns, blocks), run), share = runs * run;
  const auto time_of = [&](std::uint32_t parts) {
    return ceil_divide(rows * parts, warps - 1) * (ceil_divide(runs, parts) + 8);  // one warp does something else
  };
  std::uint32_t parts = 1;
  for (std::uint32_t some = 2; some <= kWarpThreads && rows * some <= kMaxSpreadParts; ++some) {
    if (time_of(some) < time_of(parts)) parts = some;
  }
  const std::uint32_t groups = std::clamp(warps / runs, 1u, rows);  // of warps that have all columns
  const std::uint32_t stride = share * size / 16 + 2;               // with what is around
  const std::uint64_t sums_bytes = groups == 1 ? 0 : groups * planes_of(desc) * share * sizeof(float);
  const std::uint64_t shared_bytes = share * size + std::uint64_t{rows} * 2 * stride * 16 + sums_bytes;
  if (shared_bytes > machine.shared_per_block - kOtherShared) return std::nullopt;
  RowLaunch<NormBackwardParams> launch{
      .kernel = norm_spread_sums(desc.op, desc.type),
      .config = {.grid = blocks, .block = kSpreadThreads, .shared_bytes = narrow(shared_bytes)},
      .shares = {.blocks = groups, .share = share, .stride = stride},
      .slices = {.columns = ceil_divide(runs, parts) * run},
      .workspace_bytes = workspace_with(0)};
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(launch.kernel, machine, launch.config.shared_bytes));
  return launch;
}

// Persistent blocks or clusters that keep sums of columns in shared memory, where these were faster on an H200: rows
// that are not aligned, which need not begin alike here, and those that are too long for clusters of
// norm_summed_kernel.
absl::StatusOr<std::optional<RowLaunch<NormBackwardParams>>> column_sums_launch(const Machine& machine,
                                                                                const NormBackwardDesc& desc,
                                                                                Alignment alignment) {
  const NormProblem problem = problem_of(desc);
  const bool is_half = problem.pack() == 8;
  const std::uint32_t min_bytes = (alignment == Alignment::kAligned ? 256 : is_half ? 32 : 4) * 1024;
  if (!machine.has_clusters || problem.row_bytes() <= min_bytes) return std::nullopt;
  const std::uint32_t column_bytes = planes_of(desc) * static_cast<std::uint32_t>(sizeof(float)) + problem.size();
  const auto share_of = [&](std::uint32_t blocks) {
    return ceil_divide(ceil_divide(desc.columns, blocks), problem.pack());  // packs
  };
  const auto threads_of = [&](std::uint32_t blocks, std::uint32_t packs) {
    return ceil_divide(share_of(blocks), packs * kWarpThreads) * kWarpThreads;
  };
  for (const std::uint32_t max_blocks : {kMaxLargeClusterBlocks, kMaxClusterBlocks}) {
    // Blocks of which a multiprocessor has registers for two, if there can be so many for a row.
    const auto blocks_of = [&](std::uint32_t packs, std::uint32_t threads) {
      std::uint32_t blocks = 1;
      while (blocks < max_blocks && threads_of(blocks, packs) > threads) blocks *= 2;
      return blocks;
    };
    std::uint32_t packs = 4, blocks = blocks_of(packs, kMaxColumnSumThreads / 2);
    // Larger clusters wait longer for each other: of floats, threads with more of a row are faster then.
    if (!is_half && blocks > 4) packs = 8, blocks = blocks_of(packs, 256);
    const std::uint32_t threads = threads_of(blocks, packs);
    const std::uint32_t stride = share_of(blocks) | 1;  // odd: fewer bank conflicts of neighbouring columns
    const std::uint32_t shared_bytes = stride * problem.pack() * column_bytes;
    if (threads > (packs == 4 ? kColumnSumThreads<4> : kColumnSumThreads<8>)) return std::nullopt;
    if (shared_bytes > machine.shared_per_block - kOtherShared) return std::nullopt;
    RowLaunch<NormBackwardParams> launch{.kernel = norm_column_sums(desc.op, desc.type, packs, alignment),
                                         .config = {.grid = blocks, .block = threads, .shared_bytes = shared_bytes},
                                         .shares = {.stride = stride}};
    launch.config.attributes.cluster = blocks;
    CGRT_ASSIGN_OR_RETURN(const bool is_possible, can_have_cluster(machine, launch.kernel, launch.config));
    if (!is_possible) continue;
    CGRT_RETURN_IF_ERROR(set_persistent_grid(machine, launch.kernel, desc.rows, launch.config));
    limit_threads(machine, kMaxColumnSumThreads, launch.config);
    // With fewer rows for each group, what it adds to begin with and leaves at the end costs more than it saves.
    const std::uint64_t min_rows = blocks == 1 ? 8 : 4;
    if (desc.rows * blocks < min_rows * launch.config.grid.x) return std::nullopt;
    return launch;
  }
  return std::nullopt;
}

// With sums of columns: persistent blocks or clusters, as many as run at once. A block has as many rows at once as its
// threads can take, if there are so many for it.
absl::StatusOr<RowLaunch<NormBackwardParams>> summed_launch(const Machine& machine, const NormBackwardDesc& desc,
                                                            Alignment alignment) {
  if (are_few_rows(machine, desc)) return few_rows_launch(machine, desc);
  CGRT_ASSIGN_OR_RETURN(const auto spread, spread_launch(machine, desc));
  if (spread) return *spread;
  CGRT_ASSIGN_OR_RETURN(const auto column_sums, column_sums_launch(machine, desc, alignment));
  if (column_sums) return *column_sums;
  const NormProblem problem = problem_of(desc);
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
std::uint32_t groups_of(const NormBackwardDesc& desc, const RowLaunch<NormBackwardParams>& launch) {
  if (launch.second) return launch.second->config.grid.y > 1 ? launch.second->config.grid.y : 0;
  if (launch.kernel == norm_spread_sums(desc.op, desc.type)) return 0;
  return launch.config.grid.x / launch.config.attributes.cluster.x;
}

}  // namespace

absl::StatusOr<NormBackwardPlan> plan_norm_backward(ContextRef context, const NormBackwardDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("norm backward", "op", desc.op, NormOp::kRmsNorm));
  CGRT_RETURN_IF_ERROR(
      check_enum("norm backward", "weight_gradients", desc.weight_gradients, WeightGradients::kSummed));
  const NormProblem problem = problem_of(desc);
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
    plan.groups[0] = groups_of(desc, plan.launches.aligned);
    plan.groups[1] = groups_of(desc, plan.launches.unaligned);
    // Behind what long rows need.
    plan.partials_offset = ceil_divide<std::size_t>(std::max(plan.workspace_bytes, workspace_with(0)), 16) * 16;
    plan.workspace_bytes = plan.partials_offset + std::size_t{planes_of(desc)} *
                                                      std::max(plan.groups[0], plan.groups[1]) * desc.columns *
                                                      sizeof(float);
  }
  CGRT_RETURN_IF_ERROR(preload(plan.launches.aligned.kernel, context));
  CGRT_RETURN_IF_ERROR(preload(plan.launches.unaligned.kernel, context));
  if (is_summed(desc)) CGRT_RETURN_IF_ERROR(preload(plan.sum_kernel, context));
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
