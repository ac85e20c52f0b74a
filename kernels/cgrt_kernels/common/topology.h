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
// A plan's topology_id() stands for the nodes that its launch puts into a graph: how many, of which kinds, with
// which edges between them and which launch attributes (clusters, for one). That is what GraphExec::update cannot
// change; kernels, grids, blocks, shared memory and arguments it takes over. Two ids, of one family or of two, are
// equal exactly when all of that is, for plans for one context and launches into targets of one kind (both captured
// or both explicit).
//
// What a library (CUB, cuBLASLt) puts into a graph only the library knows: there, ids are equal when descriptors and
// algorithms are, and executables may take over more than that. initialize_*() is no part of a launch.
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
