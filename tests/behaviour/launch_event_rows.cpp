// Clusters beyond the portable size, their scheduling, and events that a launch records before its end.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"
#include "behaviour/cluster_probe.h"
#include "cgrt/ir/describe.h"
#include "support/loaded_kernels.h"

namespace cgrt::testing {
namespace {

LaunchConfig clustered(std::uint32_t blocks, ClusterScheduling scheduling = ClusterScheduling::kDefault) {
  return {.grid = 32, .block = 32, .attributes = {.cluster = {blocks}, .cluster_scheduling = scheduling}};
}

BEHAVIOUR("clusters of more than 8 blocks are refused until they are allowed, and then run in every target") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), loaded_cubin()));
  CGRT_ASSIGN_OR_RETURN(const auto kernel, library.kernel<loaded_cluster_width>("cluster_width"));
  const auto step = [&](LaunchTarget target, std::uint32_t blocks) {
    return launch(target, clustered(blocks), kernel, probe.data());
  };
  const auto note = [&](const char* name) -> absl::Status {
    CGRT_RETURN_IF_ERROR(probe.stream.ref().synchronize());
    notes.line(absl::StrCat(name, ": cluster of ", *probe.data()));
    *probe.data() = -1;
    return absl::OkStatus();
  };
  const absl::Status refused = step(probe.stream, 16);
  notes.status("16 before", refused);
  EXPECT(absl::StrContains(refused.message(), "exceeds the largest, 8; allow_large_clusters may allow more"));
  notes.status("allow", allow_large_clusters(kernel, world.device()));
  CGRT_ASSIGN_OR_RETURN(const int max, max_cluster_size(kernel, world.device(), Dim3(32), 0));
  notes.line(absl::StrCat("largest: ", max));
  CGRT_RETURN_IF_ERROR(step(probe.stream, 16));
  CGRT_RETURN_IF_ERROR(note("eager"));
  CGRT_ASSIGN_OR_RETURN(const Graph captured, capture(probe.stream, [&](StreamRef s) { return step(s, 16); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec captured_exec, instantiate(captured));
  CGRT_RETURN_IF_ERROR(captured_exec.launch(probe.stream));
  CGRT_RETURN_IF_ERROR(note("captured"));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(step(built.cursor(), 16));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(built));
  CGRT_RETURN_IF_ERROR(exec.launch(probe.stream));
  CGRT_RETURN_IF_ERROR(note("explicit"));
  notes.status("32", step(probe.stream, 32));
  return absl::OkStatus();
}

BEHAVIOUR("cluster scheduling is kept by every target, clone and child, and compared by updates") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  const auto note = [&](const std::string& name, const Graph& graph) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(const ir::GraphIr ir, snapshot(graph));
    for (const ir::Node& node : ir.nodes) {
      const auto* kernel = std::get_if<ir::KernelParams>(&node.params);
      if (kernel != nullptr) notes.line(name + ": " + ir::describe(ir, kernel->attributes));
    }
    return absl::OkStatus();
  };
  for (const ClusterScheduling scheduling :
       {ClusterScheduling::kDefault, ClusterScheduling::kSpread, ClusterScheduling::kLoadBalancing}) {
    const auto step = [&](LaunchTarget target) { return probe.launch(target, clustered(2, scheduling)); };
    notes.status("eager", step(probe.stream));
    CGRT_ASSIGN_OR_RETURN(const Graph captured, capture(probe.stream, step));
    CGRT_RETURN_IF_ERROR(note("captured", captured));
    CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(step(built.cursor()));
    CGRT_RETURN_IF_ERROR(note("built", built));
    CGRT_ASSIGN_OR_RETURN(Graph clone, built.clone());
    CGRT_RETURN_IF_ERROR(note("clone", clone));
    CGRT_ASSIGN_OR_RETURN(Graph around, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(around.add_child({}, clone).status());
    CGRT_RETURN_IF_ERROR(note("child", around));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(built));
    notes.status("update, captured", exec.update(captured));
    CGRT_ASSIGN_OR_RETURN(const Graph spread, capture(probe.stream, [&](StreamRef s) {
                            return probe.launch(s, clustered(2, ClusterScheduling::kSpread));
                          }));
    CGRT_ASSIGN_OR_RETURN(const UpdateReport report, exec.try_update(spread));
    notes.line(absl::StrCat("update to spread: ", to_string(report.refusal)));
    CGRT_RETURN_IF_ERROR(probe.note(notes, "then", exec));
  }
  notes.status("without a cluster", probe.launch(probe.stream, clustered(1, ClusterScheduling::kSpread)));
  return probe.stream.ref().synchronize();
}

BEHAVIOUR(
    "a launch records an event when its blocks have triggered or begun, and a wait for it is an edge of that kind") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream side, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event early, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event join, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event timed, Event::create(world.device(), EventTiming::kEnabled));
  const auto refused = [&](const std::string& name, const absl::Status& status, const char* part) {
    notes.status(name, status);
    EXPECT(absl::StrContains(status.message(), part));
  };
  for (const EdgeKind kind : {EdgeKind::kProgrammatic, EdgeKind::kLaunchCompletion}) {
    const std::string name = kind == EdgeKind::kProgrammatic ? "programmatic" : "launch completion";
    const auto step = [&](StreamRef s) -> absl::Status {
      CGRT_RETURN_IF_ERROR(probe.launch(LaunchTarget(s).recording(early, kind), kPlain));
      CGRT_RETURN_IF_ERROR(side.ref().wait(early));
      CGRT_RETURN_IF_ERROR(probe.launch(side, kPlain));
      CGRT_RETURN_IF_ERROR(side.ref().record(join));
      return s.wait(join);
    };
    notes.status(name + ", eager", step(probe.stream));
    CGRT_RETURN_IF_ERROR(probe.stream.ref().synchronize());
    notes.completion(name, early.ref().completion());
    CGRT_ASSIGN_OR_RETURN(const Graph captured, capture(probe.stream, step));
    CGRT_RETURN_IF_ERROR(notes.graph(name, captured));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(captured));
    CGRT_RETURN_IF_ERROR(probe.note(notes, name, exec));
    notes.status(name + ", with attributes",
                 probe.launch(LaunchTarget(probe.stream).recording(early, kind), clustered(2)));
    notes.status(name + ", with timing", probe.launch(LaunchTarget(probe.stream).recording(timed, kind), kPlain));
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    Cursor place = graph.cursor();
    refused(name + ", built", probe.launch(LaunchTarget(place).recording(early, kind), kPlain),
            "An edge says the same: programmatic(node) or launched(node)");
  }
  refused("behind the kernel", probe.launch(LaunchTarget(probe.stream).recording(early, EdgeKind::kFull), kPlain),
          "is recorded by record_event or StreamRef::record");
  return probe.stream.ref().synchronize();
}

}  // namespace
}  // namespace cgrt::testing
