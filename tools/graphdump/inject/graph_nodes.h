// The nodes of a graph, in the order in which they were made.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "cgrt/driver/api.h"

namespace graphdump {

// Not those inside of others; none where the driver does not tell.
inline std::vector<CUgraphNode> nodes_of(CUgraph graph) {
  std::size_t count = 0;
  if (cgrt::driver::api().GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return {};
  std::vector<CUgraphNode> nodes(count);
  if (cgrt::driver::api().GraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
  return nodes;
}

}  // namespace graphdump
