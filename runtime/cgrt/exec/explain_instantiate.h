// Why a graph could not be instantiated, as far as the driver says it or the graph shows it. Internal
// to exec/.
#pragma once

#include <cuda.h>

#include "absl/status/status.h"

namespace cgrt::internal {

// `failure` of instantiating `graph`, with what `params` came back with.
absl::Status explain_instantiate(const absl::Status& failure, CUgraph graph,
                                 const CUDA_GRAPH_INSTANTIATE_PARAMS& params);

}  // namespace cgrt::internal
