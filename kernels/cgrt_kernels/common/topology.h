// Which plans may take each other's place in an executable: those of one topology.
//
//   const SoftmaxDesc desc{SoftmaxOp::kSoftmax, DType::kFloat32, 2 * rows, columns};
//   CGRT_ASSIGN_OR_RETURN(SoftmaxPlan more, plan_softmax(DeviceRef(0), desc));
//   // `exec` was made of a graph with a launch of `plan`; `graph` is as that was, but has one of `more`.
//   if (more.topology_id() == plan.topology_id()) {
//     CGRT_RETURN_IF_ERROR(exec.update(graph));
//   } else {
//     CGRT_ASSIGN_OR_RETURN(exec, instantiate(graph));
//   }
//
// A plan's topology_id() identifies the nodes that its launch puts into a graph: their number, their kinds, the edges
// between them and their launch attributes (clusters, for one). GraphExec::update cannot change these. It can change
// kernels, grids, blocks, shared memory and arguments. Two ids are equal exactly when the nodes are equal in this
// sense, also for plans of different families. Both plans must be for one context, and both launches into targets of
// one kind (captured or explicit).
//
// Only CUB and cuBLASLt know which nodes their calls become. Their ids are equal when descriptors and algorithms are;
// an executable may be able to take over more. initialize_workspace() is not part of a launch.
#pragma once

#include <cstdint>
#include <vector>

#include "cgrt/target/launch_target.h"

namespace cgrt::kernels {

// Of kernels that wait for each other in this order, by edges of that kind.
std::uint64_t topology_of_kernels(const std::vector<LaunchAttributes>& kernels, EdgeKind edges = EdgeKind::kFull);

// `values` are what the call is told beside addresses.
std::uint64_t topology_of_library(const char* call, const std::vector<std::uint64_t>& values);

}  // namespace cgrt::kernels
