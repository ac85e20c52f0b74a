// Stream-ordered memory: allocation and free in every target, and what CUDA does not do with graphs that have them.
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 32;
constexpr std::size_t kBytes = kCount * sizeof(float);
constexpr LaunchConfig kConfig{.grid = 1, .block = 32};

struct Probe {
  static absl::StatusOr<Probe> create(World& world) {
    Probe probe;
    CGRT_ASSIGN_OR_RETURN(probe.stream, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(probe.x, device_floats(world, kCount, 1.0f));
    return probe;
  }
  // x = factor * x, by way of memory of its own.
  absl::Status step(LaunchTarget target, float factor) const {
    CGRT_ASSIGN_OR_RETURN(void* const scratch, allocate_async(target, kBytes));
    CGRT_RETURN_IF_ERROR(
        launch(target, kConfig, scale_kernel(), static_cast<float*>(scratch), x.as<const float>(), factor, kCount));
    CGRT_RETURN_IF_ERROR(copy(target, x.data(), scratch, kBytes));
    return free_async(target, scratch);
  }
  absl::Status run(GraphExec& exec) const {
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    return stream.ref().synchronize();
  }
  absl::Status note(World& world, Notes& notes, const std::string& name) const {
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, x));
    notes.line(absl::StrCat(name, ": ", values[0], " ", values.back()));
    return absl::OkStatus();
  }
  Stream stream;
  DeviceBuffer x;
};

BEHAVIOUR("allocation and free: one step runs eagerly, captured, built and rebound") {
  CGRT_ASSIGN_OR_RETURN(const Probe probe, Probe::create(world));
  CGRT_RETURN_IF_ERROR(probe.step(probe.stream, 2.0f));
  CGRT_RETURN_IF_ERROR(probe.stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(probe.note(world, notes, "eager"));
  const auto step = [&](LaunchTarget target) { return probe.step(target, 2.0f); };
  CGRT_ASSIGN_OR_RETURN(const Graph captured, capture(probe.stream, step));
  CGRT_RETURN_IF_ERROR(notes.graph("captured", captured));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(captured));
  for (int i = 0; i < 3; ++i) CGRT_RETURN_IF_ERROR(probe.run(exec));
  CGRT_RETURN_IF_ERROR(probe.note(world, notes, "captured, three times"));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor place = built.cursor();
  CGRT_RETURN_IF_ERROR(step(place));
  CGRT_RETURN_IF_ERROR(notes.graph("built", built));
  CGRT_ASSIGN_OR_RETURN(GraphExec rebindable, instantiate_rebindable(built));
  CGRT_RETURN_IF_ERROR(probe.run(rebindable));
  CGRT_RETURN_IF_ERROR(probe.note(world, notes, "built"));
  notes.status("rebind", rebindable.rebind([&](LaunchTarget target) { return probe.step(target, 0.5f); }));
  CGRT_RETURN_IF_ERROR(probe.run(rebindable));
  CGRT_RETURN_IF_ERROR(probe.note(world, notes, "rebound"));
  const absl::Status larger =
      rebindable.rebind([](LaunchTarget target) { return allocate_async(target, 2 * kBytes).status(); });
  notes.status("rebind to another size", larger);
  EXPECT(absl::StrContains(larger.message(), "The node allocates 128 bytes, and this call wants 256"));
  const absl::Status other = rebindable.rebind([&](LaunchTarget target) { return free_async(target, probe.x.data()); });
  notes.status("rebind to another call", other);
  EXPECT(absl::StrContains(other.message(), "The node is mem alloc, and this is a free"));
  return absl::OkStatus();
}

BEHAVIOUR("allocation and free: what a graph does not free stays, and the next launch is refused") {
  CGRT_ASSIGN_OR_RETURN(const Probe probe, Probe::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const GraphAllocation memory, graph.add_alloc({}, kBytes));
  float* const kept = static_cast<float*>(memory.address);
  CGRT_RETURN_IF_ERROR(
      graph.add_kernel(after(memory.node), kConfig, scale_kernel(), kept, probe.x.as<const float>(), 3.0f, kCount)
          .status());
  CGRT_RETURN_IF_ERROR(notes.graph("graph", graph));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(probe.run(exec));
  CGRT_RETURN_IF_ERROR(copy(probe.stream, probe.x.data(), kept, kBytes));
  CGRT_RETURN_IF_ERROR(probe.stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(probe.note(world, notes, "read behind the launch"));
  const absl::Status refused = exec.launch(probe.stream);
  notes.status("launch again", refused);
  EXPECT(absl::StrContains(refused.message(), "The graph does not free the memory of node 0 (mem alloc)"));
  notes.status("free in a stream", free_async(probe.stream, kept));
  notes.status("launch after that", exec.launch(probe.stream));
  notes.status("cuMemFree", driver::to_status(driver::api().MemFree(reinterpret_cast<CUdeviceptr>(kept)), "cuMemFree"));
  notes.status("launch after that", exec.launch(probe.stream));
  CGRT_ASSIGN_OR_RETURN(Graph freeing, Graph::create(world.device()));
  notes.status("free in another graph", freeing.add_free({}, kept).status());
  CGRT_ASSIGN_OR_RETURN(GraphExec free_exec, instantiate(freeing));
  CGRT_RETURN_IF_ERROR(probe.run(free_exec));
  notes.status("launch after that", exec.launch(probe.stream));
  CGRT_RETURN_IF_ERROR(probe.run(free_exec));
  notes.status("free in its own graph as well", graph.add_free(after(memory.node), kept).status());
  return probe.stream.ref().synchronize();
}

BEHAVIOUR("allocation and free: an executable may free what its last launch left") {
  CGRT_ASSIGN_OR_RETURN(const Probe probe, Probe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Graph graph, capture(probe.stream, [&](StreamRef s) -> absl::Status {
                          CGRT_ASSIGN_OR_RETURN(void* const memory, allocate_async(s, kBytes));
                          return fill32(s, memory, 0x40000000, kCount);
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph, InstantiateFlags::kAutoFreeOnLaunch));
  for (int i = 0; i < 3; ++i) notes.status("launch", exec.launch(probe.stream));
  CGRT_RETURN_IF_ERROR(probe.stream.ref().synchronize());
  CGRT_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, list_nodes(graph));
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphMemAllocNodeGetParams(nodes[0].node.get(), &params),
                                         "cuGraphMemAllocNodeGetParams"));
  notes.status("free", free_async(probe.stream, reinterpret_cast<void*>(params.dptr)));
  return probe.stream.ref().synchronize();
}

BEHAVIOUR("allocation and free: what CUDA does not do with such a graph is refused with the node's name") {
  CGRT_ASSIGN_OR_RETURN(const Probe probe, Probe::create(world));
  const auto build = [&]() -> absl::StatusOr<Graph> {
    return capture(probe.stream, [&](StreamRef s) { return probe.step(s, 2.0f); });
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, build());
  const auto refused = [&](const char* name, const absl::Status& status, const char* part) {
    notes.status(name, status);
    EXPECT(absl::StrContains(status.message(), part));
  };
  CGRT_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, list_nodes(graph));
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(world.device()));
  refused("clone", graph.clone().status(), "Because of node 0 (mem alloc) this graph can have no clone");
  refused("a child by copy", other.add_child({}, graph).status(),
          "Because of node 0 (mem alloc) the graph can be no child by copy: move it in");
  refused("remove a node", graph.remove(nodes[1].node), "Because of node 0 (mem alloc) no node of this graph");
  refused("remove an edge", graph.remove_edge(nodes[1].node, nodes[2].node),
          "Because of node 0 (mem alloc) no edge of this graph");
  refused(
      "capture into a graph",
      [&] {
        Cursor place = other.cursor();
        return capture_into(place, probe.stream, [&](StreamRef s) { return probe.step(s, 2.0f); });
      }(),
      "\"mem alloc\" cannot be copied");
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, other.add_conditional_handle(1));
  CGRT_ASSIGN_OR_RETURN(Conditional branch, other.add_if({}, handle));
  refused("in a conditional body", allocate_async(branch.bodies[0].cursor(), kBytes).status(),
          "cannot hold a node of the kind \"mem alloc\"");
  refused("0 bytes, built", other.add_alloc({}, 0).status(), "0 bytes are no allocation");
  refused("0 bytes, eagerly", allocate_async(probe.stream, 0).status(), "0 bytes are no allocation");
  refused("free of a buffer, built", other.add_free({}, probe.x.data()).status(), "of an allocation node");
  CGRT_ASSIGN_OR_RETURN(Graph own, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const GraphAllocation memory, own.add_alloc({}, kBytes));
  notes.status("free", own.add_free(after(memory.node), memory.address).status());
  refused("free twice", own.add_free(after(memory.node), memory.address).status(), "that nobody has freed");

  CGRT_ASSIGN_OR_RETURN(Graph around, Graph::create(world.device()));
  notes.status("a child that is moved in", around.add_child({}, std::move(graph)).status());
  CGRT_RETURN_IF_ERROR(notes.graph("around", around));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(around));
  for (int i = 0; i < 2; ++i) CGRT_RETURN_IF_ERROR(probe.run(exec));
  CGRT_RETURN_IF_ERROR(probe.note(world, notes, "twice"));
  CGRT_ASSIGN_OR_RETURN(const Graph again, build());
  CGRT_ASSIGN_OR_RETURN(GraphExec updated, instantiate(again));
  CGRT_ASSIGN_OR_RETURN(const Graph third, build());
  CGRT_ASSIGN_OR_RETURN(const UpdateReport report, updated.try_update(third));
  notes.line(absl::StrCat("update by a graph that allocates elsewhere: ", to_string(report.refusal)));
  for (int i = 0; i < 2; ++i) CGRT_RETURN_IF_ERROR(probe.run(updated));
  CGRT_RETURN_IF_ERROR(probe.note(world, notes, "updated"));
  notes.status("another executable of the graph that it was made from", instantiate(again).status());
  notes.status("another executable of the graph that it took over", instantiate(third).status());
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
