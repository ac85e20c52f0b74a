#include "cgrt/ir/matching.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "cgrt/ir/named.h"

namespace cgrt::ir {
namespace {

using Label = std::size_t;
using Labels = std::vector<Label>;
using Ids = std::vector<std::uint32_t>;

// What a node does, with all sizes and values but no numbers of allocations, events and the like, which depend on the
// order of nodes.
Label full_label(const GraphIr& graph, const Node& node) {
  const auto label = [&](const auto&... parts) { return absl::HashOf(node.kind, node.device, parts...); };
  if (const auto* kernel = std::get_if<KernelParams>(&node.params)) {
    const Dim3 &grid = kernel->grid, &block = kernel->block;
    Label pointers = 0;
    for (const InnerPointer& one : kernel->pointers) pointers = absl::HashOf(pointers, one.at, one.pointer.offset);
    return label(function_of(graph, *kernel).name, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                 kernel->shared_bytes, kernel->arguments, pointers);
  }
  if (const auto* copy = std::get_if<MemcpyParams>(&node.params)) {
    const auto offset_of = [](const std::optional<Pointer>& end) { return end.has_value() ? end->offset : 0; };
    return label(copy->width_bytes, copy->height, copy->depth, offset_of(copy->destination), offset_of(copy->source));
  }
  if (const auto* set = std::get_if<MemsetParams>(&node.params)) {
    return label(set->value, set->element_bytes, set->width, set->height, set->destination.offset);
  }
  return label();
}

// What a node runs.
Label short_label(const GraphIr& graph, const Node& node) {
  const auto* kernel = std::get_if<KernelParams>(&node.params);
  const auto* conditional = std::get_if<ConditionalParams>(&node.params);
  return absl::HashOf(node.kind, kernel != nullptr ? std::string_view(function_of(graph, *kernel).name) : "",
                      conditional != nullptr ? static_cast<int>(conditional->kind) : -1);
}

// One of the two graphs.
struct Side {
  explicit Side(const GraphIr& graph_)
      : graph(graph_),
        successors(graph.nodes.size()),
        predecessors(graph.nodes.size()),
        match(graph.nodes.size(), kNoNode) {
    for (const Edge& edge : graph.edges) {
      successors[edge.from].push_back(edge.to);
      predecessors[edge.to].push_back(edge.from);
    }
    for (const Node& node : graph.nodes) {
      full.push_back(full_label(graph, node));
      brief.push_back(short_label(graph, node));
      kinds.push_back(static_cast<Label>(node.kind));
    }
    near = with_neighbours(full);
    wide = with_neighbours(with_neighbours(near));
    widest = wide;
    for (int round = 3; round < 8; ++round) widest = with_neighbours(widest);
    nodes_of_body.resize(graph.bodies.size() + 1);
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) nodes_of_body[graph.nodes[n].body].push_back(n);
    bodies_of_node.resize(graph.nodes.size());
    for (std::uint32_t i = 0; i < graph.bodies.size(); ++i) bodies_of_node[graph.bodies[i].owner].push_back(i + 1);
  }

  // Labels that also tell the nodes around, and who else has what a node names, in which place.
  Labels with_neighbours(const Labels& labels) const {
    std::array<absl::flat_hash_map<std::uint32_t, Label>, kNamed> named;  // sums do not depend on the order of nodes
    for (std::size_t n = 0; n < labels.size(); ++n) {
      std::size_t place = 0;
      visit_named(graph.nodes[n], [&](Named kind, std::uint32_t number) {
        named[static_cast<std::size_t>(kind)][number] += absl::HashOf(labels[n], place++);
      });
    }
    const auto all_of = [&](const Ids& neighbours) {
      Label sum = neighbours.size();
      for (const std::uint32_t one : neighbours) sum += absl::HashOf(labels[one]);
      return sum;
    };
    Labels wider;
    for (std::size_t n = 0; n < labels.size(); ++n) {
      Label label = absl::HashOf(labels[n], all_of(predecessors[n]), all_of(successors[n]));
      visit_named(graph.nodes[n], [&](Named kind, std::uint32_t number) {
        label = absl::HashOf(label, named[static_cast<std::size_t>(kind)][number]);
      });
      wider.push_back(label);
    }
    return wider;
  }

  Ids unmatched(const Ids& nodes) const {
    Ids left;
    std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(left),
                 [&](std::uint32_t node) { return match[node] == kNoNode; });
    return left;
  }

  const GraphIr& graph;
  std::vector<Ids> successors, predecessors;
  // From what a node is and does, over what it runs and does, to that with all that is up to 1, 3 and 8 steps away.
  Labels kinds, brief, full, near, wide, widest;
  std::vector<Ids> nodes_of_body, bodies_of_node;
  Ids match;
};

using LabelsOf = Labels Side::*;

class Matcher {
 public:
  Matcher(const GraphIr& a, const GraphIr& b) : a_(a), b_(b) {}

  Ids run() && {
    bodies_.emplace_back(0, 0);
    while (!bodies_.empty()) {
      const auto [of_a, of_b] = bodies_.front();
      bodies_.pop_front();
      match_bodies(a_.nodes_of_body[of_a], b_.nodes_of_body[of_b]);
    }
    return std::move(a_.match);
  }

 private:
  void match_bodies(const Ids& nodes_a, const Ids& nodes_b) {
    for (const LabelsOf labels : {&Side::widest, &Side::wide, &Side::near, &Side::full}) {
      match_unique(nodes_a, nodes_b, labels);
      follow_edges_from(nodes_a, labels);
    }
    follow_edges_from(nodes_a, &Side::brief);
    const auto ends = [](const std::vector<Ids>& neighbours, const Ids& nodes) {
      Ids found;
      std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(found),
                   [&](std::uint32_t node) { return neighbours[node].empty(); });
      return found;
    };
    for (const auto neighbours : {&Side::predecessors, &Side::successors}) {
      const Ids ends_a = ends(a_.*neighbours, nodes_a), ends_b = ends(b_.*neighbours, nodes_b);
      for (const LabelsOf labels : {&Side::widest, &Side::wide, &Side::near, &Side::full, &Side::brief}) {
        match_in_order(ends_a, ends_b, labels);
        follow_edges_from(nodes_a, labels);
      }
    }
    for (const LabelsOf labels : {&Side::near, &Side::full, &Side::brief}) {
      match_in_order(nodes_a, nodes_b, labels);
      follow_edges_from(nodes_a, labels);
    }
    follow_edges_from(nodes_a, &Side::kinds);  // another kernel in the place of one
  }

  void add(std::uint32_t node_a, std::uint32_t node_b) {
    a_.match[node_a] = node_b;
    b_.match[node_b] = node_a;
    new_.push_back(node_a);
    const Ids &bodies_a = a_.bodies_of_node[node_a], &bodies_b = b_.bodies_of_node[node_b];
    for (std::size_t i = 0; i < std::min(bodies_a.size(), bodies_b.size()); ++i) {
      bodies_.emplace_back(bodies_a[i], bodies_b[i]);
    }
  }

  // Those whose label one node has in each graph.
  void match_unique(const Ids& nodes_a, const Ids& nodes_b, LabelsOf labels) {
    struct Found {
      std::uint32_t count_a = 0, count_b = 0, a = kNoNode, b = kNoNode;
    };
    absl::flat_hash_map<Label, Found> found;
    for (const std::uint32_t node : a_.unmatched(nodes_a)) {
      Found& one = found[(a_.*labels)[node]];
      ++one.count_a, one.a = node;
    }
    for (const std::uint32_t node : b_.unmatched(nodes_b)) {
      Found& one = found[(b_.*labels)[node]];
      ++one.count_b, one.b = node;
    }
    for (const std::uint32_t node : a_.unmatched(nodes_a)) {
      const Found& one = found[(a_.*labels)[node]];
      if (one.count_a == 1 && one.count_b == 1) add(one.a, one.b);
    }
  }

  // The first with a label and the first with it there, and so on.
  void match_in_order(const Ids& nodes_a, const Ids& nodes_b, LabelsOf labels) {
    struct Found {
      Ids nodes;
      std::size_t taken = 0;
    };
    absl::flat_hash_map<Label, Found> left;
    for (const std::uint32_t node : b_.unmatched(nodes_b)) left[(b_.*labels)[node]].nodes.push_back(node);
    for (const std::uint32_t node : a_.unmatched(nodes_a)) {
      const auto found = left.find((a_.*labels)[node]);
      if (found == left.end() || found->second.taken == found->second.nodes.size()) continue;
      add(node, found->second.nodes[found->second.taken++]);
    }
  }

  // From those matched since the last time.
  void follow_edges(LabelsOf labels) {
    while (!new_.empty()) {
      const std::uint32_t node = new_.front();
      new_.pop_front();
      match_in_order(a_.successors[node], b_.successors[a_.match[node]], labels);
      match_in_order(a_.predecessors[node], b_.predecessors[a_.match[node]], labels);
    }
  }

  void follow_edges_from(const Ids& nodes_a, LabelsOf labels) {
    for (const std::uint32_t node : nodes_a) {
      if (a_.match[node] != kNoNode) new_.push_back(node);
    }
    follow_edges(labels);
  }

  Side a_, b_;
  std::deque<std::uint32_t> new_;                               // of a
  std::deque<std::pair<std::uint32_t, std::uint32_t>> bodies_;  // whose owners match
};

}  // namespace

std::vector<std::uint32_t> match_nodes(const GraphIr& a, const GraphIr& b) { return Matcher(a, b).run(); }

}  // namespace cgrt::ir
