// A graph and all that is inside of it, in the order in which the IR numbers nodes and bodies. Internal to graph/.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/snapshot.h"

namespace cgrt::internal {

struct WalkedGraph {
  CUgraph handle;
  const GraphState* state;  // null: not known
  std::uint32_t owner;      // the node that it is inside of; of the first: none
  std::uint32_t first_node = 0;
};
struct WalkedNode {
  CUgraphNode handle;
  CUgraphNodeType type;
  std::uint32_t graph;      // the first is the graph itself, the others are the bodies
  std::size_t position;     // in that graph
  std::uint32_t child = 0;  // of a child graph node: the number of the graph inside
  const NodeNote* note = nullptr;

  // Null when it is no conditional node, or none that was noted.
  const NodeNote::Conditional* noted_conditional() const {
    const bool is_noted = type == CU_GRAPH_NODE_TYPE_CONDITIONAL && note != nullptr && note->conditional.has_value();
    return is_noted ? &*note->conditional : nullptr;
  }
};
struct Walk {
  std::vector<WalkedGraph> graphs;
  std::vector<WalkedNode> nodes;

  std::string scope_of(const WalkedNode& node) const;
  // Null when it is no conditional node, or not known.
  const GraphState::ConditionalNode* conditional(const WalkedNode& node) const;
};

// `state`: null when the graph is not known. What is inside of conditional nodes is found in states alone: the driver
// does not tell (CUDA 13.0).
absl::StatusOr<Walk> walk(CUgraph graph, const GraphState* state);
// Those of a graph that is not known are found in notes; see snapshot().
absl::StatusOr<Walk> walk(CUgraph graph, absl::FunctionRef<const NodeNote*(CUgraphNode)> note_of);

}  // namespace cgrt::internal
