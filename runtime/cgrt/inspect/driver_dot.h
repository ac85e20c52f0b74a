// The DOT dumps that CUDA's driver writes of a graph, read as far as they tell: cuGraphDebugDotPrint with any flags,
// cudaGraphDebugDotPrint, PyTorch's g.debug_dump(path).
//
//   CGRT_ASSIGN_OR_RETURN(ir::GraphIr graph, inspect::from_driver_dot(text));
//
// With CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE a dump tells kernels with sizes and attributes, operands of copies and memsets,
// child graphs and edges. It never tells arguments of kernels, devices, or how large an allocation is: functions have
// no parameters here, devices are -1, and operands are in one allocation of unknown size where their bytes overlap,
// else in one of their own. Without the flags less is known: see ir::NoParams and ir::has_sizes.
// Thread-safe: pure functions.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

// InvalidArgument for any text that is not such a dump of a valid graph, with the line: 'line 7: node "graph_1_node_2"
// is of the unknown kind "TELEPORT"'. Rows and attributes that this reader does not know are skipped; a node or an edge
// that it does not understand is an error. Safe on files of unknown origin.
absl::StatusOr<ir::GraphIr> from_driver_dot(std::string_view text);

}  // namespace cgrt::inspect
