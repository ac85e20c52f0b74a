// What the driver says of a capture that goes on, and the work in it that nothing waits for. Internal to graph/.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cgrt::internal {

struct CaptureInfo {
  CUgraph graph = nullptr;            // null: the stream is not captured, or its capture is over
  std::vector<CUgraphNode> frontier;  // what the stream's next node would wait for
  std::vector<CUgraphEdgeData> edges;
};
absl::StatusOr<CaptureInfo> capture_info(CUstream stream);

// The last nodes in each of `joined` that nothing waits for: `kernel "scale" in stream 0x7f..`. The driver destroys the
// graph of a capture that it refuses to end, so this is asked before: two calls for each stream.
[[gnu::cold]] std::string name_unjoined(CUstream origin, const std::vector<CUstream>& joined);

// Has `origin` wait for all nodes of its capture that nothing waits for, in whatever stream they were made.
absl::Status join_all(CUstream origin);

}  // namespace cgrt::internal
