// Hands a resource to a driver graph, which lets it go after its last use. Internal to graph/.
#pragma once

#include <cuda.h>

#include <memory>

#include "absl/status/status.h"

namespace cgrt::internal {

absl::Status keep_in_graph(CUgraph graph, std::shared_ptr<const void> resource);

}  // namespace cgrt::internal
