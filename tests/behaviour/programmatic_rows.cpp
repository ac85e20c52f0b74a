// Full edges that become programmatic, in graphs that are built and captured.
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

struct Arrays {
  DeviceBuffer x, y;
};

absl::Status wait_and_scale(LaunchTarget target, const Arrays& a) {
  return launch(target, kConfig, waiting_kernel(), a.x.as<float>(), a.x.as<float>(), 2.0f, kCount);
}
absl::Status scale(LaunchTarget target, const Arrays& a) {
  return launch(target, kConfig, scale_kernel(), a.x.as<float>(), a.x.as<float>(), 3.0f, kCount);
}

// Three kernels that wait, a kernel that does not, one that waits behind it, a memset, and one behind that.
absl::Status step(LaunchTarget target, const Arrays& a) {
  for (int i = 0; i < 3; ++i) CGRT_RETURN_IF_ERROR(wait_and_scale(target, a));
  CGRT_RETURN_IF_ERROR(scale(target, a));
  CGRT_RETURN_IF_ERROR(wait_and_scale(target, a));
  CGRT_RETURN_IF_ERROR(fill32(target, a.y.data(), 0, kCount));
  return wait_and_scale(target, a);
}

absl::Status note_edges(Notes& notes, const std::string& name, Graph& graph) {
  CGRT_ASSIGN_OR_RETURN(const ProgrammaticEdges edges, add_programmatic_edges(graph));
  notes.line(absl::StrCat(name, ": ", edges.added, " added, ", edges.full, " full"));
  for (const std::string& reason : edges.reasons) notes.line(reason);
  CGRT_ASSIGN_OR_RETURN(const std::vector<EdgeInfo> all, list_edges(graph));
  std::string kinds;
  for (const EdgeInfo& edge : all)
    absl::StrAppend(&kinds, " ", edge.from, "->", edge.to, ":", static_cast<int>(edge.kind));
  notes.line(kinds);
  return absl::OkStatus();
}

BEHAVIOUR("edges to kernels that wait become programmatic, in built and in captured graphs") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  for (const char* how : {"built", "captured", "as a child"}) {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, 1.0f));
    const Arrays a{std::move(x), std::move(y)};
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    if (how == std::string("captured")) {
      CGRT_ASSIGN_OR_RETURN(graph, capture(stream.ref(), [&](LaunchTarget target) { return step(target, a); }));
    } else {
      Cursor cursor = graph.cursor();
      CGRT_RETURN_IF_ERROR(step(cursor, a));
    }
    if (how == std::string("as a child")) {
      CGRT_ASSIGN_OR_RETURN(Graph outer, Graph::create(world.device()));
      CGRT_RETURN_IF_ERROR(outer.add_child({}, std::move(graph)).status());
      graph = std::move(outer);
    }
    CGRT_RETURN_IF_ERROR(note_edges(notes, how, graph));
    CGRT_RETURN_IF_ERROR(note_edges(notes, "again", graph));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
    for (int i = 0; i < 2; ++i) CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, a.x));
    notes.line(absl::StrCat("x = ", values.front(), ", ", values.back()));
    notes.status("rebindable", instantiate_rebindable(graph).status());
  }
  return absl::OkStatus();
}

BEHAVIOUR("a kernel that joins two branches waits for both by programmatic edges") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, 1.0f));
  const Arrays a{std::move(x), std::move(y)};
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor left = graph.cursor();
  CGRT_RETURN_IF_ERROR(wait_and_scale(left, a));
  Cursor right = left;
  CGRT_RETURN_IF_ERROR(wait_and_scale(left, a));
  CGRT_RETURN_IF_ERROR(launch(right, kConfig, waiting_kernel(), a.y.as<float>(), a.y.as<float>(), 5.0f, kCount));
  left.join(right);
  CGRT_RETURN_IF_ERROR(launch(left, kConfig, waiting_kernel(), a.x.as<float>(), a.y.as<float>(), 10.0f, kCount));
  CGRT_RETURN_IF_ERROR(note_edges(notes, "diamond", graph));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, a.x));
  notes.line(absl::StrCat("x = ", values.front(), ", ", values.back()));
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
