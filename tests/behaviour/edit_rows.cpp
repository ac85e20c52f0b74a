// Definitions edited: nodes removed, edges added and removed, parameters set; in graphs that were built, captured and
// made by others, and what updates and set_params of executables make of it.
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"
#include "behaviour/cluster_probe.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 32;
constexpr LaunchConfig kConfig{.grid = 1, .block = 32};

// Scales x by 2, by 3 and by 5, each in a scope of its own, and then sets its second element to 1.
struct Steps {
  static absl::StatusOr<Steps> create(World& world) {
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
    return Steps{world, std::move(stream), std::move(x)};
  }
  absl::Status scale(LaunchTarget target, float factor) const {
    return launch(target, kConfig, scale_kernel(), x.as<float>(), x.as<const float>(), factor, kCount);
  }
  absl::Status all(LaunchTarget target) const {
    for (const auto& [name, factor] : {std::pair{"two", 2.0f}, std::pair{"three", 3.0f}, std::pair{"five", 5.0f}}) {
      Scope scope(name);
      CGRT_RETURN_IF_ERROR(scale(target, factor));
    }
    return fill32(target, x.as<float>() + 1, 0x3f800000, 1);
  }
  absl::StatusOr<Graph> build(bool is_captured) const {
    if (is_captured) return capture(stream, [&](StreamRef s) { return all(s); });
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world->device()));
    Cursor place = graph.cursor();
    CGRT_RETURN_IF_ERROR(all(place));
    return graph;
  }
  absl::Status note_run(Notes& notes, const std::string& name, GraphExec& exec) const {
    CGRT_RETURN_IF_ERROR(fill32(stream, x.data(), 0x3f800000, kCount));
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(*world, x));
    notes.line(absl::StrCat(name, ": ", values[0], " ", values[1]));
    return absl::OkStatus();
  }
  absl::Status note_run(Notes& notes, const std::string& name, const Graph& graph) const {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
    return note_run(notes, name, exec);
  }

  Steps(World& world_, Stream stream_, DeviceBuffer x_)
      : world(&world_), stream(std::move(stream_)), x(std::move(x_)) {}
  World* world;
  Stream stream;
  DeviceBuffer x;
};

BEHAVIOUR("definitions edited: a node is removed, and the others keep their order, scopes and attributes") {
  CGRT_ASSIGN_OR_RETURN(const Steps steps, Steps::create(world));
  for (const bool is_captured : {false, true}) {
    const std::string name = is_captured ? "captured" : "built";
    CGRT_ASSIGN_OR_RETURN(Graph graph, steps.build(is_captured));
    CGRT_ASSIGN_OR_RETURN(GraphExec before, instantiate(graph));
    CGRT_ASSIGN_OR_RETURN(const KernelNode two, find_node<KernelNode>(graph, {.scope = "two"}));
    CGRT_ASSIGN_OR_RETURN(const KernelNode three, find_node<KernelNode>(graph, {.scope = "three"}));
    CGRT_ASSIGN_OR_RETURN(const KernelNode five, find_node<KernelNode>(graph, {.scope = "five"}));
    CGRT_RETURN_IF_ERROR(graph.remove(three));
    CGRT_RETURN_IF_ERROR(notes.graph(name + ", removed", graph));
    notes.status("again", graph.remove(three));
    CGRT_RETURN_IF_ERROR(graph.add_edge(two, five));
    CGRT_RETURN_IF_ERROR(steps.note_run(notes, name + ", joined", graph));
    CGRT_RETURN_IF_ERROR(steps.note_run(notes, name + ", as it was", before));
    CGRT_ASSIGN_OR_RETURN(const UpdateReport report, before.try_update(graph));
    notes.line(absl::StrCat("update to it: ", to_string(report.refusal)));
    {
      Scope scope("seven");
      CGRT_RETURN_IF_ERROR(graph
                               .add_kernel(after(five), kConfig, scale_kernel(), steps.x.as<float>(),
                                           steps.x.as<const float>(), 7.0f, kCount)
                               .status());
    }
    CGRT_RETURN_IF_ERROR(notes.graph(name + ", added", graph));
    CGRT_ASSIGN_OR_RETURN(Graph clone, graph.clone());
    CGRT_RETURN_IF_ERROR(notes.graph(name + ", cloned", clone));
    notes.status("five of the executable from before",
                 before.set_params(five, kConfig, scale_kernel(), steps.x.as<float>(), steps.x.as<const float>(), 50.0f,
                                   kCount));
    CGRT_RETURN_IF_ERROR(steps.note_run(notes, name + ", with 50", before));
  }
  return absl::OkStatus();
}

BEHAVIOUR("definitions edited: edges are added, removed and refused") {
  CGRT_ASSIGN_OR_RETURN(const Steps steps, Steps::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, steps.build(false));
  CGRT_ASSIGN_OR_RETURN(Graph other, steps.build(false));
  CGRT_ASSIGN_OR_RETURN(const KernelNode two, find_node<KernelNode>(graph, {.scope = "two"}));
  CGRT_ASSIGN_OR_RETURN(const KernelNode three, find_node<KernelNode>(graph, {.scope = "three"}));
  CGRT_ASSIGN_OR_RETURN(const KernelNode five, find_node<KernelNode>(graph, {.scope = "five"}));
  CGRT_ASSIGN_OR_RETURN(const MemsetNode fill, find_node<MemsetNode>(graph, {}));
  CGRT_ASSIGN_OR_RETURN(const KernelNode foreign, find_node<KernelNode>(other, {.scope = "five"}));
  const auto refused = [&](const char* name, const absl::Status& status, const char* part) {
    notes.status(name, status);
    EXPECT(absl::StrContains(status.message(), part));
  };
  notes.status("add", graph.add_edge(two, five));
  refused("the same again", graph.add_edge(two, five), "already, which is full");
  refused("a programmatic one beside it", graph.add_edge(programmatic(two), five), "already, which is full");
  refused("to itself", graph.add_edge(two, two), "cannot wait for itself");
  refused("from another graph", graph.add_edge(foreign, five), "What the edge comes from is not a node of this graph");
  refused("to another graph", graph.add_edge(two, foreign), "What the edge goes to is not a node of this graph");
  refused("a programmatic one into a memset", graph.add_edge(programmatic(two), fill), "into kernels only");
  refused("a programmatic one out of a memset", graph.add_edge(programmatic(KernelNode(fill.get())), two),
          "cannot be programmatic");
  notes.status("remove", graph.remove_edge(two, five));
  refused("remove again", graph.remove_edge(two, five), "There is no edge from kernel");
  refused("remove one from another graph", graph.remove_edge(foreign, five), "is not a node of this graph");
  refused("remove a node of another graph", graph.remove(foreign), "is not a node of this graph");
  notes.status("remove three -> five", graph.remove_edge(three, five));
  notes.status("a programmatic one instead", graph.add_edge(programmatic(three), five));
  notes.status("one of launch completion", graph.add_edge(launched(two), fill));
  CGRT_RETURN_IF_ERROR(notes.graph("then", graph));
  notes.status("remove the programmatic one", graph.remove_edge(three, five));
  notes.status("a full one instead", graph.add_edge(three, five));
  CGRT_RETURN_IF_ERROR(steps.note_run(notes, "then", graph));
  notes.status("of an empty graph", Graph().remove(two));
  return absl::OkStatus();
}

BEHAVIOUR("definitions edited: a circle is refused at instantiation, which names its nodes") {
  CGRT_ASSIGN_OR_RETURN(const Steps steps, Steps::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, steps.build(false));
  CGRT_ASSIGN_OR_RETURN(const KernelNode three, find_node<KernelNode>(graph, {.scope = "three"}));
  CGRT_ASSIGN_OR_RETURN(const MemsetNode fill, find_node<MemsetNode>(graph, {}));
  notes.status("close", graph.add_edge(NodeRef(fill), three));
  const absl::Status refused = instantiate(graph).status();
  notes.status("instantiate", refused);
  EXPECT(absl::StrContains(refused.message(),
                           "node 1 (kernel \"cgrt::testing::scale\") -> node 2 (kernel \"cgrt::testing::scale\") -> "
                           "node 3 (memset) -> node 1"));
  notes.status("open", graph.remove_edge(fill, three));
  return steps.note_run(notes, "then", graph);
}

BEHAVIOUR("definitions edited: parameters of every kind of node are set, for executables from then on") {
  CGRT_ASSIGN_OR_RETURN(const Steps steps, Steps::create(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, 9.0f));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event late, Event::create(world.device()));
  float* const x = steps.x.as<float>();
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const KernelNode kernel, graph.add_kernel({}, kConfig, scale_kernel(), x, x, 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(const MemcpyNode copied, graph.add_copy(after(kernel), x + 2, y.data(), 4));
  CGRT_ASSIGN_OR_RETURN(const MemsetNode filled, graph.add_fill(after(copied), {x + 1, 0, 4, 1}));
  int first = 0, second = 0;
  const CUhostFn count_up = [](void* data) { ++*static_cast<int*>(data); };
  CGRT_ASSIGN_OR_RETURN(const HostNode host, graph.add_host(after(filled), count_up, &first));
  CGRT_ASSIGN_OR_RETURN(const EventRecordNode recorded, graph.add_event_record(after(host), event));
  CGRT_ASSIGN_OR_RETURN(const EventWaitNode waited, graph.add_event_wait(after(recorded), event));
  CGRT_ASSIGN_OR_RETURN(GraphExec before, instantiate(graph));

  notes.status("another kernel", graph.set_params(kernel, kConfig, shift_kernel(), x, x, 4.0f, kCount));
  notes.status("copy", graph.set_params(copied, CopyParams{x + 1, y.data(), 8}));
  notes.status("memset", graph.set_params(filled, FillParams{x + 2, 0x40000000, 4, 1}));
  notes.status("host", graph.set_params(host, count_up, &second));
  notes.status("record", graph.set_params(recorded, late));
  notes.status("wait", graph.set_params(waited, late));
  notes.status("a block of 2048", graph.set_params(kernel, {.grid = 1, .block = 2048}, scale_kernel(), x, x, 1.0f, 1));
  notes.status("a copy of no bytes", graph.set_params(copied, CopyParams{x, y.data(), 0}));
  notes.status("no function", graph.set_params(host, nullptr, nullptr));
  const Event empty;
  notes.status("an empty event", graph.set_params(recorded, empty));
  notes.status("a kernel's parameters for a memset",
               graph.set_params(KernelNode(filled.get()), kConfig, scale_kernel(), x, x, 1.0f, kCount));
  CGRT_RETURN_IF_ERROR(notes.graph("then", graph));
  const auto run = [&](const char* name, GraphExec& exec) -> absl::Status {
    CGRT_RETURN_IF_ERROR(steps.note_run(notes, name, exec));
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, steps.x));
    notes.line(absl::StrCat(name, ": ", values[2], ", called ", first, " and ", second));
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(run("the executable from before", before));
  CGRT_ASSIGN_OR_RETURN(GraphExec fresh, instantiate(graph));
  CGRT_RETURN_IF_ERROR(run("one from now", fresh));
  notes.status("update of the old one", before.update(graph));
  return run("the old one, updated", before);
}

BEHAVIOUR("definitions edited: launch attributes move along with their nodes, and stay with them") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  const auto step = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(probe.launch(target, kPlain));
    CGRT_RETURN_IF_ERROR(probe.launch(target, kPlain));
    return probe.launch(target, kTwo);
  };
  for (const bool is_captured : {false, true}) {
    const std::string name = is_captured ? "captured, " : "built, ";
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    if (is_captured) {
      CGRT_ASSIGN_OR_RETURN(graph, capture(probe.stream, step));
    } else {
      Cursor place = graph.cursor();
      CGRT_RETURN_IF_ERROR(step(place));
    }
    CGRT_ASSIGN_OR_RETURN(GraphExec before, instantiate(graph));
    CGRT_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, list_nodes(graph));
    const KernelNode first(nodes[0].node.get()), last(nodes[2].node.get());
    CGRT_RETURN_IF_ERROR(graph.remove(first));
    notes.status(name + "set with its own", graph.set_params(last, kTwo, cluster_kernel(), probe.data()));
    const absl::Status refused = graph.set_params(last, kFour, cluster_kernel(), probe.data());
    notes.status(name + "set with others", refused);
    EXPECT(
        absl::StrContains(refused.message(), "a node keeps the launch attributes that it was made with. The cluster"));
    CGRT_ASSIGN_OR_RETURN(const Graph same, capture(probe.stream, [&](StreamRef s) -> absl::Status {
                            CGRT_RETURN_IF_ERROR(probe.launch(s, kPlain));
                            return probe.launch(s, kTwo);
                          }));
    CGRT_ASSIGN_OR_RETURN(const Graph another, capture(probe.stream, [&](StreamRef s) -> absl::Status {
                            CGRT_RETURN_IF_ERROR(probe.launch(s, kTwo));
                            return probe.launch(s, kPlain);
                          }));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
    CGRT_ASSIGN_OR_RETURN(UpdateReport report, exec.try_update(same));
    notes.line(absl::StrCat(name, "update to the same: ", to_string(report.refusal)));
    CGRT_ASSIGN_OR_RETURN(report, exec.try_update(another));
    notes.line(absl::StrCat(name, "update to others: ", to_string(report.refusal)));
    CGRT_ASSIGN_OR_RETURN(const Graph as_before, capture(probe.stream, step));
    CGRT_ASSIGN_OR_RETURN(report, before.try_update(as_before));
    notes.line(absl::StrCat(name, "update of the executable from before: ", to_string(report.refusal)));
    notes.status(name + "the last node of it, with its own",
                 before.set_params(last, kTwo, cluster_kernel(), probe.data()));
    notes.status(name + "with others", before.set_params(last, kPlain, cluster_kernel(), probe.data()));
  }
  return absl::OkStatus();
}

BEHAVIOUR("definitions edited: child graphs and conditional nodes are removed, with what is inside of them") {
  CGRT_ASSIGN_OR_RETURN(const Steps steps, Steps::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor place = graph.cursor();
  CGRT_ASSIGN_OR_RETURN(Graph child, steps.build(false));
  CGRT_ASSIGN_OR_RETURN(const ChildGraphNode copied, graph.add_child({}, child));
  CGRT_ASSIGN_OR_RETURN(const ChildGraphNode moved, graph.add_child(after(copied), std::move(child)));
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, graph.add_conditional_handle(1));
  CGRT_ASSIGN_OR_RETURN(Conditional branch, graph.add_if(after(moved), handle));
  CGRT_RETURN_IF_ERROR(steps.scale(branch.bodies[0].cursor(), 11.0f));
  CGRT_RETURN_IF_ERROR(notes.graph("all", graph));
  CGRT_RETURN_IF_ERROR(graph.remove(copied));
  CGRT_RETURN_IF_ERROR(notes.graph("without the first", graph));
  CGRT_RETURN_IF_ERROR(steps.note_run(notes, "30 * 11", graph));
  CGRT_ASSIGN_OR_RETURN(const KernelNode inner, find_node<KernelNode>(graph, {.scope = "two"}));
  notes.status("a node inside of the child", graph.remove(inner));
  CGRT_RETURN_IF_ERROR(graph.remove(moved));
  CGRT_RETURN_IF_ERROR(steps.note_run(notes, "11", graph));
  CGRT_RETURN_IF_ERROR(graph.remove(branch.node));
  CGRT_RETURN_IF_ERROR(steps.scale(place, 13.0f));
  CGRT_RETURN_IF_ERROR(notes.graph("without all three", graph));
  notes.status("a handle without a node", instantiate(graph).status());
  CGRT_ASSIGN_OR_RETURN(const Conditional again, graph.add_if({}, handle));
  return steps.note_run(notes, "13", graph);
}

BEHAVIOUR("definitions edited: nodes of a rebindable executable stay") {
  CGRT_ASSIGN_OR_RETURN(const Steps steps, Steps::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, steps.build(false));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_ASSIGN_OR_RETURN(const KernelNode two, find_node<KernelNode>(graph, {.scope = "two"}));
  CGRT_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, list_nodes(graph));
  for (const NodeRef& node : {NodeRef(two), nodes.front().node}) {
    const absl::Status refused = graph.remove(node);
    notes.status("remove", refused);
    EXPECT(absl::StrContains(refused.message(), "A rebindable executable"));
  }
  return steps.note_run(notes, "then", exec);
}

}  // namespace
}  // namespace cgrt::testing
