// The rules of lint.h, and what their parts share. Internal to inspect/.
//
// Each part stands in a file of its own, lint_SUBJECT.cpp, and adds what it finds to a Report:
//
//   report.add("race", Severity::kError, {3, 5}, "node 3 (memset) and node 5 (memcpy) are not ordered.");
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/lint.h"
#include "cgrt/inspect/meetings.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/ir/reachability.h"

namespace cgrt::inspect {

inline constexpr std::array kRules = {
    Rule{"not-valid", Severity::kError, "a graph that is not valid", "Write the file again with cgrt."},
    Rule{"race", Severity::kError, "nodes that are not ordered touch the same bytes, and one of them writes",
         "Add an edge between them, or give each memory of its own."},
    Rule{"use-outside-lifetime", Severity::kError,
         "memory of an allocation node is used before it is there or after it was freed",
         "Add edges from the allocation node to the use, and from the use to the free node."},
    Rule{"out-of-bounds", Severity::kError,
         "a copy, a memset or a memory operation goes past the end of its allocation",
         "Make it shorter, or the allocation larger."},
    Rule{"overlapping-copy", Severity::kError, "a memcpy reads bytes that it writes",
         "Copy by way of other memory, or in parts that do not overlap."},
    Rule{"launch-geometry", Severity::kError, "a grid, block or cluster that no device can launch",
         "Launch the kernel with sizes inside of the limits."},
    Rule{"endless-while", Severity::kError, "a while node whose body cannot change the handle",
         "Set the handle in a kernel of the body."},
    Rule{"double-free", Severity::kError, "memory is freed twice", "Remove one of the free nodes."},
    Rule{"may-race", Severity::kWarning,
         "kernels get an address that a node writes to, or another kernel gets too, and nothing orders the two",
         "Add an edge between them where one of them writes there; nothing is wrong where they only read."},
    Rule{
        "programmatic-chain", Severity::kWarning,
        "two kernels get the same address, and only programmatic edges through a third order them",
        "Make sure that the kernel between them waits (cudaGridDependencySynchronize), or make one of the edges full."},
    Rule{"stale-pointer", Severity::kWarning, "an argument looks like an address, and is in no memory that was there",
         "Make sure that what it points to lives as long as the graph."},
    Rule{"pageable-operand", Severity::kWarning, "a memcpy from or to pageable host memory",
         "Use pinned memory: it is copied without a detour, and does not move."},
    Rule{"unfreed-allocation", Severity::kWarning, "an allocation node without a free node",
         "Free it in the graph, or before each next launch, or instantiate with auto-free on launch."},
    Rule{"shared-memory", Severity::kWarning,
         "executables that were launched into different streams touch the same memory, and one of them may write",
         "Give each memory of its own, or have one stream wait for the other; nothing is wrong where they only read."},
    Rule{"stack-memory", Severity::kWarning,
         "a host function's data, or an operand of a memcpy, on the stack of the thread that instantiated",
         "Use memory that lives until the last launch has ended."},
    Rule{"not-checked", Severity::kNote, "where a rule came to the limit of its work",
         "Look at parts of the graph alone."},
    Rule{"programmatic-wait", Severity::kNote, "kernels that start before those that they depend on have ended",
         "Make sure that each waits (cudaGridDependencySynchronize) before it touches what those write."},
    Rule{"host-operand", Severity::kNote, "a memcpy from host memory, which each launch reads again",
         "Keep the memory, with what it is to hold, until the last launch has ended."},
    Rule{"host-node", Severity::kNote, "host functions", "Keep what they use until the last launch has ended."},
    Rule{"host-owner", Severity::kNote, "host functions with data, of a graph to which no user object was given",
         "Have a user object own it (cuGraphRetainUserObject), or keep it until the executable is destroyed."},
    Rule{"free-unallocated", Severity::kNote, "a free node of memory that this graph does not allocate",
         "Launch it only after what allocates the memory, once each time."},
    Rule{"redundant-edge", Severity::kNote, "edges that other edges imply", "They can be left out."},
    Rule{"serial-branches", Severity::kNote,
         "work in one line of nodes that could be shorter by a quarter: edges join nodes with no memory in common",
         "Work that is independent can run at the same time: capture it in streams of its own, or leave edges out."},
    Rule{"empty-graph", Severity::kNote, "a graph without nodes", "Make sure that the work was captured."},
    Rule{"empty-body", Severity::kNote, "a child graph or a body of a conditional node without nodes",
         "Make sure that its work was captured."},
    Rule{"event-external", Severity::kNote, "events that the graph only records, or only waits for",
         "Make sure that the other side is there in each launch."},
    Rule{"update-attributes", Severity::kNote,
         "kernels with a launch attribute that is not its default, the cluster apart",
         "A whole-graph update takes over parameters, not these: instantiate anew when they change."},
    Rule{"first-launch", Severity::kNote, "an executable of 100 nodes or more that was launched without an upload",
         "Upload it before (cuGraphUpload) where the time of the first launch matters."},
    Rule{"several-streams", Severity::kNote, "one executable that was launched into several streams",
         "Instantiate once for each stream, with memory of its own, where launches are to overlap."},
};

// The name of a rule, checked by the compiler.
class RuleName {
 public:
  consteval RuleName(const char* id) : rule_(&kRules[0]) {
    while (rule_->id != id) ++rule_;  // past the end: an error of the compiler
  }
  const Rule* get() const { return rule_; }

 private:
  const Rule* rule_;
};

class Report {
 public:
  Report(const ir::GraphIr& graph, std::vector<Finding>& findings) : graph_(graph), findings_(findings) {}

  void add(RuleName rule, Severity severity, std::vector<std::uint32_t> nodes, std::string text) {
    findings_.push_back({rule.get(), severity, std::move(nodes), std::move(text)});
  }
  // For a rule that came to a limit: `what` was left out, "12 pairs of nodes".
  void add_not_checked(RuleName rule, const std::string& what);

  // "node 3 (memset)"; "node 3 (memset), node 5 (memcpy)"; "node 1 (memset), node 2 (memset) and 7 more".
  std::string labels(const std::vector<std::uint32_t>& nodes) const;

 private:
  const ir::GraphIr& graph_;
  std::vector<Finding>& findings_;
};

// Most severe first, then in the order of the rules.
void sort_findings(std::vector<Finding>& findings);

// Those that nothing orders; counts those that the search for an order left out.
std::vector<Meeting> unordered_of(const std::vector<Meeting>& meetings, ir::Reachability& reachability,
                                  std::size_t& left_out);

// One finding for each allocation, with the `sentence` of its first meeting. Where more than `max_findings` would come
// of it one for all of them. `meetings` ascend by allocation.
template <class Sentence>
void report_by_allocation(Report& report, RuleName rule, Severity severity, std::size_t max_findings,
                          const std::vector<Meeting>& meetings, const Sentence& sentence) {
  std::size_t allocations = 0;
  for (std::size_t i = 0; i < meetings.size(); ++i) {
    allocations += i == 0 || meetings[i].allocation != meetings[i - 1].allocation ? 1 : 0;
  }
  const bool is_folded = allocations > max_findings;
  for (std::size_t begin = 0, end = 0; begin < meetings.size(); begin = end) {
    std::vector<std::uint32_t> nodes;
    for (end = begin; end < meetings.size(); ++end) {
      if (!is_folded && meetings[end].allocation != meetings[begin].allocation) break;
      nodes.push_back(meetings[end].nodes.from);
      nodes.push_back(meetings[end].nodes.to);
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::string text = sentence(meetings[begin]);
    if (end - begin > 1) {
      absl::StrAppend(&text, " And ", counted(end - begin - 1, "more pair"), is_folded ? ", in " : "",
                      is_folded ? counted(allocations, "allocation") : "", ".");
    }
    report.add(rule, severity, std::move(nodes), std::move(text));
  }
}

// Of valid graphs.
void lint_shape(const ir::GraphIr& graph, Report& report);     // empty-*, endless-while, host-node, event-external
void lint_launches(const ir::GraphIr& graph, Report& report);  // launch-geometry, update-attributes, stale-pointer
void lint_copies(const ir::GraphIr& graph, Report& report);    // *-operand, out-of-bounds, overlapping-copy
void lint_lifetimes(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report);  // allocation nodes
void lint_races(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report);
void lint_shared_addresses(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report);  // may-race
void lint_edges(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report);

}  // namespace cgrt::inspect
