// index_select, index_add and scatter_add along the first dimension: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(IndexPlan plan, plan_index(DeviceRef(0), {.op = IndexOp::kAdd, .rows = nodes,
//       .columns = 128, .count = edges}));
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), plan.workspace_bytes));
//   const Workspace workspace{buffer.data(), buffer.size_bytes()};
//   CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));   // once, see common/workspace.h
//   CGRT_RETURN_IF_ERROR(launch_index(stream.ref(), plan, {.out = sums, .in = messages, .index = targets,
//       .workspace = workspace}));
//
// A tensor of more dimensions is a matrix whose columns are all but the first. A plan is a value and
// depends on the device and the descriptor only, never on the indices; a launch is
// - several kernels that sort the indices, with SumOrder::kFixed and where sorting is faster than atomics;
// - three kernels for 16-bit types by atomics, with a workspace of 4 bytes for each element of `out`, or of `in`;
// - one kernel otherwise, and for an index_add of up to 32 indices, or 1,024 where these name less than 2^22 elements.
// Large launches by atomics make few for a row, however many indices name it. The sort takes one kernel, and with it
// the launch three, of up to 65,536 indices (of scatter_add: elements) on GPUs with clusters and the shared memory for
// it (9.0 and 10.0). Sums are as many as elements of `in` where few indices name many rows; a row of `out` has 4 bytes
// more then. Sums are float and rounded once in all three. alpha multiplies either elements or their sum, and atomics
// take float subnormals for 0, so results may differ at the ends of the range. Nothing is allocated, and nothing waits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/common/workspace.h"
#include "cgrt_kernels/index/index_desc.h"

namespace cgrt::kernels {

struct GroupedParams;
struct IndexParams;
struct IndexSortParams;
struct IndexSumParams;
struct MergedParams;
struct OwnedSumsParams;

struct IndexPlan {
  struct Launch {
    Kernel<IndexParams> kernel;
    LaunchConfig config;
    Divisor packs;  // of a row
  };
  struct Sum {
    Kernel<IndexSumParams> kernel;
    LaunchConfig config;
    std::uint32_t lane_bits;  // 2^that threads take a chunk
    Divisor slices;           // of a row
  };
  // Of an index_add of up to 1,024 indices without atomics.
  struct Grouped {
    Kernel<GroupedParams> kernel;
    LaunchConfig config;
    std::uint32_t lane_bits;  // 2^that threads have a slice of a row
    Divisor slices;           // of a row
  };
  // Of an index_add by atomics that a block merges.
  struct Merged {
    Kernel<MergedParams> kernel;
    LaunchConfig config;
    std::uint32_t window;     // indices of a block
    std::uint32_t lane_bits;  // 2^that threads have a slice of a row
    Divisor slices;           // of a row
  };
  // Of an index_add or scatter_add that sorts, and then sums up chunks of what is sorted.
  struct Sorted {
    std::uint32_t passes, bits;  // of a pass
    std::uint32_t tile, tiles;   // pairs of a tile
    // Where one cluster sorts in one kernel; in so many rounds of 32 pairs a warp.
    std::optional<LaunchConfig> cluster;
    std::uint32_t rounds;
    std::uint32_t chunk, chunks;      // pairs of a chunk; chunks at most
    std::array<Sum, 4> by_alignment;  // for arrays that are aligned to 16, 8, 4 and 2 bytes
    Sum join;
    // Offsets into its scratch memory.
    std::uint64_t pairs[2] = {}, counts = 0, totals = 0, counters = 0, owners = 0, partials = 0;
  };
  // Of an index_add or scatter_add of 16-bit types by atomics, whose workspace these are.
  struct FloatSums {
    std::uint64_t count;  // one for each element of `out`
    LaunchConfig clear, add_aligned, add_unaligned;
  };
  // Likewise where few indices name many rows: sums for each index, and whose sums are those of a row.
  struct OwnedSums {
    std::uint64_t owners;  // where in the scratch memory, behind the sums
    std::uint32_t lines;   // indices of a thread that adds
    LaunchConfig clear;
  };

  IndexDesc desc;
  bool has_atomics;  // the last bits differ from run to run
  std::uint64_t workspace_bytes = 0;
  Launch by_alignment[4];  // for arrays that are aligned to 16, 8, 4 and 2 bytes; unless it is grouped, merged, sorted
                           // or owned
  std::optional<std::array<Grouped, 4>> grouped;  // for the same alignments
  std::optional<std::array<Merged, 4>> merged;    // for the same alignments
  std::optional<Sorted> sorted;
  std::optional<FloatSums> sums;
  std::optional<OwnedSums> owned;
  EdgeKind edges = EdgeKind::kProgrammatic;  // between kernels; full where their code was compiled for 8.0

  std::uint64_t topology_id() const;  // see common/topology.h
};

// kInvalidArgument for sizes of 0, types other than those named, 2^31 or more rows, indices or elements
// of the rows they name, and scatter_add into more than 2^32 elements with SumOrder::kFixed, of 16-bit
// types into more than 2^38.
absl::StatusOr<IndexPlan> plan_index(ContextRef context, const IndexDesc& desc);

// kInvalidArgument, with the name of the argument, for null pointers, for pointers that are not aligned
// to the size of their type, and for a workspace that is too small.
absl::Status launch_index(LaunchTarget target, const IndexPlan& plan, const IndexArgs& args);

}  // namespace cgrt::kernels
