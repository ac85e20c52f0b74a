// What an update answers, and an executable beside a thread that changes its definition.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/loaded_kernels.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

constexpr LaunchConfig kPlain{.grid = 1, .block = 64};

struct UpdateTest {
  Graph graph_of(int empty_nodes) {
    Graph graph = *Graph::create(device);
    for (int i = 0; i < empty_nodes; ++i) REQUIRE_OK(graph.add_empty({}));
    return graph;
  }
  Graph scaling(float factor, int kernels = 1) {
    Graph graph = *Graph::create(device);
    Cursor cursor = graph.cursor();
    for (int i = 0; i < kernels; ++i) REQUIRE_OK(launch(cursor, kPlain, scale_kernel(), x, x, factor, 1));
    return graph;
  }
  float run(GraphExec& exec) {
    *x = 1.0f;
    REQUIRE_OK(exec.launch(stream));
    REQUIRE_OK(stream.ref().synchronize());
    return *x;
  }

  DeviceRef device{0};
  Simulator simulator;
  Stream stream = *Stream::create(device);
  PinnedBuffer buffer = *PinnedBuffer::create(device, 4);
  float* x = buffer.as<float>();
};

TEST_CASE_METHOD(UpdateTest, "a refused update is an error, and the executable is as it was", "[exec][update]") {
  GraphExec exec = *instantiate(scaling(2.0f));

  const absl::Status refused = exec.update(scaling(3.0f, 2));

  CHECK_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition,
                               "cannot take over the other graph: topology changed (1 node here, 2 there)"));
  CHECK(run(exec) == 2.0f);
  CHECK_OK(exec.update(scaling(3.0f)));
  CHECK(run(exec) == 3.0f);
}

TEST_CASE_METHOD(UpdateTest, "try_update answers a refusal with a report", "[exec][update]") {
  GraphExec exec = *instantiate(scaling(2.0f));

  const UpdateReport refused = *exec.try_update(scaling(3.0f, 2));
  const UpdateReport updated = *exec.try_update(scaling(5.0f));

  CHECK(refused.rung == UpdateRung::kRefused);
  CHECK(refused.refusal == UpdateRefusal::kTopologyChanged);
  CHECK_FALSE(refused.text.empty());
  CHECK(updated.rung == UpdateRung::kWholeGraph);
  CHECK(updated.text.empty());
  CHECK(run(exec) == 5.0f);
}

TEST_CASE_METHOD(UpdateTest, "update_or_instantiate updates, or makes the executable anew with its flags",
                 "[exec][update]") {
  GraphExec exec = *instantiate(scaling(2.0f), InstantiateFlags::kUseNodePriority);
  const CUgraphExec first = exec.get();

  CHECK(exec.update_or_instantiate(scaling(3.0f))->rung == UpdateRung::kWholeGraph);
  CHECK(exec.get() == first);
  CHECK(run(exec) == 3.0f);

  Graph two = *Graph::create(device);
  KernelNode node = *two.add_kernel({}, kPlain, scale_kernel(), x, x, 5.0f, 1);
  REQUIRE_OK(two.add_kernel(after(node), kPlain, scale_kernel(), x, x, 5.0f, 1));
  const UpdateReport report = *exec.update_or_instantiate(two);
  CHECK(report.rung == UpdateRung::kInstantiated);
  CHECK(report.refusal == UpdateRefusal::kTopologyChanged);
  CHECK(run(exec) == 25.0f);
  cuuint64_t flags = 0;
  REQUIRE(driver::api().GraphExecGetFlags(exec.get(), &flags) == CUDA_SUCCESS);
  CHECK(flags == CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
  CHECK_OK(exec.set_params(node, kPlain, scale_kernel(), x, x, 7.0f, 1));  // a node of the new definition
  CHECK(run(exec) == 35.0f);
}

TEST_CASE_METHOD(UpdateTest, "an executable made anew leaves its launches in flight alone", "[exec][update]") {
  GraphExec exec = *instantiate(scaling(2.0f));
  *x = 1.0f;
  simulator.hold(stream.ref().get());
  REQUIRE_OK(exec.launch(stream));
  REQUIRE(exec.update_or_instantiate(scaling(5.0f, 2))->rung == UpdateRung::kInstantiated);
  REQUIRE_OK(exec.launch(stream));
  simulator.release(stream.ref().get());
  REQUIRE_OK(stream.ref().synchronize());

  CHECK(*x == 50.0f);
}

TEST_CASE_METHOD(UpdateTest, "a refusal counts the executable's nodes, not those that its definition has by now",
                 "[exec][update]") {
  Graph graph = graph_of(1);
  GraphExec exec = *instantiate(graph);
  for (int i = 0; i < 4; ++i) REQUIRE_OK(graph.add_empty({}));

  CHECK_THAT(exec.update(graph_of(2)), StatusIs(absl::StatusCode::kFailedPrecondition, "(1 node here, 2 there)"));
  CHECK_THAT(exec.update(graph), StatusIs(absl::StatusCode::kFailedPrecondition, "(1 node here, 5 there)"));
}

TEST_CASE_METHOD(UpdateTest, "a refusal numbers the node that it is about, inside of child graphs too",
                 "[exec][update]") {
  const auto chain = [&](bool ends_in_fill) {
    Graph graph = graph_of(1);
    Cursor cursor = graph.cursor();
    CHECK_OK(ends_in_fill ? fill32(cursor, x, 0, 1) : launch(cursor, kPlain, scale_kernel(), x, x, 2.0f, 1));
    return graph;
  };
  const auto around = [&](const Graph& child) {
    Graph graph = graph_of(2);
    REQUIRE_OK(graph.add_child({}, child));
    return graph;
  };

  CHECK_THAT(instantiate(chain(false))->update(chain(true)),
             StatusIs(absl::StatusCode::kFailedPrecondition, "node type changed, at memset (node 1) of that graph."));
  CHECK_THAT(instantiate(around(chain(false)))->update(around(chain(true))),
             StatusIs(absl::StatusCode::kFailedPrecondition, "node type changed, at memset (node 2/1) of that graph."));
}

// Under TSan a read of the definition would be a race: its owner is the only one who may touch it now.
TEST_CASE_METHOD(UpdateTest, "an executable is updated and set while another thread changes its definition",
                 "[exec][update]") {
  const LaunchConfig two{.grid = 2, .block = 64, .attributes = {.cluster = {2}}};
  const auto kernel = [&](Graph& graph) { return *graph.add_kernel({}, two, scale_kernel(), x, x, 2.0f, 1); };
  for (const bool is_captured : {false, true}) {
    Graph child = *Graph::create(device);
    kernel(child);
    Graph definition =
        is_captured ? *capture(stream, [&](StreamRef s) { return launch(s, two, scale_kernel(), x, x, 2.0f, 1); })
                    : *Graph::create(device);
    std::optional<ChildGraphNode> place;
    if (!is_captured) place = *definition.add_child({}, child);
    GraphExec exec = *instantiate(definition);
    std::atomic<bool> is_over = false;
    std::thread owner([&] {
      while (!is_over) {
        Cursor cursor = definition.cursor();
        if (!launch(cursor, two, scale_kernel(), x, x, 1.0f, 1).ok() || !definition.add_child({}, child).ok()) break;
      }
    });
    for (int i = 0; i < 50; ++i) {
      CHECK_FALSE(exec.update(graph_of(3)).ok());
      if (place.has_value()) CHECK_OK(exec.set_params(*place, child));
    }
    is_over = true;
    owner.join();
  }
}

// CUDA wants calls about one graph one after the other.
TEST_CASE_METHOD(UpdateTest,
                 "a graph is given what it keeps, handles and parameters while its executable is first updated",
                 "[exec][update]") {
  const std::string_view change =
      GENERATE("cuGraphRetainUserObject", "cuGraphConditionalHandleCreate", "cuGraphKernelNodeGetParams");
  Graph definition = *capture(stream, [&](StreamRef s) { return launch(s, kPlain, scale_kernel(), x, x, 2.0f, 1); });
  GraphExec exec = *instantiate(definition);
  const Graph other = *capture(stream, [&](StreamRef s) { return launch(s, kPlain, scale_kernel(), x, x, 3.0f, 1); });
  const KernelNode node = *find_node<KernelNode>(definition, {.nth = 0});
  const auto make_change = [&] {
    if (change == "cuGraphRetainUserObject") return definition.keep(std::make_shared<int>(0));
    if (change == "cuGraphConditionalHandleCreate") return definition.add_conditional_handle(1).status();
    return definition.set_params(node, kPlain, scale_kernel(), x, x, 4.0f, 1);
  };
  thread_local bool is_owner = false;
  std::optional<std::thread> owner;
  std::atomic<bool> is_begun = false, is_changed = false;
  bool is_changed_meanwhile = false;
  absl::Status status;
  driver::Instrument instrument;
  instrument.trace([&](std::string_view entry, CUresult) {
    if (is_owner && entry == change) is_changed = true;
    if (entry != "cuGraphGetNodes" || owner.has_value()) return;  // the update reads the definition from here on
    owner.emplace([&] {
      is_owner = is_begun = true;
      status = make_change();
    });
    constexpr int kTurns = 10000;
    for (int turns = 0; !is_changed && turns < kTurns; turns += is_begun ? 1 : 0) std::this_thread::yield();
    is_changed_meanwhile = is_changed;
  });

  CHECK_OK(exec.update(other));

  REQUIRE(owner.has_value());
  owner->join();
  CHECK_OK(status);
  CHECK(is_changed);
  CHECK_FALSE(is_changed_meanwhile);
}

TEST_CASE_METHOD(UpdateTest, "what a graph could not be given calls this library as it dies", "[graph]") {
  Graph graph = *Graph::create(device), other = *Graph::create(device);
  absl::Status called = absl::UnknownError("");
  std::shared_ptr<const int> resource(new int(0), [&](const int* owned) {
    delete owned;
    called = other.add_conditional_handle(1).status();
  });
  driver::Instrument instrument;
  instrument.fail_entry("cuUserObjectCreate", CUDA_ERROR_OUT_OF_MEMORY);

  CHECK_FALSE(graph.keep(std::move(resource)).ok());

  CHECK_OK(called);
}

TEST_CASE_METHOD(UpdateTest, "an update that would lose attributes asks the driver about nothing that is known",
                 "[exec][update]") {
  driver::Instrument instrument;
  const auto calls = [&](GraphExec& exec, const Graph& graph) {
    instrument.reset_counts();
    REQUIRE_OK(exec.update(graph));
    return instrument.total();
  };
  const auto record = [&](float factor) {
    return *capture(stream, [&](StreamRef s) -> absl::Status {
      for (int i = 0; i < 10; ++i) CGRT_RETURN_IF_ERROR(launch(s, kPlain, scale_kernel(), x, x, factor, 1));
      return fill32(s, x, 0, 1);
    });
  };
  const Graph a = record(1.0f), b = record(2.0f);
  GraphExec exec = *instantiate(a);

  // Once for each captured graph: how many nodes it has, and what its first kernel has from its stream.
  CHECK(calls(exec, b) == 1 + 2 * 5);
  CHECK(calls(exec, b) == 1);
  CHECK(calls(exec, a) == 1);
}

TEST_CASE_METHOD(UpdateTest, "graphs and executables are given up and taken over", "[exec][graph]") {
  Graph graph = scaling(2.0f);
  const CUgraph raw = std::move(graph).release();
  REQUIRE(raw != nullptr);
  CHECK_THAT(graph.node_count().status(), StatusIs(absl::StatusCode::kFailedPrecondition, "empty"));
  const Graph adopted = *Graph::adopt(raw, device);

  GraphExec exec = *instantiate(adopted);
  const CUgraphExec raw_exec = std::move(exec).release();
  CHECK_THAT(exec.launch(stream), StatusIs(absl::StatusCode::kFailedPrecondition, "empty"));
  CHECK_THAT(GraphExec::adopt(nullptr, adopted).status(), StatusIs(absl::StatusCode::kInvalidArgument, "null"));
  GraphExec again = *GraphExec::adopt(raw_exec, adopted);
  CHECK(run(again) == 2.0f);
  CHECK_OK(again.update(scaling(3.0f)));
  CHECK(run(again) == 3.0f);
  CHECK(std::move(exec).release() == nullptr);
}

TEST_CASE_METHOD(UpdateTest, "a graph that was given up takes children in, and stays the caller's", "[exec][graph]") {
  const std::size_t before = simulator.live_handles();
  {
    Graph graph = graph_of(1);
    Cursor cursor = graph.cursor();
    std::optional<GraphExec> exec = *instantiate(graph);
    const CUgraph raw = std::move(graph).release();
    REQUIRE_OK(cursor.add_child(scaling(2.0f)));
    exec.reset();
    CHECK(simulator.live_handles() == before + 1);
    CHECK(driver::api().GraphDestroy(raw) == CUDA_SUCCESS);
  }
  CHECK(simulator.live_handles() == before);
}

GraphExec* observed = nullptr;

TEST_CASE_METHOD(UpdateTest, "whoever observes a new executable may use the one that it is for", "[exec]") {
  GraphExec exec = *instantiate(scaling(2.0f));
  const CUgraphExec old = exec.get();
  observed = &exec;
  set_instantiate_observer([](const Graph&) { CHECK(observed->get() != nullptr); });

  const absl::StatusOr<UpdateReport> report = exec.update_or_instantiate(scaling(3.0f, 2));

  set_instantiate_observer(nullptr);
  REQUIRE_OK(report);
  CHECK(report->rung == UpdateRung::kInstantiated);
  CHECK(exec.get() != old);
  CHECK(run(exec) == 9.0f);
}

TEST_CASE_METHOD(UpdateTest, "a graph with a child that was moved in is given up whole", "[exec][graph]") {
  const std::size_t before = simulator.live_handles();
  {
    Graph parent = graph_of(1);
    Graph child = scaling(2.0f);
    REQUIRE_OK(parent.add_child({}, std::move(child)));
    const CUgraph raw = std::move(parent).release();
    CHECK(simulator.live_handles() == before + 1);
    CHECK(driver::api().GraphDestroy(raw) == CUDA_SUCCESS);
  }
  CHECK(simulator.live_handles() == before);
}

TEST_CASE_METHOD(UpdateTest, "an executable of a graph inside goes on when the node around it is removed",
                 "[exec][graph]") {
  Graph child = *capture(stream, [&](StreamRef s) { return launch(s, kPlain, scale_kernel(), x, x, 2.0f, 1); });
  GraphExec exec = *instantiate(child);
  Graph parent = graph_of(1);
  const ChildGraphNode node = *parent.add_child({}, std::move(child));

  REQUIRE_OK(parent.remove(node));

  CHECK(run(exec) == 2.0f);
  CHECK_OK(
      exec.update(*capture(stream, [&](StreamRef s) { return launch(s, kPlain, scale_kernel(), x, x, 3.0f, 1); })));
  CHECK(run(exec) == 3.0f);
  CHECK_THAT(exec.guard_addresses(), StatusIs(absl::StatusCode::kFailedPrecondition, "is gone with the node"));
  CHECK_THAT(exec.find_blockers(scaling(3.0f)).status(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_CASE_METHOD(UpdateTest, "blockers are looked for in the graph that an executable was made from, not in another",
                 "[exec][update]") {
  Graph graph = *Graph::create(device);
  std::vector<KernelNode> nodes;
  for (int i = 0; i < 3; ++i) nodes.push_back(*graph.add_kernel({}, kPlain, scale_kernel(), x, x, 2.0f, 1));
  const Graph same = *graph.clone();
  const auto is_asked_after = [&](auto edit) {
    GraphExec exec = *instantiate(graph);
    CHECK(exec.find_blockers(*graph.clone())->empty());
    REQUIRE_OK(edit());
    CHECK_THAT(exec.find_blockers(same).status(),
               StatusIs(absl::StatusCode::kFailedPrecondition, "have been removed or added since"));
    return exec;
  };
  GraphExec first = is_asked_after([&] { return graph.add_edge(nodes[0], nodes[1]); });
  CHECK_OK(first.update(same));
  is_asked_after([&] { return graph.remove_edge(nodes[0], nodes[1]); });
  is_asked_after([&] { return graph.remove(nodes[2]); });
}

TEST_CASE_METHOD(UpdateTest, "blockers are not looked for in a graph whose nodes were edited inside",
                 "[exec][update]") {
  const auto add_kernel_to = [&](Cursor place) { return launch(place, kPlain, scale_kernel(), x, x, 2.0f, 1); };
  const auto is_edited = StatusIs(absl::StatusCode::kFailedPrecondition, "have been removed or added since");
  Graph innermost = *Graph::create(device);
  Graph inner = *Graph::create(device);
  Graph graph = *Graph::create(device);
  const Cursor in_innermost = innermost.cursor(), in_inner = inner.cursor();
  REQUIRE_OK(inner.add_child({}, std::move(innermost)));
  REQUIRE_OK(graph.add_child({}, std::move(inner)));
  const CUgraphConditionalHandle handle = *graph.add_conditional_handle(1);
  Conditional conditional = *graph.add_if({}, handle);
  Graph& body = conditional.bodies[0];
  std::vector<KernelNode> nodes;
  for (int i = 0; i < 2; ++i) nodes.push_back(*body.add_kernel({}, kPlain, scale_kernel(), x, x, 2.0f, 1));
  const std::vector<std::function<absl::Status()>> edits = {
      [&] { return add_kernel_to(in_innermost); },
      [&] { return add_kernel_to(in_inner); },
      [&] { return body.add_empty({}).status(); },
      [&] { return body.add_edge(nodes[0], nodes[1]); },
      [&] { return body.remove(nodes[1]); },
      [&] {
        Cursor place = body.cursor();
        return capture_into(place, stream, [&](StreamRef s) { return fill32(s, x, 7u, 1); });
      },
      [&] { return graph.remove(conditional.node); },
  };
  const Graph other = scaling(3.0f);

  for (const auto& edit : edits) {
    GraphExec exec = *instantiate(graph);
    CHECK_OK(exec.find_blockers(other));
    REQUIRE_OK(edit());
    CHECK_THAT(exec.find_blockers(other).status(), is_edited);
  }
  Graph growing = scaling(2.0f);
  GraphExec exec = *instantiate(growing);
  Conditional later = *growing.add_if({}, *growing.add_conditional_handle(1));
  REQUIRE_OK(add_kernel_to(later.bodies[0].cursor()));
  CHECK(exec.find_blockers(other)->empty());  // of the nodes that the executable has
}

// What is left of these needs an event behind its launches.
TEST_CASE_METHOD(UpdateTest, "a child graph is set to one of loaded kernels and back, beside another that has them",
                 "[exec]") {
  const auto loaded = [&](float factor) {
    const Library library = *Library::load(device, loaded_ptx());
    Graph graph = *Graph::create(device);
    REQUIRE_OK(graph.add_kernel({}, kPlain, *library.kernel<loaded_scale>("scale"), x, x, factor, 1));
    return graph;
  };
  Graph graph = *Graph::create(device);
  const ChildGraphNode first = *graph.add_child({}, scaling(2.0f));
  const ChildGraphNode second = *graph.add_child({first}, scaling(3.0f));
  GraphExec exec = *instantiate(graph);
  REQUIRE_OK(exec.set_params(first, loaded(5.0f)));
  REQUIRE_OK(exec.set_params(second, loaded(7.0f)));
  CHECK(run(exec) == 35.0f);

  REQUIRE_OK(exec.set_params(first, scaling(2.0f)));
  CHECK(run(exec) == 14.0f);
  CHECK(run(exec) == 14.0f);
  REQUIRE_OK(exec.set_params(second, scaling(3.0f)));
  CHECK(run(exec) == 6.0f);
}

TEST_CASE_METHOD(UpdateTest, "programmatic edges that were added or removed are edges that were edited",
                 "[exec][update]") {
  const bool is_inside = GENERATE(false, true);
  const auto make = [&](bool is_programmatic) {
    Graph pair = *Graph::create(device);
    Cursor cursor = pair.cursor();
    for (int i = 0; i < 2; ++i) {
      const LaunchTarget target = is_programmatic ? cursor.programmatic() : LaunchTarget(cursor);
      REQUIRE_OK(launch(target, kPlain, waiting_kernel(), x, x, 2.0f, 1));
    }
    if (!is_inside) return pair;
    Graph outer = *Graph::create(device);
    REQUIRE_OK(outer.add_child({}, std::move(pair)));
    return outer;
  };
  const auto is_edited = StatusIs(absl::StatusCode::kFailedPrecondition, "have been removed or added since");

  Graph full = make(false);
  GraphExec exec = *instantiate(full);
  REQUIRE(add_programmatic_edges(full)->added == 1);
  CHECK_THAT(exec.find_blockers(make(false)).status(), is_edited);
  CHECK_OK(exec.update(make(false)));

  Graph programmatic = make(true);
  exec = *instantiate(programmatic);
  REQUIRE(*remove_programmatic_edges(programmatic) == 1);
  CHECK_THAT(exec.find_blockers(make(true)).status(), is_edited);
  CHECK_OK(exec.update(make(true)));

  exec = *instantiate(programmatic);
  REQUIRE(*remove_programmatic_edges(programmatic) == 0);
  CHECK(exec.find_blockers(make(false))->empty());
}

TEST_CASE_METHOD(UpdateTest, "what differs in conditional nodes, operations and allocations is a blocker",
                 "[exec][update]") {
  enum class Kind { kIf, kIfElse, kWhile, kSwitch };
  const auto conditional = [&](Kind kind, int kernels = 1, LaunchAttributes attributes = {}) {
    Graph graph = *Graph::create(device);
    const CUgraphConditionalHandle handle = *graph.add_conditional_handle(1);
    Conditional node = *(kind == Kind::kIf       ? graph.add_if({}, handle)
                         : kind == Kind::kIfElse ? graph.add_if_else({}, handle)
                         : kind == Kind::kWhile  ? graph.add_while({}, handle)
                                                 : graph.add_switch({}, handle, 1));
    Cursor cursor = node.bodies.back().cursor();
    for (int i = 0; i < kernels; ++i) {
      const LaunchConfig config{.grid = 2, .block = 64, .attributes = attributes};
      REQUIRE_OK(launch(cursor, config, scale_kernel(), x, x, 2.0f, 1));
    }
    return graph;
  };
  const auto writes = [&](std::size_t count) {
    Graph graph = *Graph::create(device);
    REQUIRE_OK(graph.add_memory_ops({}, std::vector(count, write_op(reinterpret_cast<std::uint32_t*>(x), 1u))));
    return graph;
  };
  const auto allocating = [&](std::size_t bytes) {
    Graph graph = *Graph::create(device);
    const GraphAllocation memory = *graph.add_alloc({}, bytes);
    REQUIRE_OK(graph.add_free({memory.node}, memory.address));
    return graph;
  };
  const auto check = [&](const Graph& ours, const Graph& theirs, UpdateRefusal refusal, const std::string& text) {
    GraphExec exec = *instantiate(ours);
    const std::vector<UpdateBlocker> blockers = *exec.find_blockers(theirs);
    REQUIRE(blockers.size() == 1);
    CHECK(blockers[0].refusal == refusal);
    CHECK(blockers[0].text == text);
    CHECK(exec.try_update(theirs)->refusal == refusal);
  };

  check(conditional(Kind::kIf), conditional(Kind::kWhile), UpdateRefusal::kParametersChanged,
        "conditional (node 0): its kind is while, in the executable if");
  check(conditional(Kind::kIf), conditional(Kind::kSwitch), UpdateRefusal::kParametersChanged,
        "conditional (node 0): its kind is switch, in the executable if");
  check(conditional(Kind::kIf), conditional(Kind::kIfElse), UpdateRefusal::kParametersChanged,
        "conditional (node 0): its number of bodies is 2, in the executable 1");
  check(conditional(Kind::kIfElse), conditional(Kind::kIfElse, 2), UpdateRefusal::kTopologyChanged,
        "kernel \"cgrt::testing::scale\" (node 0/1/1) is in the other graph alone");
  check(conditional(Kind::kIfElse), conditional(Kind::kIfElse, 1, {.cluster = {2}}), UpdateRefusal::kAttributesChanged,
        "kernel \"cgrt::testing::scale\" (node 0/1/0): its cluster is (2, 1, 1), in the executable (1, 1, 1)");
  check(writes(1), writes(2), UpdateRefusal::kParametersChanged,
        "batch mem op (node 0) has 2 operations, in the executable 1");
  check(allocating(64), allocating(1024), UpdateRefusal::kParametersChanged,
        "mem alloc (node 0) has 1024 bytes, in the executable 64");
  CHECK(instantiate(conditional(Kind::kSwitch))->find_blockers(conditional(Kind::kSwitch))->empty());
  CHECK(instantiate(writes(2))->find_blockers(writes(2))->empty());
  CHECK(instantiate(allocating(64))->find_blockers(allocating(64))->empty());
}

TEST_CASE_METHOD(UpdateTest, "a refusal counts nodes where the counts differ", "[exec][update]") {
  const auto around = [&](int nodes) {
    Graph graph = *Graph::create(device);
    REQUIRE_OK(graph.add_child({}, graph_of(nodes)));
    return graph;
  };

  CHECK_THAT(instantiate(around(1))->update(around(2)),
             StatusIs(absl::StatusCode::kFailedPrecondition, "topology changed. Instantiate that graph anew."));
}

TEST_CASE_METHOD(UpdateTest, "a guard that was asked for is that of an executable made anew as well", "[exec]") {
  GraphExec exec = *instantiate(scaling(2.0f));
  observed = &exec;
  // As another thread might, between the refusal and the exchange.
  set_instantiate_observer([](const Graph&) {
    set_instantiate_observer(nullptr);
    CHECK_OK(observed->guard_addresses());
  });
  REQUIRE_OK(exec.update_or_instantiate(scaling(3.0f, 2)));
  CHECK(run(exec) == 9.0f);

  buffer = PinnedBuffer();

  CHECK_THAT(exec.launch(stream), StatusIs(absl::StatusCode::kFailedPrecondition, "were freed"));
}

TEST_CASE_METHOD(UpdateTest, "a guarded executable names a node that its graph is without by now", "[exec]") {
  Graph graph = scaling(2.0f);
  const KernelNode node = *find_node<KernelNode>(graph, {.nth = 0});
  GraphExec exec = *instantiate(graph);
  REQUIRE_OK(exec.guard_addresses());
  REQUIRE_OK(graph.remove(node));
  buffer = PinnedBuffer();

  driver::Instrument instrument;
  CHECK_THAT(exec.launch(stream), StatusIs(absl::StatusCode::kFailedPrecondition, "of kernel \"cgrt::testing::scale"));
  CHECK(instrument.count("cuGraphNodeGetType") == 0);
}

TEST_CASE("what is captured into a graph runs in the context of its stream", "[exec][graph]") {
  Simulator simulator{{.device_count = 2}};
  const PinnedBuffer buffer = *PinnedBuffer::create(DeviceRef(0), 4);
  const auto step = [&](StreamRef s) { return fill32(s, buffer.data(), 7u, 1); };
  const Stream first = *Stream::create(DeviceRef(0)), second = *Stream::create(DeviceRef(1));
  Graph graph = *Graph::create(DeviceRef(0));
  Cursor cursor = graph.cursor();
  REQUIRE_OK(capture_into(cursor, second, step));
  GraphExec exec = *instantiate(graph);

  CHECK_OK(exec.update(*capture(second, step)));
  CHECK_FALSE(exec.update(*capture(first, step)).ok());
}

TEST_CASE("a kernel of another device is set there", "[exec][graph]") {
  Simulator simulator{{.device_count = 2}};
  const PinnedBuffer buffer = *PinnedBuffer::create(DeviceRef(0), 4);
  float* const x = buffer.as<float>();
  const Stream second = *Stream::create(DeviceRef(1));
  Graph graph = *Graph::create(DeviceRef(0));
  Cursor cursor = graph.cursor();
  REQUIRE_OK(
      capture_into(cursor, second, [&](StreamRef s) { return launch(s, kPlain, scale_kernel(), x, x, 2.0f, 1); }));
  const KernelNode node = *find_node<KernelNode>(graph, {.nth = 0});
  GraphExec exec = *instantiate(graph);

  REQUIRE_OK(graph.set_params(node, kPlain, scale_kernel(), x, x, 3.0f, 1));

  CHECK_OK(exec.update(graph));  // in which a node keeps its context
  *x = 1.0f;
  REQUIRE_OK(exec.launch(second));
  REQUIRE_OK(second.ref().synchronize());
  CHECK(*x == 3.0f);
}

TEST_CASE_METHOD(UpdateTest, "counters say how far down the ladder an executable went", "[exec][update]") {
  Graph graph = *Graph::create(device);
  const KernelNode node = *graph.add_kernel({}, kPlain, scale_kernel(), x, x, 2.0f, 1);
  GraphExec exec = *instantiate(graph);

  REQUIRE_OK(exec.set_params(node, kPlain, scale_kernel(), x, x, 3.0f, 1));
  for (int i = 0; i < 2; ++i) REQUIRE_OK(exec.update(scaling(4.0f)));
  CHECK_FALSE(exec.update(scaling(4.0f, 2)).ok());
  REQUIRE_OK(exec.try_update(scaling(4.0f, 3)));
  REQUIRE_OK(exec.update_or_instantiate(scaling(4.0f)));
  REQUIRE_OK(exec.update_or_instantiate(scaling(4.0f, 2)));

  const UpdateCounts counts = exec.take_counts();
  CHECK(counts.set == 1);
  CHECK(counts.updated == 3);
  CHECK(counts.refused == 2);
  CHECK(counts.instantiated == 1);
  CHECK(exec.take_counts().updated == 0);
  CHECK(GraphExec().take_counts().updated == 0);
}

}  // namespace
}  // namespace cgrt::testing
