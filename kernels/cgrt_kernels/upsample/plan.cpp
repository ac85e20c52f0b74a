#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/device.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/upsample/kernels.h"
#include "cgrt_kernels/upsample/upsample.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint64_t kMaxPositions = std::uint64_t{1} << 24;  // those a float can count

std::uint32_t blocks_of(std::uint32_t items) { return ceil_divide(items, kUpsampleBlock); }

UpsampleAxis make_axis(std::uint64_t size, std::uint64_t out_size, double factor) {
  UpsampleAxis axis;
  axis.size = static_cast<std::uint32_t>(size), axis.out_size = static_cast<std::uint32_t>(out_size);
  axis.scale =
      factor > 0 ? static_cast<float>(1.0 / factor) : static_cast<float>(axis.size) / static_cast<float>(axis.out_size);
  axis.inverse = 1 / axis.scale;
  return axis;
}

// Max copies of a position; sets the factor when all have as many. Looks at the rounded
// scale that the kernels use: as floats, thirds of large positions are not where they should be.
std::uint32_t count_copies(UpsampleAxis& axis) {
  std::uint32_t min = axis.out_size, max = 0;
  std::uint32_t begin = 0;
  for (std::uint32_t position = 0; position < axis.size; ++position) {
    std::uint32_t end = begin;
    while (end < axis.out_size && axis.source(end) == position) ++end;
    min = std::min(min, end - begin), max = std::max(max, end - begin);
    begin = end;
  }
  if (min == max) axis.factor = max;
  return max;
}

// Whether two positions have three copies: two of the first, one of the second.
bool has_thirds(const UpsampleAxis& axis) {
  if (std::uint64_t{2} * axis.out_size != std::uint64_t{3} * axis.size || axis.size % 2 != 0) return false;
  std::uint32_t position = 0;
  while (position < axis.out_size && axis.source(position) == 2 * position / 3) ++position;
  return position == axis.out_size;
}

// Of the output, for a thread of the forward kernels.
std::uint32_t positions_together(const UpsampleAxis& axis) {
  if (axis.factor != 0) return std::min(axis.factor, 4u);
  return axis.out_size > axis.size ? 2 : 1;
}

// Of a row of the larger image: those with copies of a part of `together` columns.
std::uint32_t max_packs(const UpsampleAxis& columns, std::uint32_t together, std::uint32_t pack) {
  std::uint32_t max = 0;
  for (std::uint32_t first = 0; first < columns.size; first += together) {
    const std::uint32_t begin = columns.begin(first), end = columns.begin(first + together);
    max = std::max(max, (end + pack - 1) / pack - begin / pack);
  }
  return max;
}

struct Planner {
  const UpsampleDesc& desc;
  UpsampleShape shape;
  std::uint32_t copies;  // max in either direction
  std::uint32_t threads_at_once;

  UpsamplePlan::Launch choose(std::uint32_t alignment) const {
    return desc.op == UpsampleOp::kForward ? forward(alignment) : backward(alignment);
  }
  UpsamplePlan::Launch forward(std::uint32_t alignment) const;
  UpsamplePlan::Launch backward(std::uint32_t alignment) const;
  std::optional<UpsamplePlan::Launch> lines(std::uint32_t packs) const;  // `packs` in a row of the larger image
  UpsamplePlan::Launch make_backward(UpsampleBackwardRegime regime, Alignment alignment, const UpsampleShape& chosen,
                                     std::uint32_t blocks) const {
    return {upsample_backward_kernel(desc.type, regime, alignment, copies),
            {.grid = blocks, .block = kUpsampleBlock},
            chosen};
  }
};

UpsamplePlan::Launch Planner::forward(std::uint32_t alignment) const {
  const auto size = static_cast<std::uint32_t>(size_of(desc.type));
  const bool is_nhwc = desc.layout == ImageLayout::kNhwc;
  const std::uint64_t line = std::uint64_t{is_nhwc ? shape.channels : shape.columns.out_size} * size;  // bytes
  std::uint32_t pack = std::max(alignment, size);
  while (line % pack != 0) pack /= 2;
  UpsampleShape chosen = shape;
  chosen.packs = Divisor(static_cast<std::uint32_t>(line / pack));
  const auto arrange = [&](std::uint32_t rows, std::uint32_t columns) {
    chosen.rows.together = rows, chosen.columns.together = columns;
    chosen.row_items = Divisor(ceil_divide(shape.rows.out_size, rows));
    chosen.column_items = Divisor(is_nhwc ? ceil_divide(shape.columns.out_size, columns) : 1);
    chosen.items = shape.images * chosen.row_items.value() * chosen.column_items.value() * chosen.packs.value();
  };
  arrange(positions_together(shape.rows), positions_together(shape.columns));
  if (chosen.items < threads_at_once) arrange(1, 1);
  return {upsample_kernel(desc.type, desc.layout, pack),
          {.grid = blocks_of(chosen.items), .block = kUpsampleBlock},
          chosen};
}

// None for columns with more copies than a tile holds, and for a smaller "larger" image, whose rows may have no copies
// to read.
std::optional<UpsamplePlan::Launch> Planner::lines(std::uint32_t packs) const {
  if (shape.rows.out_size < shape.rows.size || shape.columns.out_size < shape.columns.size) return std::nullopt;
  const std::uint32_t pack = shape.columns.out_size / packs;
  // Half of what a tile holds, so that threads keep their columns for two lines or more.
  const std::uint32_t parts = ceil_divide(packs, kTilePacks / 2), together = ceil_divide(shape.columns.size, parts);
  const std::uint32_t max = max_packs(shape.columns, together, pack);
  if (max > kTilePacks) return std::nullopt;
  UpsampleShape chosen = shape;
  chosen.packs = Divisor(packs);
  chosen.row_items = Divisor(shape.rows.size);
  chosen.column_items = Divisor(ceil_divide(shape.columns.size, together));
  // Fewer lines where their tiles would be fewer than the blocks that run at once.
  const std::uint32_t lines = shape.images * shape.rows.size, at_once = threads_at_once / kUpsampleBlock;
  const auto share = static_cast<std::uint32_t>(std::uint64_t{lines} * chosen.column_items.value() / at_once);
  chosen.tile = {.columns = Divisor(together), .packs = Divisor(max), .lines = std::clamp(share, 1u, kTilePacks / max)};
  const std::uint32_t groups = ceil_divide(lines, chosen.tile.lines);
  return make_backward(UpsampleBackwardRegime::kLines, Alignment::kAligned, chosen,
                       groups * chosen.column_items.value());
}

UpsamplePlan::Launch Planner::backward(std::uint32_t alignment) const {
  using Regime = UpsampleBackwardRegime;
  const auto size = static_cast<std::uint32_t>(size_of(desc.type));
  const std::uint32_t row = shape.columns.out_size * size;  // bytes
  UpsampleShape chosen = shape;
  const auto of_items = [&](Regime regime, Alignment of, std::uint32_t packs, std::uint32_t times) {
    chosen.packs = Divisor(packs), chosen.items = times * packs;
    return make_backward(regime, of, chosen, blocks_of(chosen.items));
  };
  const std::uint32_t rows = shape.images * shape.rows.size, pixels = rows * shape.columns.size;
  if (desc.layout == ImageLayout::kNchw && alignment == 16 && row % 16 == 0) {
    if (shape.rows.factor == 2 && shape.columns.factor == 2) {
      return of_items(Regime::kTwice, Alignment::kAligned, row / 16, rows);
    }
    if (row % 48 == 0 && has_thirds(shape.rows) && has_thirds(shape.columns)) {
      return of_items(Regime::kThirds, Alignment::kAligned, row / 48, rows / 2);
    }
    // Few pixels of 3 x 3 copies one by one: a thread has its nine loads in flight, and waits for no other.
    const bool are_few = shape.rows.factor == 3 && shape.columns.factor == 3 && pixels <= threads_at_once / 4;
    const std::optional<UpsamplePlan::Launch> tiles = are_few ? std::nullopt : lines(row / 16);
    if (tiles) return *tiles;
  }
  chosen.row_items = Divisor(shape.rows.size), chosen.column_items = Divisor(shape.columns.size);
  const std::uint64_t bytes = std::uint64_t{shape.channels} * size;
  if (alignment == 16 && bytes % 16 == 0) {
    return of_items(Regime::kPixels, Alignment::kAligned, static_cast<std::uint32_t>(bytes / 16), pixels);
  }
  return of_items(Regime::kPixels, Alignment::kUnaligned, shape.channels, pixels);
}

absl::Status check_sizes(const UpsampleDesc& desc) {
  const std::uint64_t images[2][2] = {{desc.height, desc.width}, {desc.out_height, desc.out_width}};
  for (const auto& [height, width] : images) {
    std::uint64_t elements = 1;
    for (const std::uint64_t size : {desc.batch, desc.channels, height, width}) {
      elements = size == 0 || elements > kMaxCount / size ? 0 : elements * size;
    }
    if (elements != 0 && height <= kMaxPositions && width <= kMaxPositions) continue;
    return absl::InvalidArgumentError(absl::StrCat(to_string(desc.op), ": ", desc.batch, " images of ", desc.channels,
                                                   " x ", height, " x ", width, "; there must be from 1 to ", kMaxCount,
                                                   " elements, of at most ", kMaxPositions, " rows and columns."));
  }
  const auto is_usable = [](double factor, std::uint64_t size, std::uint64_t out_size) {
    constexpr double kMax = 1u << 31;  // positions as 32-bit numbers
    return factor == 0 ||
           (factor > 0 && static_cast<double>(out_size) / factor < kMax && static_cast<double>(size) * factor < kMax);
  };
  if (is_usable(desc.factor_height, desc.height, desc.out_height) &&
      is_usable(desc.factor_width, desc.width, desc.out_width)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(to_string(desc.op), ": the factors (", desc.factor_height, ", ",
                                                 desc.factor_width, ") must be about the ratios of the sizes, or 0."));
}

}  // namespace

absl::StatusOr<UpsamplePlan> plan_upsample(ContextRef context, const UpsampleDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("upsample_nearest", "op", desc.op, UpsampleOp::kBackward));
  CGRT_RETURN_IF_ERROR(check_enum("upsample_nearest", "layout", desc.layout, ImageLayout::kNhwc));
  CGRT_RETURN_IF_ERROR(check_sizes(desc));
  CGRT_RETURN_IF_ERROR(check_float(to_string(desc.op), desc.type));
  CGRT_ASSIGN_OR_RETURN(DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CGRT_ASSIGN_OR_RETURN(const int threads, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  const bool is_nhwc = desc.layout == ImageLayout::kNhwc;
  UpsampleShape shape;
  shape.images = static_cast<std::uint32_t>(is_nhwc ? desc.batch : desc.batch * desc.channels);
  shape.channels = static_cast<std::uint32_t>(is_nhwc ? desc.channels : 1);
  shape.rows = make_axis(desc.height, desc.out_height, desc.factor_height);
  shape.columns = make_axis(desc.width, desc.out_width, desc.factor_width);
  const std::uint32_t copies = std::max(count_copies(shape.rows), count_copies(shape.columns));
  const Planner planner{desc, shape, copies, static_cast<std::uint32_t>(sms * threads)};
  for (std::uint32_t alignment = 16; alignment >= 2; alignment /= 2)
    CGRT_RETURN_IF_ERROR(preload(planner.choose(alignment).kernel, context));
  return UpsamplePlan{desc, {planner.choose(16), planner.choose(8), planner.choose(4), planner.choose(2)}};
}

absl::Status launch_upsample(LaunchTarget target, const UpsamplePlan& plan, const UpsampleArgs& args) {
  CGRT_RETURN_IF_ERROR(check_array(to_string(plan.desc.op), "out", args.out, plan.desc.type));
  CGRT_RETURN_IF_ERROR(check_array(to_string(plan.desc.op), "in", args.in, plan.desc.type));
  const std::uintptr_t bits = address_bits(args.out, args.in);
  const int index = bits % 16 == 0 ? 0 : bits % 8 == 0 ? 1 : bits % 4 == 0 ? 2 : 3;
  const UpsamplePlan::Launch& choice = plan.by_alignment[index];
  return launch(target, choice.config, choice.kernel, UpsampleParams{args.out, args.in, choice.shape});
}

}  // namespace cgrt::kernels
