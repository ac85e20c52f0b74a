// Attributes and children of nodes are those that the driver has, whoever made them: other threads, other libraries,
// raw handles.
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "behaviour/cluster_probe.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

absl::Status note_update(Notes& notes, const std::string& name, GraphExec& exec, const Graph& graph) {
  CGRT_ASSIGN_OR_RETURN(const UpdateReport report, exec.try_update(graph));
  notes.line(name + ": " + (report.rung == UpdateRung::kRefused ? to_string(report.refusal) : "updated"));
  return absl::OkStatus();
}

BEHAVIOUR("launches with attributes elsewhere do not make identical captures differ") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream high, Stream::create(world.device(), {.priority = -3}));
  CGRT_ASSIGN_OR_RETURN(const Stream noise, Stream::create(world.device()));
  for (const bool is_raw : {false, true}) {
    for (const Stream* stream : {&probe.stream, &high}) {
      const auto record = [&](bool has_noise) {
        return capture(*stream, [&](StreamRef s) -> absl::Status {
          CGRT_RETURN_IF_ERROR(is_raw ? launch_raw(s, kTwo, probe.data()) : probe.launch(s, kPlain));
          if (!has_noise) return absl::OkStatus();
          CGRT_RETURN_IF_ERROR(probe.launch(noise, kTwo));
          absl::Status status;
          std::thread([&] { status = probe.launch(noise, kTwo); }).join();
          return status;
        });
      };
      CGRT_ASSIGN_OR_RETURN(const Graph quiet, record(false));
      CGRT_ASSIGN_OR_RETURN(const Graph noisy, record(true));
      CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(quiet));
      CGRT_RETURN_IF_ERROR(note_update(notes, is_raw ? "raw launch" : "launch", exec, noisy));
      CGRT_RETURN_IF_ERROR(note_update(notes, "back", exec, quiet));
    }
  }
  return noise.ref().synchronize();
}

BEHAVIOUR("launches of other libraries are compared in an update as the driver has them") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  const auto record = [&](const LaunchConfig& config) {
    return capture(probe.stream, [&](StreamRef s) -> absl::Status {
      CGRT_RETURN_IF_ERROR(probe.launch(s, kPlain));
      return launch_raw(s, config, probe.data());
    });
  };
  CGRT_ASSIGN_OR_RETURN(const Graph two, record(kTwo));
  CGRT_ASSIGN_OR_RETURN(const Graph two_again, record(kTwo));
  CGRT_ASSIGN_OR_RETURN(const Graph four, record(kFour));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(two));

  CGRT_RETURN_IF_ERROR(note_update(notes, "the same", exec, two_again));
  CGRT_RETURN_IF_ERROR(note_update(notes, "another cluster", exec, four));
  return probe.note(notes, "then", exec);
}

BEHAVIOUR("an adopted graph has the attributes that the driver has") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  const auto adopt = [&](const LaunchConfig& config) -> absl::StatusOr<Graph> {
    CGRT_ASSIGN_OR_RETURN(Graph graph, capture(probe.stream, [&](StreamRef s) { return probe.launch(s, config); }));
    return Graph::adopt(std::move(graph).release(), world.device());
  };
  CGRT_ASSIGN_OR_RETURN(const Graph two, adopt(kTwo));
  CGRT_ASSIGN_OR_RETURN(const Graph four, adopt(kFour));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(probe.launch(built.cursor(), kTwo));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(two));
  CUgraphNode node = nullptr;
  std::size_t count = 1;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphGetNodes(two.ref().get(), &node, &count), "cuGraphGetNodes"));

  CGRT_RETURN_IF_ERROR(note_update(notes, "the same graph, built", exec, built));
  notes.status("the node's own attributes", exec.set_params(KernelNode(node), kTwo, cluster_kernel(), probe.data()));
  notes.status("others", exec.set_params(KernelNode(node), kFour, cluster_kernel(), probe.data()));
  CGRT_RETURN_IF_ERROR(note_update(notes, "another cluster, adopted", exec, four));
  CGRT_RETURN_IF_ERROR(probe.note(notes, "then", exec));
  CGRT_ASSIGN_OR_RETURN(GraphExec adopted, GraphExec::adopt(std::move(exec).release(), two));
  CGRT_RETURN_IF_ERROR(note_update(notes, "another cluster, adopted executable", adopted, four));
  return probe.note(notes, "then", adopted);
}

BEHAVIOUR("what was clamped, compiled in or inherited compares as what it is") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream high, Stream::create(world.device(), {.priority = -3}));
  const std::pair<const char*, LaunchAttributes> cases[] = {
      {"priority -100", {.priority = -100}},
      {"carveout 33", {.shared_carveout_percent = 33}},
      {"cluster of 2", {.cluster = {2}}},
      {"window of no bytes", {.access_policy = {.bytes = 0, .hit_ratio = 0.5f}}},
      {"nothing", {}},
  };
  for (const auto& [name, attributes] : cases) {
    const std::string what = name;
    const auto step = [&, attributes = attributes](LaunchTarget target) -> absl::Status {
      CGRT_RETURN_IF_ERROR(probe.launch(target, {.grid = 8, .block = 64, .attributes = attributes}));
      return launch(target, kPlain, paired_kernel(), probe.data());
    };
    CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
    Cursor cursor = built.cursor();
    CGRT_RETURN_IF_ERROR(step(cursor));
    CGRT_ASSIGN_OR_RETURN(const Graph captured, capture(probe.stream, step));
    CGRT_ASSIGN_OR_RETURN(const Graph inherited, capture(high, step));
    for (const InstantiateFlags flags : {InstantiateFlags::kNone, InstantiateFlags::kUseNodePriority}) {
      const std::string with = what + (flags == InstantiateFlags::kNone ? "" : ", priorities of nodes");
      CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(built, flags));
      if (flags == InstantiateFlags::kNone)
        CGRT_RETURN_IF_ERROR(note_update(notes, with + ", built <- captured", exec, captured));
      CGRT_RETURN_IF_ERROR(
          note_update(notes, with + ", built <- captured from a stream of priority -3", exec, inherited));
      CGRT_RETURN_IF_ERROR(probe.note(notes, with, exec));
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("a node is set with its own attributes, also those that it inherited, and with no others") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream high, Stream::create(world.device(), {.priority = -3}));
  CGRT_ASSIGN_OR_RETURN(const Graph graph, capture(high, [&](StreamRef s) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(probe.launch(s, kPlain));
                          return launch(s, kPlain, paired_kernel(), probe.data());
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CUgraphNode nodes[2] = {};
  std::size_t count = 2;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphGetNodes(graph.ref().get(), nodes, &count), "nodes"));
  const auto set = [&](const char* name, int node, Kernel<int*> kernel, LaunchAttributes attributes) {
    notes.status(name, exec.set_params(KernelNode(nodes[node]), {.grid = 8, .block = 64, .attributes = attributes},
                                       kernel, probe.data()));
  };

  set("none named", 0, cluster_kernel(), {});
  set("its stream's priority", 0, cluster_kernel(), {.priority = -3});
  set("another priority", 0, cluster_kernel(), {.priority = -1});
  set("a cluster", 0, cluster_kernel(), {.cluster = {2}});
  set("a kernel with a cluster", 0, paired_kernel(), {});
  set("the cluster that was compiled in", 1, paired_kernel(), {.cluster = {2}});
  set("no cluster named", 1, paired_kernel(), {});
  set("another kernel of the same cluster", 1, cluster_kernel(), {.cluster = {2}});
  set("another kernel without", 1, cluster_kernel(), {});
  return probe.note(notes, "then", exec);
}

BEHAVIOUR("a child that was moved in keeps its nodes, cursors and executables, also after its parent") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, 64, 1.0f));
  const auto step = [&](LaunchTarget target, float factor) {
    return launch(target, kPlain, scale_kernel(), x.as<float>(), x.as<float>(), factor, 64);
  };
  std::optional<GraphExec> exec, parent_exec;
  std::optional<KernelNode> node;
  std::optional<Cursor> cursor;
  {
    CGRT_ASSIGN_OR_RETURN(Graph grandchild, Graph::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(Graph child, Graph::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(node,
                          grandchild.add_kernel({}, kPlain, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, 64));
    CGRT_ASSIGN_OR_RETURN(exec, instantiate(grandchild));
    cursor = grandchild.cursor(after(*node));
    CGRT_ASSIGN_OR_RETURN(Graph parent, Graph::create(world.device()));
    notes.status("grandchild into child", child.add_child({}, std::move(grandchild)).status());
    notes.status("child into parent", parent.add_child({}, std::move(child)).status());
    notes.status("empty now", child.add_empty({}).status());
    notes.status("into itself by a cursor", cursor->add_child(parent));
    notes.status("its cursor", step(*cursor, 3.0f));
    CGRT_RETURN_IF_ERROR(notes.graph("parent", parent));
    CGRT_ASSIGN_OR_RETURN(parent_exec, instantiate(parent));
    notes.status("its node, in the parent's executable",
                 parent_exec->set_params(*node, kPlain, scale_kernel(), x.as<float>(), x.as<float>(), 5.0f, 64));
  }
  for (int i = 0; i < 64; ++i) {  // what was freed is used again
    CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(other.add_empty({}).status());
  }

  notes.status("its cursor, after the parent", step(*cursor, 1.0f));
  notes.status("its node, in its own executable",
               exec->set_params(*node, kPlain, scale_kernel(), x.as<float>(), x.as<float>(), 7.0f, 64));
  for (GraphExec* one : {&*exec, &*parent_exec}) {
    CGRT_RETURN_IF_ERROR(one->launch(probe.stream));
    CGRT_RETURN_IF_ERROR(probe.stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, x));
    notes.line("x = " + std::to_string(values[0]));
  }
  parent_exec.reset();  // the last that held the parent but for its child
  notes.status("its cursor, after the parent's executable", step(*cursor, 1.0f));
  notes.status("its node, in its own executable",
               exec->set_params(*node, kPlain, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, 64));
  return absl::OkStatus();
}

BEHAVIOUR("a capture whose first kernel has its own priority knows those of the others") {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, 64, 1.0f));
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device(), {.priority = -3}));
  const auto launch_at = [&](StreamRef s, int priority) {
    return launch(s, LaunchConfig{.grid = 1, .block = 64, .attributes = {.priority = priority}}, scale_kernel(),
                  x.as<float>(), x.as<float>(), 2.0f, 64);
  };
  CGRT_ASSIGN_OR_RETURN(const Graph graph, capture(stream, [&](StreamRef s) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(launch_at(s, -1));
                          return launch_at(s, 0);
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  std::vector<CUgraphNode> nodes(2);
  std::size_t count = nodes.size();
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphGetNodes(graph.ref().get(), nodes.data(), &count), "cuGraphGetNodes"));
  for (const int priority : {-3, -1}) {
    notes.status("the second kernel with " + std::to_string(priority),
                 exec.set_params(KernelNode(nodes[1]),
                                 LaunchConfig{.grid = 1, .block = 64, .attributes = {.priority = priority}},
                                 scale_kernel(), x.as<float>(), x.as<float>(), 3.0f, 64));
  }
  return absl::OkStatus();
}

// As another library builds: a graph of which a child graph holds a kernel in a cluster.
absl::StatusOr<Graph> graph_of_others(World& world, const ClusterProbe& probe) {
  CGRT_ASSIGN_OR_RETURN(Graph inner, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(probe.launch(inner.cursor(), kTwo));
  CUgraph raw = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphCreate(&raw, 0), "cuGraphCreate"));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::adopt(raw, world.device()));
  CUgraphNode node = nullptr;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = inner.ref().get();
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphAddNode(&node, raw, nullptr, nullptr, 0, &params), "cuGraphAddNode"));
  return graph;
}

BEHAVIOUR("children of other libraries beside and inside of children of this one are compared as the driver has them") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph added, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(probe.launch(added.cursor(), kFour));
  CGRT_ASSIGN_OR_RETURN(Graph beside, graph_of_others(world, probe));
  CGRT_RETURN_IF_ERROR(beside.add_child({}, added).status());
  CGRT_ASSIGN_OR_RETURN(Graph clone, beside.clone());
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(beside));
  notes.status("update with a clone", exec.update(clone));

  CGRT_ASSIGN_OR_RETURN(Graph around, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Graph others, graph_of_others(world, probe));
  CGRT_RETURN_IF_ERROR(around.add_child({}, others).status());
  CGRT_ASSIGN_OR_RETURN(Graph again, around.clone());
  CGRT_ASSIGN_OR_RETURN(GraphExec outer, instantiate(around));
  notes.status("update with a clone, inside", outer.update(again));
  return probe.note(notes, "inside", outer);
}

BEHAVIOUR("nodes of a child have the attributes of what the child was set to") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  for (const bool is_moved : {true, false}) {
    const std::string kind = is_moved ? "moved" : "copied";
    CGRT_ASSIGN_OR_RETURN(Graph child, Graph::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(KernelNode node, child.add_kernel({}, kTwo, cluster_kernel(), probe.data()));
    CGRT_ASSIGN_OR_RETURN(Graph two, child.clone());
    CGRT_ASSIGN_OR_RETURN(Graph four, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(probe.launch(four.cursor(), kFour));
    CGRT_ASSIGN_OR_RETURN(Graph parent, Graph::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(ChildGraphNode place,
                          is_moved ? parent.add_child({}, std::move(child)) : parent.add_child({}, child));
    if (!is_moved) {
      CUgraph inside = nullptr;
      CUgraphNode inner = nullptr;
      std::size_t count = 1;
      CGRT_RETURN_IF_ERROR(
          driver::to_status(driver::api().GraphChildGraphNodeGetGraph(place.get(), &inside), "child graph"));
      CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphGetNodes(inside, &inner, &count), "nodes"));
      node = KernelNode(inner);
    }
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(parent));
    const auto set = [&](const char* name, const LaunchConfig& config) {
      notes.status(kind + ", " + name, exec.set_params(node, config, cluster_kernel(), probe.data()));
    };

    set("a cluster of 2", kTwo);
    set("no cluster", kPlain);
    notes.status(kind + ", the child set to an equal one", exec.set_params(place, two));
    set("a cluster of 2 again", kTwo);
    set("no cluster again", kPlain);
    notes.status(kind + ", the child set to one with a cluster of 4", exec.set_params(place, four));
    set("a cluster of 2 now", kTwo);
    set("a cluster of 4 now", kFour);
    CGRT_RETURN_IF_ERROR(note_update(notes, kind + ", updated by the parent", exec, parent));
    CGRT_RETURN_IF_ERROR(probe.note(notes, kind, exec));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
