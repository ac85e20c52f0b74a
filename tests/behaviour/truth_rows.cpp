// What this library says of captures, events, attributes and children is what the driver has, whoever made it: other
// threads, other libraries, raw handles.
#include <optional>
#include <thread>

#include "absl/strings/match.h"
#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

constexpr LaunchConfig kPlain{.grid = 8, .block = 64};
constexpr LaunchConfig kTwo{.grid = 8, .block = 64, .attributes = {.cluster = {2}}};
constexpr LaunchConfig kFour{.grid = 8, .block = 64, .attributes = {.cluster = {4}}};

// A kernel's word for the cluster that it ran in.
struct Seen {
  static absl::StatusOr<Seen> create(World& world) {
    Seen seen;
    CGRT_ASSIGN_OR_RETURN(seen.stream, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(seen.buffer, PinnedBuffer::create(world.device(), sizeof(int)));
    return seen;
  }
  int* data() const { return buffer.as<int>(); }
  absl::Status launch(LaunchTarget target, const LaunchConfig& config) const {
    return cgrt::launch(target, config, cluster_kernel(), data());
  }
  absl::Status note(Notes& notes, const std::string& name, GraphExec& exec) const {
    *data() = -1;
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    notes.line(name + ": cluster of " + std::to_string(*data()));
    return absl::OkStatus();
  }
  Stream stream;
  PinnedBuffer buffer;
};

// As another library launches: not through this one.
absl::Status launch_raw(StreamRef stream, const LaunchConfig& config, int* out) {
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, stream.context());
  const driver::ResolvedFunction* function = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::resolve_function(*cluster_kernel().identity(), context, &function),
                                         "cuKernelGetFunction"));
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {config.attributes.cluster.x, 1, 1};
  CUlaunchConfig raw{};
  raw.gridDimX = config.grid.x;
  raw.gridDimY = raw.gridDimZ = 1;
  raw.blockDimX = config.block.x;
  raw.blockDimY = raw.blockDimZ = 1;
  raw.hStream = stream.get();
  raw.attrs = &cluster;
  raw.numAttrs = 1;
  void* arguments[] = {&out};
  return driver::to_status(driver::api().LaunchKernelEx(&raw, function->function, arguments, nullptr),
                           "cuLaunchKernelEx");
}

// ---- events

BEHAVIOUR("an event that was recorded in an outer capture during an inner one may be asked") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream inner, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));

  const absl::StatusOr<Graph> outer = capture(seen.stream, [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(seen.launch(s, kPlain));
    notes.status("inner capture", capture(inner, [&](StreamRef) { return s.record(event); }).status());
    notes.completion("event", event.ref().completion());
    return absl::OkStatus();
  });

  notes.status("outer capture", outer.status());
  notes.completion("event after", event.ref().completion());
  return absl::OkStatus();
}

BEHAVIOUR("an event that another thread recorded in a stream of the capture may be asked") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream side, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event fork, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event join, Event::create(world.device()));

  for (const CaptureMode mode : {CaptureMode::kThreadLocal, CaptureMode::kGlobal, CaptureMode::kRelaxed}) {
    const absl::StatusOr<Graph> graph = capture(
        seen.stream,
        [&](StreamRef s) -> absl::Status {
          CGRT_RETURN_IF_ERROR(seen.launch(s, kPlain));
          CGRT_RETURN_IF_ERROR(s.record(fork));
          absl::Status worker;
          std::thread([&] {
            worker = side.ref().wait(fork);
            if (worker.ok()) worker = seen.launch(side, kPlain);
            if (worker.ok()) worker = side.ref().record(join);
            notes.completion("on that thread", join.ref().completion());
          }).join();
          CGRT_RETURN_IF_ERROR(worker);
          notes.completion("on this thread", join.ref().completion());
          notes.status("synchronize", join.ref().synchronize());
          return s.wait(join);
        },
        mode);
    notes.status("capture", graph.status());
    if (graph.ok()) CGRT_RETURN_IF_ERROR(notes.graph("graph", *graph));
  }
  return absl::OkStatus();
}

BEHAVIOUR("an event that was recorded through its raw handle may be asked during a capture") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream other, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device(), EventTiming::kEnabled));
  const auto record = [&](StreamRef stream) {
    return driver::to_status(driver::api().EventRecord(event.ref().get(), stream.get()), "cuEventRecord");
  };

  const absl::StatusOr<Graph> graph = capture(seen.stream, [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(record(s));
    notes.completion("in the capture", event.ref().completion());
    notes.completion("as a bare handle", EventRef(event.ref().get()).completion());
    CGRT_RETURN_IF_ERROR(record(other));
    EXPECT(event.ref().completion().value_or(Completion::kCaptured) != Completion::kCaptured);
    return absl::OkStatus();
  });

  notes.status("capture", graph.status());
  return other.ref().synchronize();
}

BEHAVIOUR("an event of a capture that cuStreamBeginCapture began ends that capture when it is asked") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));
  const CUstream stream = seen.stream.ref().get();
  const driver::Api& api = driver::api();
  CGRT_RETURN_IF_ERROR(
      driver::to_status(api.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture"));
  CGRT_RETURN_IF_ERROR(seen.stream.ref().record(event));

  notes.completion("event", event.ref().completion());

  CUgraph graph = nullptr;
  notes.status("end", driver::to_status(api.StreamEndCapture(stream, &graph), "cuStreamEndCapture"));
  return absl::OkStatus();
}

// ---- which call ended a capture

BEHAVIOUR("a refused launch ends the capture that it is made in, and is what the capture reports") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  const std::pair<const char*, LaunchConfig> refused[] = {
      {"block of 2048", {.grid = 1, .block = 2048}},
      {"cluster of 16", {.grid = 32, .block = 64, .attributes = {.cluster = {16}}}},
      {"grid no multiple of the cluster", {.grid = 3, .block = 64, .attributes = {.cluster = {2}}}},
      {"too many cooperative blocks", {.grid = 1000000, .block = 64, .attributes = {.cooperative = true}}},
      {"too much shared memory", {.grid = 1, .block = 64, .shared_bytes = 1 << 20}},
  };
  for (const auto& [name, config] : refused) {
    const std::string what = name;
    for (const bool is_raw : {false, true}) {
      if (is_raw && config.attributes.cluster == Dim3()) continue;
      const absl::StatusOr<Graph> graph = capture(seen.stream, [&](StreamRef s) -> absl::Status {
        notes.status(what, is_raw ? launch_raw(s, config, seen.data()) : seen.launch(s, config));
        notes.status("another launch", seen.launch(s, kPlain));
        return absl::OkStatus();
      });
      notes.status("capture", graph.status());
      EXPECT(absl::StrContains(graph.status().message(), "The capture was ended by a call inside it"));
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("a failure that a callback recovers from is not blamed for what ended the capture later") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  CGRT_ASSIGN_OR_RETURN(const DeviceBuffer x, DeviceBuffer::create(world.device(), 64));
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, ContextRef(world.device()).get());
  const auto recovered = [&](StreamRef s) -> absl::Status {
    const FillParams refused{
        .destination = x.data(), .value = 0, .element_bytes = 4, .count = 4, .height = 2, .pitch = 3};
    notes.status("refused memset", fill(s, refused));
    return seen.launch(s, kPlain);
  };
  const auto allocate_raw = [&]() -> absl::Status {  // as a library does, inside
    CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
    CUdeviceptr address = 0;
    static_cast<void>(driver::api().MemAlloc(&address, 64));
    return absl::OkStatus();
  };

  const absl::Status alone = capture(seen.stream, recovered).status();
  notes.status("the refused memset alone", alone);
  const absl::Status ours = capture(seen.stream, [&](StreamRef s) -> absl::Status {
                              CGRT_RETURN_IF_ERROR(recovered(s));
                              static_cast<void>(DeviceBuffer::create(world.device(), 64));
                              return absl::OkStatus();
                            }).status();
  notes.status("then an allocation of this library", ours);
  EXPECT(absl::StrContains(ours.message(), "cuMemAlloc"));
  const absl::Status theirs = capture(seen.stream, [&](StreamRef s) -> absl::Status {
                                CGRT_RETURN_IF_ERROR(recovered(s));
                                CGRT_RETURN_IF_ERROR(allocate_raw());
                                notes.status("a launch afterwards", seen.launch(s, kPlain));
                                return absl::OkStatus();
                              }).status();
  notes.status("then an allocation of another library", theirs);
  EXPECT(absl::StrContains(theirs.message(), "not made through cgrt in this thread"));
  return absl::OkStatus();
}

BEHAVIOUR("a stream that never forked cannot join, and is told how") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream other, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));

  const absl::Status captured = capture(seen.stream, [&](StreamRef s) -> absl::Status {
                                  CGRT_RETURN_IF_ERROR(seen.launch(other, kPlain));
                                  CGRT_RETURN_IF_ERROR(other.ref().record(event));
                                  const absl::Status wait = s.wait(event);
                                  notes.status("wait", wait);
                                  EXPECT(absl::StrContains(wait.message(), "has not joined it"));
                                  return absl::OkStatus();
                                }).status();

  notes.status("capture", captured);
  return other.ref().synchronize();
}

// ---- attributes

absl::Status note_update(Notes& notes, const std::string& name, GraphExec& exec, const Graph& graph) {
  CGRT_ASSIGN_OR_RETURN(const UpdateReport report, exec.try_update(graph));
  notes.line(name + ": " + (report.rung == UpdateRung::kRefused ? to_string(report.refusal) : "updated"));
  return absl::OkStatus();
}

BEHAVIOUR("the legacy default stream joins no capture") {
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, ContextRef(world.device()).get());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));
  absl::Status wait;
  const absl::Status captured = capture(stream, [&](StreamRef s) -> absl::Status {
                                  CGRT_RETURN_IF_ERROR(s.record(event));
                                  wait = StreamRef::legacy_default().wait(event);
                                  return absl::OkStatus();
                                }).status();
  notes.status("wait", wait);
  notes.status("capture", captured);
  return StreamRef(stream).synchronize();
}

BEHAVIOUR("launches with attributes elsewhere do not make identical captures differ") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream high, Stream::create(world.device(), {.priority = -3}));
  CGRT_ASSIGN_OR_RETURN(const Stream noise, Stream::create(world.device()));
  for (const bool is_raw : {false, true}) {
    for (const Stream* stream : {&seen.stream, &high}) {
      const auto record = [&](bool has_noise) {
        return capture(*stream, [&](StreamRef s) -> absl::Status {
          CGRT_RETURN_IF_ERROR(is_raw ? launch_raw(s, kTwo, seen.data()) : seen.launch(s, kPlain));
          if (!has_noise) return absl::OkStatus();
          CGRT_RETURN_IF_ERROR(seen.launch(noise, kTwo));
          absl::Status status;
          std::thread([&] { status = seen.launch(noise, kTwo); }).join();
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
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  const auto record = [&](const LaunchConfig& config) {
    return capture(seen.stream, [&](StreamRef s) -> absl::Status {
      CGRT_RETURN_IF_ERROR(seen.launch(s, kPlain));
      return launch_raw(s, config, seen.data());
    });
  };
  CGRT_ASSIGN_OR_RETURN(const Graph two, record(kTwo));
  CGRT_ASSIGN_OR_RETURN(const Graph two_again, record(kTwo));
  CGRT_ASSIGN_OR_RETURN(const Graph four, record(kFour));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(two));

  CGRT_RETURN_IF_ERROR(note_update(notes, "the same", exec, two_again));
  CGRT_RETURN_IF_ERROR(note_update(notes, "another cluster", exec, four));
  return seen.note(notes, "then", exec);
}

BEHAVIOUR("an adopted graph has the attributes that the driver has") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  const auto adopt = [&](const LaunchConfig& config) -> absl::StatusOr<Graph> {
    CGRT_ASSIGN_OR_RETURN(Graph graph, capture(seen.stream, [&](StreamRef s) { return seen.launch(s, config); }));
    return Graph::adopt(std::move(graph).release(), world.device());
  };
  CGRT_ASSIGN_OR_RETURN(const Graph two, adopt(kTwo));
  CGRT_ASSIGN_OR_RETURN(const Graph four, adopt(kFour));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(seen.launch(built.cursor(), kTwo));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(two));
  CUgraphNode node = nullptr;
  std::size_t count = 1;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphGetNodes(two.ref().get(), &node, &count), "cuGraphGetNodes"));

  CGRT_RETURN_IF_ERROR(note_update(notes, "the same graph, built", exec, built));
  notes.status("the node's own attributes", exec.set_params(KernelNode(node), kTwo, cluster_kernel(), seen.data()));
  notes.status("others", exec.set_params(KernelNode(node), kFour, cluster_kernel(), seen.data()));
  CGRT_RETURN_IF_ERROR(note_update(notes, "another cluster, adopted", exec, four));
  CGRT_RETURN_IF_ERROR(seen.note(notes, "then", exec));
  CGRT_ASSIGN_OR_RETURN(GraphExec adopted, GraphExec::adopt(std::move(exec).release(), two));
  CGRT_RETURN_IF_ERROR(note_update(notes, "another cluster, adopted executable", adopted, four));
  return seen.note(notes, "then", adopted);
}

BEHAVIOUR("what was clamped, compiled in or inherited compares as what it is") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
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
      CGRT_RETURN_IF_ERROR(seen.launch(target, {.grid = 8, .block = 64, .attributes = attributes}));
      return launch(target, kPlain, paired_kernel(), seen.data());
    };
    CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
    Cursor cursor = built.cursor();
    CGRT_RETURN_IF_ERROR(step(cursor));
    CGRT_ASSIGN_OR_RETURN(const Graph captured, capture(seen.stream, step));
    CGRT_ASSIGN_OR_RETURN(const Graph inherited, capture(high, step));
    for (const InstantiateFlags flags : {InstantiateFlags::kNone, InstantiateFlags::kUseNodePriority}) {
      const std::string with = what + (flags == InstantiateFlags::kNone ? "" : ", priorities of nodes");
      CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(built, flags));
      if (flags == InstantiateFlags::kNone)
        CGRT_RETURN_IF_ERROR(note_update(notes, with + ", built <- captured", exec, captured));
      CGRT_RETURN_IF_ERROR(
          note_update(notes, with + ", built <- captured from a stream of priority -3", exec, inherited));
      CGRT_RETURN_IF_ERROR(seen.note(notes, with, exec));
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("a node is set with its own attributes, also those that it inherited, and with no others") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream high, Stream::create(world.device(), {.priority = -3}));
  CGRT_ASSIGN_OR_RETURN(const Graph graph, capture(high, [&](StreamRef s) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(seen.launch(s, kPlain));
                          return launch(s, kPlain, paired_kernel(), seen.data());
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CUgraphNode nodes[2] = {};
  std::size_t count = 2;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphGetNodes(graph.ref().get(), nodes, &count), "nodes"));
  const auto set = [&](const char* name, int node, Kernel<int*> kernel, LaunchAttributes attributes) {
    notes.status(name, exec.set_params(KernelNode(nodes[node]), {.grid = 8, .block = 64, .attributes = attributes},
                                       kernel, seen.data()));
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
  return seen.note(notes, "then", exec);
}

// ---- children

BEHAVIOUR("a child that was moved in keeps its nodes, cursors and executables, also after its parent") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
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
    CGRT_RETURN_IF_ERROR(one->launch(seen.stream));
    CGRT_RETURN_IF_ERROR(seen.stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, x));
    notes.line("x = " + std::to_string(values[0]));
  }
  return absl::OkStatus();
}

BEHAVIOUR("nodes of a child have the attributes of what the child was set to") {
  CGRT_ASSIGN_OR_RETURN(const Seen seen, Seen::create(world));
  for (const bool is_moved : {true, false}) {
    const std::string kind = is_moved ? "moved" : "copied";
    CGRT_ASSIGN_OR_RETURN(Graph child, Graph::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(KernelNode node, child.add_kernel({}, kTwo, cluster_kernel(), seen.data()));
    CGRT_ASSIGN_OR_RETURN(Graph two, child.clone());
    CGRT_ASSIGN_OR_RETURN(Graph four, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(seen.launch(four.cursor(), kFour));
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
      notes.status(kind + ", " + name, exec.set_params(node, config, cluster_kernel(), seen.data()));
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
    CGRT_RETURN_IF_ERROR(seen.note(notes, kind, exec));
  }
  return absl::OkStatus();
}

// ---- occupancy

BEHAVIOUR("where no block fits, no configuration is suggested") {
  using SharedBytes = std::size_t (*)(int);
  const std::pair<const char*, SharedBytes> cases[] = {
      {"300 KiB", [](int) { return std::size_t{300} << 10; }},
      {"60 KiB, which needs an opt-in", [](int) { return std::size_t{60} << 10; }},
      {"4 GiB", [](int) { return (std::size_t{1} << 32) + 16; }},
      {"100 bytes a thread", [](int threads) { return std::size_t{100} * static_cast<std::size_t>(threads); }},
  };
  for (const auto& [name, bytes] : cases) {
    const absl::StatusOr<LaunchConfig> config = suggest_config(add_kernel(), world.device(), 1000, bytes);
    notes.status(name, config.status());
    if (config.ok()) {
      notes.line("  block " + std::to_string(config->block.x) + " shared " + std::to_string(config->shared_bytes));
    }
  }
  notes.status("occupancy of 60,000 bytes without an opt-in",
               occupancy(add_kernel(), world.device(), Dim3(64), 60000).status());
  notes.status("a cooperative launch of that",
               max_cooperative_blocks(add_kernel(), world.device(), Dim3(64), 60000).status());
  notes.status("a block of 4 x 10^9 threads",
               available_shared_bytes(add_kernel(), world.device(), Dim3(65536, 65536), 1).status());
  notes.status("with the opt-in", set_max_shared_bytes(add_kernel(), world.device(), 65536));
  notes.status("occupancy of 60,000 bytes", occupancy(add_kernel(), world.device(), Dim3(64), 60000).status());
  return absl::OkStatus();
}

BEHAVIOUR("an argument lies at a multiple of its alignment") {
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const PinnedBuffer out, PinnedBuffer::create(world.device(), 64));
  Aligned in;
  for (int i = 0; i < 64; ++i) in.bytes[i] = static_cast<unsigned char>(i);
  const auto step = [&](LaunchTarget target) {
    return launch(target, LaunchConfig{.grid = 1, .block = 64}, aligned_kernel(), out.as<unsigned char>(), in);
  };
  CGRT_RETURN_IF_ERROR(step(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  notes.line("eager: the last byte is " + std::to_string(out.as<unsigned char>()[63]));
  CGRT_ASSIGN_OR_RETURN(const Graph graph, capture(stream, step));
  out.as<unsigned char>()[63] = 0;
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  notes.line("captured: the last byte is " + std::to_string(out.as<unsigned char>()[63]));
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
