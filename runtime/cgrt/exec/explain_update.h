// Why an executable could not take over parameters or a graph. Internal to exec/.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/graph/attribute_difference.h"
#include "cgrt/target/launch_attributes.h"

namespace cgrt::internal {

// A node of both graphs, its attributes in the executable, and those that an update would lose.
struct LostAttributes {
  std::vector<std::size_t> path;  // see NodeAttributes
  LaunchAttributes was, wanted;
};
UpdateReport attributes_lost(const LostAttributes& lost, CUgraph other);

// An update that the driver refused, of an executable of `node_count` nodes with `other`.
UpdateReport refused_by_driver(const CUgraphExecUpdateResultInfo& info, std::size_t node_count, CUgraph other);

absl::Status explain_graph_launch(CUresult result, CUgraph definition);

// What rebindable executables, and others, do not do.
absl::Status not_rebindable();
absl::Status not_of_this_executable(const char* what);  // "binding"
absl::Status rebindable_update();
absl::Status rebindable_child();
absl::Status rebindable_memset();

}  // namespace cgrt::internal
