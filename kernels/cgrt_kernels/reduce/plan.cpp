#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/reduce/kernels.h"
#include "cgrt_kernels/reduce/reduce.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kLanesBlock = 128;       // threads where warps have rows; see rows.cu
constexpr std::uint32_t kMaxThreads = 512;       // of a block
constexpr std::uint32_t kPacksInFlight = 4;      // of a thread
constexpr std::uint64_t kMaxPacksOfLanes = 256;  // of a row that threads of one warp share
// The same where rows are few; so many of a multiprocessor are, and so many of its threads.
constexpr std::uint64_t kMaxPacksOfFewLanes = 128, kFewRowsOfSm = 64, kFewLanesOfSm = 512;
// Columns of so few rows that a thread has whole ones, or of a few more with rows so long: bytes for each row that
// there is, and multiprocessor.
constexpr std::uint64_t kFewRows = 16, kLongBytesOfSm = 48;
// Columns for each multiprocessor from which on a thread has several: 16 bytes of 16-bit types, of others, spread ones.
constexpr std::uint64_t kPacksOfFew = 1024, kWidePacksOfFew = 4096, kSpreadOfFew = 2048;
// Tiles of columns: bytes of a row of the narrowest, which larger matrices are too slow with;
// the most packs of a thread that take no longer than waiting for the parts of others; tiles that share their rows.
constexpr std::uint32_t kMinTileBytes = 64;
constexpr std::uint64_t kMaxSmallBytes = 64 << 20, kMaxPacksOfWhole = 16, kMinTiles = 16;
constexpr std::uint32_t kMaxParts = 65535;     // gridDim.y
constexpr std::uint64_t kMaxShortBytes = 32;   // of a row that goes through shared memory
constexpr std::uint64_t kShortBlocksOfSm = 8;  // that run at once

// A single column is a whole array.
ReduceOver over_of(const ReduceDesc& desc) {
  return desc.over == ReduceOver::kColumn && desc.columns == 1 ? ReduceOver::kAll : desc.over;
}

bool is_integer(DType type) { return type == DType::kInt32 || type == DType::kInt64; }

std::uint64_t packs_of(const ReduceDesc& desc, std::uint64_t elements) {
  return ceil_divide<std::uint64_t>(elements, 16 / size_of(desc.type));
}

// Blocks of `kernel` that run at once.
absl::StatusOr<std::uint64_t> one_wave(const Machine& machine, ReduceKernel kernel, std::uint32_t block) {
  CGRT_ASSIGN_OR_RETURN(const Occupancy fill, occupancy(kernel, machine.context, block, 0));
  return machine.sms * static_cast<std::uint64_t>(std::max(fill.blocks_per_sm, 1));
}

// How many of the blocks that run at once share one of `results`, each of `loads` packs: no more than
// have kPacksInFlight per thread to do, or half of that where more than a few multiprocessors would be
// idle.
std::uint32_t parts_of(const Machine& machine, std::uint64_t wave, std::uint64_t results, std::uint64_t max_parts,
                       std::uint64_t loads, std::uint32_t threads) {
  if (results > WorkspaceHeader::kCounters) return 1;
  // Then all threads have equally much.
  const std::uint64_t at_once = results == 1 && std::has_single_bit(loads) ? std::bit_floor(wave) : wave / results;
  const std::uint64_t limit = std::min(at_once, max_parts);
  std::uint64_t parts = ceil_divide<std::uint64_t>(loads, std::uint64_t{threads} * kPacksInFlight);
  if (parts <= 1 || limit <= 1) return 1;
  if (parts * results >= machine.sms - machine.sms / 16) return static_cast<std::uint32_t>(std::min(parts, limit));
  const std::uint64_t halves = ceil_divide<std::uint64_t>(loads, std::uint64_t{threads} * kPacksInFlight / 2);
  parts = std::max(parts, std::min(ceil_divide<std::uint64_t>(machine.sms, results), halves));
  return static_cast<std::uint32_t>(std::min(parts, limit));
}

// Rows of one element: what arrays must be aligned for.
bool are_single(const ReduceDesc& desc) { return desc.over == ReduceOver::kRow && desc.columns == 1; }

ReduceShape single_shape(const ReduceDesc& desc) {
  const std::uint64_t each = 16 / std::max(size_of(desc.type), size_of(result_type(desc.op, desc.type)));
  return {.kernel = reduce_rows_kernel(desc.op, desc.type, ReduceRegime::kSingle),
          .config = {.grid = ceil_divide(desc.rows, kReduceSingleBlock * each), .block = kReduceSingleBlock}};
}

// Threads of a warp that share a row.
std::uint32_t lanes_of(const Machine& machine, DType type, std::uint64_t rows, std::uint64_t row_bytes) {
  const std::uint64_t packs = ceil_divide<std::uint64_t>(row_bytes, 16);
  const std::uint64_t lanes = std::min<std::uint64_t>(std::bit_ceil(ceil_divide(packs, kPacksInFlight)), kWarp);
  if (row_bytes % 16 == 0) return static_cast<std::uint32_t>(lanes);
  // What is before the first pack and behind the last one is read element by element, after the packs: where there are
  // threads enough, by all at once, and with fewer packs before.
  const std::uint64_t ends = 2 * (16 / size_of(type) - 1);
  const std::uint64_t more = std::min<std::uint64_t>(
      std::max(std::bit_ceil(ceil_divide<std::uint64_t>(packs, 2)), std::bit_ceil(ends)), kWarp);
  return static_cast<std::uint32_t>(rows * more <= std::uint64_t{machine.sms} * kFewLanesOfSm ? std::max(lanes, more)
                                                                                              : lanes);
}

absl::StatusOr<ReduceShape> row_shape(const Machine& machine, const ReduceDesc& desc, std::uint64_t rows,
                                      std::uint64_t columns) {
  const std::uint64_t packs = packs_of(desc, columns);
  std::uint32_t packs_of_thread = kPacksInFlight;
  ReduceShape shape{.kernel = reduce_rows_kernel(desc.op, desc.type, ReduceRegime::kLanes)};
  if (desc.over == ReduceOver::kRow && packs <= kMaxPacksOfLanes) {
    const std::uint64_t row_bytes = columns * size_of(desc.type);
    if (row_bytes <= kMaxShortBytes) {
      shape.kernel = reduce_rows_kernel(desc.op, desc.type, ReduceRegime::kShort);
      // No more than there is room for, and as few as make one wave.
      const std::uint64_t limit = kReduceShortBytes / (kReduceShortBlock * row_bytes);
      shape.each = std::min(ceil_divide(rows, kReduceShortBlock * kShortBlocksOfSm * machine.sms),
                            static_cast<std::uint32_t>(limit));
      shape.config = {.grid = ceil_divide(rows, std::uint64_t{kReduceShortBlock} * shape.each),
                      .block = kReduceShortBlock};
      return shape;
    }
    if (packs <= kMaxPacksOfFewLanes || rows > std::uint64_t{machine.sms} * kFewRowsOfSm) {
      shape.lanes = lanes_of(machine, desc.type, rows, row_bytes);
      shape.config = {.grid = ceil_divide(rows, kLanesBlock / shape.lanes), .block = kLanesBlock};
      return shape;
    }
    packs_of_thread = 2;
  }
  shape.kernel = reduce_rows_kernel(desc.op, desc.type, ReduceRegime::kBlocks);
  auto threads = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(std::bit_ceil(ceil_divide<std::uint64_t>(packs, packs_of_thread)), kWarp, kMaxThreads));
  CGRT_ASSIGN_OR_RETURN(std::uint64_t wave, one_wave(machine, shape.kernel, threads));
  if (rows > wave && rows <= 2 * wave && threads == kMaxThreads) {  // all at once, in smaller blocks
    threads /= 2;
    CGRT_ASSIGN_OR_RETURN(wave, one_wave(machine, shape.kernel, threads));
  }
  const std::uint64_t part_words = partial_bytes(desc.op, desc.type) / 4;
  shape.parts = parts_of(machine, wave, rows, WorkspaceHeader::kPartWords / part_words / rows, packs, threads);
  shape.config = {.grid = Dim3(static_cast<std::uint32_t>(rows), shape.parts), .block = threads};
  return shape;
}

bool are_few(const Machine& machine, const ReduceDesc& desc) {
  if (desc.rows <= kFewRows) return true;
  return desc.columns * size_of(desc.type) / desc.rows >= kLongBytesOfSm * machine.sms;
}

ReduceShape few_rows_shape(const Machine& machine, const ReduceDesc& desc, Alignment alignment) {
  const std::uint64_t columns_of_sm = desc.columns / machine.sms;
  const bool is_half = size_of(desc.type) == 2;
  ReduceColumns columns = ReduceColumns::kSingle;
  if (alignment == Alignment::kAligned) {
    if (columns_of_sm >= (is_half ? kPacksOfFew : kWidePacksOfFew)) columns = ReduceColumns::kPack;
  } else if (is_half && columns_of_sm >= kSpreadOfFew) {
    columns = ReduceColumns::kSpread;
  }
  return {.kernel = reduce_few_rows_kernel(desc.op, desc.type, columns),
          .config = {.grid = ceil_divide(desc.columns, kReduceFewBlock * width_of(columns, desc.type)),
                     .block = kReduceFewBlock}};
}

absl::StatusOr<ReduceShape> column_shape(const Machine& machine, const ReduceDesc& desc, Alignment alignment) {
  if (are_few(machine, desc)) return few_rows_shape(machine, desc, alignment);
  const bool is_argmax = desc.op == ReduceOp::kArgmax;
  const ReduceColumns columns = alignment == Alignment::kAligned ? ReduceColumns::kPack
                                : is_argmax                      ? ReduceColumns::kSingle
                                                                 : ReduceColumns::kSpread;
  ReduceShape shape{.kernel = reduce_columns_kernel(desc.op, desc.type, columns)};
  const std::uint32_t width = width_of(columns, desc.type);
  const std::uint64_t across = ceil_divide<std::uint64_t>(desc.columns, width);
  const auto tiles_of = [&](std::uint32_t lanes) { return ceil_divide<std::uint64_t>(across, lanes); };
  const bool is_small = desc.rows * desc.columns * size_of(desc.type) <= kMaxSmallBytes;
  const auto narrow = [&](std::uint64_t bytes, std::uint64_t tiles) {
    const std::uint64_t least = bytes / (width * size_of(desc.type));
    auto lanes = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::bit_ceil(across), kWarp));
    while (lanes > least && tiles_of(lanes) < tiles) lanes /= 2;
    return lanes;
  };
  // Tiles so narrow that there is one for most multiprocessors, or a thread has few packs of it: no block waits for
  // the parts of others. argmax needs all threads.
  const std::uint64_t most = machine.sms - machine.sms / 4;
  const std::uint32_t lanes = narrow(kMinTileBytes, most);
  const std::uint32_t max_packs = columns == ReduceColumns::kPack ? kMaxPacksOfWhole : kMaxPacksOfWhole / 2;
  const bool is_whole = is_small && !is_argmax &&
                        (tiles_of(lanes) >= most || desc.rows * lanes <= std::uint64_t{kMaxThreads} * max_packs);
  // Or that several blocks share what is to do when all parts are there. Spread columns want half a warp side by side.
  const std::uint64_t tile_bytes =
      columns != ReduceColumns::kPack ? kWarp / 2 * width * size_of(desc.type) : (is_small ? 2 : 4) * kMinTileBytes;
  shape.lanes = is_whole ? lanes : narrow(tile_bytes, kMinTiles);
  const std::uint64_t tiles = tiles_of(shape.lanes);
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t wave, one_wave(machine, shape.kernel, kMaxThreads));
  if (!is_whole) shape.parts = parts_of(machine, wave, tiles, kMaxParts, desc.rows * shape.lanes, kMaxThreads);
  shape.config = {.grid = Dim3(static_cast<std::uint32_t>(tiles), shape.parts), .block = kMaxThreads};
  if (shape.parts > 1) shape.slots = tiles * shape.lanes * width * shape.parts;
  return shape;
}

std::size_t workspace_of(const ReduceDesc& desc, const ReduceShape& shape) {
  if (shape.parts == 1) return 0;
  return workspace_with(over_of(desc) == ReduceOver::kColumn ? shape.slots * partial_bytes(desc.op, desc.type) : 0);
}

absl::Status check(const ReduceDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("reduce", "op", desc.op, ReduceOp::kDot));
  CGRT_RETURN_IF_ERROR(check_enum("reduce", "over", desc.over, ReduceOver::kColumn));
  CGRT_RETURN_IF_ERROR(check_enum("reduce", "type", desc.type, DType::kInt64));
  if (desc.rows == 0 || desc.columns == 0) {
    return refuse(to_string(desc.op),
                  absl::StrCat(desc.rows, " rows of ", desc.columns, " columns; each must be 1 or more."));
  }
  const std::uint64_t max_bytes = std::uint64_t{1} << 63;
  if (desc.rows > max_bytes / size_of(desc.type) / desc.columns) {
    return refuse(to_string(desc.op), absl::StrCat(desc.rows, " rows of ", desc.columns, " columns of ",
                                                   to_string(desc.type), " are more than 2^63 bytes."));
  }
  if (desc.over != ReduceOver::kAll && (desc.rows > kMaxCount || desc.columns > kMaxCount)) {
    return refuse(to_string(desc.op),
                  absl::StrCat(desc.rows, " rows of ", desc.columns, " columns; each must be at most ", kMaxCount,
                               " unless all are reduced to one."));
  }
  const bool has_integers = desc.op == ReduceOp::kSum || desc.op == ReduceOp::kMin || desc.op == ReduceOp::kMax;
  if (is_integer(desc.type) && !has_integers) {
    return refuse_type(to_string(desc.op), desc.type, "float32, float16, bfloat16 and float64");
  }
  if (desc.op == ReduceOp::kDot && desc.over != ReduceOver::kAll) {
    return refuse(to_string(desc.op), "it reduces whole arrays: ReduceDesc::over must be kAll.");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReducePlan> plan_reduce(ContextRef context, const ReduceDesc& desc) {
  CGRT_RETURN_IF_ERROR(check(desc));
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context));
  if (over_of(desc) != ReduceOver::kColumn) {
    const bool is_all = over_of(desc) == ReduceOver::kAll;
    const std::uint64_t rows = is_all ? 1 : desc.rows, columns = is_all ? desc.rows * desc.columns : desc.columns;
    CGRT_ASSIGN_OR_RETURN(const ReduceShape shape, row_shape(machine, desc, rows, columns));
    CGRT_RETURN_IF_ERROR(preload(shape.kernel, context));
    if (are_single(desc)) CGRT_RETURN_IF_ERROR(preload(single_shape(desc).kernel, context));
    return ReducePlan{desc, are_single(desc) ? single_shape(desc) : shape, shape, workspace_of(desc, shape)};
  }
  CGRT_ASSIGN_OR_RETURN(const ReduceShape unaligned, column_shape(machine, desc, Alignment::kUnaligned));
  ReduceShape aligned = unaligned;
  if (desc.columns * size_of(desc.type) % 16 == 0) {
    CGRT_ASSIGN_OR_RETURN(aligned, column_shape(machine, desc, Alignment::kAligned));
  }
  CGRT_RETURN_IF_ERROR(preload(aligned.kernel, context));
  CGRT_RETURN_IF_ERROR(preload(unaligned.kernel, context));
  return ReducePlan{desc, aligned, unaligned, std::max(workspace_of(desc, aligned), workspace_of(desc, unaligned))};
}

absl::Status launch_reduce(LaunchTarget target, const ReducePlan& plan, const ReduceArgs& args) {
  const ReduceDesc& desc = plan.desc;
  const char* const name = to_string(desc.op);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, result_type(desc.op, desc.type)));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, desc.type));
  if (desc.op == ReduceOp::kDot) CGRT_RETURN_IF_ERROR(check_array(name, "other", args.other, desc.type));
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  const Alignment alignment = are_single(desc) ? alignment_of(args.in, args.out) : alignment_of(args.in);
  const ReduceShape& shape = alignment == Alignment::kAligned ? plan.aligned : plan.unaligned;
  const ReduceOver over = over_of(desc);
  const bool is_all = over == ReduceOver::kAll;
  const std::uint64_t rows = is_all ? 1 : desc.rows, columns = is_all ? desc.rows * desc.columns : desc.columns;
  const std::uint64_t count = over == ReduceOver::kColumn ? rows : columns;
  ReduceParams params{.out = args.out,
                      .in = args.in,
                      .rows = rows,
                      .columns = columns,
                      .divisor = desc.op == ReduceOp::kMean ? static_cast<double>(count) : 1.0,
                      .lanes = shape.lanes,
                      .parts = shape.parts,
                      .each = shape.each,
                      .other = args.other,
                      .counters = nullptr,
                      .partials = nullptr};
  if (shape.parts > 1) {
    WorkspaceHeader* const header = header_of(args.workspace);
    params.counters = header->counters;
    params.partials = over == ReduceOver::kColumn ? static_cast<void*>(scratch_of(args.workspace)) : header->parts;
  }
  return launch(target, shape.config, shape.kernel, params);
}

}  // namespace cgrt::kernels
