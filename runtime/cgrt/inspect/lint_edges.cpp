// What the edges say: those that others imply, that join nodes with nothing in common, and programmatic ones.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/lint_rules.h"
#include "cgrt/inspect/regions.h"
#include "cgrt/ir/analysis.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

using Ids = std::vector<std::uint32_t>;

std::string list(const std::vector<ir::NodePair>& edges) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(edges.size(), kShown); ++i) {
    shown.push_back(absl::StrCat(edges[i].from, " -> ", edges[i].to));
  }
  return absl::StrCat(absl::StrJoin(shown, ", "), edges.size() > kShown ? " and more" : "");
}

Ids ends_of(const std::vector<ir::NodePair>& edges) {
  std::set<std::uint32_t> nodes;
  for (const ir::NodePair& edge : edges) nodes.insert({edge.from, edge.to});
  return {nodes.begin(), nodes.end()};
}

bool is_plain(const ir::Edge& edge) {
  return edge.type == ir::EdgeType::kFull && edge.from_port == 0 && edge.to_port == 0;
}

void find_redundant(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report) {
  std::vector<std::uint32_t> starts(graph.nodes.size()), ends(graph.nodes.size());  // plain edges from and to a node
  for (const ir::Edge& edge : graph.edges) {
    if (!is_plain(edge)) continue;
    ++starts[edge.from];
    ++ends[edge.to];
  }
  std::vector<ir::NodePair> candidates;
  for (const ir::Edge& edge : graph.edges) {
    if (is_plain(edge) && starts[edge.from] > 1 && ends[edge.to] > 1) candidates.push_back({edge.from, edge.to});
  }
  const std::vector<ir::Reach> answers = reachability.ask(candidates, ir::Paths::kIndirectFull);
  std::vector<ir::NodePair> redundant;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] == ir::Reach::kNotLookedAt) ++left_out;
    if (answers[i] == ir::Reach::kYes) redundant.push_back(candidates[i]);
  }
  if (left_out != 0) report.add_not_checked("redundant-edge", counted(left_out, "edge"));
  if (redundant.empty()) return;
  report.add("redundant-edge", Severity::kNote, ends_of(redundant),
             absl::StrCat("Other edges imply ", redundant.size(), " of ", counted(graph.edges.size(), "edge"), ": ",
                          list(redundant), "."));
}

// Dumps of the driver name addresses, and two of them may be in one allocation.
bool may_be_part(const ir::Allocation& allocation) {
  return allocation.bytes == 0 && allocation.kind != ir::MemoryKind::kPageableHost;
}

// The allocations that a node touches, ascending; empty when that is not known.
std::vector<std::uint32_t> allocations_of(const ir::GraphIr& graph, const ir::Node& node) {
  std::vector<std::uint32_t> allocations;
  if (const auto* kernel = std::get_if<ir::KernelParams>(&node.params)) {
    for (const auto& [at, pointer] : kernel->pointers) allocations.push_back(pointer.allocation);
  } else if (const auto* copy = std::get_if<ir::MemcpyParams>(&node.params)) {
    if (!copy->source.has_value() || !copy->destination.has_value()) return {};  // an array: which one is not known
    allocations = {copy->source->allocation, copy->destination->allocation};
  } else if (const auto* set = std::get_if<ir::MemsetParams>(&node.params)) {
    allocations = {set->destination.allocation};
  }
  const auto is_part = [&](std::uint32_t one) { return may_be_part(graph.allocations[one]); };
  if (std::any_of(allocations.begin(), allocations.end(), is_part)) return {};
  std::sort(allocations.begin(), allocations.end());
  allocations.erase(std::unique(allocations.begin(), allocations.end()), allocations.end());
  return allocations;
}

// How long the graph itself would be if nodes waited only for those before them that touch an allocation of theirs, and
// nodes of which that is not known, and those around them, as they do now. Worth saying when a quarter is saved.
void find_serial(const ir::GraphIr& graph, const ir::Reachability& reachability, Report& report) {
  std::vector<std::vector<std::uint32_t>> allocations;
  for (const ir::Node& node : graph.nodes) allocations.push_back(allocations_of(graph, node));
  std::vector<std::vector<std::uint32_t>> before(graph.nodes.size());
  std::vector<ir::NodePair> unneeded;
  constexpr std::size_t kMaxComparisons = 1 << 24;  // of allocations
  std::size_t looked_at = 0;
  for (const ir::Edge& edge : graph.edges) {
    if (graph.nodes[edge.from].body != 0) continue;
    before[edge.to].push_back(edge.from);
    const auto &a = allocations[edge.from], &b = allocations[edge.to];
    if (a.empty() || b.empty() || !is_plain(edge)) continue;
    looked_at += a.size();
    if (looked_at > kMaxComparisons) return report.add_not_checked("serial-branches", "all edges");
    const bool meet =
        std::any_of(a.begin(), a.end(), [&](std::uint32_t one) { return std::binary_search(b.begin(), b.end(), one); });
    if (!meet) unneeded.push_back({edge.from, edge.to});
  }
  if (unneeded.empty()) return;

  struct Length {
    std::size_t own = 0;         // nodes up to this one that must follow each other
    std::size_t of_unknown = 0;  // the same, of the nodes before it of which nothing is known
    std::size_t of_all = 0;      // of all before it
  };
  std::vector<Length> lengths(graph.nodes.size());
  absl::flat_hash_map<std::uint32_t, std::size_t> of_allocation;
  std::size_t depth = 0;
  for (const std::uint32_t node : reachability.order()) {
    if (graph.nodes[node].body != 0) continue;
    Length& length = lengths[node];
    for (const std::uint32_t other : before[node]) {
      const Length& there = lengths[other];
      length.of_all = std::max({length.of_all, there.of_all, there.own});
      length.of_unknown = std::max({length.of_unknown, there.of_unknown, allocations[other].empty() ? there.own : 0});
    }
    length.own = allocations[node].empty() ? length.of_all : length.of_unknown;
    for (const std::uint32_t one : allocations[node]) length.own = std::max(length.own, of_allocation[one]);
    ++length.own;
    for (const std::uint32_t one : allocations[node]) of_allocation[one] = length.own;
    depth = std::max(depth, length.own);
  }
  const std::size_t now = ir::shape_of(graph).depth;
  if (depth * 4 > now * 3) return;
  report.add("serial-branches", Severity::kNote, ends_of(unneeded),
             absl::StrCat(now, " nodes follow each other, and ", depth,
                          " would do for the memory that they touch: ", counted(unneeded.size(), "edge"),
                          " between nodes without an allocation in common (", list(unneeded), ")."));
}

// The first address that both get.
const ir::Pointer* shared_address(const ir::Node& a, const ir::Node& b) {
  const auto* kernel_a = std::get_if<ir::KernelParams>(&a.params);
  const auto* kernel_b = std::get_if<ir::KernelParams>(&b.params);
  if (kernel_a == nullptr || kernel_b == nullptr) return nullptr;
  for (const auto& [at, pointer] : kernel_a->pointers) {
    for (const auto& other : kernel_b->pointers) {
      if (other.pointer == pointer) return &pointer;
    }
  }
  return nullptr;
}

// Two programmatic edges after one another: when the last kernel waits, the one in the middle has ended; whether the
// first has, only the middle one's own wait says.
void find_chains(const ir::GraphIr& graph, const std::vector<Ids>& before, ir::Reachability& reachability,
                 Report& report) {
  constexpr std::size_t kMaxComparisons = 1 << 24;  // of addresses
  struct Chain {
    std::uint32_t first, middle, last;
    const ir::Pointer* shared;
  };
  std::vector<Chain> chains;
  std::vector<ir::NodePair> pairs;
  const auto addresses = [&](std::uint32_t node) {
    const auto* kernel = std::get_if<ir::KernelParams>(&graph.nodes[node].params);
    return kernel != nullptr ? kernel->pointers.size() : 0;
  };
  std::size_t looked_at = 0, left_out = 0;
  for (std::uint32_t last = 0; last < graph.nodes.size(); ++last) {
    for (const std::uint32_t middle : before[last]) {
      for (const std::uint32_t first : before[middle]) {
        looked_at += 1 + addresses(first) * addresses(last);
        if (looked_at > kMaxComparisons) {
          ++left_out;
          continue;
        }
        const ir::Pointer* shared = shared_address(graph.nodes[first], graph.nodes[last]);
        if (shared == nullptr) continue;
        chains.push_back({first, middle, last, shared});
        pairs.push_back({first, last});
      }
    }
  }
  const std::vector<ir::Reach> answers = reachability.ask(pairs, ir::Paths::kFullFirst);
  Ids nodes;
  std::string text;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] == ir::Reach::kNotLookedAt) ++left_out;
    if (answers[i] != ir::Reach::kNone) continue;
    const Chain& chain = chains[i];
    if (nodes.empty()) {
      text = absl::StrCat(report.labels({chain.first}), " and ", report.labels({chain.last}), " both get ",
                          ir::describe(graph, *chain.shared), ", and are ordered only if ",
                          report.labels({chain.middle}), " between them waits.");
    }
    if (nodes.empty() || nodes.back() != chain.last) nodes.push_back(chain.last);
  }
  if (left_out != 0) report.add_not_checked("programmatic-chain", counted(left_out, "pair") + " of kernels");
  if (nodes.empty()) return;
  if (nodes.size() > 1) absl::StrAppend(&text, " So for ", counted(nodes.size() - 1, "more kernel"), ".");
  report.add("programmatic-chain", Severity::kWarning, std::move(nodes), std::move(text));
}

void find_programmatic(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report) {
  std::vector<Ids> before(graph.nodes.size());  // by programmatic edges
  for (const ir::Edge& edge : graph.edges) {
    if (edge.type == ir::EdgeType::kProgrammatic) before[edge.to].push_back(edge.from);
  }
  Ids ends;
  std::size_t edges = 0;
  for (std::uint32_t n = 0; n < before.size(); ++n) {
    if (!before[n].empty()) ends.push_back(n);
    edges += before[n].size();
  }
  if (ends.empty()) return;
  report.add("programmatic-wait", Severity::kNote, ends,
             absl::StrCat(counted(edges, "programmatic edge"), ", to ", report.labels(ends),
                          ": whether a kernel waits before it touches what the one before it writes is not in the "
                          "graph."));
  find_chains(graph, before, reachability, report);
}

}  // namespace

void lint_edges(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report) {
  find_programmatic(graph, reachability, report);
  find_redundant(graph, reachability, report);
  find_serial(graph, reachability, report);
}

}  // namespace cgrt::inspect
