#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/scan/kernels.h"
#include "cgrt_kernels/scan/scan.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kFewThreads = 128;  // of a block, where tiles are few
// Packs of a row, and threads of a multiprocessor, that make rows with a thread for each pack few: with more, a
// thread's sums of several packs are sooner there than those of so many threads.
constexpr std::uint64_t kFewPacks = 192, kFewThreadsOfSm = 128;
constexpr std::uint64_t kMinTilesOfBlock = 4;  // of many rows, where blocks are persistent
constexpr std::uint32_t kOtherShared = 2048;   // bytes of static and reserved shared memory, at most

// For rows of `columns` elements, what they lack at their first pack of 16 bytes included.
absl::StatusOr<ScanShape> shape_of(const Machine& machine, const ScanDesc& desc, std::uint64_t columns) {
  const std::uint64_t per_thread = kScanThreadBytes / size_of(desc.type);
  const auto rows = static_cast<std::uint32_t>(desc.rows);
  const std::uint64_t packs = ceil_divide<std::uint64_t>(columns, 16 / size_of(desc.type));
  if (packs <= kFewPacks) {
    const std::uint32_t threads = ceil_divide(packs, kWarp) * kWarp;
    if (desc.rows * threads <= std::uint64_t{machine.sms} * kFewThreadsOfSm) {
      return ScanShape{scan_kernel(desc.type, ScanRegime::kFew), {.grid = rows, .block = threads}, 1, 0};
    }
  }
  if (columns <= kWarp * per_thread) {
    const ScanRegime regime = packs <= kWarp       ? ScanRegime::kOnePack
                              : packs <= 2 * kWarp ? ScanRegime::kTwoPacks
                                                   : ScanRegime::kFourPacks;
    const auto lane_bits = std::min(static_cast<std::uint32_t>(std::bit_width(packs - 1)), std::uint32_t{5});
    const std::uint32_t packs_of_lane = regime == ScanRegime::kOnePack ? 1 : regime == ScanRegime::kTwoPacks ? 2 : 4;
    const std::uint32_t rows_of_block = kScanRowsThreads * (kScanThreadBytes / 16 / packs_of_lane) >> lane_bits;
    return ScanShape{scan_kernel(desc.type, regime),
                     {.grid = ceil_divide(rows, rows_of_block), .block = kScanRowsThreads},
                     1,
                     lane_bits};
  }
  if (columns <= kScanMaxThreads * per_thread) {
    const std::uint32_t warps = ceil_divide(columns, kWarp * per_thread);
    return ScanShape{scan_kernel(desc.type, ScanRegime::kBlock), {.grid = rows, .block = warps * kWarp}, 1, 0};
  }

  const auto tiles_of = [&](std::uint32_t threads, std::uint32_t thread_bytes) {
    return ceil_divide<std::uint64_t>(columns, threads * (thread_bytes / size_of(desc.type)));
  };
  constexpr std::uint32_t kStreamBytes = kScanStreamThreadBytes * kScanStreamStages;  // of shared memory, a thread
  // One block for each multiprocessor has the fewest tiles in a row; where there are so many rows that no two blocks
  // work on one, nobody waits, and two smaller ones store while the other sums.
  const std::uint32_t per_sm = desc.rows >= 2 * machine.sms ? 2 : 1;
  const std::uint32_t shared = std::min(machine.shared_per_block, machine.shared_per_sm / per_sm) - kOtherShared;
  const std::uint32_t stream_threads = std::min(kScanMaxThreads / per_sm, shared / kStreamBytes / kWarp * kWarp);
  ScanRegime regime = ScanRegime::kStream;
  LaunchConfig config{
      .grid = machine.sms * per_sm, .block = stream_threads, .shared_bytes = stream_threads * kStreamBytes};
  std::uint64_t tiles = tiles_of(stream_threads, kScanStreamThreadBytes);
  // Persistent blocks take longer to start.
  const std::uint64_t blocks = std::uint64_t{machine.sms} * per_sm;
  const bool is_short = per_sm == 1 ? tiles <= blocks : desc.rows * tiles <= kMinTilesOfBlock * blocks;
  if (is_short) {
    const bool are_few = desc.rows * tiles_of(kScanTileThreads, kScanThreadBytes) < machine.sms;
    regime = ScanRegime::kTiles;
    const std::uint32_t threads = are_few ? kFewThreads : kScanTileThreads;
    tiles = tiles_of(threads, kScanThreadBytes);
    config = {.grid = 0, .block = threads};
  }
  if (tiles > kMaxCount || desc.rows * tiles > kMaxCount) {
    return refuse(to_string(desc.kind),
                  absl::StrCat(desc.rows, " rows of ", desc.columns, " ", to_string(desc.type), " are ", tiles,
                               " tiles a row; the limit is ", kMaxCount, " in all."));
  }
  const ScanKernel kernel = scan_kernel(desc.type, regime);
  if (is_short) {
    config.grid = static_cast<std::uint32_t>(desc.rows * tiles);
  } else {
    CGRT_RETURN_IF_ERROR(allow_shared_bytes(kernel, machine, config.shared_bytes));
  }
  return ScanShape{kernel, config, static_cast<std::uint32_t>(tiles), 0};
}

std::uint64_t words_of(const ScanDesc& desc, const ScanShape& shape) {
  if (shape.tiles == 1) return 0;
  return scan_words(static_cast<std::uint32_t>(desc.rows), shape.tiles, size_of(desc.type) == 8 ? 8 : 4);
}

}  // namespace

absl::StatusOr<ScanPlan> plan_scan(ContextRef context, const ScanDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("scan", "kind", desc.kind, ScanKind::kExclusive));
  CGRT_RETURN_IF_ERROR(check_enum("scan", "type", desc.type, DType::kInt64));
  // So many columns, and a pack more, have a size in bytes that fits 64 bits.
  constexpr std::uint64_t kMaxColumns = std::uint64_t{1} << 48;
  if (desc.rows == 0 || desc.columns == 0 || desc.rows > kMaxCount || desc.columns > kMaxColumns) {
    return refuse(to_string(desc.kind),
                  absl::StrCat(desc.rows, " rows of ", desc.columns, " columns; rows must be from 1 to ", kMaxCount,
                               ", columns from 1 to ", kMaxColumns, "."));
  }
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context, scan_kernel(desc.type, ScanRegime::kOnePack)));
  const std::uint64_t pack = 16 / size_of(desc.type);
  CGRT_ASSIGN_OR_RETURN(const ScanShape aligned, shape_of(machine, desc, desc.columns));
  CGRT_ASSIGN_OR_RETURN(const ScanShape unaligned, shape_of(machine, desc, desc.columns + pack - 1));
  const std::uint64_t words = std::max(words_of(desc, aligned), words_of(desc, unaligned));
  ScanPlan plan{desc, aligned, unaligned, 0, EdgeKind::kProgrammatic, 0};
  if (!machine.has_programmatic_edges) plan.edges = EdgeKind::kFull;
  if (words > WorkspaceHeader::kTaggedWords) plan.words_to_clear = offsetof(WorkspaceHeader, tagged) / 8 + words;
  if (words != 0) plan.workspace_bytes = workspace_with(ceil_divide<std::uint64_t>(plan.words_to_clear, 2) * 16);
  CGRT_RETURN_IF_ERROR(preload(aligned.kernel, context));
  CGRT_RETURN_IF_ERROR(preload(unaligned.kernel, context));
  if (plan.words_to_clear != 0) CGRT_RETURN_IF_ERROR(preload(clear_words_kernel(), context));
  return plan;
}

std::uint64_t ScanPlan::topology_id() const {
  if (words_to_clear == 0) return topology_of_kernels({aligned.config.attributes});
  return topology_of_kernels({LaunchAttributes{}, aligned.config.attributes}, edges);
}

absl::Status launch_scan(LaunchTarget target, const ScanPlan& plan, const ScanArgs& args) {
  const ScanDesc& desc = plan.desc;
  const char* const name = to_string(desc.kind);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  const bool is_aligned =
      address_bits(args.in) % 16 == 0 && (desc.rows == 1 || desc.columns * size_of(desc.type) % 16 == 0);
  const ScanShape& shape = is_aligned ? plan.aligned : plan.unaligned;
  WorkspaceHeader* header = header_of(args.workspace);
  auto tagged = static_cast<std::uint32_t>(words_of(desc, shape));
  if (plan.words_to_clear != 0) {
    header = reinterpret_cast<WorkspaceHeader*>(scratch_of(args.workspace)), tagged = kAllTagged;
    const LaunchConfig config{.grid = ceil_divide(plan.words_to_clear, 2 * kClearBlock), .block = kClearBlock};
    CGRT_RETURN_IF_ERROR(launch(target, config, clear_words_kernel(), &header->launches, plan.words_to_clear));
    if (plan.edges == EdgeKind::kProgrammatic) target = target.programmatic();
  }
  const ScanParams params{.out = args.out,
                          .in = args.in,
                          .columns = desc.columns,
                          .rows = static_cast<std::uint32_t>(desc.rows),
                          .tiles = shape.tiles,
                          .lane_bits = shape.lane_bits,
                          .is_exclusive = desc.kind == ScanKind::kExclusive,
                          .header = header,
                          .tagged = tagged};
  return launch(target, shape.config, shape.kernel, params);
}

}  // namespace cgrt::kernels
