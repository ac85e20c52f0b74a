#include "cgrt/inspect/timing.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cgrt/inspect/short_name.h"
#include "cgrt/inspect/text_table.h"
#include "cgrt/ir/analysis.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/validate.h"

namespace cgrt::inspect {
namespace {

// Of a file's times, which may be any numbers: as floating point they do not wrap.
using Nanoseconds = double;

constexpr Nanoseconds kShort = 10'000;     // kernels for which the start of the next one matters
constexpr std::size_t kMaxKernels = 20;    // lines
constexpr std::size_t kMaxPathLines = 20;  // lines; the middle of a longer path is left out

std::string microseconds(Nanoseconds time) { return absl::StrFormat("%.1f us", time / 1000); }
std::string percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

struct CriticalPath {
  std::vector<std::uint32_t> nodes;   // of the graph itself
  std::vector<Nanoseconds> own_time;  // of every node; of one that has others inside: their longest path
  Nanoseconds time = 0;
};

CriticalPath critical_path_of(const ir::GraphIr& graph) {
  const std::optional<std::vector<std::uint32_t>> order = topological_order(graph);
  std::vector<std::vector<std::uint32_t>> by_body(graph.bodies.size() + 1);
  for (const std::uint32_t node : *order) by_body[graph.nodes[node].body].push_back(node);
  std::vector<std::vector<std::uint32_t>> successors(graph.nodes.size());
  for (const ir::Edge& edge : graph.edges) successors[edge.from].push_back(edge.to);

  CriticalPath path;
  path.own_time.resize(graph.nodes.size());
  for (std::size_t n = 0; n < graph.timing.nodes.size(); ++n) {
    if (graph.timing.nodes[n].count != 0) path.own_time[n] = static_cast<Nanoseconds>(graph.timing.nodes[n].median_ns);
  }
  // From the innermost body outwards, and in each from the last node to the first.
  std::vector<Nanoseconds> longest(graph.nodes.size());
  std::vector<std::optional<std::uint32_t>> next(graph.nodes.size());
  for (std::size_t body = by_body.size(); body-- > 0;) {
    Nanoseconds whole = 0;
    std::optional<std::uint32_t> first;
    for (auto node = by_body[body].rbegin(); node != by_body[body].rend(); ++node) {
      for (const std::uint32_t target : successors[*node]) {
        if (next[*node].has_value() && longest[target] <= longest[*next[*node]]) continue;
        next[*node] = target;
      }
      longest[*node] = path.own_time[*node] + (next[*node].has_value() ? longest[*next[*node]] : 0);
      if (first.has_value() && longest[*node] < whole) continue;
      whole = longest[*node];
      first = *node;
    }
    if (body != 0) {
      Nanoseconds& owner = path.own_time[graph.bodies[body - 1].owner];
      owner = std::max(owner, whole);
      continue;
    }
    path.time = whole;
    for (; first.has_value(); first = next[*first]) path.nodes.push_back(*first);
  }
  return path;
}

// As node_label, with a kernel's short name.
std::string short_label(const ir::GraphIr& graph, std::uint32_t node) {
  const auto* kernel = std::get_if<ir::KernelParams>(&graph.nodes[node].params);
  if (kernel == nullptr) return node_label(graph, node);
  return absl::StrCat("node ", node, " \"", ir::printable(short_name(function_of(graph, *kernel).name)), "\"");
}

void append_path(std::string& out, const ir::GraphIr& graph, const CriticalPath& path) {
  absl::StrAppend(&out, "\ncritical path by time: ", count_of(path.nodes.size(), "node", "nodes"), ", ",
                  microseconds(path.time), "\n");
  Table<2> table;
  for (std::size_t i = 0; i < path.nodes.size(); ++i) {
    const bool is_left_out =
        path.nodes.size() > kMaxPathLines && i >= kMaxPathLines / 2 && i < path.nodes.size() - kMaxPathLines / 2;
    if (!is_left_out) {
      table.add({short_label(graph, path.nodes[i]), microseconds(path.own_time[path.nodes[i]])});
    } else if (i == kMaxPathLines / 2) {
      table.add_line(absl::StrCat("... ", count_of(path.nodes.size() - kMaxPathLines, "node", "nodes")));
    }
  }
  table.append_to(out, Align::kLeft);
}

void append_kernels(std::string& out, const ir::GraphIr& graph, Nanoseconds sum) {
  struct Total {
    std::size_t nodes = 0;
    std::uint64_t runs = 0;
    Nanoseconds time = 0;
  };
  std::map<std::string, Total> totals;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::NodeTime& time = graph.timing.nodes[n];
    if (time.count == 0) continue;
    const auto* kernel = std::get_if<ir::KernelParams>(&graph.nodes[n].params);
    Total& total = totals[kernel != nullptr ? short_name(function_of(graph, *kernel).name)
                                            : absl::StrCat("(", to_string(graph.nodes[n].kind), ")")];
    ++total.nodes;
    total.runs += time.count;
    total.time += static_cast<Nanoseconds>(time.median_ns);
  }
  std::vector<std::pair<std::string, Total>> sorted(totals.begin(), totals.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  out += "\n";
  Table<5> table;
  table.add({"time", "share", "nodes", "runs", "what"});
  for (std::size_t i = 0; i < std::min(sorted.size(), kMaxKernels); ++i) {
    const Total& total = sorted[i].second;
    table.add({microseconds(total.time), percent(sum > 0 ? total.time / sum : 0), absl::StrCat(total.nodes),
               absl::StrCat(total.runs), ir::printable(sorted[i].first)});
  }
  if (sorted.size() > kMaxKernels) table.add_line(absl::StrCat("and ", sorted.size() - kMaxKernels, " more"));
  table.append_to(out, Align::kRight);
}

// Edges on which a short kernel waits for another one, with nothing else between them.
std::size_t count_programmatic_candidates(const ir::GraphIr& graph) {
  std::vector<std::size_t> waits_for(graph.nodes.size());
  for (const ir::Edge& edge : graph.edges) ++waits_for[edge.to];
  const auto is_short = [&](std::uint32_t node) {
    const ir::NodeTime& time = graph.timing.nodes[node];
    return graph.nodes[node].kind == ir::NodeKind::kKernel && time.count != 0 &&
           static_cast<Nanoseconds>(time.median_ns) < kShort;
  };
  return static_cast<std::size_t>(std::count_if(graph.edges.begin(), graph.edges.end(), [&](const ir::Edge& edge) {
    return edge.type == ir::EdgeType::kFull && waits_for[edge.to] == 1 && is_short(edge.from) && is_short(edge.to);
  }));
}

}  // namespace

std::string to_timing_text(const ir::GraphIr& graph) {
  if (const absl::Status status = ir::validate(graph); !status.ok()) {
    return absl::StrCat("not a valid graph: ", ir::printable(std::string(status.message())), "\n");
  }
  const ir::Timing& timing = graph.timing;
  if (timing.nodes.empty()) return "no times: the graph was not launched while it was measured\n";
  const CriticalPath path = critical_path_of(graph);
  Nanoseconds sum = 0;
  for (const ir::NodeTime& time : timing.nodes) sum += time.count != 0 ? static_cast<Nanoseconds>(time.median_ns) : 0;
  const auto duration = static_cast<Nanoseconds>(timing.median_ns), busy = static_cast<Nanoseconds>(timing.busy_ns);
  const auto ran = static_cast<std::size_t>(
      std::count_if(timing.nodes.begin(), timing.nodes.end(), [](const ir::NodeTime& one) { return one.count != 0; }));
  std::string out = absl::StrCat(count_of(timing.launches, "launch", "launches"), " of ", microseconds(duration),
                                 " (median), idle ", percent(duration > 0 ? 1 - busy / duration : 0), "; ", ran, " of ",
                                 count_of(graph.nodes.size(), "node has", "nodes have"),
                                 " a time, one after the other ", microseconds(sum), "\n");
  append_path(out, graph, path);
  append_kernels(out, graph, sum);
  const std::size_t candidates = count_programmatic_candidates(graph);
  if (candidates != 0) {
    absl::StrAppend(
        &out, "\n", count_of(candidates, "edge joins", "edges join"),
        " two kernels of less than 10 us: programmatic dependent launch could hide the start of the second\n");
  }
  return out;
}

}  // namespace cgrt::inspect
