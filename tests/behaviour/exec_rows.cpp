// Executables: launching, setting, updating, owning.
#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

struct Three {
  DeviceBuffer x, y, z;
  static absl::StatusOr<Three> create(World& world) {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, -1.0f));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer z, device_floats(world, kCount, -2.0f));
    return Three{std::move(x), std::move(y), std::move(z)};
  }
};

absl::Status note_values(World& world, Notes& notes, const char* name, const DeviceBuffer& buffer) {
  CGRT_ASSIGN_OR_RETURN(std::vector<float> values, read_floats(world, buffer));
  bool uniform = true;
  for (float value : values) uniform &= value == values[0];
  EXPECT(uniform);
  notes.line(std::string(name) + " = " + std::to_string(values[0]));
  return absl::OkStatus();
}

BEHAVIOUR("per-node update: new parameters count for later launches and not for those in flight") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Three b, Three::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(KernelNode node,
                        graph.add_kernel({}, kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  {
    CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream.ref()));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(
        exec.set_params(node, kConfig, scale_kernel(), b.z.as<float>(), b.x.as<float>(), 5.0f, kCount));
  }
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "y after the first", b.y));
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "z after the first", b.z));

  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());

  CGRT_RETURN_IF_ERROR(note_values(world, notes, "z after the second", b.z));
  notes.status("another kernel",
               exec.set_params(node, kConfig, shift_kernel(), b.z.as<float>(), b.x.as<float>(), 5.0f, kCount));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return note_values(world, notes, "z after the third", b.z);
}

BEHAVIOUR("refused parameters change nothing") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Three b, Three::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(KernelNode node,
                        graph.add_kernel({}, kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(KernelNode foreign,
                        other.add_kernel({}, kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));

  notes.status("block of 2048", exec.set_params(node, {Dim3(1), Dim3(2048)}, scale_kernel(), b.z.as<float>(),
                                                b.x.as<float>(), 5.0f, kCount));
  notes.status("grid of 0", exec.set_params(node, {Dim3(0), Dim3(64)}, scale_kernel(), b.z.as<float>(), b.x.as<float>(),
                                            5.0f, kCount));
  notes.status("node of another graph",
               exec.set_params(foreign, kConfig, scale_kernel(), b.z.as<float>(), b.x.as<float>(), 5.0f, kCount));

  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "y", b.y));
  return note_values(world, notes, "z", b.z);
}

BEHAVIOUR("copies and memsets of an executable take new operands") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Three b, Three::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(MemsetNode set, graph.add_fill({}, {b.y.data(), 0x40000000u, 4, kCount}));
  CGRT_ASSIGN_OR_RETURN(MemcpyNode move, graph.add_copy(after(set), b.z.data(), b.y.data(), b.y.size_bytes()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "z", b.z));

  notes.status("memset", exec.set_params(set, FillParams{b.y.data(), 0x40400000u, 4, kCount}));
  notes.status("copy", exec.set_params(move, CopyParams{b.x.data(), b.y.data(), b.y.size_bytes()}));
  notes.status("copy of 0 bytes", exec.set_params(move, CopyParams{b.x.data(), b.y.data(), 0}));

  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "x", b.x));
  return note_values(world, notes, "z", b.z);
}

absl::Status note_update(Notes& notes, const char* name, GraphExec& exec, const Graph& graph) {
  CGRT_ASSIGN_OR_RETURN(UpdateReport report, exec.try_update(graph));
  notes.line(std::string(name) + ": " + (report.rung == UpdateRung::kWholeGraph ? "updated" : "refused") + ", " +
             to_string(report.refusal) + ", node " + (report.node.has_value() ? "named" : "not named"));
  EXPECT((report.rung == UpdateRung::kWholeGraph) == report.text.empty());
  return absl::OkStatus();
}

BEHAVIOUR("whole-graph update: parameters are taken over, or it is refused with a reason and loses nothing") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Three b, Three::create(world));
  float* x = b.x.as<float>();
  float* y = b.y.as<float>();
  float* z = b.z.as<float>();
  const auto build = [&](auto make) -> absl::StatusOr<Graph> {
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(make(graph.cursor()));
    return graph;
  };
  CGRT_ASSIGN_OR_RETURN(Graph original, build([&](Cursor c) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(launch(c, kConfig, scale_kernel(), y, x, 2.0f, kCount));
                          return launch(c, kConfig, scale_kernel(), z, y, 2.0f, kCount);
                        }));
  CGRT_ASSIGN_OR_RETURN(Graph other_values, build([&](Cursor c) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(launch(c, kConfig, scale_kernel(), y, x, 3.0f, kCount));
                          return launch(c, LaunchConfig{.grid = 2, .block = 32}, scale_kernel(), z, y, 5.0f, kCount);
                        }));
  CGRT_ASSIGN_OR_RETURN(Graph other_kernel, build([&](Cursor c) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(launch(c, kConfig, scale_kernel(), y, x, 4.0f, kCount));
                          return launch(c, kConfig, shift_kernel(), z, y, 1.0f, kCount);
                        }));
  CGRT_ASSIGN_OR_RETURN(Graph more_nodes, build([&](Cursor c) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(launch(c, kConfig, scale_kernel(), y, x, 7.0f, kCount));
                          CGRT_RETURN_IF_ERROR(launch(c, kConfig, scale_kernel(), z, y, 7.0f, kCount));
                          return launch(c, kConfig, scale_kernel(), z, y, 7.0f, kCount);
                        }));
  CGRT_ASSIGN_OR_RETURN(Graph fewer_nodes,
                        build([&](Cursor c) { return launch(c, kConfig, scale_kernel(), y, x, 7.0f, kCount); }));
  CGRT_ASSIGN_OR_RETURN(Graph no_edge, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(launch(no_edge.cursor(), kConfig, scale_kernel(), y, x, 7.0f, kCount));
  CGRT_RETURN_IF_ERROR(launch(no_edge.cursor(), kConfig, scale_kernel(), z, x, 7.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(Graph other_kind, build([&](Cursor c) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(launch(c, kConfig, scale_kernel(), y, x, 7.0f, kCount));
                          return fill32(c, z, 0, kCount);
                        }));
  CGRT_ASSIGN_OR_RETURN(Graph programmatic, build([&](Cursor c) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(launch(c, kConfig, scale_kernel(), y, x, 7.0f, kCount));
                          return launch(c.programmatic(), kConfig, scale_kernel(), z, y, 7.0f, kCount);
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(original));
  const auto run = [&](const char* name) -> absl::Status {
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    return note_values(world, notes, name, b.z);
  };

  CGRT_RETURN_IF_ERROR(run("z original"));
  CGRT_RETURN_IF_ERROR(note_update(notes, "itself", exec, original));
  CGRT_RETURN_IF_ERROR(note_update(notes, "other values", exec, other_values));
  CGRT_RETURN_IF_ERROR(run("z other values"));
  CGRT_RETURN_IF_ERROR(note_update(notes, "other kernel", exec, other_kernel));
  CGRT_RETURN_IF_ERROR(run("z other kernel"));
  CGRT_RETURN_IF_ERROR(note_update(notes, "more nodes", exec, more_nodes));
  CGRT_RETURN_IF_ERROR(note_update(notes, "fewer nodes", exec, fewer_nodes));
  CGRT_RETURN_IF_ERROR(note_update(notes, "no edge", exec, no_edge));
  CGRT_RETURN_IF_ERROR(note_update(notes, "other kind", exec, other_kind));
  CGRT_RETURN_IF_ERROR(note_update(notes, "programmatic edge", exec, programmatic));
  return run("z after the refusals");
}

BEHAVIOUR("the ladder with counters: a set, an update, an executable made anew, and refusals") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Three b, Three::create(world));
  const auto scaling = [&](float factor, int kernels) -> absl::StatusOr<Graph> {
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    Cursor cursor = graph.cursor();
    for (int i = 0; i < kernels; ++i) {
      CGRT_RETURN_IF_ERROR(launch(cursor, kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), factor, kCount));
    }
    return graph;
  };
  CGRT_ASSIGN_OR_RETURN(Graph first, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(KernelNode node,
                        first.add_kernel({}, kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(Graph equal, scaling(4.0f, 1));
  CGRT_ASSIGN_OR_RETURN(Graph longer, scaling(5.0f, 2));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(first));
  const auto run = [&](const char* rung, const absl::Status& status) -> absl::Status {
    notes.status(rung, status);
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    return note_values(world, notes, "  y", b.y);
  };
  CGRT_RETURN_IF_ERROR(
      run("set", exec.set_params(node, kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), 3.0f, kCount)));
  CGRT_RETURN_IF_ERROR(run("update", exec.update(equal)));
  CGRT_RETURN_IF_ERROR(run("refused", exec.update(longer)));
  CGRT_RETURN_IF_ERROR(note_update(notes, "asked", exec, longer));
  for (const Graph* other : {&equal, &longer}) {
    CGRT_ASSIGN_OR_RETURN(const UpdateReport report, exec.update_or_instantiate(*other));
    CGRT_RETURN_IF_ERROR(run(report.rung == UpdateRung::kWholeGraph ? "updated" : "made anew", absl::OkStatus()));
  }
  const UpdateCounts counts = exec.take_counts();
  notes.line("set " + std::to_string(counts.set) + ", updated " + std::to_string(counts.updated) + ", made anew " +
             std::to_string(counts.instantiated) + ", refused " + std::to_string(counts.refused));
  return absl::OkStatus();
}

BEHAVIOUR("one executable is used by several threads at once") {
  constexpr int kThreads = 4, kLaunches = 50;
  CGRT_ASSIGN_OR_RETURN(Three b, Three::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  float* x = b.x.as<float>();
  float* y = b.y.as<float>();
  CGRT_ASSIGN_OR_RETURN(KernelNode counted, graph.add_kernel({}, kConfig, shift_kernel(), x, x, 1.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(KernelNode copied,
                        graph.add_kernel(after(counted), kConfig, scale_kernel(), y, x, 1.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  std::vector<Stream> streams;
  for (int i = 0; i < kThreads; ++i) {
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
    streams.push_back(std::move(stream));
  }
  std::atomic<int> failures = 0;

  std::vector<std::thread> threads;
  for (const Stream& stream : streams) {
    threads.emplace_back([&, s = stream.ref()] {
      for (int i = 0; i < kLaunches; ++i) {
        const float factor = static_cast<float>(i % 3 + 1);
        failures += !exec.set_params(copied, kConfig, scale_kernel(), y, x, factor, kCount).ok();
        failures += !exec.launch(s).ok();
        failures += !exec.update(graph).ok();
        failures += !s.completion().ok();
      }
      failures += !s.synchronize().ok();
    });
  }
  for (std::thread& thread : threads) thread.join();

  notes.line("failures " + std::to_string(failures));
  return note_values(world, notes, "x", b.x);
}

BEHAVIOUR("launches of one executable run one after the other, also in two streams") {
  CGRT_ASSIGN_OR_RETURN(Stream a, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream b, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 0.0f));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor cursor = graph.cursor();
  for (int i = 0; i < 10; ++i) {
    CGRT_RETURN_IF_ERROR(launch(cursor, kConfig, shift_kernel(), x.as<float>(), x.as<float>(), 1.0f, kCount));
  }
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));

  for (int i = 0; i < 20; ++i) CGRT_RETURN_IF_ERROR(exec.launch(i % 2 == 0 ? a.ref() : b.ref()));
  CGRT_RETURN_IF_ERROR(a.ref().synchronize());
  CGRT_RETURN_IF_ERROR(b.ref().synchronize());

  return note_values(world, notes, "x", x);
}

BEHAVIOUR("graph and executable may be destroyed while a launch is in flight") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Three b, Three::create(world));
  CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream.ref()));
  {
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(
        launch(graph.cursor(), kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), 2.0f, kCount));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  }
  gate.open();
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());

  return note_values(world, notes, "y", b.y);
}

BEHAVIOUR("an executable outlives its graph and can still be set") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Three b, Three::create(world));
  std::optional<GraphExec> exec;
  std::optional<KernelNode> node;
  {
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(
        node, graph.add_kernel({}, kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), 2.0f, kCount));
    CGRT_ASSIGN_OR_RETURN(exec, instantiate(graph));
  }

  notes.status("set", exec->set_params(*node, kConfig, scale_kernel(), b.z.as<float>(), b.x.as<float>(), 9.0f, kCount));

  CGRT_RETURN_IF_ERROR(exec->launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return note_values(world, notes, "z", b.z);
}

BEHAVIOUR("a graph keeps a resource until its last launch has ended") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, -1.0f));
  auto token = std::make_shared<int>(7);
  CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream.ref()));
  {
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(launch(graph.cursor(), kConfig, scale_kernel(), y.as<float>(), x.as<float>(), 2.0f, kCount));
    CGRT_RETURN_IF_ERROR(graph.keep(std::shared_ptr<const void>(token)));
    CGRT_RETURN_IF_ERROR(graph.keep(std::move(x)));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  }

  collect_released();
  EXPECT(token.use_count() == 2);
  gate.open();
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "y", y));
  EXPECT(collect_until([&] { return token.use_count() == 1; }));
  return absl::OkStatus();
}

BEHAVIOUR("an update takes over what the other graph keeps, and launches in flight keep theirs") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, -1.0f));
  std::shared_ptr<int> tokens[3];
  const auto build = [&](std::size_t i) -> absl::StatusOr<Graph> {
    tokens[i] = std::make_shared<int>(0);
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(
        launch(graph.cursor(), kConfig, scale_kernel(), y.as<float>(), y.as<float>(), float(i), kCount));
    CGRT_RETURN_IF_ERROR(graph.keep(std::shared_ptr<const void>(tokens[i])));
    return graph;
  };
  const auto note_kept = [&](const std::string& name) {
    for (int i = 0; i < 1000; ++i) collect_released();
    std::string text = name + ":";
    for (const auto& token : tokens) text += token == nullptr ? " -" : token.use_count() == 1 ? " gone" : " kept";
    notes.line(text);
  };
  std::optional<GraphExec> exec;
  {
    CGRT_ASSIGN_OR_RETURN(Graph first, build(0));
    CGRT_ASSIGN_OR_RETURN(exec, instantiate(first));
  }
  const auto update = [&](std::size_t i) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(Graph other, build(i));
    return exec->update(other);
  };

  CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream.ref()));
  CGRT_RETURN_IF_ERROR(update(1));
  CGRT_RETURN_IF_ERROR(exec->launch(stream.ref()));
  note_kept("launched after the first update");
  CGRT_RETURN_IF_ERROR(update(2));
  note_kept("updated again, the launch in flight");
  gate.open();
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  exec.reset();
  EXPECT(collect_until([&] { return tokens[1].use_count() == 1 && tokens[2].use_count() == 1; }));
  note_kept("at the end");
  return absl::OkStatus();
}

BEHAVIOUR("nodes are refused when their dependencies are not of the graph or named twice") {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(EmptyNode ours, graph.add_empty({}));
  CGRT_ASSIGN_OR_RETURN(EmptyNode theirs, other.add_empty({}));

  notes.status("of another graph", graph.add_empty(after(theirs)).status());
  notes.status("named twice", graph.add_empty(after(ours, ours)).status());
  notes.status("copy of 0 bytes", graph.add_copy({}, nullptr, nullptr, 0).status());
  notes.status("memset of 3-byte elements", graph.add_fill({}, {nullptr, 0, 3, 1}).status());
  CGRT_ASSIGN_OR_RETURN(std::size_t count, graph.node_count());
  notes.line("nodes " + std::to_string(count));
  return notes.graph("graph", graph);
}

BEHAVIOUR("an executable cannot be launched into a capture as it is") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Three b, Three::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(launch(graph.cursor(), kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));

  const absl::StatusOr<Graph> captured = capture(stream.ref(), [&](StreamRef s) {
    const absl::Status status = exec.launch(s);
    notes.status("launch", status);
    return status;
  });

  notes.status("capture", captured.status());
  return absl::OkStatus();
}

// A second executable, and what the refusal says.
absl::Status second_instantiate(Notes& notes, const Graph& graph, const char* reason) {
  {
    CGRT_ASSIGN_OR_RETURN(GraphExec first, instantiate(graph));
    const absl::Status refused = instantiate(graph).status();
    notes.status("while there is another", refused);
    EXPECT(absl::StrContains(refused.message(), reason));
    EXPECT(absl::StrContains(refused.message(), "one executable at a time"));
  }
  notes.status("after it", instantiate(graph).status());
  return absl::OkStatus();
}

BEHAVIOUR("a graph that allocates has one executable at a time, and the refusal says so") {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const GraphAllocation memory, graph.add_alloc({}, 1024));
  CGRT_RETURN_IF_ERROR(graph.add_free(after(memory.node), memory.address).status());

  return second_instantiate(notes, graph, "(mem alloc)");
}

BEHAVIOUR("device-updatable nodes: a graph with one has one executable at a time, and the refusal says so") {
  CGRT_ASSIGN_OR_RETURN(Three b, Three::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(KernelNode node,
                        graph.add_kernel({}, kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), 2.0f, kCount));
  CUlaunchAttributeValue value{};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  CGRT_RETURN_IF_ERROR(driver::to_status(
      driver::api().GraphKernelNodeSetAttribute(node.get(), CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value),
      "cuGraphKernelNodeSetAttribute"));

  return second_instantiate(notes, graph, "(device-updatable kernel \"");
}

}  // namespace
}  // namespace cgrt::testing
