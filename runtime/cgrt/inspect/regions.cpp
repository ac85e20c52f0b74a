#include "cgrt/inspect/regions.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

Region make_region(const ir::Pointer& start, std::uint64_t width, std::uint64_t pitch, std::uint64_t rows,
                   bool is_write) {
  Region region{start.allocation, start.offset, width, pitch, rows, is_write};
  if (pitch < width) region.rows = 1;
  if (pitch == width) {
    region.width = saturating_product(width, region.rows);
    region.rows = 1;
  }
  // No allocation is that large: what lies beyond is cut off instead of wrapping.
  region.width = std::min(region.width, kMax - region.begin);
  if (region.rows > 1) region.rows = std::min(region.rows, (kMax - region.begin - region.width) / pitch + 1);
  return region;
}

Extent make_extent(const ir::Pointer& start, std::uint64_t width, std::uint64_t pitch, std::uint64_t rows) {
  const std::uint64_t before = pitch < width ? 0 : saturating_product(rows - 1, pitch);
  return {start, saturating_sum(start.offset, saturating_sum(before, width))};
}

}  // namespace

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) { return b > kMax - a ? kMax : a + b; }

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > kMax / b ? kMax : a * b;
}

std::vector<Region> regions_of(const ir::Node& node) {
  std::vector<Region> regions;
  if (const auto* copy = std::get_if<ir::MemcpyParams>(&node.params)) {
    const auto add = [&](const std::optional<ir::Pointer>& start, std::uint64_t pitch, bool is_write) {
      if (start.has_value()) regions.push_back(make_region(*start, copy->width_bytes, pitch, copy->height, is_write));
    };
    add(copy->source, copy->source_pitch, false);
    add(copy->destination, copy->destination_pitch, true);
  } else if (const auto* set = std::get_if<ir::MemsetParams>(&node.params)) {
    const std::uint64_t width = saturating_product(set->width, set->element_bytes);
    regions.push_back(make_region(set->destination, width, set->pitch, set->height, true));
  } else if (const auto* batch = std::get_if<ir::BatchMemOpParams>(&node.params)) {
    for (const ir::MemOp& op : batch->operations) {
      if (op.kind == ir::MemOpKind::kWrite) regions.push_back(make_region(op.address, op.bytes, 0, 1, true));
    }
  }
  return regions;
}

std::vector<Extent> extents_of(const ir::Node& node) {
  std::vector<Extent> extents;
  if (const auto* copy = std::get_if<ir::MemcpyParams>(&node.params)) {
    const std::uint64_t rows = saturating_product(copy->height, copy->depth);
    const auto add = [&](const std::optional<ir::Pointer>& start, std::uint64_t pitch) {
      if (start.has_value()) extents.push_back(make_extent(*start, copy->width_bytes, pitch, rows));
    };
    add(copy->source, copy->source_pitch);
    add(copy->destination, copy->destination_pitch);
  } else if (const auto* set = std::get_if<ir::MemsetParams>(&node.params)) {
    const std::uint64_t width = saturating_product(set->width, set->element_bytes);
    extents.push_back(make_extent(set->destination, width, set->pitch, set->height));
  } else if (const auto* batch = std::get_if<ir::BatchMemOpParams>(&node.params)) {
    for (const ir::MemOp& op : batch->operations) extents.push_back(make_extent(op.address, op.bytes, 0, 1));
  }
  return extents;
}

Common common_byte(const Region& a, const Region& b) {
  if (a.allocation != b.allocation) return {};
  // Side by side through the rows of both. Each step skips the rows that end before the other's begins. With one pitch
  // the rows lie to each other as those before did.
  const std::uint64_t max_steps = a.pitch == b.pitch ? 4 : 1 << 21;
  std::uint64_t row_a = 0, row_b = 0;
  const auto skip = [](const Region& region, std::uint64_t row, std::uint64_t until) {
    if (region.begin + region.width > until) return row;
    if (region.rows == 1) return region.rows;
    return std::max(row, (until - region.begin - region.width) / region.pitch + 1);
  };
  for (std::uint64_t step = 0; row_a < a.rows && row_b < b.rows; ++step) {
    const std::uint64_t begin_a = a.begin + row_a * a.pitch, begin_b = b.begin + row_b * b.pitch;
    if (begin_a <= begin_b && begin_b - begin_a < a.width) return {true, begin_b};
    if (begin_b <= begin_a && begin_a - begin_b < b.width) return {true, begin_a};
    if (step == max_steps) return {a.pitch == b.pitch, std::nullopt};
    if (begin_a < begin_b) {
      row_a = skip(a, row_a, begin_b);
    } else {
      row_b = skip(b, row_b, begin_a);
    }
  }
  return {};
}

std::string describe_range(const ir::GraphIr& graph, std::uint32_t allocation, std::uint64_t begin, std::uint64_t end) {
  return absl::StrCat(ir::describe(graph, ir::Pointer{allocation, 0}), " [", begin, ", ", end, ")");
}

}  // namespace cgrt::inspect
