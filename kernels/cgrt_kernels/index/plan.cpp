#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/index/index.h"
#include "cgrt_kernels/index/kernels.h"

namespace cgrt::kernels {
namespace {

// From so many columns on, rows are worth a search for indices that name the same one. The next three are for indices
// that differ (H200). Where many name one row, merging pays from fewer elements on, and a sort beats it only from more.
constexpr std::uint64_t kGroupFromColumns = 32;
// From so many elements on, a block merges what it adds to one row.
constexpr std::uint64_t kMergeFromElements = std::uint64_t{2} << 20;
// From so many on, a sort is faster than atomics that are not merged,
constexpr std::uint64_t kSortFromElements = std::uint64_t{4} << 20;
// and from so many on than merged ones. 16-bit types take half the time to sum up, and the same for their atomics.
constexpr std::uint64_t sort_merged_from(DType type) { return (std::uint64_t{10} << 20) * size_of(type); }

// From so many columns on, 32 threads side by side have elements that are spread.
constexpr std::uint64_t kSpreadFromColumns = 32;

// Chunks of sorted pairs: long enough that few rows are shared, short enough that there are this many waves of blocks.
constexpr std::uint64_t kMinChunk = 8, kMaxChunk = 128, kMinWaves = 2;

// From so many pairs on, tiles of the sort are long.
constexpr std::uint64_t kLongTilesFrom = std::uint64_t{1} << 21;

// Packs to select: so few that one for each thread keeps more multiprocessors busy.
constexpr std::uint64_t kSmallSelect = std::uint64_t{1} << 18;

// Floats for the sums of 16-bit types, one for each element: where they are few, or not so many more than indices that
// sorting these takes less time than to set and read them all.
constexpr std::uint64_t kFewSums = std::uint64_t{1} << 20, kMaxSumsOfIndex = 8;
// Or a row of floats for each index, where rows are more than indices, and a word for each row that says where its sums
// are. Not so many rows that the workspace is large, and not so many indices that to add them all to one row takes
// longer than to sort them.
constexpr std::uint64_t kMinOwnedSums = std::uint64_t{1} << 16, kMinRowsOfOwner = 2;
constexpr std::uint64_t kMaxOwnedRows = std::uint64_t{1} << 24, kMaxOwners = std::uint64_t{1} << 15;
// More bytes of a result than the next kernel finds in the L2 cache.
constexpr std::uint64_t kKeptBytes = std::uint64_t{32} << 20;
constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 32, kMaxSums = std::uint64_t{1} << 38;

bool has_few_sums(const IndexDesc& desc) {
  const std::uint64_t indices = desc.op == IndexOp::kScatterAdd ? desc.count * desc.columns : desc.count;
  return desc.rows <= std::max(kFewSums, kMaxSumsOfIndex * indices) / desc.columns;
}

bool has_owners(const IndexDesc& desc) {
  if (size_of(desc.type) != 2 || desc.op != IndexOp::kAdd) return false;
  if (desc.rows > kMaxOwnedRows || desc.count > kMaxOwners || desc.rows <= kMinOwnedSums / desc.columns) return false;
  return desc.rows > kMinRowsOfOwner * desc.count || !has_few_sums(desc);
}

// Not float32 in any order: atomics straight into the result take one kernel, too, and are faster. From
// kSortFromElements on, a sort is.
bool can_group(const IndexDesc& desc) {
  if (desc.op != IndexOp::kAdd || (desc.order == SumOrder::kAny && size_of(desc.type) == 4)) return false;
  return desc.count <= kMaxGrouped && desc.count * desc.columns < kSortFromElements;
}

bool can_merge(const IndexDesc& desc) {
  if (desc.op != IndexOp::kAdd || desc.order != SumOrder::kAny || desc.count <= kMaxFew) return false;
  if (desc.columns < kGroupFromColumns || desc.count * desc.columns < kMergeFromElements) return false;
  return size_of(desc.type) == 4 || (has_few_sums(desc) && !has_owners(desc));
}

bool needs_sort(const IndexDesc& desc) {
  if (desc.op == IndexOp::kSelect) return false;
  const bool is_add = desc.op == IndexOp::kAdd;
  if ((is_add && desc.count <= kMaxFew) || can_group(desc)) return false;
  if (desc.order == SumOrder::kFixed) return true;
  const std::uint64_t from = can_merge(desc) ? sort_merged_from(desc.type) : kSortFromElements;
  if (is_add && desc.columns >= kGroupFromColumns && desc.count * desc.columns >= from) return true;
  const bool has_keys = is_add || desc.rows <= kMaxKeys / desc.columns;
  return size_of(desc.type) == 2 && !has_few_sums(desc) && !has_owners(desc) && has_keys;
}

IndexRegime regime_of(const IndexDesc& desc) {
  if (desc.op == IndexOp::kSelect) return IndexRegime::kSelect;
  if (needs_sort(desc)) return IndexRegime::kSorted;
  if (desc.op == IndexOp::kScatterAdd) return IndexRegime::kScatter;
  const bool are_atomics_fast =
      desc.order == SumOrder::kAny && size_of(desc.type) == 4 && desc.count * desc.columns < kSortFromElements;
  if (desc.count <= kMaxFew && !are_atomics_fast) return IndexRegime::kFew;
  if (can_group(desc)) return IndexRegime::kGrouped;
  return can_merge(desc) ? IndexRegime::kMerged : IndexRegime::kAtomic;
}

IndexPlan::Launch launch_of(const IndexDesc& desc, IndexRegime regime, std::uint32_t alignment) {
  const auto size = static_cast<std::uint32_t>(size_of(desc.type));
  const auto columns = static_cast<std::uint32_t>(desc.columns), count = static_cast<std::uint32_t>(desc.count);
  std::uint32_t pack = std::max(alignment, size);
  while (desc.columns * size % pack != 0) pack /= 2;
  if ((regime != IndexRegime::kSelect && pack != 16) || regime == IndexRegime::kScatter) pack = size;
  const std::uint32_t packs = columns / (pack / size);
  const bool is_small = std::uint64_t{packs} * count <= kSmallSelect;
  const std::uint32_t items = regime == IndexRegime::kSelect ? is_small ? 1 : kSelectItems
                              : regime == IndexRegime::kFew  ? kFewItems
                                                             : 1;
  const std::uint32_t together = kIndexBlock * items;
  LaunchConfig config{.grid = ceil_divide(packs * count, together), .block = kIndexBlock};
  if (regime == IndexRegime::kFew) config.grid = Dim3(ceil_divide(packs, together), count);
  if (regime == IndexRegime::kSelect) return {select_kernel(pack, items), config, Divisor(packs)};
  return {add_kernel(regime, desc.type, pack == 16 ? Alignment::kAligned : Alignment::kUnaligned), config,
          Divisor(packs)};
}

// What is sorted and summed up. An element that has an index of its own is a row.
struct SortedRows {
  explicit SortedRows(const IndexDesc& desc) : count(desc.count), columns(desc.columns), keys(desc.rows) {
    if (desc.op == IndexOp::kScatterAdd) count *= columns, keys *= columns, columns = 1;
  }
  std::uint64_t count, columns, keys;
};

// The widest of which rows are whole.
SumPack pack_of(DType type, std::uint64_t columns, std::uint32_t alignment) {
  const auto size = static_cast<std::uint32_t>(size_of(type));
  const auto has_packs_of = [&](std::uint32_t bytes) {
    return bytes > size && alignment >= bytes && columns * size % bytes == 0;
  };
  if (has_packs_of(16)) return SumPack::kBytes16;
  if (has_packs_of(8)) return SumPack::kBytes8;
  if (has_packs_of(4)) return SumPack::kBytes4;
  return columns >= kSpreadFromColumns ? SumPack::kSpread : SumPack::kElement;
}

std::uint32_t elements_of(SumPack pack, DType type) {
  const auto size = static_cast<std::uint32_t>(size_of(type));
  switch (pack) {
    case SumPack::kBytes16: return 16 / size;
    case SumPack::kBytes8: return 8 / size;
    case SumPack::kBytes4: return 4 / size;
    case SumPack::kElement: return 1;
    case SumPack::kSpread: break;
  }
  return kSpreadSize;
}

// How threads side by side have a row: 2^lane_bits of them, a pack each, and the next slice of that many packs.
struct RowThreads {
  RowThreads(DType type, std::uint64_t columns, std::uint32_t alignment) : pack(pack_of(type, columns, alignment)) {
    const std::uint64_t packs = ceil_divide<std::uint64_t>(columns, elements_of(pack, type));
    lane_bits = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::bit_width(packs - 1), 5));
    slices = Divisor(ceil_divide(packs, std::uint64_t{1} << lane_bits));
  }
  SumPack pack;
  std::uint32_t lane_bits = 0;
  Divisor slices{1};
};

// Without its grid, which needs the number of chunks.
IndexPlan::Sum make_sum(DType type, std::uint64_t columns, std::uint32_t alignment) {
  const RowThreads of(type, columns, alignment);
  return {sum_pairs_kernel(type, of.pack), {.grid = 1, .block = kIndexBlock}, of.lane_bits, of.slices};
}

IndexPlan::Grouped make_grouped(const IndexDesc& desc, std::uint32_t alignment) {
  const RowThreads of(desc.type, desc.columns, alignment);
  const std::uint32_t blocks = ceil_divide(desc.count, kGroupedBlock / 32) * of.slices.value();
  return {add_grouped_kernel(desc.type, of.pack), {.grid = blocks, .block = kGroupedBlock}, of.lane_bits, of.slices};
}

// Windows as long as leave each multiprocessor a block.
IndexPlan::Merged make_merged(const IndexDesc& desc, std::uint64_t sms, std::uint32_t alignment) {
  const RowThreads of(desc.type, desc.columns, alignment);
  std::uint32_t window = kMaxMergedWindow;
  const auto blocks = [&] { return ceil_divide<std::uint64_t>(desc.count, window) * of.slices.value(); };
  while (window > kIndexBlock && blocks() < sms) window /= 2;
  return {add_merged_kernel(desc.type, of.pack),
          {.grid = static_cast<std::uint32_t>(blocks()), .block = kIndexBlock},
          window,
          of.lane_bits,
          of.slices};
}

// Pairs of a chunk, so that the blocks of `sum` fill whole waves.
absl::StatusOr<std::uint32_t> chunk_of(const Machine& machine, std::uint64_t count, const IndexPlan::Sum& sum) {
  CGRT_ASSIGN_OR_RETURN(const Occupancy of_sm, occupancy(sum.kernel, machine.context, kIndexBlock, 0));
  const std::uint64_t wave = std::uint64_t{machine.sms} * static_cast<std::uint64_t>(std::max(of_sm.blocks_per_sm, 1));
  const std::uint64_t chunks_of_block = kIndexBlock >> sum.lane_bits;
  const auto in_waves = [&](std::uint64_t waves) {
    const std::uint64_t chunks = std::max(waves * wave / sum.slices.value(), std::uint64_t{1}) * chunks_of_block;
    return ceil_divide<std::uint64_t>(count, chunks);
  };
  const std::uint64_t waves = std::max<std::uint64_t>(ceil_divide<std::uint64_t>(in_waves(1), kMaxChunk), kMinWaves);
  return static_cast<std::uint32_t>(std::clamp(in_waves(waves), kMinChunk, kMaxChunk));
}

// The cluster that sorts so many indices, if there is one. Its blocks have equal parts of them.
absl::StatusOr<std::optional<LaunchConfig>> sort_cluster(const Machine& machine, std::uint64_t count,
                                                         std::uint32_t bits, std::uint32_t& rounds) {
  std::optional<LaunchConfig> none;
  if (!machine.has_clusters || count > kMaxClusterBlocks * kMaxClusterRounds * kClusterSortBlock) return none;
  const auto blocks = std::min(std::bit_ceil(ceil_divide(count, kClusterSortBlock)), kMaxClusterBlocks);
  rounds = ceil_divide(count, blocks * kClusterSortBlock);
  LaunchConfig config{
      .grid = blocks, .block = kClusterSortBlock, .shared_bytes = cluster_sort_bytes(rounds, bits), .attributes = {}};
  config.attributes.cluster = blocks;
  if (config.shared_bytes > machine.shared_per_block) return none;
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(sort_in_cluster_kernel(), machine, config.shared_bytes));
  CGRT_ASSIGN_OR_RETURN(const bool has_room, has_room_for_cluster(machine, sort_in_cluster_kernel(), config));
  return has_room ? std::optional(config) : none;
}

absl::StatusOr<IndexPlan::Sorted> make_sorted(const IndexDesc& desc, const Machine& machine,
                                              std::uint64_t& scratch_bytes) {
  const SortedRows of(desc);
  const std::uint32_t sms = machine.sms;
  const auto bits = static_cast<std::uint32_t>(std::max<std::uint64_t>(std::bit_width(of.keys - 1), 1));
  std::uint32_t passes = ceil_divide(bits, kMaxClusterBits), rounds = 0;
  CGRT_ASSIGN_OR_RETURN(const std::optional<LaunchConfig> cluster,
                        sort_cluster(machine, of.count, ceil_divide(bits, passes), rounds));
  if (!cluster.has_value()) passes = ceil_divide(bits, 8);
  std::array<IndexPlan::Sum, 4> sums{make_sum(desc.type, of.columns, 16), make_sum(desc.type, of.columns, 8),
                                     make_sum(desc.type, of.columns, 4), make_sum(desc.type, of.columns, 2)};
  CGRT_ASSIGN_OR_RETURN(const std::uint32_t chunk, chunk_of(machine, of.count, sums[0]));
  const std::uint32_t chunks = ceil_divide(of.count, chunk);
  const std::uint32_t tile = of.count < kLongTilesFrom ? kShortTile : kLongTile;
  for (IndexPlan::Sum& sum : sums) {
    sum.config.grid = ceil_divide(std::uint64_t{chunks} << sum.lane_bits, kIndexBlock) * sum.slices.value();
  }
  IndexPlan::Sorted sorted{passes,
                           ceil_divide(bits, passes),
                           tile,
                           ceil_divide(of.count, tile),
                           cluster,
                           rounds,
                           chunk,
                           chunks,
                           sums,
                           {join_partials_kernel(desc.type),
                            {.grid = 2 * sms, .block = kJoinBlock},
                            0,
                            Divisor(ceil_divide(of.columns, 32))}};
  const auto place = [&](std::uint64_t& offset, std::uint64_t bytes) {
    offset = scratch_bytes;
    scratch_bytes += (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  };
  scratch_bytes = 0;
  for (std::uint64_t& pairs : sorted.pairs) place(pairs, of.count * sizeof(uint2));
  place(sorted.counts, (std::uint64_t{sorted.tiles} << sorted.bits) * sizeof(std::uint32_t));
  place(sorted.totals, kMaxDigits * sizeof(std::uint32_t));
  place(sorted.counters, sizeof(SumCounters));
  place(sorted.owners, std::uint64_t{chunks} * sizeof(std::uint32_t));
  place(sorted.partials, 2 * std::uint64_t{chunks} * of.columns * sizeof(float));
  return sorted;
}

// For the kernels behind the first one.
LaunchTarget behind(LaunchTarget target, const IndexPlan& plan) {
  return plan.edges == EdgeKind::kProgrammatic ? target.programmatic() : target;
}

absl::Status launch_sorted(LaunchTarget target, const IndexPlan& plan, const IndexArgs& args,
                           const IndexPlan::Sum& sums) {
  const IndexDesc& desc = plan.desc;
  const IndexPlan::Sorted& sorted = *plan.sorted;
  const SortedRows of(desc);
  unsigned char* const scratch = scratch_of(args.workspace);
  IndexSortParams sort{
      .to = nullptr,
      .from = args.index,
      .counts = reinterpret_cast<std::uint32_t*>(scratch + sorted.counts),
      .totals = reinterpret_cast<std::uint32_t*>(scratch + sorted.totals),
      .counters = reinterpret_cast<SumCounters*>(scratch + sorted.counters),
      .count = static_cast<std::uint32_t>(of.count),
      .rows = static_cast<std::uint32_t>(desc.rows),
      .columns = Divisor(static_cast<std::uint32_t>(desc.op == IndexOp::kScatterAdd ? desc.columns : 1)),
      .tiles = sorted.tiles,
      .shift = 0,
      .bits = sorted.bits,
      .source = desc.index_type == DType::kInt64 ? SortSource::kInt64 : SortSource::kInt32,
      .passes = sorted.passes,
      .rounds = sorted.rounds};
  const LaunchConfig of_tiles{.grid = sorted.tiles, .block = kIndexBlock};
  const LaunchConfig of_digits{.grid = 1u << sorted.bits, .block = kIndexBlock};
  if (sorted.cluster.has_value()) {
    sort.to = reinterpret_cast<uint2*>(scratch + sorted.pairs[0]);
    CGRT_RETURN_IF_ERROR(launch(target, *sorted.cluster, sort_in_cluster_kernel(), sort));
    target = behind(target, plan);
  }
  for (std::uint32_t pass = 0; pass < (sorted.cluster.has_value() ? 0 : sorted.passes); ++pass) {
    sort.to = reinterpret_cast<uint2*>(scratch + sorted.pairs[pass % 2]);
    CGRT_RETURN_IF_ERROR(launch(target, of_tiles, count_digits_kernel(sorted.tile), sort));
    target = behind(target, plan);
    CGRT_RETURN_IF_ERROR(launch(target, of_digits, scan_digits_kernel(), sort));
    CGRT_RETURN_IF_ERROR(launch(target, of_tiles, move_pairs_kernel(sorted.tile), sort));
    sort.from = sort.to;
    sort.source = SortSource::kPairs;
    sort.shift += sort.bits;
  }
  for (const IndexPlan::Sum* part : {&sums, &sorted.join}) {
    const IndexSumParams sum{.out = args.out,
                             .in = args.in,
                             .partials = reinterpret_cast<float*>(scratch + sorted.partials),
                             .owners = reinterpret_cast<std::uint32_t*>(scratch + sorted.owners),
                             .pairs = sort.to,
                             .counters = sort.counters,
                             .alpha = args.alpha,
                             .columns = static_cast<std::uint32_t>(of.columns),
                             .chunk = sorted.chunk,
                             .chunks = sorted.chunks,
                             .lane_bits = part->lane_bits,
                             .slices = part->slices};
    CGRT_RETURN_IF_ERROR(launch(target, part->config, part->kernel, sum));
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
template <class Params>
absl::Status launch_sums(LaunchTarget target, const IndexPlan& plan, const LaunchConfig& config,
                         const Kernel<Params>& atomics, Params params, void* out, Workspace workspace) {
  const IndexPlan::FloatSums& sums = *plan.sums;
  auto* const floats = reinterpret_cast<float*>(scratch_of(workspace));
  const AddSumsParams add{out, floats, params.alpha, sums.count};
  const Alignment alignment = alignment_of(add.out);
  params.out = floats, params.alpha = 1;
  CGRT_RETURN_IF_ERROR(launch(target, sums.clear, clear_sums_kernel(), floats, sums.count));
  target = behind(target, plan);
  CGRT_RETURN_IF_ERROR(launch(target, config, atomics, params));
  return launch(target, alignment == Alignment::kAligned ? sums.add_aligned : sums.add_unaligned,
                add_sums_kernel(plan.desc.type, alignment), add);
}

IndexPlan::OwnedSums make_owned(const IndexDesc& desc, std::uint64_t sms) {
  const std::uint64_t sums = ceil_divide<std::uint64_t>(desc.count * desc.columns, 4);
  const LaunchConfig clear{.grid = ceil_divide(std::max(sums, desc.count), kIndexBlock), .block = kIndexBlock};
  constexpr std::uint64_t kThreadsOfSm = 512;
  const bool are_many = desc.count * desc.columns / kOwnedLines >= kThreadsOfSm * sms;
  return {ceil_divide<std::uint64_t>(sums * 16, kWorkspaceAlignment) * kWorkspaceAlignment, are_many ? kOwnedLines : 1,
          clear};
}

// As launch_sums. Where many indices name one row, floats side by side are added in half the time that 16 bytes take.
absl::Status launch_owned(LaunchTarget target, const IndexPlan& plan, const IndexParams& params, Workspace workspace) {
  unsigned char* const scratch = scratch_of(workspace);
  const auto size = static_cast<std::uint32_t>(size_of(plan.desc.type));
  const auto elements = static_cast<std::uint32_t>(plan.desc.count * plan.desc.columns);
  const bool has_packs = plan.desc.columns * size % 16 == 0 && address_bits(params.out) % 16 == 0;
  const std::uint32_t pack = has_packs ? 16 / size : 1;
  OwnedSumsParams owned{.out = params.out,
                        .in = params.in,
                        .sums = reinterpret_cast<float*>(scratch),
                        .owners = reinterpret_cast<std::uint32_t*>(scratch + plan.owned->owners),
                        .index = params.index,
                        .alpha = params.alpha,
                        .rows = params.rows,
                        .count = params.count,
                        .items = ceil_divide(elements, 4),
                        .packs = {},
                        .is_long = params.is_long};
  CGRT_RETURN_IF_ERROR(launch(target, plan.owned->clear, clear_owned_kernel(), owned));
  target = behind(target, plan);
  const auto columns = static_cast<std::uint32_t>(plan.desc.columns);
  const auto with_items = [&](std::uint32_t items, std::uint32_t of_row, OwnedSumsKernel kernel) {
    owned.items = items, owned.packs = Divisor(of_row);
    return launch(target, {.grid = ceil_divide(items, kIndexBlock), .block = kIndexBlock}, kernel, owned);
  };
  CGRT_RETURN_IF_ERROR(with_items(ceil_divide(params.count, plan.owned->lines) * columns, columns,
                                  add_to_owners_kernel(plan.desc.type, plan.owned->lines)));
  return with_items(elements / pack, columns / pack,
                    add_owned_kernel(plan.desc.type, has_packs ? Alignment::kAligned : Alignment::kUnaligned));
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
  CGRT_RETURN_IF_ERROR(check_enum("index", "op", desc.op, IndexOp::kScatterAdd));
  CGRT_RETURN_IF_ERROR(check_enum("index", "index_type", desc.index_type, DType::kInt64));
  CGRT_RETURN_IF_ERROR(check_enum("index", "order", desc.order, SumOrder::kFixed));
  CGRT_RETURN_IF_ERROR(check_sizes(desc));
  CGRT_RETURN_IF_ERROR(check_float(to_string(desc.op), desc.type));
  if (desc.index_type != DType::kInt32 && desc.index_type != DType::kInt64) {
    return refuse(to_string(desc.op),
                  absl::StrCat("indices are int32 or int64, not ", to_string(desc.index_type), "."));
  }
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context, scan_digits_kernel()));
  const IndexRegime regime = regime_of(desc);
  const bool is_merged = regime == IndexRegime::kMerged, is_grouped = regime == IndexRegime::kGrouped;
  const bool is_by_element = regime != IndexRegime::kSorted && !is_merged && !is_grouped;
  const auto of = [&](std::uint32_t alignment) {
    return launch_of(desc, is_by_element ? regime : IndexRegime::kAtomic, alignment);
  };
  IndexPlan plan{desc,
                 regime == IndexRegime::kAtomic || regime == IndexRegime::kMerged || regime == IndexRegime::kScatter,
                 0,
                 {of(16), of(8), of(4), of(2)},
                 std::nullopt,
                 std::nullopt,
                 std::nullopt,
                 std::nullopt,
                 std::nullopt};
  if (!machine.has_programmatic_edges) plan.edges = EdgeKind::kFull;
  if (is_grouped) {
    plan.grouped = {make_grouped(desc, 16), make_grouped(desc, 8), make_grouped(desc, 4), make_grouped(desc, 2)};
    for (const IndexPlan::Grouped& grouped : *plan.grouped) CGRT_RETURN_IF_ERROR(preload(grouped.kernel, context));
  }
  if (is_merged) {
    plan.merged = {make_merged(desc, machine.sms, 16), make_merged(desc, machine.sms, 8),
                   make_merged(desc, machine.sms, 4), make_merged(desc, machine.sms, 2)};
    for (const IndexPlan::Merged& merged : *plan.merged) CGRT_RETURN_IF_ERROR(preload(merged.kernel, context));
  }
  if (regime == IndexRegime::kSorted) {
    std::uint64_t scratch_bytes = 0;
    CGRT_ASSIGN_OR_RETURN(plan.sorted, make_sorted(desc, machine, scratch_bytes));
    plan.workspace_bytes = workspace_with(scratch_bytes);
    if (plan.sorted->cluster) CGRT_RETURN_IF_ERROR(preload(sort_in_cluster_kernel(), context));
    if (!plan.sorted->cluster) CGRT_RETURN_IF_ERROR(preload(count_digits_kernel(plan.sorted->tile), context));
    if (!plan.sorted->cluster) CGRT_RETURN_IF_ERROR(preload(scan_digits_kernel(), context));
    if (!plan.sorted->cluster) CGRT_RETURN_IF_ERROR(preload(move_pairs_kernel(plan.sorted->tile), context));
    for (const IndexPlan::Sum& sum : plan.sorted->by_alignment) CGRT_RETURN_IF_ERROR(preload(sum.kernel, context));
    CGRT_RETURN_IF_ERROR(preload(plan.sorted->join.kernel, context));
  } else if (plan.has_atomics && has_owners(desc)) {
    plan.owned = make_owned(desc, machine.sms);
    plan.workspace_bytes = workspace_with(plan.owned->owners + desc.rows * sizeof(std::uint32_t));
    CGRT_RETURN_IF_ERROR(preload(clear_owned_kernel(), context));
    CGRT_RETURN_IF_ERROR(preload(add_to_owners_kernel(desc.type, plan.owned->lines), context));
    CGRT_RETURN_IF_ERROR(preload(add_owned_kernel(desc.type, Alignment::kAligned), context));
    CGRT_RETURN_IF_ERROR(preload(add_owned_kernel(desc.type, Alignment::kUnaligned), context));
  } else if (size_of(desc.type) == 2 && plan.has_atomics) {
    plan.sums = make_sums(desc);
    plan.workspace_bytes = workspace_with(ceil_divide<std::uint64_t>(plan.sums->count, 4) * 16);
    CGRT_RETURN_IF_ERROR(preload(clear_sums_kernel(), context));
    CGRT_RETURN_IF_ERROR(preload(add_sums_kernel(desc.type, Alignment::kAligned), context));
    CGRT_RETURN_IF_ERROR(preload(add_sums_kernel(desc.type, Alignment::kUnaligned), context));
  }
  if (!is_by_element || plan.owned.has_value()) return plan;
  for (const IndexPlan::Launch& launch : plan.by_alignment) CGRT_RETURN_IF_ERROR(preload(launch.kernel, context));
  return plan;
}

std::uint64_t IndexPlan::topology_id() const {
  const bool is_cluster = sorted.has_value() && sorted->cluster.has_value();
  const bool is_three = is_cluster || sums.has_value() || owned.has_value();
  std::vector<LaunchAttributes> kernels(is_three ? 3 : sorted.has_value() ? 3 * sorted->passes + 2 : 1);
  if (is_cluster) kernels[0] = sorted->cluster->attributes;
  return topology_of_kernels(kernels, edges);
}

absl::Status launch_index(LaunchTarget target, const IndexPlan& plan, const IndexArgs& args) {
  const IndexDesc& desc = plan.desc;
  const char* const name = to_string(desc.op);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "index", args.index, desc.index_type));
  // Atomics on floats in the workspace do not mind where the result is.
  const bool has_floats = plan.sums.has_value() || plan.owned.has_value();
  const std::uintptr_t bits = has_floats ? address_bits(args.in) : address_bits(args.out, args.in);
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  const int alignment = bits % 16 == 0 ? 0 : bits % 8 == 0 ? 1 : bits % 4 == 0 ? 2 : 3;
  if (plan.sorted.has_value()) return launch_sorted(target, plan, args, plan.sorted->by_alignment[alignment]);
  const auto count = static_cast<std::uint32_t>(desc.count);
  if (plan.grouped.has_value()) {
    const IndexPlan::Grouped& grouped = (*plan.grouped)[alignment];
    const GroupedParams params{.out = args.out,
                               .in = args.in,
                               .index = args.index,
                               .alpha = args.alpha,
                               .rows = static_cast<std::uint32_t>(desc.rows),
                               .count = count,
                               .columns = static_cast<std::uint32_t>(desc.columns),
                               .lane_bits = grouped.lane_bits,
                               .slices = grouped.slices,
                               .is_long = desc.index_type == DType::kInt64};
    return launch(target, grouped.config, grouped.kernel, params);
  }
  if (plan.merged.has_value()) {
    const IndexPlan::Merged& merged = (*plan.merged)[alignment];
    const MergedParams params{.out = static_cast<float*>(args.out),
                              .in = args.in,
                              .index = args.index,
                              .alpha = args.alpha,
                              .rows = static_cast<std::uint32_t>(desc.rows),
                              .count = count,
                              .columns = static_cast<std::uint32_t>(desc.columns),
                              .window = merged.window,
                              .hash_shift = static_cast<std::uint32_t>(std::countl_zero(2 * merged.window)) + 1,
                              .lane_bits = merged.lane_bits,
                              .slices = merged.slices,
                              .is_long = desc.index_type == DType::kInt64};
    if (!plan.sums.has_value()) return launch(target, merged.config, merged.kernel, params);
    return launch_sums(target, plan, merged.config, merged.kernel, params, args.out, args.workspace);
  }
  const auto& choice = plan.by_alignment[alignment];
  const IndexParams params{.out = args.out,
                           .in = args.in,
                           .index = args.index,
                           .alpha = args.alpha,
                           .rows = static_cast<std::uint32_t>(desc.rows),
                           .count = count,
                           .items = choice.packs.value() * count,
                           .packs = choice.packs,
                           .is_long = desc.index_type == DType::kInt64,
                           .is_streamed = desc.count * desc.columns * size_of(desc.type) > kKeptBytes};
  if (plan.owned.has_value()) return launch_owned(target, plan, params, args.workspace);
  if (plan.sums.has_value()) {
    return launch_sums(target, plan, choice.config, choice.kernel, params, args.out, args.workspace);
  }
  return launch(target, choice.config, choice.kernel, params);
}

}  // namespace cgrt::kernels
