// A saved graph as a Graph again. Internal to bundle/.
#pragma once

#include <cuda.h>

#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/graph/graph.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/launch/kernel.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::internal {

struct GraphParts {
  const saved::SavedGraph& saved;
  const ir::GraphIr& graph;
  const std::vector<KernelRef>& kernels;      // of saved.kernels
  const std::vector<CUdeviceptr>& addresses;  // of the bundle's blocks
};

// Event records become empty nodes, and so do allocations and frees, whose memory is a block's. kUnimplemented names
// the node that cannot be replayed; kInvalidArgument names the one whose kernel takes other parameters than it has.
absl::StatusOr<Graph> build_graph(const GraphParts& parts, ContextRef context);

}  // namespace cgrt::internal
