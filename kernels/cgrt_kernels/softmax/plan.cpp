#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/row/plan.h"
#include "cgrt_kernels/softmax/kernels.h"
#include "cgrt_kernels/softmax/softmax.h"

namespace cgrt::kernels {
namespace {

using Shape = RowShape<SoftmaxRegime>;

std::uint32_t narrow(std::uint64_t count) { return static_cast<std::uint32_t>(count); }

// What the three operations have in common, as far as a shape depends on it.
struct Problem {
  OperationName name;
  DType type;
  std::uint64_t rows, columns;
  std::uint32_t arrays;  // that are read
  bool is_masked;
  std::uint32_t pack() const { return 16 / static_cast<std::uint32_t>(size_of(type)); }
  std::uint64_t row_bytes() const { return columns * size_of(type); }
};

LongRows long_rows(const Problem& problem) {
  return {problem.name,
          problem.rows,
          problem.columns,
          static_cast<std::uint32_t>(size_of(problem.type)),
          problem.arrays,
          2 * sizeof(float),  // the maximum and a sum, or a sum
          0};
}

// Rows of floats in the forward: of other types, and of two arrays, clusters with more in their registers take less
// time.
bool may_stream(const Problem& problem) { return problem.pack() == 4 && problem.arrays == 1 && !problem.is_masked; }
// Many aligned rows that need the registers of eight blocks: clusters of eight wait for each other more than streams
// do.
bool gains_from_bulk(const Machine& machine, const Problem& problem) {
  return machine.has_clusters && may_stream(problem) && bulk_blocks_of(long_rows(problem)) == kMaxClusterBlocks &&
         problem.rows * kMaxClusterBlocks > 4 * machine.sms;
}

// kernel_of(regime, alignment) gives the kernel of the operation.
template <class Params, class KernelOf>
absl::StatusOr<RowLaunch<Params>> long_launch(const Machine& machine, const Problem& problem, Alignment alignment,
                                              KernelOf kernel_of) {
  const LongRows rows = long_rows(problem);
  if (alignment == Alignment::kAligned && gains_from_bulk(machine, problem)) {
    return bulk_stream(machine, kernel_of(SoftmaxRegime::kBulkStream, alignment), rows, alignment,
                       {kMaxClusterBlocks, kMaxStages});
  }
  const auto bulk = unaligned_bulk(machine, rows);
  if (alignment == Alignment::kUnaligned && may_stream(problem) && bulk) {
    return bulk_stream(machine, kernel_of(SoftmaxRegime::kBulkStream, alignment), rows, alignment, *bulk);
  }
  if (are_cached(rows)) {
    return in_chunks(machine, kernel_of(SoftmaxRegime::kFindInChunks, alignment),
                     kernel_of(SoftmaxRegime::kWriteChunks, alignment), rows);
  }
  return in_slices(machine, kernel_of(SoftmaxRegime::kSlices, alignment), rows);
}

// Rows of few elements that are not aligned, a lane each.
template <class Params>
std::optional<RowLaunch<Params>> lane_launch(const Machine& machine, const Problem& problem,
                                             const Kernel<Params>& kernel) {
  constexpr std::uint32_t kStageBytes = 4096, kMaxRounds = 16;   // of a warp
  constexpr std::uint64_t kWarps = kLaneThreads / kWarpThreads;  // of a block
  // Measured on an H200: 16 lanes for each row are faster for longer rows, and where a lane for each would give some
  // multiprocessors no warp. Rows of a multiple of 32 bytes would have bank conflicts.
  const std::uint64_t bytes = problem.row_bytes(), of_round = kWarpThreads * bytes;
  const bool are_many = are_enough_warps(machine, problem.rows, kWarpThreads);
  const std::uint64_t max_bytes = !are_many ? 64 : problem.is_masked ? 112 : problem.arrays == 1 ? 192 : 128;
  if (bytes > max_bytes || bytes % 32 == 0 || problem.rows <= std::uint64_t{kWarpThreads} * machine.sms) {
    return std::nullopt;
  }
  const std::uint64_t rounds =
      std::clamp<std::uint64_t>(std::min(kStageBytes / (problem.arrays * of_round),
                                         problem.rows / (std::uint64_t{kWarpThreads} * 16 * machine.sms)),
                                1, kMaxRounds);
  const auto stride =
      static_cast<std::uint32_t>(ceil_divide<std::uint64_t>(of_round * rounds, 16)) + 2;  // what is around
  RowLaunch<Params> launch{.kernel = kernel};
  launch.config = {.grid = narrow(ceil_divide(problem.rows, kWarps * kWarpThreads * rounds)),
                   .block = kLaneThreads,
                   .shared_bytes = narrow(kWarps * problem.arrays * stride * 16)};
  launch.shares = {.stride = stride, .stages = narrow(rounds)};
  return launch;
}

// In registers, where a row fits those of a cluster. What is fastest on an H200, where it was measured.
// `max_blocks`: of a cluster.
std::optional<Shape> register_shape(const Machine& machine, const Problem& problem, Alignment alignment,
                                    std::uint32_t max_blocks) {
  const bool is_aligned = alignment == Alignment::kAligned, is_half = problem.pack() == 8;
  const std::uint64_t columns = problem.columns;
  const std::uint32_t of_lane = is_aligned ? 32 : 4 * problem.pack();
  const auto share = [&](SoftmaxRegime regime, std::uint32_t per_thread, std::uint32_t max_threads = kMaxThreads) {
    return share_among_blocks(machine, problem.rows, columns, regime, per_thread, max_threads);
  };
  if (!problem.is_masked && are_few_short(machine, problem.rows, columns, kFewElements)) {
    return share_few_short(problem.rows, columns, SoftmaxRegime::kFew4, SoftmaxRegime::kFew8);
  }
  if (problem.is_masked && columns <= 8 * kWarpThreads && !are_enough_warps(machine, problem.rows, 2)) {
    return share_among_lanes(problem.rows, SoftmaxRegime::kFew8);
  }
  if (is_aligned) {
    const std::uint64_t lanes = ceil_divide<std::uint64_t>(problem.row_bytes(), 32);
    if (lanes <= 2) return share_among_lanes(problem.rows, SoftmaxRegime::kLanes2, 2);
    if (lanes <= 4) return share_among_lanes(problem.rows, SoftmaxRegime::kLanes4, 4);
    if (lanes <= 8) return share_among_lanes(problem.rows, SoftmaxRegime::kLanes8, 8);
  }
  if (columns <= 16 * 16) return share_among_lanes(problem.rows, SoftmaxRegime::kLanes16, 16);
  // While blocks do not have many rows one after the other, threads with little of a row are the faster ones (H100).
  const bool are_few = problem.rows <= 8 * std::uint64_t{machine.sms} && problem.rows * columns <= std::uint64_t{1}
                                                                                                       << 21;
  if (are_few && !problem.is_masked && columns <= 8 * kMaxThreads) return share(SoftmaxRegime::kBlock, 8);
  if (columns <= std::uint64_t{of_lane} * kWarpThreads) return share_among_lanes(problem.rows, SoftmaxRegime::kWarp);
  // Few rows leave multiprocessors idle: more threads for each, with less to do.
  if (problem.rows <= machine.sms) {
    // Unless they do not all run at once: then fewer threads, with more to do each, are faster. For floats that holds
    // from more blocks on, and not in the backward.
    const bool is_any = !is_half && problem.arrays == 2;
    const std::uint32_t max_grid = (is_half ? 2 : 3) * machine.sms;
    const auto shape = share(SoftmaxRegime::kClusterShort, 8);
    if (shape && (is_any || shape->config.grid.x <= max_grid)) return shape;
  }
  if (problem.is_masked) return share(SoftmaxRegime::kCluster, 16);
  const std::uint32_t of_thread = is_aligned ? 32 : problem.arrays == 2 ? 16 : 4 * problem.pack();
  // Two blocks of a multiprocessor, with as much of a row in registers as there is room for.
  const auto share_long = [&](std::uint32_t threads, std::uint32_t blocks) {
    const std::uint32_t packs = problem.arrays == 2 ? 5 : 8;
    return share_among_blocks(machine, problem.rows, columns, SoftmaxRegime::kClusterLong, packs * problem.pack(),
                              threads, blocks);
  };
  const std::uint64_t of_block = std::uint64_t{kMaxThreads} * (problem.arrays == 2 ? 2 : 4) * problem.pack();
  if (!is_aligned && columns > of_block) {
    // Few short rows have more threads.
    const bool is_small =
        is_half && are_few && problem.rows <= machine.sms && share(SoftmaxRegime::kCluster, of_thread);
    const bool is_stream = machine.has_clusters && may_stream(problem) && columns <= 64 * 1024;
    if (!is_small && !is_stream) {
      if (auto shape = share_long(kMaxThreads, max_blocks)) return shape;
    }
    // Streams wait less than clusters of many blocks do.
    if (problem.rows > machine.sms) return std::nullopt;
  }
  if (is_aligned && gains_from_bulk(machine, problem)) return std::nullopt;
  if (is_aligned && is_half && problem.arrays == 1 && problem.row_bytes() >= 64 * 1024) {
    const std::uint32_t max_threads = columns < 128 * kMaxThreads ? kMaxThreads : kMaxThreads / 2;
    if (auto shape = share_long(max_threads, kMaxClusterBlocks)) return shape;
  }
  if (problem.arrays == 2 && !is_half) {
    // Threads that have more than 64 registers: small blocks waste less of a multiprocessor.
    if (auto shape = share(SoftmaxRegime::kCluster, of_thread, kMaxThreads / 2)) return shape;
    if (auto shape = share_long(kMaxThreads, max_blocks)) return shape;
    return share_among_blocks(machine, problem.rows, columns, SoftmaxRegime::kCluster, of_thread, kMaxThreads,
                              max_blocks);
  }
  if (auto shape = share(SoftmaxRegime::kCluster, of_thread)) return shape;
  return share_long(kMaxThreads, max_blocks);
}

template <class Params, class KernelOf>
absl::StatusOr<RowLaunch<Params>> row_launch(const Machine& machine, const Problem& problem, Alignment alignment,
                                             KernelOf kernel_of) {
  for (const std::uint32_t max_blocks : {kMaxLargeClusterBlocks, kMaxClusterBlocks}) {
    const auto shape = register_shape(machine, problem, alignment, max_blocks);
    if (!shape) continue;
    RowLaunch<Params> launch{.kernel = kernel_of(shape->regime, alignment), .config = shape->config};
    CGRT_ASSIGN_OR_RETURN(const bool is_possible, can_have_cluster(machine, launch.kernel, launch.config));
    if (is_possible) return launch;
  }
  return long_launch<Params>(machine, problem, alignment, kernel_of);
}

// staged(machine) gives the launch of many short rows, if there are.
template <class Params, class KernelOf, class Staged>
absl::StatusOr<RowLaunches<Params>> plan_launches(ContextRef context, const Problem& problem, KernelOf kernel_of,
                                                  Staged staged) {
  CGRT_RETURN_IF_ERROR(check_float(problem.name, problem.type));
  CGRT_ASSIGN_OR_RETURN(const Machine machine,
                        machine_of(context, kernel_of(SoftmaxRegime::kCluster, Alignment::kAligned)));
  const auto launch_for = [&](const Machine& some, Alignment alignment) -> absl::StatusOr<RowLaunch<Params>> {
    if (alignment == Alignment::kUnaligned) {
      if (auto launch = lane_launch(some, problem, kernel_of(SoftmaxRegime::kLane, alignment))) return *launch;
      if (const std::optional<RowLaunch<Params>> launch = staged(some)) return *launch;
    }
    return row_launch<Params>(some, problem, alignment, kernel_of);
  };
  return plan_row_launches<Params>(machine, problem.row_bytes(), launch_for);
}
template <class Params, class KernelOf>
absl::StatusOr<RowLaunches<Params>> plan_launches(ContextRef context, const Problem& problem, KernelOf kernel_of) {
  return plan_launches<Params>(context, problem, kernel_of,
                               [](const Machine&) -> std::optional<RowLaunch<Params>> { return std::nullopt; });
}

OperationName name(const SoftmaxDesc& desc) { return to_string(desc.op); }
OperationName name(const SoftmaxBackwardDesc& desc) { return {to_string(desc.op), " backward"}; }
constexpr const char* kMasked = "masked_softmax";

std::uint64_t all_rows(const MaskedSoftmaxDesc& desc) { return desc.matrices * desc.rows; }

}  // namespace

absl::StatusOr<SoftmaxPlan> plan_softmax(ContextRef context, const SoftmaxDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("softmax", "op", desc.op, SoftmaxOp::kLogSoftmax));
  CGRT_RETURN_IF_ERROR(check_matrix(name(desc), desc.rows, desc.columns));
  const Problem problem{name(desc), desc.type, desc.rows, desc.columns, 1, false};
  const auto kernel_of = [&](SoftmaxRegime regime, Alignment alignment) {
    return softmax_kernel(desc.op, desc.type, regime, alignment);
  };
  const auto staged = [&](const Machine& machine) -> std::optional<RowLaunch<SoftmaxParams>> {
    if (problem.pack() == 4) return std::nullopt;  // registers are as fast
    const auto shape = share_among_stages(machine, desc.rows, desc.columns, 16 / problem.pack());
    if (!shape) return std::nullopt;
    return RowLaunch<SoftmaxParams>{.kernel = staged_softmax_kernel(desc.op, desc.type, narrow(desc.columns)),
                                    .config = shape->config,
                                    .shares = shape->shares};
  };
  CGRT_ASSIGN_OR_RETURN(const RowLaunches<SoftmaxParams> launches,
                        plan_launches<SoftmaxParams>(context, problem, kernel_of, staged));
  return SoftmaxPlan{desc, launches, launches.workspace_bytes()};
}

absl::Status launch_softmax(LaunchTarget target, const SoftmaxPlan& plan, const SoftmaxArgs& args) {
  const SoftmaxDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_workspace(name(desc), args.workspace, plan.workspace_bytes));
  const RowLaunch<SoftmaxParams>& chosen = plan.launches.of(alignment_of(args.out, args.in));
  SoftmaxParams params{.out = args.out,
                       .in = args.in,
                       .rows = narrow(desc.rows),
                       .columns = narrow(desc.columns),
                       .rows_ahead = rows_ahead(desc.columns * size_of(desc.type)),
                       .shares = chosen.shares,
                       .slices = chosen.slices,
                       .workspace = args.workspace.data};
  return launch_rows(target, chosen, params);
}

absl::StatusOr<SoftmaxBackwardPlan> plan_softmax_backward(ContextRef context, const SoftmaxBackwardDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("softmax backward", "op", desc.op, SoftmaxOp::kLogSoftmax));
  CGRT_RETURN_IF_ERROR(check_matrix(name(desc), desc.rows, desc.columns));
  const Problem problem{name(desc), desc.type, desc.rows, desc.columns, 2, false};
  CGRT_ASSIGN_OR_RETURN(
      const RowLaunches<SoftmaxBackwardParams> launches,
      plan_launches<SoftmaxBackwardParams>(context, problem, [&](SoftmaxRegime regime, Alignment alignment) {
        return softmax_backward_kernel(desc.op, desc.type, regime, alignment);
      }));
  return SoftmaxBackwardPlan{desc, launches, launches.workspace_bytes()};
}

absl::Status launch_softmax_backward(LaunchTarget target, const SoftmaxBackwardPlan& plan,
                                     const SoftmaxBackwardArgs& args) {
  const SoftmaxBackwardDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "dx", args.dx, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "dy", args.dy, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name(desc), "y", args.y, desc.type));
  CGRT_RETURN_IF_ERROR(check_workspace(name(desc), args.workspace, plan.workspace_bytes));
  const RowLaunch<SoftmaxBackwardParams>& chosen = plan.launches.of(alignment_of(args.dx, args.dy, args.y));
  SoftmaxBackwardParams params{.dx = args.dx,
                               .dy = args.dy,
                               .y = args.y,
                               .scale = desc.scale,
                               .rows = narrow(desc.rows),
                               .columns = narrow(desc.columns),
                               .shares = chosen.shares,
                               .slices = chosen.slices,
                               .workspace = args.workspace.data};
  return launch_rows(target, chosen, params);
}

absl::StatusOr<MaskedSoftmaxPlan> plan_masked_softmax(ContextRef context, const MaskedSoftmaxDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum(kMasked, "causal", desc.causal, CausalMask::kLowerRight));
  const auto is_fit = [](std::uint64_t count) { return count > 0 && count <= kMaxCount; };
  if (!is_fit(desc.matrices) || !is_fit(desc.rows) || !is_fit(desc.columns) || !is_fit(all_rows(desc))) {
    return refuse(kMasked,
                  absl::StrCat(desc.matrices, " matrices of ", desc.rows, " rows of ", desc.columns,
                               " columns; columns, and rows of all matrices, must be from 1 to ", kMaxCount, "."));
  }
  if (desc.mask_matrices == 0 || desc.matrices % desc.mask_matrices != 0) {
    return refuse(kMasked, absl::StrCat("mask_matrices (", desc.mask_matrices, ") does not divide the ", desc.matrices,
                                        " matrices."));
  }
  if (desc.mask_rows != 1 && desc.mask_rows != desc.rows) {
    return refuse(kMasked, absl::StrCat("mask_rows (", desc.mask_rows, ") is neither 1 nor the ", desc.rows,
                                        " rows of a matrix."));
  }
  const Problem problem{kMasked, desc.type, all_rows(desc), desc.columns, 1, true};
  CGRT_ASSIGN_OR_RETURN(const RowLaunches<SoftmaxParams> launches,
                        plan_launches<SoftmaxParams>(context, problem, [&](SoftmaxRegime regime, Alignment alignment) {
                          return masked_softmax_kernel(desc.type, regime, alignment);
                        }));
  return MaskedSoftmaxPlan{desc, launches, launches.workspace_bytes()};
}

absl::Status launch_masked_softmax(LaunchTarget target, const MaskedSoftmaxPlan& plan, const MaskedSoftmaxArgs& args) {
  const MaskedSoftmaxDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(kMasked, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kMasked, "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kMasked, "mask", args.mask, desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(kMasked, "lengths", args.lengths, DType::kInt32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_workspace(kMasked, args.workspace, plan.workspace_bytes));
  const RowLaunch<SoftmaxParams>& chosen = plan.launches.of(alignment_of(args.out, args.in, args.mask));
  SoftmaxParams params{.out = args.out,
                       .in = args.in,
                       .rows = narrow(all_rows(desc)),
                       .columns = narrow(desc.columns),
                       .rows_ahead = 0,
                       .shares = chosen.shares,
                       .slices = chosen.slices,
                       .workspace = args.workspace.data,
                       .mask = args.mask,
                       .lengths = args.lengths,
                       .scale = desc.scale,
                       .rows_of_matrix = narrow(desc.rows),
                       .matrices_of_mask = narrow(desc.matrices / desc.mask_matrices),
                       .mask_rows = narrow(desc.mask_rows),
                       .is_causal = desc.causal == CausalMask::kLowerRight ? 1u : 0u};
  return launch_rows(target, chosen, params);
}

}  // namespace cgrt::kernels
