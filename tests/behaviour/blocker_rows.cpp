// Why an executable cannot take over a graph: all nodes that CUDA would refuse, where it names one at most.
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr LaunchConfig kConfig{.grid = 2, .block = 32};

absl::Status note_blockers(Notes& notes, const std::string& name, GraphExec& exec, const Graph& other) {
  CGRT_ASSIGN_OR_RETURN(const UpdateReport report, exec.try_update(other));
  notes.line(absl::StrCat(name, ": ", report.rung == UpdateRung::kRefused ? to_string(report.refusal) : "taken over"));
  CGRT_ASSIGN_OR_RETURN(const std::vector<UpdateBlocker> blockers, exec.find_blockers(other));
  bool has_cause = report.rung == UpdateRung::kWholeGraph && blockers.empty();
  for (const UpdateBlocker& blocker : blockers) {
    notes.line(absl::StrCat("  ", to_string(blocker.refusal), ": ", blocker.text));
    has_cause |= blocker.refusal == report.refusal;
  }
  EXPECT(has_cause);  // CUDA's own reason is among them
  return absl::OkStatus();
}

BEHAVIOUR("all nodes that keep an update from succeeding are named, each with its reason") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer host, PinnedBuffer::create(world.device(), x.size_bytes()));
  const auto scale = [&](LaunchTarget target, float factor, LaunchAttributes attributes = {}) {
    LaunchConfig config = kConfig;
    config.attributes = attributes;
    return launch(target, config, scale_kernel(), x.as<float>(), x.as<const float>(), factor, kCount);
  };
  const auto make = [&](auto step) -> absl::StatusOr<Graph> {
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    Cursor cursor = graph.cursor();
    CGRT_RETURN_IF_ERROR(step(cursor));
    return graph;
  };
  const auto plain = [&](Cursor& c) -> absl::Status {
    CGRT_RETURN_IF_ERROR(scale(c, 2.0f));
    CGRT_RETURN_IF_ERROR(copy(c, host.data(), x.data(), 64));
    CGRT_RETURN_IF_ERROR(fill32(c, x.data(), 0, 4));
    return scale(c, 3.0f);
  };
  CGRT_ASSIGN_OR_RETURN(Graph first, make(plain));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(first));
  const auto note = [&](const char* name, auto step) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(const Graph other, make(step));
    return note_blockers(notes, name, exec, other);
  };
  CGRT_RETURN_IF_ERROR(note("the same with other parameters", [&](Cursor& c) -> absl::Status {
    CGRT_RETURN_IF_ERROR(scale(c, 5.0f));
    CGRT_RETURN_IF_ERROR(copy(c, host.data(), x.data(), 32));
    CGRT_RETURN_IF_ERROR(fill32(c, x.data(), 1, 2));
    return launch(c, {.grid = 1, .block = 64}, shift_kernel(), x.as<float>(), x.as<const float>(), 1.0f, kCount);
  }));
  CGRT_RETURN_IF_ERROR(note("three nodes", [&](Cursor& c) -> absl::Status {
    CGRT_RETURN_IF_ERROR(scale(c, 2.0f, {.cluster = {2}}));
    CGRT_RETURN_IF_ERROR(copy(c, x.data(), host.data(), 64));
    CGRT_RETURN_IF_ERROR(fill32(c, x.data(), 0, 4));
    return scale(c, 3.0f, {.cooperative = true});
  }));
  CGRT_RETURN_IF_ERROR(note("another kind", [&](Cursor& c) -> absl::Status {
    CGRT_RETURN_IF_ERROR(scale(c, 2.0f));
    CGRT_RETURN_IF_ERROR(copy(c, host.data(), x.data(), 64));
    CGRT_RETURN_IF_ERROR(scale(c, 3.0f));
    return scale(c, 3.0f);
  }));
  CGRT_RETURN_IF_ERROR(note("a node less, another more", [&](Cursor& c) -> absl::Status {
    CGRT_RETURN_IF_ERROR(copy(c, host.data(), x.data(), 64));
    CGRT_RETURN_IF_ERROR(fill32(c, x.data(), 0, 4));
    CGRT_RETURN_IF_ERROR(launch_host(c, [] {}));
    CGRT_RETURN_IF_ERROR(scale(c, 3.0f));
    return scale(c, 3.0f);
  }));
  CGRT_RETURN_IF_ERROR(note("other edges", [&](Cursor& c) -> absl::Status {
    CGRT_RETURN_IF_ERROR(scale(c, 2.0f));
    Cursor branch = c;
    CGRT_RETURN_IF_ERROR(copy(c, host.data(), x.data(), 64));
    CGRT_RETURN_IF_ERROR(fill32(branch, x.data(), 0, 4));
    c.join(branch);
    return scale(c, 3.0f);
  }));
  CGRT_RETURN_IF_ERROR(note_blockers(notes, "itself", exec, first));

  const auto with_child = [&](LaunchAttributes attributes) -> absl::StatusOr<Graph> {
    CGRT_ASSIGN_OR_RETURN(Graph child, make([&](Cursor& c) { return scale(c, 2.0f, attributes); }));
    CGRT_ASSIGN_OR_RETURN(Graph graph, make([&](Cursor& c) { return scale(c, 2.0f); }));
    CGRT_RETURN_IF_ERROR(graph.add_child({}, std::move(child)).status());
    return graph;
  };
  CGRT_ASSIGN_OR_RETURN(const Graph outer, with_child({}));
  CGRT_ASSIGN_OR_RETURN(GraphExec outer_exec, instantiate(outer));
  CGRT_ASSIGN_OR_RETURN(const Graph changed, with_child({.cluster = {2}}));
  CGRT_RETURN_IF_ERROR(note_blockers(notes, "inside a child graph", outer_exec, changed));
  CGRT_ASSIGN_OR_RETURN(Graph updatable, make(plain));
  CGRT_ASSIGN_OR_RETURN(const GraphExec rebindable, instantiate_rebindable(updatable));
  CGRT_ASSIGN_OR_RETURN(const std::vector<UpdateBlocker> blockers, exec.find_blockers(updatable));
  for (const UpdateBlocker& blocker : blockers) notes.line(absl::StrCat("rebindable: ", blocker.text));
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
