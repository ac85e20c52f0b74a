// Which nodes of a graph come before which, for many pairs at once. Internal to cgrt.
//
//   ir::Reachability reachability(graph);
//   const std::vector<ir::Reach> answers = reachability.ask({{0, 2}, {1, 2}}, ir::Paths::kWaiting);
//
// 512 starts share one pass over the nodes between the first start and the last end, in an order in which ends stand
// behind starts. Pairs joined by an edge, and those of one level, cost no pass. A chain or a fan of any length takes
// linear time; n starts whose ends are far away take n / 512 passes over the graph. All passes together look at no
// more than `max_steps` nodes and edges; the answer to what is left then is kNotLookedAt.
//
// The graph must be valid (see validate.h), and outlive this. Not thread-safe.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

// Whether `to` starts only after `from` has ended. An edge out of a kernel's port other than 0 waits for less, unless
// it is programmatic: then its end is taken to wait (see inspect/lint.h). Whatever ended before a kernel started has
// ended when such an edge lets its end start, so the first edge of a path decides.
bool waits_for_end(const Edge& edge);

enum class Paths : std::uint8_t {
  kWaiting,       // the first edge is one of waits_for_end()
  kFullFirst,     // the first edge is full, from port 0
  kIndirectFull,  // two edges or more, all of them full, from port 0
};

enum class Reach : std::uint8_t { kNone, kYes, kNotLookedAt };

struct NodePair {
  std::uint32_t from = 0, to = 0;
  auto operator<=>(const NodePair&) const = default;
};

class Reachability {
 public:
  // About a second.
  static constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 27;

  explicit Reachability(const GraphIr& graph, std::uint64_t max_steps = kMaxSteps);

  // Whether such a path leads from one to the other. Nodes of different bodies have none.
  std::vector<Reach> ask(std::span<const NodePair> pairs, Paths paths);

  // All nodes, each after those that it waits for; the nodes inside of a node follow it at once.
  const std::vector<std::uint32_t>& order() const { return order_; }
  std::uint32_t position(std::uint32_t node) const { return positions_[node]; }  // in order()

  // The nodes of the innermost body that both are in, at any depth, which are them or have them inside. Both are one
  // node for two bodies of one conditional node, of which a launch runs one.
  NodePair in_common_body(NodePair pair) const;

  // Nodes and edges looked at so far.
  std::uint64_t steps() const { return steps_; }

 private:
  struct Step {
    std::uint32_t start, end, pair;  // positions of the nodes, and which pair it is
  };

  struct Nesting {
    std::uint32_t parent = 0, jump = 0;  // bodies that this one is in; 0 is in none
    std::uint32_t depth = 0;
  };

  void find_order();
  std::uint32_t around(std::uint32_t body, std::uint32_t depth) const;
  void answer(std::span<const Step> batch, Paths paths, std::vector<Reach>& answers);
  bool has_edge(NodePair pair, Paths paths) const;

  const GraphIr& graph_;
  const std::uint64_t max_steps_;
  std::uint64_t steps_ = 0;
  std::vector<std::uint32_t> order_, positions_, levels_;  // levels by node
  std::vector<std::size_t> first_before_;                  // by position: where its edges in before_ begin
  std::vector<Edge> before_;                               // by the end's position; ends are positions
  std::vector<Nesting> bodies_;
};

}  // namespace cgrt::ir
