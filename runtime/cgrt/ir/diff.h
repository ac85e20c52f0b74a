// Whether two graphs do the same, and if not, where they part.
//
//   if (auto difference = ir::first_difference(before, after)) std::puts(difference->where.c_str());
//   for (const ir::Change& change : ir::differences(before, after).changes) std::puts(change.field.c_str());
//
// Scopes and times are not compared: they are for people and change nothing that a graph does.
//
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

struct Difference {
  std::string where;  // node 3 "scale": grid
  std::string a, b;   // (4,1,1) and (8,1,1)
  // The nodes whose ids only one graph has: node 4 "add", node 5 (memset). Empty when none.
  std::string only_in_a, only_in_b;
};

// The first in the order nodes, node count, edges, allocations; nullopt when there is none. Nodes are compared by id:
// node 3 of one with node 3 of the other. All but scopes and times is compared, so two graphs without a difference are
// equal values but for those. Neither graph needs to be valid.
std::optional<Difference> first_difference(const GraphIr& a, const GraphIr& b);

// What differs.
enum class Part : std::uint8_t {
  // Of any node. kParameters: one of two nodes of a kind is not decoded.
  kKind,
  kParameters,
  kDevice,
  kBody,
  // Of kernels. kArgumentPlace: where an argument stands in the buffer.
  kFunction,
  kGrid,
  kBlock,
  kSharedBytes,
  kArgumentCount,
  kArgument,
  kArgumentPlace,
  kOtherBytes,
  kCooperative,
  kCluster,
  kPreferredCluster,
  kClusterScheduling,
  kPriority,
  kSyncDomain,
  kCarveout,
  kAccessPolicy,
  // Of copies and memsets.
  kDestination,
  kSource,
  kWidthBytes,
  kHeight,
  kDepth,
  kDestinationPitch,
  kSourcePitch,
  kValue,
  kElementBytes,
  kWidth,
  kPitch,
  // Of other kinds.
  kEvent,
  kConditionalKind,
  kConditionalHandle,
  kAtLaunch,
  kBodyCount,
  kBytes,
  kAddress,
  kOperationCount,
  kOperation,
  kSemaphoreCount,
  kSemaphore,
  // Of allocations.
  kMemoryKind,
  kMemoryDevice,
  kMemoryBytes,
  // Of graphs: of first_difference only.
  kNodeCount,
  kEdge,
  kAllocationCount,
  kOwners,
};
const char* to_string(Part part);  // "grid", "shared bytes"

// All of them, between nodes that match (see matching.h) and with allocations, events and the like matched by which
// nodes use them. None: the two graphs do the same, whatever the order in which their nodes were made. Where many nodes
// look alike, also by what is around them, two that do the same may be told apart.
struct Change {
  std::string place;  // node 3 "scale", or where ids differ: node 3 "scale" (node 5 of the other); allocation 1
  std::string field;  // grid
  std::string a, b;   // (4,1,1) and (8,1,1)
  Part part = Part::kKind;
  std::uint32_t id = 0, other = 0;  // the node of a and that of b; of an allocation a's number, twice
};
struct Differences {
  std::vector<Change> changes;                         // of nodes that both graphs have, in the order of a's
  std::vector<std::uint32_t> only_in_a, only_in_b;     // nodes, ascending
  std::vector<Edge> edges_only_in_a, edges_only_in_b;  // between such nodes, by the ids of their own graph, ascending
  bool empty() const {
    return changes.empty() && only_in_a.empty() && only_in_b.empty() && edges_only_in_a.empty() &&
           edges_only_in_b.empty();
  }
};

// Both graphs must be valid.
Differences differences(const GraphIr& a, const GraphIr& b);
// The same with nodes that match as the caller says, as match_nodes does.
Differences differences(const GraphIr& a, const GraphIr& b, const std::vector<std::uint32_t>& matches);

}  // namespace cgrt::ir
