// Whether a GraphIr is a graph: what every reader of the value may rely on.
//
//   CGRT_RETURN_IF_ERROR(ir::validate(graph));
//
// Checks that
//   - each node's parameters are those of its kind,
//   - each argument is a pointer of 8 bytes, or has as many bytes as its size says, 0 where addresses stand,
//   - each pointer names an allocation of the graph, and each number is one that a file can hold,
//   - edges join two different nodes of the graph, are ascending, and none is there twice,
//   - no node waits for itself along a path.
// InvalidArgument says the first offence, with its node or edge and the values.
// Thread-safe: a pure function.
#pragma once

#include "absl/status/status.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

absl::Status validate(const GraphIr& graph);

}  // namespace cgrt::ir
