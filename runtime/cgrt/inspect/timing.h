// What the times of a graph say, for people: what `graphdump time` prints for each graph.
//
//   std::fputs(inspect::to_timing_text(graph).c_str(), stdout);
//
//   10 launches of 12.0 us (median), idle 5.0 %; 3 of 3 nodes have a time, one after the other 11.4 us
//
//   critical path by time: 3 nodes, 11.4 us
//   node 0 (memset)  1.4 us
//   node 1 "scale"   7.9 us
//   node 2 (memcpy)  2.1 us
//
//     time  share   nodes  runs  what
//   7.9 us  69.3 %  1      10    scale
//   2.1 us  18.4 %  1      10    (memcpy)
//   1.4 us  12.3 %  1      10    (memset)
//
// The critical path is the longest in time from a node that waits for none to one that none waits for, in the graph
// itself; a child graph and a conditional node count as their own longest path. Thread-safe: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

// Says so where the graph has no times. Of a graph that is not valid it says why instead.
std::string to_timing_text(const ir::GraphIr& graph);

}  // namespace cgrt::inspect
