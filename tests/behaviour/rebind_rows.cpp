// Rebindable executables: the same calls run again, with other arguments and grids.
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

// What one step works on.
struct Arrays {
  float *out, *middle;
  const float* in;
  float factor;
};

absl::Status two_kernels(LaunchTarget target, const Arrays& a) {
  CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), a.middle, a.in, a.factor, kCount));
  return launch(target, kConfig, add_kernel(), a.out, a.middle, a.in, kCount);
}

struct Buffers {
  DeviceBuffer x, y, z, w;
  static absl::StatusOr<Buffers> create(World& world) {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, -1.0f));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer z, device_floats(world, kCount, -2.0f));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer w, device_floats(world, kCount, -3.0f));
    return Buffers{std::move(x), std::move(y), std::move(z), std::move(w)};
  }
  Arrays first() { return {y.as<float>(), w.as<float>(), x.as<float>(), 2.0f}; }
  Arrays second() { return {z.as<float>(), w.as<float>(), y.as<float>(), 10.0f}; }
};

absl::Status note_values(World& world, Notes& notes, const std::string& name, const DeviceBuffer& buffer) {
  CGRT_ASSIGN_OR_RETURN(std::vector<float> values, read_floats(world, buffer));
  bool uniform = true;
  for (float value : values) uniform &= value == values[0];
  EXPECT(uniform);
  notes.line(name + " = " + std::to_string(values[0]));
  return absl::OkStatus();
}

template <class Step>
absl::StatusOr<Graph> build(World& world, Step step) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(step(LaunchTarget(cursor)));
  return graph;
}

BEHAVIOUR("device-updatable nodes: one step runs eagerly, captured, built and rebound, with the same results") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  for (const char* how : {"built", "captured"}) {
    CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
    const auto first = [&](LaunchTarget target) { return two_kernels(target, b.first()); };
    const auto second = [&](LaunchTarget target) { return two_kernels(target, b.second()); };
    CGRT_ASSIGN_OR_RETURN(Graph graph,
                          how == std::string("built") ? build(world, first) : capture(stream.ref(), first));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(note_values(world, notes, std::string(how) + ", y", b.y));

    notes.status("rebind", exec.rebind(second));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "z", b.z));
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "w", b.w));
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "y", b.y));

    // Nothing differs, then back before a first launch.
    notes.status("rebind to the same", exec.rebind(second));
    notes.status("rebind back", exec.rebind(first));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "w after going back", b.w));
  }
  return absl::OkStatus();
}

BEHAVIOUR("launches in flight keep the arguments and grids that they were rebound to") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer sizes, PinnedBuffer::create(world.device(), 4 * sizeof(int)));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, device_floats(world, kCount, 1.0f));
  std::vector<DeviceBuffer> out;
  for (int i = 0; i < 4; ++i) {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer one, device_floats(world, kCount, 0.0f));
    out.push_back(std::move(one));
  }
  const auto step = [&](LaunchTarget target, std::uint32_t i) -> absl::Status {
    CGRT_RETURN_IF_ERROR(
        launch(target, kConfig, scale_kernel(), out[i].as<float>(), in.as<float>(), static_cast<float>(i + 1), kCount));
    return launch(target, {.grid = Dim3(i + 1, 2, 3), .block = 32}, grid_kernel(), sizes.as<int>() + i);
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, build(world, [&](LaunchTarget target) { return step(target, 0); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  {
    CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream.ref()));
    for (std::uint32_t i = 0; i < 4; ++i) {
      CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return step(target, i); }));
      CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    }
  }
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  for (std::size_t i = 0; i < 4; ++i) {
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "out " + std::to_string(i), out[i]));
    notes.line("blocks " + std::to_string(sizes.as<int>()[i]));
  }
  return absl::OkStatus();
}

BEHAVIOUR("a rebound launch in another stream waits for the launch before it") {
  CGRT_ASSIGN_OR_RETURN(Stream a, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream b, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Buffers buffers, Buffers::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph,
                        build(world, [&](LaunchTarget target) { return two_kernels(target, buffers.first()); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(b.ref()));
  CGRT_RETURN_IF_ERROR(b.ref().synchronize());
  {
    CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, a.ref()));
    CGRT_RETURN_IF_ERROR(exec.launch(a.ref()));
    CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return two_kernels(target, buffers.second()); }));
    CGRT_RETURN_IF_ERROR(exec.launch(b.ref()));
    notes.completion("b while a is held", b.ref().completion());
  }
  CGRT_RETURN_IF_ERROR(b.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "y", buffers.y));
  return note_values(world, notes, "z", buffers.z);
}

BEHAVIOUR("a rebound executable runs on its own device, launched into a stream of another one, too") {
  CGRT_ASSIGN_OR_RETURN(const int devices, device_count());
  if (devices < 2) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(Stream here, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream there, Stream::create(DeviceRef(1)));
  CGRT_ASSIGN_OR_RETURN(Buffers buffers, Buffers::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph,
                        build(world, [&](LaunchTarget target) { return two_kernels(target, buffers.first()); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  for (const Stream* stream : {&there, &here, &there}) {
    const bool is_first = stream == &here;
    CGRT_RETURN_IF_ERROR(exec.rebind(
        [&](LaunchTarget target) { return two_kernels(target, is_first ? buffers.first() : buffers.second()); }));
    CGRT_RETURN_IF_ERROR(exec.launch(stream->ref()));
    CGRT_RETURN_IF_ERROR(stream->ref().synchronize());
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "y", buffers.y));
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "z", buffers.z));
  }
  return absl::OkStatus();
}

BEHAVIOUR("device-updatable nodes: a graph that was rebindable is rebound inside of another one, too") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Buffers buffers, Buffers::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph,
                        build(world, [&](LaunchTarget target) { return two_kernels(target, buffers.first()); }));
  {
    CGRT_ASSIGN_OR_RETURN(GraphExec first, instantiate_rebindable(graph));
    CGRT_RETURN_IF_ERROR(first.rebind([&](LaunchTarget target) { return two_kernels(target, buffers.second()); }));
    CGRT_RETURN_IF_ERROR(first.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  }
  CGRT_ASSIGN_OR_RETURN(Graph outer, Graph::create(world.device()));
  notes.status("moved", outer.add_child({}, std::move(graph)).status());
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(outer));
  for (const bool is_first : {true, false}) {
    CGRT_RETURN_IF_ERROR(exec.rebind(
        [&](LaunchTarget target) { return two_kernels(target, is_first ? buffers.first() : buffers.second()); }));
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "y", buffers.y));
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "z", buffers.z));
  }
  return absl::OkStatus();
}

BEHAVIOUR("a rebound step with other calls is refused by name and changes nothing") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, build(world, [&](LaunchTarget target) { return two_kernels(target, b.first()); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  float* const z = b.z.as<float>();
  const float* const x = b.x.as<float>();
  const auto expect = [&](const char* name, auto step, std::vector<const char*> words) {
    const absl::Status refused = exec.rebind(step);
    notes.status(name, refused);
    for (const char* word : words) {
      if (!absl::StrContains(refused.message(), word)) notes.line(std::string(refused.message()));
      EXPECT(absl::StrContains(refused.message(), word));
    }
  };
  expect("another kernel",
         [&](LaunchTarget target) -> absl::Status {
           CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), z, x, 7.0f, kCount));
           return launch(target, kConfig, scale_kernel(), z, x, 7.0f, kCount);
         },
         {"Call 2", "add", "scale"});
  expect("too few", [&](LaunchTarget target) { return launch(target, kConfig, scale_kernel(), z, x, 7.0f, kCount); },
         {"1 call", "2 nodes", "add"});
  expect("too many",
         [&](LaunchTarget target) -> absl::Status {
           CGRT_RETURN_IF_ERROR(two_kernels(target, b.second()));
           return launch(target, kConfig, scale_kernel(), z, x, 7.0f, kCount);
         },
         {"scale", "2 nodes"});
  expect("a copy", [&](LaunchTarget target) { return copy(target, z, x, 64); }, {"Call 1", "scale", "copy"});
  expect(
      "another block",
      [&](LaunchTarget target) { return launch(target, {.grid = 2, .block = 32}, scale_kernel(), z, x, 7.0f, kCount); },
      {"Call 1", "block", "(64, 1, 1)", "(32, 1, 1)"});
  expect("other shared memory",
         [&](LaunchTarget target) {
           return launch(target, {.grid = 1, .block = 64, .shared_bytes = 256}, scale_kernel(), z, x, 7.0f, kCount);
         },
         {"Call 1", "shared memory", "256"});
  expect("an attribute",
         [&](LaunchTarget target) {
           return launch(target, {.grid = 2, .block = 64, .attributes = {.cluster = {2}}}, scale_kernel(), z, x, 7.0f,
                         kCount);
         },
         {"cluster"});
  for (const Dim3 grid : {Dim3(0), Dim3(1, 65536), Dim3(1, 1, 65537)}) {
    expect("a grid that no launch can have",
           [&](LaunchTarget target) {
             return launch(target, {.grid = grid, .block = 64}, scale_kernel(), z, x, 7.0f, kCount);
           },
           {"grid"});
  }
  expect("a failure of the step's own, one of a call ignored",
         [&](LaunchTarget target) -> absl::Status {
           two_kernels(target, b.second()).IgnoreError();
           launch(target, kConfig, scale_kernel(), z, x, 7.0f, kCount).IgnoreError();
           return absl::OkStatus();
         },
         {"2 nodes"});
  expect("a failure of the step's own",
         [&](LaunchTarget target) -> absl::Status {
           CGRT_RETURN_IF_ERROR(two_kernels(target, b.second()));
           return absl::AbortedError("mine");
         },
         {"mine"});
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "y", b.y));
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "z", b.z));
  GraphExec moved = std::move(exec);
  notes.status("moved from", exec.rebind([&](LaunchTarget target) { return two_kernels(target, b.second()); }));
  CGRT_ASSIGN_OR_RETURN(Graph plain, build(world, [&](LaunchTarget target) { return two_kernels(target, b.first()); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec other, instantiate(plain));
  notes.status("plain", other.rebind([&](LaunchTarget target) { return two_kernels(target, b.second()); }));
  return absl::OkStatus();
}

void CUDA_CB count_call(void* data) { ++*static_cast<int*>(data); }

BEHAVIOUR("copies, memsets, host functions and events follow in a rebound step") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
  CGRT_ASSIGN_OR_RETURN(Event first, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event second, Event::create(world.device()));
  int calls[2] = {};
  const auto step = [&](LaunchTarget target, DeviceBuffer& set, DeviceBuffer& out, std::uint32_t value, Event& event,
                        int* called, float factor) -> absl::Status {
    CGRT_RETURN_IF_ERROR(fill32(target, set.data(), value, kCount));
    CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), b.w.as<float>(), set.as<float>(), factor, kCount));
    CGRT_RETURN_IF_ERROR(copy(target, out.data(), b.w.data(), b.w.size_bytes()));
    CGRT_RETURN_IF_ERROR(record_event(target, event.ref()));
    return launch_host(target, &count_call, called);
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, build(world, [&](LaunchTarget target) {
                          return step(target, b.x, b.y, 0x40000000u, first, &calls[0], 3.0f);
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "y", b.y));
  const auto rebind = [&](float factor) {
    return exec.rebind(
        [&](LaunchTarget target) { return step(target, b.y, b.z, 0x40400000u, second, &calls[1], factor); });
  };
  notes.status("rebind", rebind(5.0f));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "z", b.z));
  notes.completion("second event", second.ref().completion());
  notes.line("calls " + std::to_string(calls[0]) + " and " + std::to_string(calls[1]));
  // A host's change of another node must not bring back what the device has changed.
  notes.status("rebind the kernel", rebind(7.0f));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(
      exec.rebind([&](LaunchTarget target) { return step(target, b.y, b.z, 0x40800000u, second, &calls[1], 7.0f); }));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "z, set by the host after the device", b.z));
  notes.status("a copy of 0 bytes", exec.rebind([&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(fill32(target, b.x.data(), 0x40000000u, kCount));
    CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), b.w.as<float>(), b.x.as<float>(), 1.0f, kCount));
    CGRT_RETURN_IF_ERROR(copy(target, b.z.data(), b.w.data(), 0));
    CGRT_RETURN_IF_ERROR(record_event(target, first.ref()));
    return launch_host(target, &count_call, &calls[0]);
  }));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "z after refusals", b.z));
  notes.line("calls " + std::to_string(calls[0]) + " and " + std::to_string(calls[1]));
  return absl::OkStatus();
}

BEHAVIOUR("copies and memsets of 0 bytes in a captured step are no nodes, and no calls of its rebind meet any") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
  const auto step = [&](LaunchTarget target, const DeviceBuffer& in, std::size_t count) -> absl::Status {
    CGRT_RETURN_IF_ERROR(copy(target, b.w.data(), b.y.data(), count * sizeof(float)));
    CGRT_RETURN_IF_ERROR(fill32(target, b.w.data(), 0, count));
    CGRT_RETURN_IF_ERROR(copy(target, b.w.data(), in.data(), in.size_bytes()));
    return copy(target, CopyParams{.destination = b.z.data(),
                                   .source = b.x.data(),
                                   .bytes = 8,
                                   .height = count,
                                   .destination_pitch = 16,
                                   .source_pitch = 16});
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, capture(stream, [&](StreamRef s) { return step(s, b.x, 0); }));
  CGRT_RETURN_IF_ERROR(notes.graph("captured", graph));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  notes.status("rebind", exec.rebind([&](LaunchTarget target) { return step(target, b.y, 0); }));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "w", b.w));
  notes.status("with a copy that has bytes", exec.rebind([&](LaunchTarget target) { return step(target, b.x, 2); }));
  return absl::OkStatus();
}

BEHAVIOUR("host functions that rebound steps own live as long as launches call them") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  constexpr int kLaunches = 6;
  std::vector<int> seen;
  std::vector<std::weak_ptr<int>> alive;
  const auto step = [&](LaunchTarget target) {
    const auto number = std::make_shared<int>(static_cast<int>(alive.size()));
    alive.push_back(number);
    return launch_host(target, [&seen, number] { seen.push_back(*number); });
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, build(world, step));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_ASSIGN_OR_RETURN(const Binding binding, exec.prepare(step));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  for (int i = 0; i < kLaunches; ++i) {
    CGRT_RETURN_IF_ERROR(exec.rebind(step));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  }
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(exec.rebind(binding));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(exec.rebind(step));  // lets go of the others, whose launches have ended
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  const auto note_alive = [&](const std::string& when) {
    for (std::size_t i = 0; i < alive.size(); ++i) {
      if (!alive[i].expired()) notes.line(when + std::to_string(i) + " is alive");
    }
  };
  note_alive("then ");
  exec = GraphExec();  // waits
  for (int number : seen) notes.line("called with " + std::to_string(number));
  note_alive("in the end ");
  return absl::OkStatus();
}

BEHAVIOUR("nodes of a rebindable executable are set and switched one by one, too") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  float* const y = b.y.as<float>();
  float* const z = b.z.as<float>();
  CGRT_ASSIGN_OR_RETURN(KernelNode first,
                        graph.add_kernel({}, kConfig, scale_kernel(), y, b.x.as<float>(), 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(KernelNode last, graph.add_kernel(after(first), kConfig, scale_kernel(), z, y, 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  const auto run = [&](const char* name) -> absl::Status {
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(note_values(world, notes, std::string(name) + ": y", b.y));
    return note_values(world, notes, "z", b.z);
  };
  notes.status("set before the first launch",
               exec.set_params(first, kConfig, scale_kernel(), y, b.x.as<float>(), 3.0f, kCount));
  CGRT_RETURN_IF_ERROR(run("set"));
  notes.status("disable", exec.set_enabled(last, NodeState::kDisabled));
  notes.status("set", exec.set_params(first, kConfig, scale_kernel(), y, b.x.as<float>(), 4.0f, kCount));
  notes.status("set the disabled one", exec.set_params(last, kConfig, scale_kernel(), z, y, 5.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(const NodeState state, exec.enabled(last));
  EXPECT(state == NodeState::kDisabled);
  CGRT_RETURN_IF_ERROR(run("one is disabled"));
  notes.status("enable", exec.set_enabled(last, NodeState::kEnabled));
  CGRT_RETURN_IF_ERROR(run("both run"));
  notes.status("another kernel", exec.set_params(first, kConfig, shift_kernel(), y, b.x.as<float>(), 4.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(Graph filled, build(world, [&](LaunchTarget target) { return fill32(target, y, 0, kCount); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec fill_exec, instantiate_rebindable(filled));
  CGRT_ASSIGN_OR_RETURN(const MemsetNode fill_node, find_node<MemsetNode>(filled, {}));
  notes.status("disable a memset", fill_exec.set_enabled(fill_node, NodeState::kDisabled));
  CGRT_ASSIGN_OR_RETURN(Graph other, build(world, [&](LaunchTarget target) { return two_kernels(target, b.first()); }));
  notes.status("update", exec.update(other));
  notes.status("try_update", exec.try_update(other).status());
  notes.status("update_or_instantiate", exec.update_or_instantiate(other).status());
  notes.status("clone of the graph", graph.clone().status());
  notes.status("a second executable", instantiate(graph).status());
  notes.status("a second rebindable one", instantiate_rebindable(graph).status());
  return run("after refusals");
}

BEHAVIOUR("kernels inside child graphs are rebound, and those with large arguments") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer bytes, device_floats(world, 16, 0.0f));
  Aligned first{}, second{};
  for (int i = 0; i < 64; ++i) {
    first.bytes[i] = static_cast<unsigned char>(i);
    second.bytes[i] = static_cast<unsigned char>(i % 5 == 0 ? 200 + i : i);
  }
  const auto large = [&](LaunchTarget target, const Aligned& value) {
    return launch(target, kConfig, aligned_kernel(), bytes.as<unsigned char>(), value);
  };
  CGRT_ASSIGN_OR_RETURN(Graph copied,
                        build(world, [&](LaunchTarget target) { return two_kernels(target, b.first()); }));
  CGRT_ASSIGN_OR_RETURN(Graph moved, build(world, [&](LaunchTarget target) { return large(target, first); }));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(cursor.add_child(copied));
  CGRT_RETURN_IF_ERROR(cursor.add_empty());
  CGRT_RETURN_IF_ERROR(cursor.add_child(std::move(moved)));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "y", b.y));

  notes.status("rebind", exec.rebind([&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(two_kernels(target, b.second()));
    return large(target, second);
  }));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "z", b.z));
  Aligned seen{};
  CGRT_RETURN_IF_ERROR(copy(stream.ref(), &seen, bytes.data(), sizeof(seen)));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  bool is_equal = true;
  for (int i = 0; i < 64; ++i) is_equal &= seen.bytes[i] == second.bytes[i];
  EXPECT(is_equal);
  return absl::OkStatus();
}

// What a library does: launches that only a stream can take.
absl::Status library_call(LaunchTarget target, const Arrays& arrays, LaunchConfig config = kConfig, CallKey key = {},
                          int* runs = nullptr) {
  const auto call = [&](CUstream s) -> absl::Status {
    if (runs != nullptr) ++*runs;
    CGRT_RETURN_IF_ERROR(fill32(s, arrays.middle, 0, kCount));
    CGRT_RETURN_IF_ERROR(launch(s, config, scale_kernel(), arrays.middle, arrays.in, arrays.factor, kCount));
    return launch(s, kConfig, add_kernel(), arrays.out, arrays.middle, arrays.in, kCount);
  };
  return target.sink() != nullptr ? target.sink()->add_captured(call, key) : call(target.stream().get());
}

BEHAVIOUR("calls of libraries are rebound, built as a child graph or captured") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  for (const char* how : {"built", "captured"}) {
    CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
    const auto first = [&](LaunchTarget target) { return library_call(target, b.first()); };
    CGRT_ASSIGN_OR_RETURN(Graph graph,
                          how == std::string("built") ? build(world, first) : capture(stream.ref(), first));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(note_values(world, notes, std::string(how) + ", y", b.y));
    notes.status("rebind", exec.rebind([&](LaunchTarget target) { return library_call(target, b.second()); }));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "z", b.z));
    const absl::Status block =
        exec.rebind([&](LaunchTarget target) { return library_call(target, b.first(), {.grid = 2, .block = 32}); });
    notes.status("another block", block);
    for (const char* word : {"scale", "block", "(32, 1, 1)"}) EXPECT(absl::StrContains(block.message(), word));
    notes.status("a failing call", exec.rebind([&](LaunchTarget target) {
      return target.sink()->add_captured([](CUstream) { return absl::AbortedError("mine"); }, {});
    }));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(note_values(world, notes, "z after refusals", b.z));
  }
  return absl::OkStatus();
}

BEHAVIOUR("a library's call with a key is captured once by an executable, however often it is rebound") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph,
                        build(world, [&](LaunchTarget target) { return library_call(target, b.first()); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  int runs = 0;
  for (const std::uint64_t which : {2, 1, 2, 1, 2}) {
    const Arrays arrays = which == 1 ? b.first() : b.second();
    CGRT_RETURN_IF_ERROR(fill32(stream.ref(), arrays.out, 0, kCount));
    CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) {
      return library_call(target, arrays, kConfig, {&which, 1}, &runs);
    }));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(note_values(world, notes, which == 1 ? "y" : "z", which == 1 ? b.y : b.z));
  }
  EXPECT(runs == 2);
  return absl::OkStatus();
}

BEHAVIOUR("a buffer is replaced wherever an executable has an address of it") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
  const auto step = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(fill32(target, b.x.data(), 0x40000000u, kCount / 2));
    CGRT_RETURN_IF_ERROR(fill32(target, b.x.as<float>() + kCount / 2, 0x40000000u, kCount / 2));
    CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), b.y.as<float>(), b.x.as<float>(), 3.0f, kCount / 2));
    CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), b.y.as<float>() + kCount / 2,
                                b.x.as<float>() + kCount / 2, 3.0f, kCount / 2));
    return copy(target, b.w.data(), b.y.data(), b.y.size_bytes());
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "w", b.w));
  CGRT_RETURN_IF_ERROR(fill32(stream.ref(), b.y.data(), 0, kCount));

  CGRT_ASSIGN_OR_RETURN(const std::size_t moved, exec.rebind_buffer(b.y.data(), b.y.size_bytes(), b.z.data()));
  notes.line("addresses of y: " + std::to_string(moved));
  CGRT_ASSIGN_OR_RETURN(const std::size_t none, exec.rebind_buffer(b.y.data(), b.y.size_bytes(), b.z.data()));
  notes.line("again: " + std::to_string(none));
  CGRT_ASSIGN_OR_RETURN(const std::size_t half, exec.rebind_buffer(b.w.data(), 1, b.x.data()));
  notes.line("one byte of w: " + std::to_string(half));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "x", b.x));
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "y", b.y));
  CGRT_RETURN_IF_ERROR(note_values(world, notes, "z", b.z));
  CGRT_ASSIGN_OR_RETURN(Graph plain, capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(GraphExec other, instantiate(plain));
  notes.status("plain", other.rebind_buffer(b.y.data(), 64, b.z.data()).status());
  return absl::OkStatus();
}

BEHAVIOUR("uses of a buffer are listed, certain ones and numbers, and those confirmed are replaced") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
  const auto address = reinterpret_cast<std::uint64_t>(b.x.data());
  CGRT_ASSIGN_OR_RETURN(Graph graph, capture(stream.ref(), [&](LaunchTarget target) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), b.y.as<float>(),
                                                      b.x.as<float>() + 2, 3.0f, kCount - 2));
                          CGRT_RETURN_IF_ERROR(launch(target, kConfig, pair_kernel(), b.z.as<float>(),
                                                      PairOfAddresses{b.x.as<float>(), address + 8}, address));
                          return copy(target, b.w.data(), b.x.data(), b.x.size_bytes());
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_ASSIGN_OR_RETURN(std::vector<BufferUse> uses, exec.find_buffer(b.x.data(), b.x.size_bytes()));
  for (const BufferUse& use : uses) {
    notes.line(use.text + ", offset " + std::to_string(use.offset) + (use.is_certain ? ", certain" : ", a number"));
  }
  // The number in the struct, and the one that is no pointer, are the caller's.
  std::erase_if(uses, [](const BufferUse& use) { return !use.is_certain && (use.argument != 1 || use.at != 0); });
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer other, device_floats(world, kCount, 5.0f));
  notes.status("confirmed", exec.rebind_buffer(uses, other.data()));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> y, read_floats(world, b.y));
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> z, read_floats(world, b.z));
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> w, read_floats(world, b.w));
  notes.line("y = " + std::to_string(y[0]) + ", z = " + std::to_string(z[0]) + ", w = " + std::to_string(w[0]));
  CGRT_ASSIGN_OR_RETURN(const std::vector<BufferUse> left, exec.find_buffer(b.x.data(), b.x.size_bytes()));
  notes.line("left: " + std::to_string(left.size()));
  BufferUse wrong = uses.front();
  wrong.argument = 2;
  notes.status("an argument that is no address", exec.rebind_buffer({&wrong, 1}, other.data()));
  wrong.node = NodeRef(nullptr);
  notes.status("no node of it", exec.rebind_buffer({&wrong, 1}, other.data()));
  return absl::OkStatus();
}

BEHAVIOUR("slots and bindings set arguments of built and captured graphs, of any type") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  for (const char* how : {"built", "captured"}) {
    CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
    const auto step = [&](LaunchTarget target) -> absl::Status {
      CGRT_RETURN_IF_ERROR(two_kernels(target, b.first()));
      return launch(target, kConfig, pair_kernel(), b.z.as<float>(), PairOfAddresses{b.x.as<float>(), 3},
                    std::uint64_t{4});
    };
    CGRT_ASSIGN_OR_RETURN(Graph graph, how == std::string("built") ? build(world, step) : capture(stream.ref(), step));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
    CGRT_ASSIGN_OR_RETURN(const KernelNode scale, find_node<KernelNode>(graph, {.name = "scale"}));
    CGRT_ASSIGN_OR_RETURN(const KernelNode pair, find_node<KernelNode>(graph, {.name = "read_pair"}));
    CGRT_ASSIGN_OR_RETURN(const Slot<float> factor, exec.slot<float>(scale, 2));
    CGRT_ASSIGN_OR_RETURN(const Slot<int> count, exec.slot<int>(scale, 3));
    CGRT_ASSIGN_OR_RETURN(const Slot<PairOfAddresses> both, exec.slot<PairOfAddresses>(pair, 1));
    const auto run = [&](const std::string& name) -> absl::Status {
      CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
      CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
      CGRT_ASSIGN_OR_RETURN(const std::vector<float> w, read_floats(world, b.w));
      CGRT_ASSIGN_OR_RETURN(const std::vector<float> z, read_floats(world, b.z));
      notes.line(std::string(how) + ", " + name + ": w = " + std::to_string(w[0]) + ", " +
                 std::to_string(w[kCount - 1]) + ", z = " + std::to_string(z[0]));
      return absl::OkStatus();
    };
    CGRT_RETURN_IF_ERROR(run("as made"));
    CGRT_ASSIGN_OR_RETURN(const Binding first, exec.prepare(step));
    CGRT_RETURN_IF_ERROR(exec.set(factor, 7.0f));
    CGRT_RETURN_IF_ERROR(exec.set(both, PairOfAddresses{b.w.as<float>(), 30}));
    CGRT_RETURN_IF_ERROR(run("two slots set"));
    CGRT_RETURN_IF_ERROR(exec.set(factor, 9.0f));
    CGRT_RETURN_IF_ERROR(exec.set(count, 1));
    CGRT_RETURN_IF_ERROR(run("of one element"));
    CGRT_RETURN_IF_ERROR(exec.set(count, kCount));
    CGRT_RETURN_IF_ERROR(exec.set_grid(pair, Dim3(2)));
    CGRT_RETURN_IF_ERROR(run("another grid"));
    CGRT_RETURN_IF_ERROR(exec.rebind(first));
    CGRT_RETURN_IF_ERROR(run("as prepared"));
    notes.status("another type", exec.slot<double>(scale, 2).status());
    notes.status("no such argument", exec.slot<float>(scale, 4).status());
    notes.status("a grid of 0", exec.set_grid(pair, Dim3(0)));
  }
  return absl::OkStatus();
}

BEHAVIOUR("more nodes than one patch has room for are rebound together") {
  constexpr int kNodes = 3000;
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, device_floats(world, kNodes, 1.0f));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, device_floats(world, kNodes, 0.0f));
  const auto step = [&](LaunchTarget target, int shift, float factor) -> absl::Status {
    for (int i = 0; i < kNodes; ++i) {
      float* const one = out.as<float>() + (i + shift) % kNodes;
      CGRT_RETURN_IF_ERROR(launch(target, {.grid = 1, .block = 32}, scale_kernel(), one, in.as<float>(),
                                  factor * static_cast<float>(i), 1));
    }
    return absl::OkStatus();
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, build(world, [&](LaunchTarget target) { return step(target, 0, 1.0f); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  for (const int changed : {1, 2}) {
    CGRT_RETURN_IF_ERROR(
        exec.rebind([&](LaunchTarget target) { return step(target, 17 * changed, static_cast<float>(changed)); }));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, out));
    int wrong = 0;
    for (int i = 0; i < kNodes; ++i) {
      wrong += values[static_cast<std::size_t>((i + 17 * changed) % kNodes)] != static_cast<float>(changed * i);
    }
    notes.line("wrong: " + std::to_string(wrong));
  }
  return absl::OkStatus();
}

BEHAVIOUR("a graph with a programmatic edge between two kernels is not made rebindable, and says why") {
  CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(two_kernels(cursor.programmatic(), b.first()));
  const absl::Status refused = instantiate_rebindable(graph).status();
  notes.status("refused", refused);
  for (const char* word : {"scale", "add", "programmatic"}) EXPECT(absl::StrContains(refused.message(), word));
  notes.status("plain", instantiate(graph).status());
  return absl::OkStatus();
}

BEHAVIOUR("device-updatable nodes: what the driver refuses of graphs with one") {
  CGRT_ASSIGN_OR_RETURN(Buffers b, Buffers::create(world));
  const auto step = [&](LaunchTarget target) { return two_kernels(target, b.first()); };
  CGRT_ASSIGN_OR_RETURN(Graph graph, build(world, step));
  CGRT_ASSIGN_OR_RETURN(Graph plain, build(world, step));
  CGRT_ASSIGN_OR_RETURN(GraphExec plain_exec, instantiate(plain));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CUgraphExecUpdateResultInfo info{};
  const driver::Api& api = driver::api();
  const auto note = [&](const char* name, CUresult result) { notes.status(name, driver::to_status(result, name)); };
  note("update of an updatable one", api.GraphExecUpdate(exec.get(), plain.ref().get(), &info));
  note("update from an updatable one", api.GraphExecUpdate(plain_exec.get(), graph.ref().get(), &info));
  CUgraph clone = nullptr;
  note("clone", api.GraphClone(&clone, graph.ref().get()));
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
