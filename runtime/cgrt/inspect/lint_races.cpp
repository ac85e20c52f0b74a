// Nodes that are not ordered and touch the same bytes, where it is certain that one of them writes.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/lint_rules.h"
#include "cgrt/inspect/meetings.h"
#include "cgrt/inspect/regions.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

// Whether a node of the graph waits for what another one writes or signals: then nodes may be ordered by more than
// edges.
bool is_ordered_by_memory(const ir::GraphIr& graph) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> written, waited_for;
  std::set<std::uint32_t> signalled, awaited;
  for (const ir::Node& node : graph.nodes) {
    if (const auto* batch = std::get_if<ir::BatchMemOpParams>(&node.params)) {
      for (const ir::MemOp& op : batch->operations) {
        (op.kind == ir::MemOpKind::kWrite ? written : waited_for).insert({op.address.allocation, op.address.offset});
      }
    } else if (const auto* semaphores = std::get_if<ir::SemaphoreParams>(&node.params)) {
      for (const ir::SemaphoreValue& value : semaphores->semaphores) {
        (node.kind == ir::NodeKind::kSemaphoreSignal ? signalled : awaited).insert(value.semaphore);
      }
    }
  }
  const auto meet = [](const auto& a, const auto& b) {
    return std::any_of(a.begin(), a.end(), [&](const auto& one) { return b.contains(one); });
  };
  return meet(written, waited_for) || meet(signalled, awaited);
}

bool is_kernel(const ir::GraphIr& graph, std::uint32_t node) { return graph.nodes[node].kind == ir::NodeKind::kKernel; }

bool writes(const ir::GraphIr& graph, std::uint32_t node, const Meeting& where) {
  const Region here{where.allocation, where.begin, where.end - where.begin};
  const std::vector<Region> regions = regions_of(graph.nodes[node]);
  return std::any_of(regions.begin(), regions.end(), [&](const Region& region) {
    return region.is_write && common_byte(region, here).byte.has_value();
  });
}

std::string certain_sentence(const ir::GraphIr& graph, const Meeting& meeting) {
  const auto [a, b] = std::minmax(meeting.nodes.from, meeting.nodes.to);
  const bool both = writes(graph, a, meeting) && writes(graph, b, meeting);
  return absl::StrCat(ir::node_label(graph, a), " and ", ir::node_label(graph, b), " are not ordered, and both touch ",
                      describe_range(graph, meeting.allocation, meeting.begin, meeting.end), "; ",
                      both ? "both write." : absl::StrCat("node ", writes(graph, a, meeting) ? a : b, " writes."));
}

std::string kernel_sentence(const ir::GraphIr& graph, const Meeting& meeting) {
  const auto [from, to] = meeting.nodes;
  const auto [kernel, writer] = is_kernel(graph, from) ? std::pair(from, to) : std::pair(to, from);
  return absl::StrCat(ir::node_label(graph, kernel), " and ", ir::node_label(graph, writer), " are not ordered: node ",
                      kernel, " gets the address ", ir::describe(graph, ir::Pointer{meeting.allocation, meeting.begin}),
                      ", and node ", writer, " writes there.");
}

}  // namespace

std::vector<Meeting> unordered_of(const std::vector<Meeting>& meetings, ir::Reachability& reachability,
                                  std::size_t& left_out) {
  std::vector<ir::NodePair> pairs;
  pairs.reserve(meetings.size());
  for (const Meeting& meeting : meetings) pairs.push_back(reachability.in_common_body(meeting.nodes));
  const std::vector<ir::Reach> answers = reachability.ask(pairs, ir::Paths::kWaiting);
  std::vector<Meeting> unordered;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (pairs[i].from == pairs[i].to) continue;  // in two bodies, of which one runs
    if (answers[i] == ir::Reach::kNotLookedAt) ++left_out;
    if (answers[i] == ir::Reach::kNone) unordered.push_back(meetings[i]);
  }
  return unordered;
}

void lint_races(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report) {
  const Meetings found = find_meetings(graph, reachability.order());
  std::size_t left_out = 0;
  std::vector<Meeting> certain, with_kernels;
  for (const Meeting& meeting : unordered_of(found.meetings, reachability, left_out)) {
    const bool has_kernel = is_kernel(graph, meeting.nodes.from) || is_kernel(graph, meeting.nodes.to);
    (has_kernel ? with_kernels : certain).push_back(meeting);
  }
  const bool is_certain = certain.empty() || !is_ordered_by_memory(graph);
  report_by_allocation(report, "race", is_certain ? Severity::kError : Severity::kWarning, 100, certain,
                       [&](const Meeting& meeting) {
                         return certain_sentence(graph, meeting) +
                                (is_certain ? "" : " What the graph signals and waits for may order them.");
                       });
  report_by_allocation(report, "may-race", Severity::kWarning, 2, with_kernels,
                       [&](const Meeting& meeting) { return kernel_sentence(graph, meeting); });
  if (found.left_out != 0) report.add_not_checked("race", counted(found.left_out, "operand"));
  if (left_out != 0) report.add_not_checked("race", counted(left_out, "pair") + " of nodes");
}

}  // namespace cgrt::inspect
