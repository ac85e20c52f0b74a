#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/device.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/graph/graph.h"
#include "cgrt/stream/event.h"
#include "cgrt_kernels/cublaslt/candidates.h"

namespace cgrt::kernels {
namespace {

constexpr absl::Duration kTurn = absl::Microseconds(300);  // of a candidate, unless one launch takes longer
constexpr std::int64_t kMaxLaunches = 50;
constexpr int kTurns = 5;

struct Timer {
  StreamRef stream;
  Event start, end;

  // What the device takes for what `exec` launches.
  absl::StatusOr<absl::Duration> time(GraphExec& exec) {
    CGRT_RETURN_IF_ERROR(stream.record(start));
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.record(end));
    CGRT_RETURN_IF_ERROR(end.ref().synchronize());
    return elapsed_time(start, end);
  }
};

// Launches of one plan in one graph, and the least time that one of them took.
struct Contender {
  GraphExec exec;
  std::int64_t launches = 1;
  absl::Duration best = absl::InfiniteDuration();
};

absl::StatusOr<GraphExec> make_launches(ContextRef context, const MatmulPlan& plan, const MatmulArgs& args,
                                        std::int64_t count) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(context));
  Cursor cursor = graph.cursor();
  for (std::int64_t i = 0; i < count; ++i) CGRT_RETURN_IF_ERROR(launch_matmul(cursor, plan, args));
  return instantiate(graph);
}

absl::StatusOr<Contender> prepare(Timer& timer, ContextRef context, const MatmulPlan& plan, const MatmulArgs& args) {
  CGRT_ASSIGN_OR_RETURN(GraphExec one, make_launches(context, plan, args, 1));
  CGRT_RETURN_IF_ERROR(timer.time(one).status());  // the first loads code
  CGRT_ASSIGN_OR_RETURN(const absl::Duration time, timer.time(one));
  Contender contender;
  contender.launches = std::clamp<std::int64_t>(kTurn / std::max(time, absl::Microseconds(1)), 1, kMaxLaunches);
  CGRT_ASSIGN_OR_RETURN(contender.exec, make_launches(context, plan, args, contender.launches));
  return contender;
}

}  // namespace

absl::StatusOr<MatmulPlan> tune_matmul(StreamRef stream, const MatmulDesc& desc, const MatmulArgs& args) {
  CGRT_ASSIGN_OR_RETURN(const bool is_capturing, stream.is_capturing());
  if (is_capturing) {
    return absl::FailedPreconditionError(
        "tune_matmul: the stream is capturing. Measure before the capture, and launch the plan in it.");
  }
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, stream.context());
  MatmulDesc limited = desc;
  limited.max_workspace_bytes = std::min(desc.max_workspace_bytes, args.workspace.bytes);
  if (is_simulated()) return plan_matmul(context, limited);
  CGRT_ASSIGN_OR_RETURN(std::vector<MatmulPlan> plans, matmul_candidates(context, limited));

  Timer timer{stream, {}, {}};
  CGRT_ASSIGN_OR_RETURN(timer.start, Event::create(context, EventTiming::kEnabled));
  CGRT_ASSIGN_OR_RETURN(timer.end, Event::create(context, EventTiming::kEnabled));
  std::vector<Contender> contenders;
  for (const MatmulPlan& plan : plans) {
    CGRT_ASSIGN_OR_RETURN(Contender contender, prepare(timer, context, plan, args));
    contenders.push_back(std::move(contender));
  }
  // In turns, as clocks change.
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Contender& contender : contenders) {
      CGRT_ASSIGN_OR_RETURN(const absl::Duration time, timer.time(contender.exec));
      contender.best = std::min(contender.best, time / contender.launches);
    }
  }
  const auto best = std::min_element(contenders.begin(), contenders.end(),
                                     [](const Contender& a, const Contender& b) { return a.best < b.best; });
  return std::move(plans[static_cast<std::size_t>(best - contenders.begin())]);
}

}  // namespace cgrt::kernels
