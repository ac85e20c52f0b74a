// Conditional nodes, and captures into graphs that are being built: bodies of conditional nodes are filled so, too.
#include <bit>
#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 32;
constexpr LaunchConfig kConfig{.grid = 1, .block = 32};
constexpr LaunchConfig kOne{.grid = 1, .block = 1};

absl::Status run(GraphExec& exec, StreamRef stream) {
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  return stream.synchronize();
}

// x = in + more, so that sums say how often and in which order work ran.
absl::Status add(LaunchTarget target, const DeviceBuffer& x, float more) {
  return launch(target, kConfig, shift_kernel(), x.as<float>(), x.as<const float>(), more, kCount);
}

absl::Status twice(LaunchTarget target, const DeviceBuffer& x) {
  return launch(target, kConfig, scale_kernel(), x.as<float>(), x.as<const float>(), 2.0f, kCount);
}

// A graph whose first kernel sets the handle of a conditional node to a value of the device.
struct Setup {
  static absl::StatusOr<Setup> create(World& world) {
    Setup setup;
    CGRT_ASSIGN_OR_RETURN(setup.stream, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(setup.x, device_floats(world, kCount, 1.0f));
    CGRT_ASSIGN_OR_RETURN(setup.value, device_floats(world, 1, 0.0f));
    CGRT_ASSIGN_OR_RETURN(setup.graph, Graph::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(setup.handle, setup.graph.add_conditional_handle(0));
    return setup;
  }
  absl::Status set(LaunchTarget target) const {
    return launch(target, kOne, set_conditional_kernel(), handle, value.as<const float>());
  }
  // Launches with the value, from x = 1.
  absl::Status note(World& world, Notes& notes, GraphExec& exec, float now) const {
    CGRT_RETURN_IF_ERROR(fill32(stream, value.data(), std::bit_cast<std::uint32_t>(now), 1));
    CGRT_RETURN_IF_ERROR(fill32(stream, x.data(), std::bit_cast<std::uint32_t>(1.0f), kCount));
    CGRT_RETURN_IF_ERROR(run(exec, stream));
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, x));
    notes.line(absl::StrCat("value ", now, ": x = ", values[0]));
    return absl::OkStatus();
  }

  Stream stream;
  DeviceBuffer x, value;
  Graph graph;
  CUgraphConditionalHandle handle = 0;
};

BEHAVIOUR("conditionals: an if node runs its body when the value is not 0") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  Cursor place = setup.graph.cursor();
  CGRT_RETURN_IF_ERROR(setup.set(place));
  CGRT_ASSIGN_OR_RETURN(Conditional node, place.add_if(setup.handle));
  CGRT_RETURN_IF_ERROR(twice(place, setup.x));
  CGRT_RETURN_IF_ERROR(add(node.bodies[0].cursor(), setup.x, 10.0f));
  CGRT_RETURN_IF_ERROR(notes.graph("graph", setup.graph));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(setup.graph));
  for (const float value : {0.0f, 1.0f, 7.0f, 0.0f}) CGRT_RETURN_IF_ERROR(setup.note(world, notes, exec, value));
  return absl::OkStatus();
}

BEHAVIOUR("conditionals: an if node with two bodies runs one of them") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  Cursor place = setup.graph.cursor();
  CGRT_RETURN_IF_ERROR(setup.set(place));
  CGRT_ASSIGN_OR_RETURN(Conditional node, place.add_if_else(setup.handle));
  CGRT_RETURN_IF_ERROR(twice(place, setup.x));
  CGRT_RETURN_IF_ERROR(add(node.bodies[0].cursor(), setup.x, 10.0f));
  CGRT_RETURN_IF_ERROR(add(node.bodies[1].cursor(), setup.x, 20.0f));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(setup.graph));
  for (const float value : {0.0f, 1.0f, 7.0f, 0.0f}) CGRT_RETURN_IF_ERROR(setup.note(world, notes, exec, value));
  return absl::OkStatus();
}

BEHAVIOUR("conditionals: a while node runs its body until a kernel in it says no, at every launch") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  Cursor place = setup.graph.cursor();
  CGRT_RETURN_IF_ERROR(setup.set(place));
  CGRT_ASSIGN_OR_RETURN(Conditional loop, place.add_while(setup.handle));
  CGRT_RETURN_IF_ERROR(twice(place, setup.x));
  Cursor body = loop.bodies[0].cursor();
  const auto step = [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(add(s, setup.x, 1.0f));
    return launch(s, kOne, count_down_kernel(), setup.handle, setup.value.as<float>());
  };
  CGRT_RETURN_IF_ERROR(capture_into(body, setup.stream, step));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(setup.graph));
  for (const float value : {5.0f, 0.0f, 1.0f, 100.0f}) CGRT_RETURN_IF_ERROR(setup.note(world, notes, exec, value));
  return absl::OkStatus();
}

BEHAVIOUR("conditionals: a switch node runs the body of the value, or none") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  Cursor place = setup.graph.cursor();
  CGRT_RETURN_IF_ERROR(setup.set(place));
  notes.status("no bodies", place.add_switch(setup.handle, 0).status());
  CGRT_ASSIGN_OR_RETURN(Conditional node, place.add_switch(setup.handle, 3));
  for (int i = 0; i < 3; ++i) {
    CGRT_RETURN_IF_ERROR(
        add(node.bodies[static_cast<std::size_t>(i)].cursor(), setup.x, 10.0f * static_cast<float>(i + 1)));
  }
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(setup.graph));
  for (const float value : {2.0f, 0.0f, 1.0f, 3.0f, 9.0f}) CGRT_RETURN_IF_ERROR(setup.note(world, notes, exec, value));
  return absl::OkStatus();
}

BEHAVIOUR("conditionals: they nest") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  Cursor place = setup.graph.cursor();
  CGRT_RETURN_IF_ERROR(setup.set(place));
  CGRT_ASSIGN_OR_RETURN(Conditional loop, place.add_while(setup.handle));
  Graph& body = loop.bodies[0];
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle outer, setup.graph.add_conditional_handle(1));
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle inner, body.add_conditional_handle(1));
  Cursor inside = body.cursor();
  CGRT_ASSIGN_OR_RETURN(Conditional first, inside.add_if(outer));
  CGRT_RETURN_IF_ERROR(add(first.bodies[0].cursor(), setup.x, 1.0f));
  CGRT_ASSIGN_OR_RETURN(Conditional second, inside.add_if(inner));
  CGRT_RETURN_IF_ERROR(add(second.bodies[0].cursor(), setup.x, 100.0f));
  CGRT_RETURN_IF_ERROR(launch(inside, kOne, count_down_kernel(), setup.handle, setup.value.as<float>()));
  CGRT_RETURN_IF_ERROR(notes.graph("graph", setup.graph));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(setup.graph));
  for (const float value : {3.0f, 0.0f}) CGRT_RETURN_IF_ERROR(setup.note(world, notes, exec, value));
  return absl::OkStatus();
}

BEHAVIOUR("the body of a conditional node is built in every way a graph is") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  CGRT_ASSIGN_OR_RETURN(KernelNode first, setup.graph.add_kernel({}, kOne, set_conditional_kernel(), setup.handle,
                                                                 setup.value.as<const float>()));
  CGRT_ASSIGN_OR_RETURN(Conditional node, setup.graph.add_if(after(first), setup.handle));
  Graph& body = node.bodies[0];
  CGRT_ASSIGN_OR_RETURN(KernelNode added, body.add_kernel({}, kConfig, shift_kernel(), setup.x.as<float>(),
                                                          setup.x.as<const float>(), 1.0f, kCount));
  Cursor place = body.cursor(after(added));
  CGRT_RETURN_IF_ERROR(twice(place, setup.x));
  notes.status("captured", capture_into(place, setup.stream, [&](StreamRef s) { return add(s, setup.x, 3.0f); }));
  CGRT_ASSIGN_OR_RETURN(Graph child, capture(setup.stream.ref(), [&](StreamRef s) { return twice(s, setup.x); }));
  CGRT_RETURN_IF_ERROR(place.add_child(std::move(child)));
  CGRT_RETURN_IF_ERROR(copy(place, setup.value.data(), setup.x.data(), sizeof(float)));
  CGRT_RETURN_IF_ERROR(notes.graph("graph", setup.graph));
  auto kept = std::make_shared<const int>(1);
  const std::weak_ptr<const int> watched = kept;
  CGRT_RETURN_IF_ERROR(body.keep(std::move(kept)));
  {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(setup.graph));
    setup.graph = Graph();
    node.bodies.clear();
    for (const float value : {1.0f, 0.0f}) CGRT_RETURN_IF_ERROR(setup.note(world, notes, exec, value));
    collect_released();
    EXPECT(!watched.expired());
  }
  EXPECT(collect_until([&] { return watched.expired(); }));
  return absl::OkStatus();
}

BEHAVIOUR("a conditional handle without a value at launch keeps the one it had") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  Cursor place = setup.graph.cursor();
  CGRT_RETURN_IF_ERROR(setup.set(place));
  CGRT_RETURN_IF_ERROR(place.add_if(setup.handle).status());
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle kept, setup.graph.add_conditional_handle(std::nullopt));
  CGRT_ASSIGN_OR_RETURN(Conditional node, place.add_if(kept));
  CGRT_RETURN_IF_ERROR(add(node.bodies[0].cursor(), setup.x, 10.0f));
  CGRT_RETURN_IF_ERROR(launch(place, kOne, set_conditional_kernel(), kept, setup.value.as<const float>()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(setup.graph));
  CGRT_RETURN_IF_ERROR(run(exec, setup.stream));  // its value is not defined before
  for (const float value : {1.0f, 0.0f, 1.0f, 1.0f}) CGRT_RETURN_IF_ERROR(setup.note(world, notes, exec, value));
  return absl::OkStatus();
}

BEHAVIOUR("a graph with conditional nodes has one executable, no clone, and is no child") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  CGRT_ASSIGN_OR_RETURN(Conditional node, setup.graph.add_if({}, setup.handle));
  CGRT_RETURN_IF_ERROR(add(node.bodies[0].cursor(), setup.x, 1.0f));
  CGRT_ASSIGN_OR_RETURN(Graph outer, Graph::create(world.device()));
  notes.status("clone", setup.graph.clone().status());
  notes.status("child by copy", outer.add_child({}, setup.graph).status());
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = setup.graph.ref().get();
  CUgraphNode child = nullptr;
  const auto add_raw = [&] {
    return driver::api().GraphAddNode(&child, outer.ref().get(), nullptr, nullptr, 0, &params);
  };
  notes.status("raw child by copy", driver::to_status(add_raw(), "cuGraphAddNode"));
  notes.status("a body alone", instantiate(node.bodies[0]).status());
  {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(setup.graph));
    notes.status("second executable", instantiate(setup.graph).status());
    CGRT_RETURN_IF_ERROR(run(exec, setup.stream));
  }
  notes.status("after the first is gone", instantiate(setup.graph).status());
  notes.line(absl::StrCat("a body is released: ", std::move(node.bodies[0]).release() == nullptr ? "no" : "yes"));
  return absl::OkStatus();
}

BEHAVIOUR("the body of a conditional node takes some kinds of nodes") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Conditional node, setup.graph.add_if({}, setup.handle));
  Graph& body = node.bodies[0];
  notes.status("empty", body.add_empty({}).status());
  notes.status("memset", body.add_fill({}, {setup.x.data(), 0, 4, kCount}).status());
  notes.status("host", body.add_host(
                               {}, [](void*) {}, nullptr)
                           .status());
  notes.status("event record", body.add_event_record({}, event.ref()).status());
  CGRT_ASSIGN_OR_RETURN(Graph child, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(child
                           .add_host(
                               {}, [](void*) {}, nullptr)
                           .status());
  notes.status("child with a host node", body.add_child({}, child).status());
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_HOST;
  params.host.fn = [](void*) {};
  CUgraphNode raw = nullptr;
  notes.status("raw host",
               driver::to_status(driver::api().GraphAddNode(&raw, body.ref().get(), nullptr, nullptr, 0, &params),
                                 "cuGraphAddNode"));
  return absl::OkStatus();
}

BEHAVIOUR("conditional handles belong to one node") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  notes.status("without a node", instantiate(setup.graph).status());
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(world.device()));
  notes.status("of another graph", other.add_while({}, setup.handle).status());
  CGRT_RETURN_IF_ERROR(setup.graph.add_while({}, setup.handle).status());
  notes.status("again", setup.graph.add_if({}, setup.handle).status());
  notes.status("instantiate", instantiate(setup.graph).status());
  return absl::OkStatus();
}

BEHAVIOUR("an executable with conditional nodes is updated") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle theirs, other.add_conditional_handle(1));
  CGRT_ASSIGN_OR_RETURN(Conditional ours, setup.graph.add_if({}, setup.handle));
  CGRT_ASSIGN_OR_RETURN(KernelNode inside, ours.bodies[0].add_kernel({}, kConfig, shift_kernel(), setup.x.as<float>(),
                                                                     setup.x.as<const float>(), 1.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(Conditional node, other.add_if({}, theirs));
  CGRT_RETURN_IF_ERROR(add(node.bodies[0].cursor(), setup.x, 10.0f));
  CGRT_ASSIGN_OR_RETURN(Graph loop, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle again, loop.add_conditional_handle(0));
  CGRT_ASSIGN_OR_RETURN(Conditional looping, loop.add_while({}, again));
  CGRT_RETURN_IF_ERROR(add(looping.bodies[0].cursor(), setup.x, 10.0f));

  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(setup.graph));
  CGRT_RETURN_IF_ERROR(setup.note(world, notes, exec, 0.0f));
  notes.status("set a kernel of the body", exec.set_params(inside, kConfig, shift_kernel(), setup.x.as<float>(),
                                                           setup.x.as<const float>(), 5.0f, kCount));
  CGRT_RETURN_IF_ERROR(setup.note(world, notes, exec, 0.0f));
  notes.status("update to 1 at launch", exec.update(other));
  CGRT_RETURN_IF_ERROR(setup.note(world, notes, exec, 0.0f));
  notes.status("update to a while node", exec.update(loop));
  return setup.note(world, notes, exec, 0.0f);
}

BEHAVIOUR("an executable with conditional nodes is rebindable or says why not") {
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create(world));
  const auto step = [&](LaunchTarget target, float more) -> absl::Status {
    CGRT_RETURN_IF_ERROR(setup.set(target));
    return add(target, setup.x, more);
  };
  Cursor place = setup.graph.cursor();
  CGRT_RETURN_IF_ERROR(step(place, 1.0f));
  CGRT_ASSIGN_OR_RETURN(Conditional node, place.add_if(setup.handle));
  CGRT_RETURN_IF_ERROR(add(node.bodies[0].cursor(), setup.x, 10.0f));
  absl::StatusOr<GraphExec> exec = instantiate_rebindable(setup.graph);
  notes.status("instantiate", exec.status());
  if (!exec.ok()) return absl::OkStatus();
  CGRT_RETURN_IF_ERROR(setup.note(world, notes, *exec, 1.0f));
  notes.status("rebind", exec->rebind([&](LaunchTarget target) { return step(target, 2.0f); }));
  return setup.note(world, notes, *exec, 1.0f);
}

BEHAVIOUR("capture into an existing graph: work comes after the nodes that it has") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream side, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event forked, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event joined, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor place = graph.cursor();
  CGRT_RETURN_IF_ERROR(twice(place, x));
  const auto fork = [&](StreamRef s) -> absl::Status {
    Scope scope("captured");
    CGRT_RETURN_IF_ERROR(add(s, x, 1.0f));
    CGRT_RETURN_IF_ERROR(s.record(forked));
    CGRT_RETURN_IF_ERROR(side.ref().wait(forked));
    CGRT_RETURN_IF_ERROR(twice(side, y));
    CGRT_RETURN_IF_ERROR(side.ref().record(joined));
    CGRT_RETURN_IF_ERROR(twice(s, x));
    return s.wait(joined);
  };
  notes.status("fork and join", capture_into(place, stream, fork));
  notes.line(absl::StrCat("frontier of ", place.frontier().size()));
  notes.status("nothing", capture_into(place, stream, [](StreamRef) { return absl::OkStatus(); }));
  notes.line(absl::StrCat("frontier of ", place.frontier().size()));
  const LaunchConfig clustered{.grid = 2, .block = 32, .attributes = {.cluster = {2}}};
  notes.status("with an attribute", capture_into(place, stream, [&](StreamRef s) {
                 return launch(s, clustered, scale_kernel(), x.as<float>(), x.as<const float>(), 3.0f, kCount);
               }));
  CGRT_RETURN_IF_ERROR(add(place, x, 1.0f));
  Cursor empty = graph.cursor();
  notes.status("a root", capture_into(empty, stream, [&](StreamRef s) {
                 return launch_host(
                     s, [](void*) {}, nullptr);
               }));
  CGRT_RETURN_IF_ERROR(notes.graph("graph", graph));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(run(exec, stream));
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, x));
  notes.line(absl::StrCat("x = ", values[0]));
  return absl::OkStatus();
}

BEHAVIOUR("capture into an existing graph: one that fails leaves it as it was") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream side, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event forked, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor place = graph.cursor();
  CGRT_RETURN_IF_ERROR(twice(place, x));
  const auto note = [&](const char* name, const std::function<absl::Status(StreamRef)>& record) -> absl::Status {
    notes.status(name, capture_into(place, stream, record));
    CGRT_ASSIGN_OR_RETURN(const std::size_t nodes, graph.node_count());
    notes.line(absl::StrCat(nodes, " nodes, frontier of ", place.frontier().size()));
    return absl::OkStatus();
  };
  const auto fails = [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(add(s, x, 1.0f));
    return absl::CancelledError("no more");
  };
  const auto synchronizes = [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(add(s, x, 1.0f));
    s.synchronize().IgnoreError();
    return absl::OkStatus();
  };
  const auto forgets = [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(add(s, x, 1.0f));
    CGRT_RETURN_IF_ERROR(s.record(forked));
    CGRT_RETURN_IF_ERROR(side.ref().wait(forked));
    return twice(side, x);
  };
  CGRT_RETURN_IF_ERROR(note("callback fails", fails));
  CGRT_RETURN_IF_ERROR(note("synchronizes", synchronizes));
  CGRT_RETURN_IF_ERROR(note("unjoined", forgets));
  notes.status("the legacy stream",
               capture_into(place, StreamRef::legacy_default(), [](StreamRef) { return absl::OkStatus(); }));
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(world.device()));
  Cursor foreign = other.cursor(place.frontier());
  notes.status("a frontier of another graph", capture_into(foreign, stream, [&](StreamRef s) { return twice(s, x); }));
  CGRT_RETURN_IF_ERROR(note("and then one that does not", [&](StreamRef s) { return add(s, x, 1.0f); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(run(exec, stream));
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, x));
  notes.line(absl::StrCat("x = ", values[0]));
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
