// build_alternatives: one graph for several steps, of which a rebindable executable runs one at each launch: for sizes
// for which a library picks other kernels, or for layers that are left out.
//
//   const auto step = [&](LaunchTarget target, std::size_t i) { return mlp(target, plans[i], arrays); };
//   CGRT_ASSIGN_OR_RETURN(Graph graph, build_alternatives(device, plans.size(), step));
//   CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
//   CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return step(target, 3); }));
//   CGRT_RETURN_IF_ERROR(exec.launch(stream));
//
// The nodes of all steps stand in one row, in the order of their calls. Those that steps have in common, kernels of one
// function, block, shared memory and attributes, and copies between the same kinds of memory, stand once, and a step's
// calls meet the first of theirs that comes. Before the first rebind the executable runs the step of number 0. Nodes
// that a step leaves out are disabled: 0.3 to 0.5 us each at every launch (H200), where one that runs takes 0.8. So it
// pays for a few large kernels, not for many small ones: exec/advisor.h.
//
// The device switches kernels in the patch of a rebind, but for those with clusters (exec/graph_exec.h says why). Where
// steps differ in these, the GraphExec has an executable of CUDA's for each set of them that a step has, and launches
// the one that it was rebound to; each takes the device memory and the time to instantiate of one. A rebind to calls
// that run together in no step makes one of all nodes, once. Where the graph was changed after it was built, there is
// but one, and the host switches these kernels, at 4 us each.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/graph/graph.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

// Calls `step` for each number below `steps`, with a target that records. What the steps keep, the graph keeps. Blocks
// for as long as building them takes, and for 1 us a node. kFailedPrecondition names a memset, a host function or
// an event that not all steps have in the same place, which no executable can leave out, and work that forks: the row
// has one order.
// kUnimplemented for conditional and allocation nodes.
// Such a graph is for instantiate_rebindable alone, and cannot be a child graph.
absl::StatusOr<Graph> build_alternatives(ContextRef context, std::size_t steps,
                                         absl::FunctionRef<absl::Status(LaunchTarget, std::size_t)> step);

}  // namespace cgrt
