// Mistakes that no other test noticed when they were put into the library by hand (tests/scripts/mutants.py
// does it by machine for the best known). Each case says which.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

constexpr DeviceRef kDevice(0);
constexpr LaunchConfig kPlain{.grid = {4, 4}, .block = 64};

LaunchConfig with(LaunchAttributes attributes) { return {.grid = {4, 4}, .block = 64, .attributes = attributes}; }

class TrapsTest {
 protected:
  absl::Status step(LaunchTarget target, const LaunchConfig& config = kPlain) {
    return launch(target, config, scale_kernel(), x, x, 2.0f, 1);
  }
  // A chain of kernels with these attributes.
  absl::Status steps(LaunchTarget target, const std::vector<LaunchAttributes>& nodes) {
    for (const LaunchAttributes& attributes : nodes) CGRT_RETURN_IF_ERROR(step(target, with(attributes)));
    return absl::OkStatus();
  }
  Graph built(const std::vector<LaunchAttributes>& nodes) {
    Graph graph = *Graph::create(kDevice);
    Cursor cursor = graph.cursor();
    REQUIRE_OK(steps(cursor, nodes));
    return graph;
  }
  Graph captured(const std::vector<LaunchAttributes>& nodes) {
    return *capture(stream.ref(), [&](StreamRef s) { return steps(s, nodes); });
  }
  UpdateRefusal update(const Graph& from, const Graph& to) { return instantiate(from)->update(to)->refusal; }

  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  Stream other = *Stream::create(kDevice);
  Event event = *Event::create(kDevice);
  DeviceBuffer buffer = *DeviceBuffer::create(kDevice, 4);
  float* x = buffer.as<float>();
};

// ---- attributes that do not survive (traps 3 and 14)

TEST_CASE_METHOD(TrapsTest, "launch attributes survive an add after several nodes", "[traps]") {
  Graph graph = *Graph::create(kDevice);
  KernelNode a = *graph.add_kernel({}, kPlain, scale_kernel(), x, x, 1.0f, 1);
  KernelNode b = *graph.add_kernel({}, kPlain, scale_kernel(), x, x, 1.0f, 1);
  const LaunchConfig clustered = with({.cluster = {2}});

  REQUIRE_OK(graph.add_kernel(after(a, b), clustered, scale_kernel(), x, x, 1.0f, 1));
  REQUIRE_OK(graph.add_kernel({{programmatic(a)}}, clustered, scale_kernel(), x, x, 1.0f, 1));

  const ir::GraphIr shot = *snapshot(graph);
  for (const std::size_t node : {2, 3}) {
    CHECK(std::get<ir::KernelParams>(shot.nodes[node].params).attributes.cluster.x == 2);
  }
  Graph plain = *Graph::create(kDevice);
  KernelNode c = *plain.add_kernel({}, kPlain, scale_kernel(), x, x, 1.0f, 1);
  KernelNode d = *plain.add_kernel({}, kPlain, scale_kernel(), x, x, 1.0f, 1);
  REQUIRE_OK(plain.add_kernel(after(c, d), kPlain, scale_kernel(), x, x, 1.0f, 1));
  REQUIRE_OK(plain.add_kernel({{programmatic(c)}}, kPlain, scale_kernel(), x, x, 1.0f, 1));
  CHECK(update(graph, plain) == UpdateRefusal::kAttributesChanged);
}

TEST_CASE("every launch attribute that is set reaches the driver", "[traps]") {
  char window[16];
  const LaunchAttributes all{.cooperative = true,
                             .cluster = {2},
                             .preferred_cluster = {4, 2},
                             .priority = -1,
                             .mem_sync_domain = MemSyncDomain::kRemote,
                             .shared_carveout_percent = 50,
                             .access_policy = {window, sizeof(window)}};
  CUlaunchAttribute out[internal::kMaxLaunchAttributes];

  const unsigned count = internal::to_driver(all, out);

  std::set<int> ids;
  for (unsigned i = 0; i < count; ++i) ids.insert(out[i].id);
  CHECK(ids == std::set<int>{CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                             CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PRIORITY,
                             CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                             CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW});
}

TEST_CASE_METHOD(TrapsTest, "a captured graph and the same explicit one know the same attributes", "[traps]") {
  const std::vector<LaunchAttributes> nodes = {{}, {.cluster = {2, 2}}, {}, {.priority = -1}};
  const Graph by_capture = captured(nodes), by_hand = built(nodes);

  CHECK(update(by_capture, by_hand) == UpdateRefusal::kNone);
  CHECK(update(by_hand, by_capture) == UpdateRefusal::kNone);
}

TEST_CASE_METHOD(TrapsTest, "a captured kernel with attributes keeps its programmatic edge", "[traps]") {
  const Graph graph = *capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(step(s));
    return step(LaunchTarget(s).programmatic(), with({.cluster = {2}}));
  });

  const ir::GraphIr shot = *snapshot(graph);
  REQUIRE(shot.edges.size() == 1);
  CHECK(shot.edges[0].type == ir::EdgeType::kProgrammatic);
}

TEST_CASE_METHOD(TrapsTest, "attributes that an outer capture is given during an inner one are known", "[traps]") {
  const Graph outer = *capture(stream.ref(), [&](StreamRef s) {
    return capture(other.ref(), [&](StreamRef) { return step(s, with({.cluster = {2}})); }).status();
  });

  CHECK(update(outer, built({{}})) == UpdateRefusal::kAttributesChanged);
}

TEST_CASE_METHOD(TrapsTest, "an update that would lose an attribute is refused wherever the attribute is", "[traps]") {
  using Nodes = std::vector<LaunchAttributes>;
  const LaunchAttributes none, two{.cluster = {2}}, four{.cluster = {4}}, across{.cluster = {1, 4}};
  const std::pair<Nodes, Nodes> differing[] = {
      {{none}, {two}},     // plain to cluster
      {{two}, {none}},     // cluster to plain
      {{two}, {four}},     // cluster to cluster
      {{four}, {across}},  // of as many blocks
      {{two, none}, {none, two}},
      {{two, two}, {two, four}},
      {{two, none}, {two, two}},
  };
  const auto copied = [](const Graph& child) {
    Graph parent = *Graph::create(kDevice);
    REQUIRE_OK(parent.add_empty({}));
    REQUIRE_OK(parent.add_child({}, child));
    return parent;
  };
  const auto moved = [](Graph child) {
    Graph parent = *Graph::create(kDevice);
    REQUIRE_OK(parent.add_child({}, std::move(child)));
    return parent;
  };
  const std::pair<const char*, std::function<Graph(const Nodes&)>> makers[] = {
      {"explicit", [&](const Nodes& nodes) { return built(nodes); }},
      {"captured", [&](const Nodes& nodes) { return captured(nodes); }},
      {"clone", [&](const Nodes& nodes) { return *captured(nodes).clone(); }},
      {"child by copy", [&](const Nodes& nodes) { return copied(built(nodes)); }},
      {"child by move", [&](const Nodes& nodes) { return moved(captured(nodes)); }},
      {"child of a child", [&](const Nodes& nodes) { return copied(copied(built(nodes))); }},
      {"clone of a parent", [&](const Nodes& nodes) { return *copied(built(nodes)).clone(); }},
  };
  for (const auto& [name, make] : makers) {
    int number = 0;
    for (const auto& [from, to] : differing) {
      INFO(name << ", pair " << number++);
      CHECK(update(make(from), make(to)) == UpdateRefusal::kAttributesChanged);
      CHECK(update(make(from), make(from)) == UpdateRefusal::kNone);
      CHECK(update(make(to), make(to)) == UpdateRefusal::kNone);
    }
  }
}

TEST_CASE_METHOD(TrapsTest, "attributes of a child are not taken for those of a node of its parent", "[traps]") {
  const auto parent = [&](const LaunchAttributes& outer, const LaunchAttributes& inner) {
    Graph graph = *Graph::create(kDevice);
    KernelNode first = *graph.add_kernel({}, with(outer), scale_kernel(), x, x, 1.0f, 1);
    REQUIRE_OK(graph.add_child(after(first), built({inner})));
    return graph;
  };
  const LaunchAttributes none, two{.cluster = {2}};

  CHECK(update(parent(two, none), parent(none, two)) == UpdateRefusal::kAttributesChanged);
}

TEST_CASE_METHOD(TrapsTest, "a clone's nodes have their attributes when they are set", "[traps]") {
  Graph graph = *Graph::create(kDevice);
  KernelNode node = *graph.add_kernel({}, with({.cluster = {2}}), scale_kernel(), x, x, 1.0f, 1);
  Graph clone = *graph.clone();
  KernelNode theirs = *clone.find_in_clone(node);
  GraphExec exec = *instantiate(clone);

  CHECK_OK(exec.set_params(theirs, with({.cluster = {2}}), scale_kernel(), x, x, 3.0f, 1));
  CHECK_THAT(exec.set_params(theirs, kPlain, scale_kernel(), x, x, 3.0f, 1),
             StatusIs(absl::StatusCode::kFailedPrecondition));
}

// ---- storage that dies before the call (trap 5)

TEST_CASE_METHOD(TrapsTest, "a node may wait for more nodes than a small array holds", "[traps]") {
  Graph graph = *Graph::create(kDevice);
  std::vector<Dependency> all;
  for (int i = 0; i < 100; ++i) all.emplace_back(*graph.add_kernel({}, kPlain, scale_kernel(), x, x, 1.0f, 1));

  CHECK_OK(graph.add_empty(all));
  for (Dependency& one : all) one.kind = EdgeKind::kProgrammatic;
  CHECK_OK(graph.add_kernel(all, kPlain, scale_kernel(), x, x, 1.0f, 1));

  const ir::GraphIr shot = *snapshot(graph);
  REQUIRE(shot.edges.size() == 200);
  for (const ir::Edge& edge : shot.edges) {
    CHECK((edge.type == ir::EdgeType::kProgrammatic) == (edge.to == 101));
    CHECK(edge.from < 100);
  }
}

// ---- callbacks that fail (trap 7)

TEST_CASE_METHOD(TrapsTest, "a callback that throws ends its capture", "[traps]") {
  const std::size_t before = simulator.live_handles();

  CHECK_THROWS_AS(static_cast<void>(capture(stream.ref(),
                                            [&](StreamRef s) -> absl::Status {
                                              CGRT_RETURN_IF_ERROR(step(s));
                                              throw std::runtime_error("no");
                                            })),
                  std::runtime_error);

  CHECK_FALSE(*stream.ref().is_capturing());
  CHECK(simulator.live_handles() == before);
  CHECK_OK(capture(stream.ref(), [&](StreamRef s) { return step(s); }));
}

TEST_CASE_METHOD(TrapsTest, "unjoined work is named also after an inner capture has failed", "[traps]") {
  Stream side = *Stream::create(kDevice);

  const absl::Status unjoined =
      capture(stream.ref(), [&](StreamRef s) -> absl::Status {
        CHECK_FALSE(capture(other.ref(), [](StreamRef) -> absl::Status { return absl::AbortedError("enough"); }).ok());
        CGRT_RETURN_IF_ERROR(step(s));
        CGRT_RETURN_IF_ERROR(s.record(event.ref()));
        CGRT_RETURN_IF_ERROR(side.ref().wait(event.ref()));
        return step(side.ref());
      }).status();

  CHECK_THAT(unjoined, StatusIs(absl::StatusCode::kFailedPrecondition, "cgrt::testing::scale"));
}

// ---- an executable in flight (trap 9)

TEST_CASE_METHOD(TrapsTest, "launches in flight keep their values and their switched-on nodes", "[traps]") {
  Graph one = *Graph::create(kDevice), two = *Graph::create(kDevice);
  KernelNode node = *one.add_kernel({}, kPlain, scale_kernel(), x, x, 3.0f, 1);
  REQUIRE_OK(two.add_kernel({}, kPlain, scale_kernel(), x, x, 5.0f, 1));
  REQUIRE_OK(fill32(stream.ref(), x, 0x3f800000u, 1));
  REQUIRE_OK(stream.ref().synchronize());
  GraphExec exec = *instantiate(one);

  simulator.hold(stream.ref().get());
  REQUIRE_OK(exec.launch(stream.ref()));
  CHECK(exec.update(two)->rung == UpdateRung::kWholeGraph);
  CHECK_OK(exec.set_enabled(node, NodeState::kDisabled));
  REQUIRE_OK(exec.launch(stream.ref()));
  CHECK_OK(exec.set_enabled(node, NodeState::kEnabled));
  REQUIRE_OK(exec.launch(stream.ref()));
  CHECK_OK(exec.set_enabled(node, NodeState::kDisabled));
  simulator.release(stream.ref().get());
  REQUIRE_OK(stream.ref().synchronize());

  CHECK(*x == 15.0f);
}

TEST_CASE_METHOD(TrapsTest, "a call on an executable waits until another thread's call has returned", "[traps]") {
  Graph graph = *Graph::create(kDevice);
  KernelNode node = *graph.add_kernel({}, kPlain, scale_kernel(), x, x, 1.0f, 1);
  GraphExec exec = *instantiate(graph);
  driver::Instrument instrument;
  std::atomic<bool> is_first = true, is_through = false, was_through = false;
  std::thread late;
  instrument.trace([&](const char* entry, CUresult) {
    if (!std::string_view(entry).starts_with("cuGraph") || !is_first.exchange(false)) return;
    late = std::thread([&] {
      static_cast<void>(exec.enabled(node));
      is_through = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    was_through = is_through.load();
  });
  const auto is_alone = [&](const absl::Status& status) {
    late.join();
    CHECK_OK(status);
    is_first = true;
    is_through = false;
    return !was_through;
  };

  CHECK(is_alone(exec.update(graph).status()));
  CHECK(is_alone(exec.launch(stream.ref())));
  CHECK(is_alone(exec.upload(stream.ref())));
  CHECK(is_alone(exec.set_params(node, kPlain, scale_kernel(), x, x, 2.0f, 1)));
  CHECK(is_alone(exec.set_enabled(node, NodeState::kDisabled)));
  is_first = false;
}

// ---- what is remembered (traps 10 and 15)

TEST_CASE("a suggestion is asked for in each context", "[traps]") {
  Simulator simulator({.device_count = 2});
  driver::Instrument instrument;

  for (const int device : {0, 1, 0, 1}) REQUIRE_OK(suggest_config(scale_kernel(), DeviceRef(device), 100));

  CHECK(instrument.count("cuOccupancyMaxPotentialBlockSize") == 2);
}

TEST_CASE_METHOD(TrapsTest, "kernels, functions and suggestions are asked for again after forget_contexts", "[traps]") {
  driver::Instrument instrument;
  const auto use = [&] {
    REQUIRE_OK(step(stream.ref()));
    REQUIRE_OK(suggest_config(scale_kernel(), kDevice, 100));
  };
  use();
  for (const bool forgets : {false, true, true}) {
    instrument.reset_counts();
    if (forgets) forget_contexts();
    use();
    for (const char* entry : {"ResolveKernel", "cuKernelGetFunction", "cuOccupancyMaxPotentialBlockSize"}) {
      INFO(entry);
      CHECK(instrument.count(entry) == (forgets ? 1 : 0));
    }
  }
}

// ---- children (trap 11)

TEST_CASE_METHOD(TrapsTest, "a child that cannot be moved in stays the caller's", "[traps]") {
  Graph graph = *Graph::create(kDevice), foreign = *Graph::create(kDevice);
  EmptyNode theirs = *foreign.add_empty({});
  const std::size_t before = simulator.live_handles();
  {
    Graph child = captured({{.cluster = {2}}});

    CHECK_THAT(graph.add_child(after(theirs), std::move(child)).status(), StatusIs(absl::StatusCode::kInvalidArgument));
    REQUIRE(child.state() != nullptr);
    CHECK(*child.node_count() == 1);
    CHECK_THAT(graph.cursor(after(theirs)).add_child(std::move(child)), StatusIs(absl::StatusCode::kInvalidArgument));
    REQUIRE(child.state() != nullptr);
    CHECK(*child.node_count() == 1);
    CHECK_OK(instantiate(child));
  }
  CHECK(simulator.live_handles() == before);
}

// ---- other threads' captures (trap 16)

TEST_CASE_METHOD(TrapsTest, "what graphs let go may free memory while streams are captured", "[traps]") {
  struct Freed {
    CUdeviceptr address = 0;
    ~Freed() { CHECK(driver::api().MemFree(address) == CUDA_SUCCESS); }
  };
  const auto graph_with_memory = [&] {
    auto memory = std::make_shared<Freed>();
    ScopedContext current = *ScopedContext::enter(*ContextRef(kDevice).get());
    REQUIRE(driver::api().MemAlloc(&memory->address, 64) == CUDA_SUCCESS);
    std::optional<Graph> graph = *Graph::create(kDevice);
    REQUIRE_OK(graph->keep(std::shared_ptr<const void>(std::move(memory))));
    return graph;
  };
  for (const CaptureMode mode : {CaptureMode::kThreadLocal, CaptureMode::kGlobal}) {
    std::optional<Graph> mine = graph_with_memory(), of_other = graph_with_memory();
    std::size_t released = 0;

    CHECK_OK(capture(
        stream.ref(),
        [&](StreamRef s) {
          mine.reset();
          released += collect_released();
          of_other.reset();
          std::thread([&] { released += collect_released(); }).join();
          return step(s);
        },
        mode));

    CHECK(released == 2);
  }
}

TEST_CASE_METHOD(TrapsTest, "a capture of the default mode does not mind what other threads do", "[traps]") {
  const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) {
    std::thread([&] {
      CHECK_OK(DeviceBuffer::create(kDevice, 64));
      CHECK_OK(other.ref().synchronize());
    }).join();
    return step(s);
  });

  CHECK_OK(graph);
}

TEST_CASE_METHOD(TrapsTest, "an event that is recorded outside of a live capture is no longer captured", "[traps]") {
  CHECK_OK(capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(step(s));
    CGRT_RETURN_IF_ERROR(s.record(event.ref()));
    CHECK(*event.ref().completion() == Completion::kCaptured);
    CGRT_RETURN_IF_ERROR(other.ref().record(event.ref()));
    CHECK(*event.ref().completion() != Completion::kCaptured);
    return absl::OkStatus();
  }));
}

// ---- what is not put back (trap 17)

TEST_CASE_METHOD(TrapsTest, "a query leaves the thread's capture mode as it was, however it ends", "[traps]") {
  const auto exchange = [](CUstreamCaptureMode mode) {
    REQUIRE(driver::api().ThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
    return mode;
  };
  driver::Instrument instrument;
  for (const CUstreamCaptureMode mine : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    const CUstreamCaptureMode before = exchange(mine);
    for (const CUresult answer :
         {CUDA_SUCCESS, CUDA_ERROR_NOT_READY, CUDA_ERROR_CAPTURED_EVENT, CUDA_ERROR_ILLEGAL_ADDRESS}) {
      INFO("mode " << mine << ", answer " << answer);
      instrument.fail_entry("cuEventQuery", answer);
      instrument.fail_entry("cuStreamQuery", answer);
      static_cast<void>(event.ref().completion());
      CHECK(exchange(mine) == mine);
      static_cast<void>(stream.ref().completion());
      CHECK(exchange(mine) == mine);
      { const DeviceBuffer freed = *DeviceBuffer::create(kDevice, 64); }
      CHECK(exchange(mine) == mine);
    }
    exchange(before);
  }
}

// ---- found on the way

struct ClusterTest {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  Stream other = *Stream::create(kDevice);
  Event event = *Event::create(kDevice);
  PinnedBuffer seen = *PinnedBuffer::create(kDevice, 4);
  Graph parent(LaunchAttributes attributes, ChildGraphNode* node = nullptr) {
    Graph child = *Graph::create(kDevice);
    REQUIRE_OK(child.add_kernel({}, with(attributes), cluster_kernel(), seen.as<int>()));
    Graph graph = *Graph::create(kDevice);
    ChildGraphNode added = *graph.add_child({}, child);
    if (node != nullptr) *node = added;
    return graph;
  }
  int run(GraphExec& exec) {
    REQUIRE_OK(exec.launch(stream.ref()));
    REQUIRE_OK(stream.ref().synchronize());
    return *seen.as<int>();
  }
};

TEST_CASE_METHOD(ClusterTest, "a child set later has its own attributes, which an update would lose", "[traps]") {
  ChildGraphNode node(nullptr);
  Graph two = parent({.cluster = {2}}, &node);
  GraphExec exec = *instantiate(two);
  Graph child = *Graph::create(kDevice);
  REQUIRE_OK(child.add_kernel({}, with({.cluster = {4}}), cluster_kernel(), seen.as<int>()));
  REQUIRE_OK(exec.set_params(node, child));
  CHECK(run(exec) == 4);
  const UpdateReport report = *exec.update(two);
  const int now = run(exec);
  // either refused and 4, or taken over and 2
  CHECK((report.rung == UpdateRung::kRefused ? now == 4 : now == 2));
}

TEST_CASE_METHOD(ClusterTest, "attributes that are all at their defaults are none", "[traps]") {
  const LaunchAttributes defaults;
  void* seen_at = seen.data();
  void* arguments[] = {&seen_at};
  Graph a = *Graph::create(kDevice), b = *Graph::create(kDevice);
  REQUIRE_OK(a.add_kernel({}, KernelLaunch{cluster_kernel().identity(), 8, 64, 0, arguments, &defaults}));
  REQUIRE_OK(b.add_kernel({}, kPlain, cluster_kernel(), seen.as<int>()));
  CHECK(instantiate(a)->update(b)->rung == UpdateRung::kWholeGraph);
}

TEST_CASE_METHOD(ClusterTest, "attributes that another thread launches into a capture are known", "[traps]") {
  Graph two = *capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(s.record(event.ref()));
    CGRT_RETURN_IF_ERROR(other.ref().wait(event.ref()));
    absl::Status status;
    std::thread([&] { status = launch(other.ref(), with({.cluster = {2}}), cluster_kernel(), seen.as<int>()); }).join();
    CGRT_RETURN_IF_ERROR(status);
    CGRT_RETURN_IF_ERROR(other.ref().record(event.ref()));
    return s.wait(event.ref());
  });
  Graph plain = *Graph::create(kDevice);
  REQUIRE_OK(plain.add_kernel({}, kPlain, cluster_kernel(), seen.as<int>()));
  CHECK(instantiate(two)->update(plain)->rung == UpdateRung::kRefused);
}

}  // namespace
}  // namespace cgrt::testing
