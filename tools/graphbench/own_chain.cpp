#include "own_chain.h"

#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/launch/launch.h"

namespace graphbench::own {

using cgrt::Cursor;
using cgrt::Graph;
using cgrt::GraphExec;
using cgrt::LaunchTarget;
using Arrays = Setup::Arrays;

absl::Status launch_kernel(const Setup& setup, LaunchTarget target, Arrays arrays) {
  const auto& [desc, kernel, config] = setup.plan;
  return cgrt::launch(target, config, kernel, arrays.out, arrays.in, nullptr, kAlpha, desc.count);
}

absl::Status launch_chain(const Setup& setup, LaunchTarget target, int nodes, Arrays arrays) {
  for (int i = 0; i < nodes; ++i) CGRT_RETURN_IF_ERROR(launch_kernel(setup, target, arrays));
  return absl::OkStatus();
}

absl::StatusOr<Graph> make_chain(const Setup& setup, int nodes, Arrays arrays) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(setup.context));
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(launch_chain(setup, cursor, nodes, arrays));
  return graph;
}

Side launch_and_wait(const Setup& setup, std::shared_ptr<GraphExec> exec) {
  return Side{.run = [exec = std::move(exec), stream = setup.stream.ref()](int repeats) -> absl::Status {
    for (int i = 0; i < repeats; ++i) {
      CGRT_RETURN_IF_ERROR(exec->launch(stream));
      CGRT_RETURN_IF_ERROR(stream.synchronize());
    }
    return absl::OkStatus();
  }};
}

}  // namespace graphbench::own
