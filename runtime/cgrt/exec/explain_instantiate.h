// Why a graph cannot be instantiated, as far as the driver says it or the graph shows it. Internal to exec/.
#pragma once

#include <cuda.h>

#include "absl/status/status.h"
#include "cgrt/graph/graph.h"

namespace cgrt::internal {

// Before the driver is asked: refuses an empty Graph and the body of a conditional node.
absl::Status check_graph(const Graph& graph);

// A plain executable of a graph of build_alternatives would run the nodes of all steps.
absl::Status alternatives_not_rebindable();

// `failure` of instantiating `graph`, with what `params` came back with.
absl::Status explain_instantiate(const absl::Status& failure, CUgraph graph,
                                 const CUDA_GRAPH_INSTANTIATE_PARAMS& params);

}  // namespace cgrt::internal
