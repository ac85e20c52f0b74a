// Chains of Setup's kernel, as a user of cgrt builds and launches them.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/graph/graph.h"
#include "cgrt/target/launch_target.h"
#include "measure.h"
#include "setup.h"

namespace graphbench::own {

absl::Status launch_kernel(const Setup& setup, cgrt::LaunchTarget target, Setup::Arrays arrays);
absl::Status launch_chain(const Setup& setup, cgrt::LaunchTarget target, int nodes, Setup::Arrays arrays);
absl::StatusOr<cgrt::Graph> make_chain(const Setup& setup, int nodes, Setup::Arrays arrays);

Side launch_and_wait(const Setup& setup, std::shared_ptr<cgrt::GraphExec> exec);

}  // namespace graphbench::own
