// Where nodes of a graph meet in memory, so that they must be ordered. Internal to inspect/.
//
// Of all pairs that touch the same bytes, one of them writing, only as many as matter: the nodes are walked in an order
// in which the graph may run. For each stretch of an allocation stand the node that wrote it last and those that read
// it since: when these are all ordered, so is the next one with all before it once it is ordered with these. Stretches
// end where regions do, so that rows of matrices side by side do not meet. When there is any pair that is not ordered,
// one of those found is not.
//
// Kernels touch one byte at each of their addresses, and count as if they read it: they meet nodes that write there for
// certain.
//
// No more than 2^22 stretches are looked at, some seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cgrt/ir/graph_ir.h"
#include "cgrt/ir/reachability.h"

namespace cgrt::inspect {

struct Meeting {
  ir::NodePair nodes;  // the first comes first in the walk
  std::uint32_t allocation = 0;
  std::uint64_t begin = 0, end = 0;  // bytes of the allocation that both touch: the first such stretch
};

struct Meetings {
  std::vector<Meeting> meetings;  // ascending by allocation, then by nodes
  std::size_t left_out = 0;       // regions that were not looked at
};

// `order`: all nodes, each behind those that it waits for.
Meetings find_meetings(const ir::GraphIr& graph, const std::vector<std::uint32_t>& order);

}  // namespace cgrt::inspect
