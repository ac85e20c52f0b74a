// How the rows of a norm are shared: what the plans of its forward and of its backward have in common. Internal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/row/plan.h"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {

// What a plan asks for, as far as the shape of its launch depends on it.
struct NormProblem {
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
inline std::uint32_t narrow(std::uint64_t count) { return static_cast<std::uint32_t>(count); }

LongRows long_rows(const NormProblem& problem);

// Forward rows that would need a cluster each: streams keep their weights.
bool gains_from_bulk(const Machine& machine, const NormProblem& problem);
// How many blocks share a row of such a stream, and how many rows each has in flight.
std::pair<std::uint32_t, std::uint32_t> bulk_depth(const NormProblem& problem);

// In registers, where a row fits those of a cluster.
std::optional<RowShape<NormRegime>> register_shape(const Machine& machine, const NormProblem& problem,
                                                   Alignment alignment);

// Leaves so many persistent clusters that a multiprocessor has at most two blocks, or so many threads: with more, rows
// push each other out of the L2 cache.
void limit_threads(const Machine& machine, std::uint32_t threads_of_sm, LaunchConfig& config);

// Persistent clusters that hold weight and bias, where these are faster; their grid is set later.
std::optional<LaunchConfig> held_columns_config(const Machine& machine, const NormProblem& problem,
                                                Alignment alignment);

// Short rows: some lanes of a warp for each (norm_lanes_kernel), several one after the other where there are enough for
// all multiprocessors.
LaunchConfig lanes_config(const Machine& machine, const NormProblem& problem, Alignment alignment);

// Rows of a warp or a block each, of which a thread has few elements.
std::optional<RowShape<HeldRegime>> held_shape(const Machine& machine, const NormProblem& problem, Alignment alignment);

// Rows that do not fit the registers of a cluster, or gain nothing there.
template <class Params, class KernelOf>
absl::StatusOr<RowLaunch<Params>> long_launch(const Machine& machine, const NormProblem& problem, Alignment alignment,
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

// kernel_of(regime, alignment) gives the kernel of the operation.
template <class Params, class KernelOf>
absl::StatusOr<RowLaunch<Params>> row_launch(const Machine& machine, const NormProblem& problem, Alignment alignment,
                                             KernelOf kernel_of) {
  if (const auto config = held_columns_config(machine, problem, alignment)) {
    RowLaunch<Params> launch{.kernel = kernel_of(NormRegime::kHeldColumns, alignment), .config = *config};
    CGRT_ASSIGN_OR_RETURN(const bool is_possible, can_have_cluster(machine, launch.kernel, launch.config));
    if (is_possible) {
      const LongRows rows = long_rows(problem);
      CGRT_RETURN_IF_ERROR(set_persistent_grid(machine, launch.kernel, rows.rows, launch.config));
      limit_threads(machine, 2 * kHeldColumnThreads, launch.config);
      keep_alike(rows, launch.config);
      return launch;
    }
  }
  if (const auto shape = register_shape(machine, problem, alignment)) {
    RowLaunch<Params> launch{.kernel = kernel_of(shape->regime, alignment), .config = shape->config};
    CGRT_ASSIGN_OR_RETURN(const bool is_possible, can_have_cluster(machine, launch.kernel, launch.config));
    if (is_possible) return launch;
  }
  return long_launch<Params>(machine, problem, alignment, kernel_of);
}

}  // namespace cgrt::kernels
