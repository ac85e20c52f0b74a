// All that keeps an executable from taking over another graph: CUDA names one node at most. Internal to exec/.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/graph/graph_state.h"

namespace cgrt::internal {

// Of an executable that was made from the first `node_count` nodes of `ours`, whose attributes are `attributes`. Asks
// the driver a few times for each node of both graphs.
absl::StatusOr<std::vector<UpdateBlocker>> find_blockers(const GraphState& ours, std::size_t node_count,
                                                         const std::vector<NodeAttributes>& attributes,
                                                         InstantiateFlags flags, GraphState& theirs);

}  // namespace cgrt::internal
