// Operands of copies, memsets and memory operations.
#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/lint_rules.h"
#include "cgrt/inspect/regions.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

using Ids = std::vector<std::uint32_t>;

// The memory behind an allocation of the driver's may go on: what is mapped (cuMemMap) is so in steps of 2 MiB.
bool may_go_on(const ir::Allocation& allocation) {
  constexpr std::uint64_t kStep = 2 << 20;
  return allocation.kind == ir::MemoryKind::kDevice && allocation.bytes % kStep == 0;
}

void find_out_of_bounds(const ir::GraphIr& graph, std::uint32_t node, Report& report) {
  for (const Extent& extent : extents_of(graph.nodes[node])) {
    const ir::Allocation& allocation = graph.allocations[extent.start.allocation];
    if (allocation.bytes == 0 || extent.end <= allocation.bytes) continue;
    const bool is_certain = !may_go_on(allocation);
    report.add("out-of-bounds", is_certain ? Severity::kError : Severity::kWarning, {node},
               absl::StrCat(ir::node_label(graph, node), " touches ",
                            describe_range(graph, extent.start.allocation, extent.start.offset, extent.end),
                            ", and the allocation ends at ", allocation.bytes,
                            is_certain ? "." : ", unless other memory is mapped behind it."));
    return;
  }
}

void find_overlap(const ir::GraphIr& graph, std::uint32_t node, Report& report) {
  if (graph.nodes[node].kind != ir::NodeKind::kMemcpy) return;
  const std::vector<Region> regions = regions_of(graph.nodes[node]);
  if (regions.size() != 2) return;
  const Common common = common_byte(regions[0], regions[1]);
  if (!common.is_known) report.add_not_checked("overlapping-copy", ir::node_label(graph, node));
  if (!common.byte.has_value()) return;
  report.add("overlapping-copy", Severity::kError, {node},
             absl::StrCat(ir::node_label(graph, node), " reads and writes ",
                          ir::describe(graph, ir::Pointer{regions[0].allocation, *common.byte}), "."));
}

}  // namespace

void lint_copies(const ir::GraphIr& graph, Report& report) {
  Ids pageable, host;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    find_out_of_bounds(graph, n, report);
    find_overlap(graph, n, report);
    const auto* copy = std::get_if<ir::MemcpyParams>(&graph.nodes[n].params);
    if (copy == nullptr) continue;
    const auto is_in = [&](const std::optional<ir::Pointer>& pointer, ir::MemoryKind kind) {
      return pointer.has_value() && graph.allocations[pointer->allocation].kind == kind;
    };
    const bool reads_pageable = is_in(copy->source, ir::MemoryKind::kPageableHost);
    if (reads_pageable || is_in(copy->destination, ir::MemoryKind::kPageableHost)) pageable.push_back(n);
    if (reads_pageable || is_in(copy->source, ir::MemoryKind::kPinnedHost) ||
        is_in(copy->source, ir::MemoryKind::kHost)) {
      host.push_back(n);
    }
  }
  if (!pageable.empty()) {
    report.add("pageable-operand", Severity::kWarning, pageable,
               absl::StrCat(report.labels(pageable), ": from or to host memory that is not pinned."));
  }
  if (!host.empty()) {
    report.add("host-operand", Severity::kNote, host,
               absl::StrCat(report.labels(host), ": each launch reads the host memory again, at the same address."));
  }
}

}  // namespace cgrt::inspect
