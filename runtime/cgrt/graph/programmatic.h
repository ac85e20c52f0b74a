// add_programmatic_edges: lets the kernels of a graph begin before their predecessors end, where they can.
//
//   CGRT_ASSIGN_OR_RETURN(Graph graph, capture(stream, step));
//   CGRT_ASSIGN_OR_RETURN(const ProgrammaticEdges edges, add_programmatic_edges(graph));
//   CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));   // a chain of small kernels: 1.6 times as fast (H200)
//
// A kernel that begins early must wait on the device, in cudaGridDependencySynchronize, before it reads what its
// predecessors wrote or writes what they read. Those that do say so (waits_for_predecessors in launch/kernel.h); cgrt's
// own do. Of the others no edge is touched, whoever launched them. A predecessor need not do anything; one that calls
// cudaTriggerProgrammaticLaunchCompletion lets its dependents begin before its end.
//
// A graph that a library was captured into may have programmatic edges of the library's own (cuBLASLt's, when it splits
// k). instantiate_rebindable refuses those between two kernels without clusters; remove_programmatic_edges makes such a
// graph ready for it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/graph/graph.h"

namespace cgrt {

struct ProgrammaticEdges {
  std::size_t added = 0;  // edges that were full and are programmatic now
  std::size_t full = 0;   // edges between kernels that stay full
  // Why, once each: "kernel "scale" does not say that it waits for its predecessors".
  std::vector<std::string> reasons;
};

// Changes `graph`, built or captured, its child graphs and the bodies of its conditional nodes. An edge becomes
// programmatic when the kernel that it leads to waits, was compiled for 9.0 or later, and has no predecessor but
// kernels: with a full edge beside it, a programmatic one gains nothing (H200). Executables of before stay as they are.
// Never blocks. On failure all edges are as they were.
absl::StatusOr<ProgrammaticEdges> add_programmatic_edges(Graph& graph);

// Makes all programmatic edges of `graph` full, whoever made them, its child graphs' and its conditional bodies', and
// returns how many these were. A full edge is waited for longer and orders no less. Never blocks. On failure all edges
// are as they were.
absl::StatusOr<std::size_t> remove_programmatic_edges(Graph& graph);

}  // namespace cgrt
