// Nodes beside kernels, 1-D copies and memsets: host functions, child graphs, events, rows and slices;
// switching nodes off, and clones.
#include <atomic>

#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

absl::Status note_first(World& world, Notes& notes, const std::string& name, const DeviceBuffer& buffer) {
  CGRT_ASSIGN_OR_RETURN(std::vector<float> values, read_floats(world, buffer));
  notes.line(name + " = " + std::to_string(values[0]));
  return absl::OkStatus();
}

absl::Status run(GraphExec& exec, StreamRef stream) {
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  return stream.synchronize();
}

BEHAVIOUR("a host function runs once in a stream and at every launch of a graph") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  std::atomic<int> calls = 0;
  const auto step = [&](LaunchTarget target) { return launch_host(target, [&] { ++calls; }); };

  CGRT_RETURN_IF_ERROR(step(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  notes.line("eager: " + std::to_string(calls));
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(step(built.cursor()));
  for (const Graph* graph : {&captured, &built}) {
    calls = 0;
    CGRT_RETURN_IF_ERROR(notes.graph("graph", *graph));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
    for (int i = 0; i < 3; ++i) CGRT_RETURN_IF_ERROR(run(exec, stream.ref()));
    notes.line("three launches: " + std::to_string(calls));
  }
  notes.status("no function", launch_host(stream.ref(), nullptr, nullptr));
  notes.status("empty function", launch_host(stream.ref(), std::function<void()>()));
  return absl::OkStatus();
}

BEHAVIOUR("a host function that throws is logged, and the work after it runs") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));

  CGRT_RETURN_IF_ERROR(launch_host(stream.ref(), [] { throw 7; }));
  CGRT_RETURN_IF_ERROR(launch(stream.ref(), kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 3.0f, kCount));

  notes.status("synchronize", stream.ref().synchronize());
  return note_first(world, notes, "x", x);
}

BEHAVIOUR("a host node of an executable takes another function") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  int first = 0, second = 0;
  const CUhostFn count = [](void* data) { ++*static_cast<int*>(data); };
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(HostNode node, graph.add_host({}, count, &first));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(run(exec, stream.ref()));

  notes.status("set", exec.set_params(node, count, &second));
  notes.status("no function", exec.set_params(node, nullptr, nullptr));
  CGRT_RETURN_IF_ERROR(run(exec, stream.ref()));

  notes.line("first " + std::to_string(first) + " second " + std::to_string(second));
  return absl::OkStatus();
}

BEHAVIOUR("a child graph is one node, by copy and by move") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  auto token = std::make_shared<int>(0);
  const auto make_child = [&]() -> absl::StatusOr<Graph> {
    CGRT_ASSIGN_OR_RETURN(Graph child, Graph::create(world.device()));
    Cursor cursor = child.cursor();
    const Scope scope("inside");
    CGRT_RETURN_IF_ERROR(launch(cursor, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, kCount));
    CGRT_RETURN_IF_ERROR(launch(cursor, kConfig, shift_kernel(), x.as<float>(), x.as<float>(), 1.0f, kCount));
    CGRT_RETURN_IF_ERROR(child.keep(std::shared_ptr<const void>(token)));
    return child;
  };
  {
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    Cursor cursor = graph.cursor();
    {
      CGRT_ASSIGN_OR_RETURN(Graph child, make_child());
      CGRT_RETURN_IF_ERROR(cursor.add_child(child));
    }
    CGRT_RETURN_IF_ERROR(launch(cursor, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 10.0f, kCount));
    CGRT_ASSIGN_OR_RETURN(Graph child, make_child());
    CGRT_RETURN_IF_ERROR(cursor.add_child(std::move(child)));
    CGRT_RETURN_IF_ERROR(notes.graph("graph", graph));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));

    CGRT_RETURN_IF_ERROR(run(exec, stream.ref()));

    CGRT_RETURN_IF_ERROR(note_first(world, notes, "x", x));
    notes.line("tokens " + std::to_string(token.use_count()));
    notes.status("itself", cursor.add_child(graph));
  }
  EXPECT(collect_until([&] { return token.use_count() == 1; }));
  return absl::OkStatus();
}

BEHAVIOUR("an empty child graph runs") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Graph child, capture(stream.ref(), [](StreamRef) { return absl::OkStatus(); }));

  notes.status("add", graph.add_child({}, child).status());
  const absl::StatusOr<GraphExec> exec = instantiate(graph);
  notes.status("instantiate", exec.status());
  return notes.graph("graph", graph);
}

BEHAVIOUR("a child graph node of an executable takes over a child of the same topology") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  const auto make_child = [&](float factor, int nodes) -> absl::StatusOr<Graph> {
    CGRT_ASSIGN_OR_RETURN(Graph child, Graph::create(world.device()));
    Cursor cursor = child.cursor();
    for (int i = 0; i < nodes; ++i) {
      CGRT_RETURN_IF_ERROR(launch(cursor, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), factor, kCount));
    }
    return child;
  };
  CGRT_ASSIGN_OR_RETURN(Graph twice, make_child(2.0f, 1));
  CGRT_ASSIGN_OR_RETURN(Graph five, make_child(5.0f, 1));
  CGRT_ASSIGN_OR_RETURN(Graph longer, make_child(7.0f, 2));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(ChildGraphNode node, graph.add_child({}, twice));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(run(exec, stream.ref()));
  CGRT_RETURN_IF_ERROR(note_first(world, notes, "x", x));

  notes.status("same topology", exec.set_params(node, five));
  CGRT_RETURN_IF_ERROR(run(exec, stream.ref()));
  CGRT_RETURN_IF_ERROR(note_first(world, notes, "x", x));
  notes.status("another topology", exec.set_params(node, longer));
  CGRT_RETURN_IF_ERROR(run(exec, stream.ref()));
  CGRT_RETURN_IF_ERROR(note_first(world, notes, "x", x));

  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(other.add_child({}, twice).status());
  CGRT_ASSIGN_OR_RETURN(UpdateReport report, exec.try_update(other));
  notes.line(std::string("update: ") + to_string(report.refusal));
  CGRT_ASSIGN_OR_RETURN(Graph inner, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(inner.add_child({}, longer).status());
  CGRT_ASSIGN_OR_RETURN(report, exec.try_update(inner));
  notes.line(std::string("update with a longer child: ") + to_string(report.refusal));
  CGRT_RETURN_IF_ERROR(run(exec, stream.ref()));
  return note_first(world, notes, "x", x);
}

BEHAVIOUR("event nodes order a graph with streams outside it") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream other, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event before, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event middle, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  const auto step = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(wait_event(target, before.ref()));
    CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, kCount));
    return record_event(target, middle.ref());
  };
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor cursor = built.cursor();
  CGRT_RETURN_IF_ERROR(step(cursor));
  CGRT_RETURN_IF_ERROR(notes.graph("captured", captured));
  CGRT_RETURN_IF_ERROR(notes.graph("built", built));
  for (const Graph* graph : {&captured, &built}) {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
    {
      CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, other.ref()));
      CGRT_RETURN_IF_ERROR(launch(other.ref(), kConfig, shift_kernel(), x.as<float>(), x.as<float>(), 1.0f, kCount));
      CGRT_RETURN_IF_ERROR(other.ref().record(before.ref()));
      CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
      notes.completion("waiting graph", stream.ref().completion());
      notes.completion("the event that it will record", middle.ref().completion());
    }
    CGRT_RETURN_IF_ERROR(other.ref().wait(middle.ref()));
    CGRT_RETURN_IF_ERROR(launch(other.ref(), kConfig, shift_kernel(), x.as<float>(), x.as<float>(), 1.0f, kCount));
    CGRT_RETURN_IF_ERROR(other.ref().synchronize());
    notes.completion("the event after", middle.ref().completion());
    CGRT_RETURN_IF_ERROR(note_first(world, notes, "x", x));
  }
  notes.status("eager", step(stream.ref()));
  return stream.ref().synchronize();
}

BEHAVIOUR("event nodes of an executable take other events") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event a, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event b, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(EventWaitNode waits, graph.add_event_wait({}, a.ref()));
  CGRT_ASSIGN_OR_RETURN(EventRecordNode records, graph.add_event_record(after(waits), a.ref()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));

  notes.status("record", exec.set_params(records, b.ref()));
  notes.status("wait", exec.set_params(waits, b.ref()));
  notes.status("launch", run(exec, stream.ref()));
  notes.completion("b", b.ref().completion());
  return notes.graph("graph", graph);
}

BEHAVIOUR("rows and slices are copied and set on every target") {
  constexpr std::size_t kWidth = 12, kHeight = 3, kDepth = 2, kPitch = 32, kRows = 4;
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer block, DeviceBuffer::create(world.device(), kPitch * kRows * kDepth));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer packed, PinnedBuffer::create(world.device(), kWidth * kHeight * kDepth));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer seen, PinnedBuffer::create(world.device(), block.size_bytes()));
  auto* from = packed.as<unsigned char>();
  for (std::size_t i = 0; i < packed.size_bytes(); ++i) from[i] = static_cast<unsigned char>(i + 1);
  const auto step = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(fill8(target, block.data(), 0, block.size_bytes()));
    CGRT_RETURN_IF_ERROR(copy(target, CopyParams{.destination = block.data(),
                                                 .source = packed.data(),
                                                 .bytes = kWidth,
                                                 .height = kHeight,
                                                 .depth = kDepth,
                                                 .destination_pitch = kPitch,
                                                 .source_pitch = kWidth,
                                                 .destination_rows = kRows}));
    for (const std::uint32_t size : {1u, 2u, 4u}) {
      CGRT_RETURN_IF_ERROR(fill(target, FillParams{.destination = block.as<char>() + 16 + 4 * (size / 2),
                                                   .value = 0xdcbaabcd,
                                                   .element_bytes = size,
                                                   .count = 4 / size,
                                                   .height = 2,
                                                   .pitch = kPitch}));
    }
    return copy(target, seen.data(), block.data(), block.size_bytes());
  };
  const auto check = [&](const char* name) -> absl::Status {
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    std::uint64_t hash = 1469598103934665603u;  // FNV-1a
    for (std::size_t i = 0; i < seen.size_bytes(); ++i) hash = (hash ^ seen.as<unsigned char>()[i]) * 1099511628211u;
    notes.line(std::string(name) + ": " + std::to_string(hash));
    const auto at = [&](std::size_t z, std::size_t y, std::size_t x) {
      return seen.as<unsigned char>()[(z * kRows + y) * kPitch + x];
    };
    EXPECT(at(0, 0, 0) == 1 && at(0, 2, 11) == 36 && at(1, 0, 0) == 37 && at(1, 2, 11) == 72 && at(0, 3, 0) == 0);
    EXPECT(at(0, 1, 16) == 0xcd && at(0, 1, 19) == 0xcd && at(0, 1, 20) == 0xcd && at(0, 1, 21) == 0xab);
    EXPECT(at(0, 1, 24) == 0xcd && at(0, 1, 27) == 0xdc && at(0, 2, 24) == 0);
    return absl::OkStatus();
  };

  CGRT_RETURN_IF_ERROR(step(stream.ref()));
  CGRT_RETURN_IF_ERROR(check("eager"));
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor cursor = built.cursor();
  CGRT_RETURN_IF_ERROR(step(cursor));
  CGRT_RETURN_IF_ERROR(notes.graph("captured", captured));
  CGRT_RETURN_IF_ERROR(notes.graph("built", built));
  for (const Graph* graph : {&captured, &built}) {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(check("graph"));
  }
  return absl::OkStatus();
}

BEHAVIOUR("pitches shorter than a row and sizes beyond the memory are refused on every target") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer a, DeviceBuffer::create(world.device(), 4096));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer b, DeviceBuffer::create(world.device(), 4096));
  CGRT_RETURN_IF_ERROR(fill8(stream.ref(), b.data(), 0, b.size_bytes()));
  const CopyParams good{a.data(), b.data(), 16, 4, 2, 32, 32, 4, 4};
  struct Case {
    const char* name;
    CopyParams copy;
  };
  Case cases[] = {{"good", good}, {"short pitch", good}, {"few rows", good}, {"no depth", good}};
  cases[1].copy.source_pitch = 8;
  cases[2].copy.destination_rows = 2;
  cases[3].copy.depth = 0;
  for (const Case& one : cases) {
    notes.status(std::string("eager, ") + one.name, copy(stream.ref(), one.copy));
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    notes.status(std::string("explicit, ") + one.name, copy(graph.cursor(), one.copy));
  }
  const FillParams fills[] = {{a.data(), 1, 4, 8, 4, 32},
                              {a.data(), 1, 4, 8, 4, 16},
                              {a.data(), 1, 4, 8, 4, 34},
                              {a.data(), 1, 3, 8},
                              {a.as<char>() + 1, 1, 4, 8}};
  for (const FillParams& one : fills) {
    const std::string name = "fill of " + std::to_string(one.element_bytes) + " pitch " + std::to_string(one.pitch);
    notes.status("eager, " + name, fill(stream.ref(), one));
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    notes.status("explicit, " + name, fill(graph.cursor(), one));
  }
  return stream.ref().synchronize();
}

BEHAVIOUR("a node that is switched off does nothing until it is switched on again") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, 5.0f));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(KernelNode kernel,
                        graph.add_kernel({}, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(MemcpyNode copied, graph.add_copy(after(kernel), y.data(), x.data(), x.size_bytes()));
  CGRT_ASSIGN_OR_RETURN(MemsetNode filled, graph.add_fill(after(copied), {x.data(), 0x40400000u, 4, kCount}));
  CGRT_ASSIGN_OR_RETURN(HostNode host, graph.add_host(after(filled), [] {}));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  const auto note = [&](const char* name) -> absl::Status {
    CGRT_RETURN_IF_ERROR(run(exec, stream.ref()));
    CGRT_RETURN_IF_ERROR(note_first(world, notes, std::string(name) + ": x", x));
    return note_first(world, notes, std::string(name) + ": y", y);
  };

  CGRT_RETURN_IF_ERROR(note("all on"));
  notes.status("kernel off", exec.set_enabled(kernel, NodeState::kDisabled));
  notes.status("memset off", exec.set_enabled(filled, NodeState::kDisabled));
  CGRT_RETURN_IF_ERROR(note("copy alone"));
  notes.status("set while off",
               exec.set_params(kernel, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 10.0f, kCount));
  CGRT_RETURN_IF_ERROR(exec.update(graph));
  CGRT_ASSIGN_OR_RETURN(NodeState state, exec.enabled(kernel));
  notes.line(state == NodeState::kDisabled ? "off after an update" : "on after an update");
  notes.status("copy off", exec.set_enabled(copied, NodeState::kDisabled));
  notes.status("kernel on", exec.set_enabled(kernel, NodeState::kEnabled));
  CGRT_RETURN_IF_ERROR(note("kernel alone"));
  notes.status("host node", exec.enabled(host).status());
  return absl::OkStatus();
}

BEHAVIOUR("a clone is independent, keeps the order of nodes, and finds the nodes it was made from") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  auto token = std::make_shared<int>(0);
  std::optional<Graph> copy;
  std::optional<KernelNode> kernel, theirs;
  {
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    const Scope scope("cloned");
    CGRT_ASSIGN_OR_RETURN(kernel,
                          graph.add_kernel({}, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, kCount));
    CGRT_RETURN_IF_ERROR(graph.add_fill(after(*kernel), {x.data(), 0, 4, 1}).status());
    CGRT_RETURN_IF_ERROR(graph.keep(std::shared_ptr<const void>(token)));
    CGRT_ASSIGN_OR_RETURN(copy, graph.clone());
    CGRT_ASSIGN_OR_RETURN(theirs, copy->find_in_clone(*kernel));
    notes.status("find in the original", graph.find_in_clone(*kernel).status());
    CGRT_RETURN_IF_ERROR(graph.add_empty({}).status());
  }
  CGRT_RETURN_IF_ERROR(notes.graph("clone", *copy));
  notes.line("tokens " + std::to_string(token.use_count()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*copy));
  notes.status("set through the node found",
               exec.set_params(*theirs, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 3.0f, kCount));
  CGRT_RETURN_IF_ERROR(run(exec, stream.ref()));
  CGRT_ASSIGN_OR_RETURN(std::vector<float> values, read_floats(world, x));
  notes.line("x = " + std::to_string(values[0]) + " " + std::to_string(values[1]));
  return absl::OkStatus();
}

// There and back, by work of the first device.
absl::Status copy_both_ways(LaunchTarget target, const DeviceBuffer& here, const DeviceBuffer& there) {
  const std::size_t bytes = here.size_bytes();
  CGRT_RETURN_IF_ERROR(copy(target, there.data(), here.data(), bytes));
  CGRT_RETURN_IF_ERROR(fill32(target, here.data(), 0, bytes / sizeof(float)));
  // As two rows: a copy of two dimensions.
  const std::size_t half = bytes / 2;
  return copy(target, CopyParams{.destination = here.data(),
                                 .source = there.data(),
                                 .bytes = half,
                                 .height = 2,
                                 .destination_pitch = half,
                                 .source_pitch = half});
}

BEHAVIOUR("copies between two devices carry the values, in every target") {
  CGRT_ASSIGN_OR_RETURN(const int devices, device_count());
  if (devices < 2) return absl::OkStatus();
  const DeviceRef other(1);
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream other_stream, Stream::create(other));
  std::vector<float> values(1 << 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer here, device_floats(world, values));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer there, DeviceBuffer::create(other, here.size_bytes()));
  const auto step = [&](LaunchTarget target) { return copy_both_ways(target, here, there); };
  const auto check = [&](const char* name) -> absl::Status {
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(std::vector<float> back, read_floats(world, here));
    notes.line(std::string(name) + (back == values ? ": same values" : ": other values"));
    EXPECT(back == values);
    CGRT_RETURN_IF_ERROR(fill32(other_stream.ref(), there.data(), 0, values.size()));
    return other_stream.ref().synchronize();
  };

  CGRT_RETURN_IF_ERROR(step(stream.ref()));
  CGRT_RETURN_IF_ERROR(check("eager"));
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(step(built.cursor()));
  for (const Graph* graph : {&captured, &built}) {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(check(graph == &captured ? "captured" : "explicit"));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
