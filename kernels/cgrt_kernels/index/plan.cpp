#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/index/index.h"

namespace cgrt::kernels {
namespace {

// An atomic operation per pack against several kernels that sort: where the latter have caught up.
constexpr std::uint64_t kSortFromColumns = 32;
constexpr std::uint64_t kSortFromElements = std::uint64_t{4} << 20;

// Chunks of sorted pairs: long enough that few rows are shared, short enough that each multiprocessor
// has this many warps' worth of them.
constexpr std::uint64_t kShortestChunk = 32, kLongestChunk = 128, kChunkWarpsOfSm = 48;

// Floats for the sums of 16-bit types: where they are few, or not so many more than indices that sorting these takes
// less time than to set and read them all.
constexpr std::uint64_t kFewSums = std::uint64_t{1} << 20, kMaxSumsOfIndex = 8;
// More bytes of a result than the next kernel finds in the L2 cache.
constexpr std::uint64_t kKeptBytes = std::uint64_t{32} << 20;
constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 32, kMaxSums = std::uint64_t{1} << 38;

bool has_few_sums(const IndexDesc& desc) {
  const std::uint64_t indices = desc.op == IndexOp::kScatterAdd ? desc.count * desc.columns : desc.count;
  return desc.rows <= std::max(kFewSums, kMaxSumsOfIndex * indices) / desc.columns;
}

bool needs_sort(const IndexDesc& desc) {
  if (desc.op == IndexOp::kSelect) return false;
  const bool is_add = desc.op == IndexOp::kAdd;
  if (is_add && desc.count <= kMaxFew) return false;
  if (desc.order == SumOrder::kFixed) return true;
  if (is_add && desc.columns >= kSortFromColumns && desc.count * desc.columns >= kSortFromElements) return true;
  const bool has_keys = is_add || desc.rows <= kMaxKeys / desc.columns;
  return size_of(desc.type) == 2 && !has_few_sums(desc) && has_keys;
}

IndexRoute route_of(const IndexDesc& desc) {
  if (desc.op == IndexOp::kSelect) return IndexRoute::kSelect;
  if (needs_sort(desc)) return IndexRoute::kSorted;
  if (desc.op == IndexOp::kScatterAdd) return IndexRoute::kScatter;
  return desc.count <= kMaxFew ? IndexRoute::kFew : IndexRoute::kAtomic;
}

IndexPlan::Choice choose(const IndexDesc& desc, IndexRoute route, std::uint32_t alignment) {
  const auto size = static_cast<std::uint32_t>(size_of(desc.type));
  const auto columns = static_cast<std::uint32_t>(desc.columns), count = static_cast<std::uint32_t>(desc.count);
  std::uint32_t pack = std::max(alignment, size);
  while (desc.columns * size % pack != 0) pack /= 2;
  if ((route != IndexRoute::kSelect && pack != 16) || route == IndexRoute::kScatter) pack = size;
  const std::uint32_t packs = columns / (pack / size);
  const IndexShape shape{.rows = static_cast<std::uint32_t>(desc.rows),
                         .count = count,
                         .items = packs * count,
                         .packs = Divisor(packs),
                         .is_long = desc.index_type == DType::kInt64,
                         .is_streamed = desc.count * desc.columns * size > kKeptBytes};
  const std::uint32_t together = kIndexBlock * (route == IndexRoute::kSelect ? kSelectItems : kIndexItems);
  LaunchConfig config{.grid = ceil_divide(shape.items, together), .block = kIndexBlock};
  if (route == IndexRoute::kFew) config.grid = Dim3(ceil_divide(packs, together), count);
  return {index_kernel(route, desc.type, pack), config, shape};
}

IndexPlan::Sum make_sum(const IndexDesc& desc, const SumShape& common, bool is_packed) {
  const std::uint64_t packs = is_packed ? common.columns * size_of(desc.type) / 16 : common.columns;
  SumShape shape = common;
  shape.lane_bits = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::bit_width(packs - 1), 5));
  shape.slices = Divisor(ceil_divide(packs, std::uint64_t{1} << shape.lane_bits));
  const std::uint32_t blocks = ceil_divide(std::uint64_t{shape.chunks} << shape.lane_bits, kIndexBlock);
  return {sum_pairs_kernel(desc.type, is_packed), {.grid = blocks * shape.slices.value(), .block = kIndexBlock}, shape};
}

// The lanes of a warp that a row's packs keep busy, times the warps.
std::uint64_t lanes_of_row(const IndexDesc& desc, std::uint64_t columns) {
  return std::max<std::uint64_t>(columns * size_of(desc.type) / 16, 1);
}

IndexPlan::Sorted make_sorted(const IndexDesc& desc, std::uint32_t sms, std::uint64_t& scratch_bytes) {
  const bool is_scatter = desc.op == IndexOp::kScatterAdd;
  const std::uint64_t columns = is_scatter ? 1 : desc.columns;  // an element that has an index is a row
  const std::uint64_t count = is_scatter ? desc.count * desc.columns : desc.count;
  const std::uint64_t keys = is_scatter ? desc.rows * desc.columns : desc.rows;

  const auto bits = static_cast<std::uint32_t>(std::max<std::uint64_t>(std::bit_width(keys - 1), 1));
  const std::uint32_t passes = ceil_divide(bits, 8);
  const SortShape sort{.count = static_cast<std::uint32_t>(count),
                       .rows = static_cast<std::uint32_t>(desc.rows),
                       .columns = Divisor(is_scatter ? static_cast<std::uint32_t>(desc.columns) : 1),
                       .tiles = ceil_divide(count, kTile),
                       .shift = 0,
                       .bits = ceil_divide(bits, passes),
                       .source = desc.index_type == DType::kInt64 ? SortSource::kInt64 : SortSource::kInt32};

  const std::uint64_t chunk = count * lanes_of_row(desc, columns) / 32 / (sms * kChunkWarpsOfSm);
  SumShape sum;
  sum.columns = static_cast<std::uint32_t>(columns);
  sum.chunk = static_cast<std::uint32_t>(
      std::clamp(std::bit_floor(std::max<std::uint64_t>(chunk, 1)), kShortestChunk, kLongestChunk));
  sum.chunks = ceil_divide(count, sum.chunk);
  SumShape join = sum;
  join.slices = Divisor(ceil_divide(columns, 32));

  const bool is_packed = columns * size_of(desc.type) % 16 == 0;
  IndexPlan::Sorted sorted{passes,
                           sort,
                           make_sum(desc, sum, is_packed),
                           make_sum(desc, sum, false),
                           {join_partials_kernel(desc.type), {.grid = 2 * sms, .block = kJoinBlock}, join},
                           {},
                           0,
                           0,
                           0,
                           0,
                           0};
  const auto place = [&](std::uint64_t& offset, std::uint64_t bytes) {
    offset = scratch_bytes;
    scratch_bytes += (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  };
  scratch_bytes = 0;
  for (std::uint64_t& pairs : sorted.pairs) place(pairs, count * sizeof(uint2));
  place(sorted.counts, (std::uint64_t{sort.tiles} << sort.bits) * sizeof(std::uint32_t));
  place(sorted.totals, kMaxDigits * sizeof(std::uint32_t));
  place(sorted.counters, sizeof(SumCounters));
  place(sorted.owners, std::uint64_t{sum.chunks} * sizeof(std::uint32_t));
  place(sorted.partials, 2 * std::uint64_t{sum.chunks} * columns * sizeof(float));
  return sorted;
}

// For the kernels behind the first one.
LaunchTarget behind(LaunchTarget target, const IndexPlan& plan) {
  return plan.edges == EdgeKind::kProgrammatic ? target.programmatic() : target;
}

absl::Status launch_sorted(LaunchTarget target, const IndexPlan& of, const IndexArgs& args, bool is_aligned) {
  const IndexPlan::Sorted& plan = *of.sorted;
  unsigned char* const scratch = scratch_of(args.workspace);
  uint2* const pairs[] = {reinterpret_cast<uint2*>(scratch + plan.pairs[0]),
                          reinterpret_cast<uint2*>(scratch + plan.pairs[1])};
  auto* const counts = reinterpret_cast<std::uint32_t*>(scratch + plan.counts);
  auto* const totals = reinterpret_cast<std::uint32_t*>(scratch + plan.totals);
  auto* const counters = reinterpret_cast<SumCounters*>(scratch + plan.counters);
  const LaunchConfig of_tiles{.grid = plan.sort.tiles, .block = kIndexBlock};
  const LaunchConfig of_digits{.grid = 1u << plan.sort.bits, .block = kIndexBlock};
  SortShape shape = plan.sort;
  const void* from = args.index;
  for (std::uint32_t pass = 0; pass < plan.passes; ++pass) {
    uint2* const to = pairs[pass % 2];
    CGRT_RETURN_IF_ERROR(launch(target, of_tiles, count_digits_kernel(), counts, from, counters, shape));
    target = behind(target, of);
    CGRT_RETURN_IF_ERROR(launch(target, of_digits, scan_digits_kernel(), counts, totals, shape.tiles));
    CGRT_RETURN_IF_ERROR(launch(target, of_tiles, move_pairs_kernel(), to, from, counts, totals, counters, shape));
    from = to;
    shape.source = SortSource::kPairs;
    shape.shift += shape.bits;
  }
  const IndexPlan::Sum& sum = is_aligned ? plan.packed : plan.any;
  for (const IndexPlan::Sum* part : {&sum, &plan.join}) {
    CGRT_RETURN_IF_ERROR(launch(target, part->config, part->kernel, args.out, args.in,
                                reinterpret_cast<float*>(scratch + plan.partials),
                                reinterpret_cast<std::uint32_t*>(scratch + plan.owners),
                                static_cast<const uint2*>(from), counters, args.alpha, part->shape));
  }
  return absl::OkStatus();
}

IndexPlan::FloatSums make_sums(const IndexDesc& desc) {
  const std::uint64_t count = desc.rows * desc.columns;
  const auto config = [&](std::uint64_t per_thread) {
    return LaunchConfig{.grid = ceil_divide(count, kIndexBlock * per_thread), .block = kIndexBlock};
  };
  return {count, config(4), config(16 / size_of(desc.type)), config(1)};
}

// Atomics add to floats; a plain sum, which alpha multiplies when it is added.
absl::Status launch_sums(LaunchTarget target, const IndexPlan& plan, const IndexPlan::Choice& choice,
                         const IndexArgs& args) {
  const IndexPlan::FloatSums& of = *plan.sums;
  const bool is_packed = address_bits(args.out) % 16 == 0;
  auto* const sums = reinterpret_cast<float*>(scratch_of(args.workspace));
  CGRT_RETURN_IF_ERROR(launch(target, of.clear, clear_sums_kernel(), sums, of.count));
  target = behind(target, plan);
  CGRT_RETURN_IF_ERROR(launch(target, choice.config, choice.kernel, sums, args.in, args.index, 1.0f, choice.shape));
  return launch(target, is_packed ? of.add_packed : of.add_any, add_sums_kernel(plan.desc.type, is_packed), args.out,
                sums, args.alpha, of.count);
}

absl::Status check_sizes(const IndexDesc& desc) {
  const bool fits = desc.rows - 1 < kMaxCount && desc.columns - 1 < kMaxCount && desc.count - 1 < kMaxCount;
  if (!fits || desc.count > kMaxCount / desc.columns) {
    return refuse(to_string(desc.op),
                  absl::StrCat(desc.count, " indices into ", desc.rows, " rows of ", desc.columns,
                               " columns; each must be from 1 to ", kMaxCount, ", and so must indices times columns."));
  }
  if (desc.op == IndexOp::kScatterAdd && desc.order == SumOrder::kFixed && desc.rows > kMaxKeys / desc.columns) {
    return absl::InvalidArgumentError(absl::StrCat("scatter_add in a fixed order: ", desc.rows, " rows of ",
                                                   desc.columns, " columns are more than ", kMaxKeys, " elements."));
  }
  if (desc.op == IndexOp::kScatterAdd && size_of(desc.type) == 2 && desc.rows > kMaxSums / desc.columns) {
    return refuse(to_string(desc.op), absl::StrCat(desc.rows, " rows of ", desc.columns, " columns are more than ",
                                                   kMaxSums, " elements of ", to_string(desc.type), "."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<IndexPlan> plan_index(ContextRef context, const IndexDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_sizes(desc));
  CGRT_RETURN_IF_ERROR(check_float(to_string(desc.op), desc.type));
  if (desc.index_type != DType::kInt32 && desc.index_type != DType::kInt64) {
    return absl::InvalidArgumentError(
        absl::StrCat(to_string(desc.op), ": indices are int32 or int64, not ", to_string(desc.index_type), "."));
  }
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context, count_digits_kernel()));
  const IndexRoute route = route_of(desc);
  const IndexRoute unsorted = route != IndexRoute::kSorted ? route : IndexRoute::kAtomic;
  IndexPlan plan{
      desc,
      route,
      0,
      {choose(desc, unsorted, 16), choose(desc, unsorted, 8), choose(desc, unsorted, 4), choose(desc, unsorted, 2)},
      std::nullopt,
      std::nullopt};
  if (!machine.has_programmatic_edges) plan.edges = EdgeKind::kFull;
  if (route == IndexRoute::kSorted) {
    std::uint64_t scratch_bytes = 0;
    plan.sorted = make_sorted(desc, machine.sms, scratch_bytes);
    plan.workspace_bytes = workspace_with(scratch_bytes);
  } else if (size_of(desc.type) == 2 && (route == IndexRoute::kAtomic || route == IndexRoute::kScatter)) {
    plan.sums = make_sums(desc);
    plan.workspace_bytes = workspace_with(ceil_divide<std::uint64_t>(plan.sums->count, 4) * 16);
  }
  return plan;
}

std::uint64_t IndexPlan::topology_id() const {
  const std::size_t kernels = sorted.has_value() ? 3 * sorted->passes + 2 : sums.has_value() ? 3 : 1;
  return topology_of_kernels(std::vector<LaunchAttributes>(kernels), edges);
}

absl::Status launch_index(LaunchTarget target, const IndexPlan& plan, const IndexArgs& args) {
  const IndexDesc& desc = plan.desc;
  const char* const name = to_string(desc.op);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "index", args.index, desc.index_type));
  // Atomics on floats in the workspace do not mind where the result is.
  const std::uintptr_t bits = plan.sums.has_value() ? address_bits(args.in) : address_bits(args.out, args.in);
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  if (plan.sorted.has_value()) return launch_sorted(target, plan, args, bits % 16 == 0);
  const IndexPlan::Choice& choice = plan.by_alignment[bits % 16 == 0 ? 0 : bits % 8 == 0 ? 1 : bits % 4 == 0 ? 2 : 3];
  if (plan.sums.has_value()) return launch_sums(target, plan, choice, args);
  return launch(target, choice.config, choice.kernel, args.out, args.in, args.index, args.alpha, choice.shape);
}

}  // namespace cgrt::kernels
