// Nodes and edges of graphs that were captured, built and made by others: listed, found, and then changed.
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 32;
constexpr LaunchConfig kConfig{.grid = 1, .block = 32};

absl::Status layer(LaunchTarget target, const char* name, const DeviceBuffer& x) {
  Scope scope(name);
  CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), x.as<float>(), x.as<const float>(), 2.0f, kCount));
  Scope inner("tail");
  return launch(target, kConfig, shift_kernel(), x.as<float>(), x.as<const float>(), 1.0f, kCount);
}

absl::Status note_nodes(Notes& notes, const std::string& name, const std::vector<NodeInfo>& nodes) {
  for (const NodeInfo& node : nodes) {
    std::string text = absl::StrCat(name, ": ", to_string(node.kind), " ", node.name, " [", node.scope, "]");
    if (node.owner.has_value()) absl::StrAppend(&text, " in ", *node.owner);
    notes.line(std::move(text));
  }
  return absl::OkStatus();
}

BEHAVIOUR("walking nodes and edges: listed, of captured, built and foreign graphs") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  const auto step = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(layer(target, "layer0", x));
    return launch_host(
        target, [](void*) {}, nullptr);
  };
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor place = built.cursor();
  CGRT_RETURN_IF_ERROR(layer(place.programmatic(), "layer0", x));
  CGRT_ASSIGN_OR_RETURN(Graph child, captured.clone());
  CGRT_RETURN_IF_ERROR(place.add_child(std::move(child)));
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, built.add_conditional_handle(1));
  CGRT_ASSIGN_OR_RETURN(Conditional branch, place.add_if_else(handle));
  CGRT_RETURN_IF_ERROR(layer(branch.bodies[1].cursor(), "else", x));
  const std::pair<const char*, const Graph*> graphs[] = {{"captured", &captured}, {"built", &built}};
  for (const auto& [name, graph] : graphs) {
    CGRT_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, list_nodes(*graph));
    CGRT_RETURN_IF_ERROR(note_nodes(notes, name, nodes));
    CGRT_ASSIGN_OR_RETURN(const std::vector<EdgeInfo> edges, list_edges(*graph));
    for (const EdgeInfo& edge : edges) {
      notes.line(absl::StrCat(name, ": ", edge.from, "->", edge.to, " kind ", static_cast<int>(edge.kind)));
    }
  }
  CGRT_ASSIGN_OR_RETURN(const std::vector<NodeInfo> foreign, list_nodes(captured.ref()));
  CGRT_RETURN_IF_ERROR(note_nodes(notes, "foreign", foreign));
  notes.status("an empty graph", list_nodes(Graph()).status());
  return absl::OkStatus();
}

BEHAVIOUR("a node of a captured graph is found by name and scope, set and switched off") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(Graph graph, capture(stream.ref(), [&](StreamRef s) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(layer(s, "layer0", x));
                          CGRT_RETURN_IF_ERROR(layer(s, "layer1", x));
                          return fill32(s, x.as<float>() + 1, 0, 1);
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  const auto note = [&](const char* name) -> absl::Status {
    CGRT_RETURN_IF_ERROR(fill32(stream, x.data(), 0x3f800000, kCount));
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, x));
    notes.line(absl::StrCat(name, ": x = ", values[0], ", ", values[1]));
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(note("as captured"));
  CGRT_ASSIGN_OR_RETURN(const KernelNode shift,
                        find_node<KernelNode>(graph, {.name = "shift", .scope = "layer1/tail"}));
  CGRT_RETURN_IF_ERROR(
      exec.set_params(shift, kConfig, shift_kernel(), x.as<float>(), x.as<const float>(), 100.0f, kCount));
  CGRT_RETURN_IF_ERROR(note("second shift of 100"));
  CGRT_ASSIGN_OR_RETURN(const KernelNode scale,
                        find_node<KernelNode>(graph, {.name = "cgrt::testing::scale", .nth = 1}));
  CGRT_RETURN_IF_ERROR(exec.set_enabled(scale, NodeState::kDisabled));
  CGRT_ASSIGN_OR_RETURN(const MemsetNode fill, find_node<MemsetNode>(graph, {}));
  CGRT_RETURN_IF_ERROR(exec.set_enabled(fill, NodeState::kDisabled));
  CGRT_RETURN_IF_ERROR(note("without the second scale and the memset"));

  const auto refused = [&](const absl::Status& status, const char* sentence) {
    EXPECT(absl::IsNotFound(status));
    EXPECT(std::string(status.message()) == sentence);
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(refused(find_node<KernelNode>(graph, {.name = "norm"}).status(),
                               "There is no kernel node named \"norm\". The graph's kernels: cgrt::testing::scale (2), "
                               "cgrt::testing::shift<float> (2)."));
  CGRT_RETURN_IF_ERROR(refused(find_node<KernelNode>(graph, {.scope = "layer1", .nth = 2}).status(),
                               "There is no kernel node in scope \"layer1\" number 2, counted from 0: 2 match."));
  CGRT_RETURN_IF_ERROR(refused(find_node<MemcpyNode>(graph, {}).status(), "There is no memcpy node."));
  return refused(find_node<KernelNode>(graph, {.name = "cale"}).status(),
                 "There is no kernel node named \"cale\". The graph's kernels: cgrt::testing::scale (2), "
                 "cgrt::testing::shift<float> (2).");
}

}  // namespace
}  // namespace cgrt::testing
