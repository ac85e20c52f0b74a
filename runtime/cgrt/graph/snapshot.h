// snapshot: a graph of the driver's as plain data (ir/graph_ir.h): its nodes in the order of their
// creation, their parameters and decoded arguments, its edges with ports and types.
//
//   CGRT_ASSIGN_OR_RETURN(ir::GraphIr ir, snapshot(graph));
//   CGRT_RETURN_IF_ERROR(inspect::write_file("step.cgrt.json", ir));      // graphdump show step.cgrt.json
//
// Reads only; the graph must not be changed meanwhile. Costs 0.9 to 1.4 us a node from 100 nodes on (H200): not for the
// hot path.
//
// An argument of 8 bytes counts as a pointer when the driver knows the address, and so does each aligned word of 8
// bytes inside a larger one, such as a structure or a tensor map: a file holds no addresses, so two runs of a
// program write the same. A number that happens to be the address of live memory is taken for it; an address one past
// the end of its memory is not known, or is that of what follows there. Padding inside a structure is written as it
// was left: two runs write the same when the structure has none, or is cleared before it is filled.
//
// Kernels have one name on every machine: "ns::norm<(ns::Op)3, float>", where messages about a
// launch say ns::norm<ns::Op::kNorm, float>. launch/function_name.h names two exceptions.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cgrt/graph/graph.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt {

// Any graph, also one that cgrt did not make. Errors are the driver's answers: docs/errors.md.
absl::StatusOr<ir::GraphIr> snapshot(GraphRef graph);

// The same, with the scopes in which the nodes were made. kFailedPrecondition for an empty Graph.
absl::StatusOr<ir::GraphIr> snapshot(const Graph& graph);

// What the driver does not tell of a node (CUDA 13.0), from somebody who saw it being made.
struct NodeNote {
  struct Conditional {
    ir::ConditionalKind kind = ir::ConditionalKind::kIf;
    CUgraphConditionalHandle handle = 0;
    std::optional<unsigned> at_launch = {};  // see ir::ConditionalParams
    CUcontext context = nullptr;
    std::vector<CUgraph> bodies = {};
  };
  std::string scope = {};  // "layer0/attention"
  std::optional<Conditional> conditional = {};
};

// Any graph, with what `note_of` knows of its nodes; null: nothing. It is asked once for each node, in the order of
// their ids. What it returns must stay valid and unchanged until snapshot returns; nothing is owned or kept longer.
absl::StatusOr<ir::GraphIr> snapshot(GraphRef graph, absl::FunctionRef<const NodeNote*(CUgraphNode)> note_of);

// Which memory of this process an allocation of the IR is.
struct AllocationId {
  CUdeviceptr start = 0;
  std::uint64_t buffer_id = 0;  // CUDA's, which no other allocation of the process has had or will have; 0: not known
  bool operator==(const AllocationId&) const = default;
};

// The same; `ids` becomes one for each of GraphIr::allocations.
absl::StatusOr<ir::GraphIr> snapshot(GraphRef graph, absl::FunctionRef<const NodeNote*(CUgraphNode)> note_of,
                                     std::vector<AllocationId>& ids);

// For a message: "kernel \"scale\"", "memset". Never fails.
std::string describe_node(CUgraphNode node);

}  // namespace cgrt
