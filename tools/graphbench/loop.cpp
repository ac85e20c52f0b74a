#include "loop.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench_kernels.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/graph/graph.h"
#include "cgrt/launch/launch.h"
#include "cgrt/memory/copy.h"

namespace graphbench {
namespace {

using cgrt::GraphExec;
using cgrt::LaunchTarget;

constexpr cgrt::LaunchConfig kOneThread{.grid = 1, .block = 1};

// Both are one word: how many turns are left on the device, and how many the host has seen to be left.
struct Loop {
  cgrt::DeviceBuffer left;
  cgrt::PinnedBuffer shown;
  GraphExec exec;

  static absl::StatusOr<std::shared_ptr<Loop>> create(const Setup& setup) {
    auto loop = std::make_shared<Loop>();
    CGRT_ASSIGN_OR_RETURN(loop->left, cgrt::DeviceBuffer::create(setup.context, sizeof(unsigned)));
    CGRT_ASSIGN_OR_RETURN(loop->shown, cgrt::PinnedBuffer::create(setup.context, sizeof(unsigned)));
    return loop;
  }
};

absl::Status launch_kernels(const Setup& setup, LaunchTarget target, int kernels) {
  const auto& [desc, kernel, config] = setup.plan;
  const auto& [out, in] = setup.arrays();
  for (int i = 0; i < kernels; ++i) {
    CGRT_RETURN_IF_ERROR(cgrt::launch(target, config, kernel, out, in, nullptr, kAlpha, desc.count));
  }
  return absl::OkStatus();
}

absl::Status begin(const Setup& setup, const Loop& loop, int turns) {
  CGRT_RETURN_IF_ERROR(cgrt::fill32(setup.stream, loop.left.data(), static_cast<unsigned>(turns), 1));
  return setup.stream.ref().synchronize();
}

}  // namespace

absl::StatusOr<Side> while_node(const Setup& setup, int kernels) {
  CGRT_ASSIGN_OR_RETURN(const std::shared_ptr<Loop> loop, Loop::create(setup));
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::Graph::create(setup.context));
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle again, graph.add_conditional_handle(1));
  CGRT_ASSIGN_OR_RETURN(cgrt::Conditional node, graph.add_while({}, again));
  cgrt::Cursor body = node.bodies[0].cursor();
  CGRT_RETURN_IF_ERROR(launch_kernels(setup, body, kernels));
  CGRT_RETURN_IF_ERROR(cgrt::launch(body, kOneThread, count_down_kernel(), again, loop->left.as<unsigned>()));
  CGRT_ASSIGN_OR_RETURN(loop->exec, cgrt::instantiate(graph));
  return Side{.prepare = [loop, &setup](int turns) { return begin(setup, *loop, turns); },
              .run = [loop, stream = setup.stream.ref()](int) -> absl::Status {
                CGRT_RETURN_IF_ERROR(loop->exec.launch(stream));
                return stream.synchronize();
              }};
}

absl::StatusOr<Side> host_checked_loop(const Setup& setup, int kernels) {
  CGRT_ASSIGN_OR_RETURN(const std::shared_ptr<Loop> loop, Loop::create(setup));
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::Graph::create(setup.context));
  cgrt::Cursor turn = graph.cursor();
  CGRT_RETURN_IF_ERROR(launch_kernels(setup, turn, kernels));
  volatile unsigned* const shown = loop->shown.as<unsigned>();
  CGRT_RETURN_IF_ERROR(cgrt::launch(turn, kOneThread, show_count_kernel(), loop->left.as<unsigned>(), shown));
  CGRT_ASSIGN_OR_RETURN(loop->exec, cgrt::instantiate(graph));
  return Side{.prepare = [loop, &setup](int turns) { return begin(setup, *loop, turns); },
              .run = [loop, shown, stream = setup.stream.ref()](int turns) -> absl::Status {
                int launches = 0;
                do {
                  CGRT_RETURN_IF_ERROR(loop->exec.launch(stream));
                  CGRT_RETURN_IF_ERROR(stream.synchronize());
                  ++launches;
                } while (*shown != 0);
                if (launches == turns) return absl::OkStatus();
                return absl::InternalError(absl::StrCat("The loop ended after ", launches, " turns of ", turns, "."));
              }};
}

}  // namespace graphbench
