// A graph in numbers: what `graphdump stats` prints.
//
//   std::fputs(inspect::to_stats_text(graph).c_str(), stdout);
//
//   nodes   3
//   edges   2: 2 full, 0 programmatic
//   depth   3
//   width   1
//   roots   1
//   leaves  1
//   copied  4096 bytes a launch
//   set     4096 bytes a launch
//
//   nodes by kind
//   1  kernel
//   1  memcpy
//   1  memset
//
//   critical path: 3 nodes
//   node 0 (memset)
//   node 1 "scale"
//   node 2 (memcpy)
//
//   kernels by name
//   1  scale  1024 threads
//
//   allocations by kind
//   1  device       4096 bytes
//   1  pinned host  4096 bytes
//
// The critical path is the longest chain of nodes; the text leaves out the middle of a long one.
// Where the graph has times, what timing.h says of them stands at the end. Threads are those of all nodes of a name in
// one launch of the graph. Nodes of child graphs count as nodes; depth, width and the critical path are those of the
// graph itself. Sums stop at 2^64 - 1.
//
// The same bytes on every run. Thread-safe: pure functions.
#pragma once

#include <string>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

inline constexpr char kGraphStatsSchema[] = "cgrt-graph-stats-1";

// Of a graph that is not valid it says why instead.
std::string to_stats_text(const ir::GraphIr& graph);

// The same numbers, with all ids of the critical path, as one object:
//   schema, nodes, edges {full, programmatic}, depth, width, roots, leaves, copied_bytes, set_bytes,
//   nodes_by_kind [{kind, nodes}], critical_path [id], kernels [{function, nodes, threads}],
//   allocations [{kind, allocations, bytes, unknown_sizes}].
// Of a graph that is not valid only schema and error.
std::string to_stats_json(const ir::GraphIr& graph);

}  // namespace cgrt::inspect
