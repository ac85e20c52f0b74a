// Mistakes that no other test noticed when they were put into the library by hand (tests/scripts/mutants.py
// does it by machine for the best known): launch attributes. Each case says which.
#include <set>
#include <thread>

#include "cgrt/driver/api.h"
#include "unit/traps/traps.h"

namespace cgrt::testing {
namespace {

// ---- attributes that do not survive (traps 3 and 14)

TEST_CASE_METHOD(TrapsTest, "launch attributes survive an add after several nodes", "[traps]") {
  Graph graph = *Graph::create(kDevice);
  KernelNode a = *graph.add_kernel({}, kPlain, scale_kernel(), x, x, 1.0f, 1);
  KernelNode b = *graph.add_kernel({}, kPlain, scale_kernel(), x, x, 1.0f, 1);
  const LaunchConfig clustered = with({.cluster = {2}});

  REQUIRE_OK(graph.add_kernel(after(a, b), clustered, scale_kernel(), x, x, 1.0f, 1));
  REQUIRE_OK(graph.add_kernel({{programmatic(a)}}, clustered, scale_kernel(), x, x, 1.0f, 1));

  const ir::GraphIr shot = *snapshot(graph);
  for (const std::size_t node : {std::size_t{2}, std::size_t{3}}) {
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
  const UpdateReport report = *exec.try_update(two);
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
  CHECK(instantiate(a)->try_update(b)->rung == UpdateRung::kWholeGraph);
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
  CHECK(instantiate(two)->try_update(plain)->rung == UpdateRung::kRefused);
}

}  // namespace
}  // namespace cgrt::testing
