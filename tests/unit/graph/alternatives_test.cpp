// Graphs that hold the nodes of several steps, and what is made of them.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/driver/status.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

struct AlternativesTest {
  // x[1] = (i + 2) x[0], by a kernel of its own block.
  absl::Status step(LaunchTarget target, std::size_t i) const {
    const LaunchConfig config{.grid = 1, .block = i == 0 ? 64u : 32u};
    return launch(target, config, scale_kernel(), x + 1, x, static_cast<float>(i + 2), 1);
  }
  Graph build() const {
    return *build_alternatives(device, 2, [this](LaunchTarget target, std::size_t i) { return step(target, i); });
  }
  float run(GraphExec& exec) {
    REQUIRE_OK(exec.launch(stream));
    REQUIRE_OK(stream.ref().synchronize());
    return x[1];
  }

  AlternativesTest() { x[0] = 1.0f; }

  DeviceRef device{0};
  Simulator simulator;
  Stream stream = *Stream::create(device);
  PinnedBuffer buffer = *PinnedBuffer::create(device, 2 * sizeof(float));
  float* x = buffer.as<float>();
};

TEST_CASE_METHOD(AlternativesTest, "a clone of alternatives has the same alternatives", "[graph][rebind]") {
  const Graph graph = build();

  Graph copy = *graph.clone();

  CHECK_THAT(instantiate(copy).status(), StatusIs(absl::StatusCode::kFailedPrecondition, "build_alternatives"));
  GraphExec exec = *instantiate_rebindable(copy);
  CHECK(run(exec) == 2.0f);
  REQUIRE_OK(exec.rebind([&](LaunchTarget target) { return step(target, 1); }));
  CHECK(run(exec) == 3.0f);
}

TEST_CASE_METHOD(AlternativesTest, "a plain executable takes no alternatives over", "[graph][rebind]") {
  const auto both = [this](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(step(target, 0));
    return step(target, 1);
  };
  const Graph graph = build();
  Graph same_nodes = *capture(stream, both);
  GraphExec exec = *instantiate(same_nodes);
  Graph outer = *Graph::create(device);
  const ChildGraphNode child = *outer.add_child({}, same_nodes);
  GraphExec outer_exec = *instantiate(outer);

  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition, "build_alternatives");
  CHECK_THAT(exec.update(graph), refused);
  CHECK_THAT(exec.update_or_instantiate(graph).status(), refused);
  CHECK_THAT(outer_exec.set_params(child, graph), refused);
}

TEST_CASE_METHOD(AlternativesTest, "copies between other kinds of memory are other nodes", "[graph][rebind]") {
  const DeviceBuffer from = *DeviceBuffer::create(device, 4), to = *DeviceBuffer::create(device, 4);
  REQUIRE_OK(fill32(stream, from.data(), 0x40a00000, 1));  // 5
  const auto copies = [&](LaunchTarget target, std::size_t i) -> absl::Status {
    CGRT_RETURN_IF_ERROR(copy(target, to.data(), i == 0 ? from.data() : x, 4));
    return copy(target, x + 1, to.data(), 4);
  };

  Graph graph = *build_alternatives(device, 2, copies);

  CHECK(*graph.node_count() == 3);
  GraphExec exec = *instantiate_rebindable(graph);
  CHECK(run(exec) == 5.0f);
  REQUIRE_OK(exec.rebind([&](LaunchTarget target) { return copies(target, 1); }));
  CHECK(run(exec) == 1.0f);
  REQUIRE_OK(exec.rebind([&](LaunchTarget target) { return copies(target, 0); }));
  CHECK(run(exec) == 5.0f);
}

TEST_CASE_METHOD(AlternativesTest, "what alternatives cannot have is named with its step", "[graph][rebind]") {
  const auto refused = [&](auto second) {
    return build_alternatives(
               device, 2, [&](LaunchTarget target, std::size_t i) { return i == 0 ? step(target, 0) : second(target); })
        .status();
  };

  CHECK_THAT(refused([](LaunchTarget target) { return allocate_async(target, 64).status(); }),
             StatusIs(absl::StatusCode::kUnimplemented, "Step 1 has a mem alloc"));
  CHECK_THAT(refused([this](LaunchTarget target) { return write_value(target, buffer.as<std::uint32_t>(), 1); }),
             StatusIs(absl::StatusCode::kFailedPrecondition, "batch mem op is in 1 of 2 steps"));
}

TEST_CASE_METHOD(AlternativesTest, "a memory operation of all steps is one node, which each step sets",
                 "[graph][rebind]") {
  const PinnedBuffer words = *PinnedBuffer::create(device, 2 * sizeof(std::uint32_t));
  auto* const word = words.as<std::uint32_t>();
  const auto with_write = [&](LaunchTarget target, std::size_t i) -> absl::Status {
    CGRT_RETURN_IF_ERROR(step(target, i));
    return write_value(target, word + i, static_cast<std::uint32_t>(i + 10));
  };
  Graph graph = *build_alternatives(device, 2, with_write);
  CHECK(list_nodes(graph)->size() == 3);
  GraphExec exec = *instantiate_rebindable(graph);
  word[0] = word[1] = 0;

  CHECK(run(exec) == 2.0f);
  CHECK(word[0] == 10);
  REQUIRE_OK(exec.rebind([&](LaunchTarget target) { return with_write(target, 1); }));
  CHECK(run(exec) == 3.0f);
  CHECK(word[1] == 11);
}

TEST_CASE_METHOD(AlternativesTest, "a binding names no memory of copies that its step leaves out", "[graph][rebind]") {
  DeviceBuffer from = *DeviceBuffer::create(device, 64);
  const DeviceBuffer later = *DeviceBuffer::create(device, 64), to = *DeviceBuffer::create(device, 64);
  const auto with_copy = [&](LaunchTarget target, std::size_t i, const DeviceBuffer& source) -> absl::Status {
    CGRT_RETURN_IF_ERROR(launch(target, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 2.0f, 1));
    return i == 0 ? absl::OkStatus() : copy(target, to.data(), source.data(), 64);
  };
  Graph graph =
      *build_alternatives(device, 2, [&](LaunchTarget target, std::size_t i) { return with_copy(target, i, from); });
  GraphExec exec = *instantiate_rebindable(graph);
  const Binding without = *exec.prepare([&](LaunchTarget target) { return with_copy(target, 0, from); });
  REQUIRE_OK(exec.rebind([&](LaunchTarget target) { return with_copy(target, 1, later); }));
  from = DeviceBuffer();

  REQUIRE_OK(exec.rebind(without));

  CHECK(*exec.enabled(*find_node<MemcpyNode>(graph, {})) == NodeState::kDisabled);
  CHECK(run(exec) == 2.0f);
}

// Kernels with clusters, which the device cannot switch: n[0] and n[1] are the widths of two, and n[2] is a grid.
struct ClustersTest : AlternativesTest {
  static constexpr std::uint32_t kFirst[] = {2, 4};

  absl::Status step(LaunchTarget target, std::size_t i, std::uint32_t grid = 8) const {
    for (std::uint32_t at = 0; at < 2; ++at) {
      const LaunchConfig config{.grid = 8, .block = 64, .attributes = {.cluster = {kFirst[i] << at}}};
      CGRT_RETURN_IF_ERROR(launch(target, config, cluster_kernel(), n + at));
    }
    return launch(target, {.grid = grid, .block = 64, .attributes = {.cluster = {2}}}, grid_kernel(), n + 2);
  }
  std::vector<int> run() {
    REQUIRE_OK(exec.launch(stream));
    REQUIRE_OK(stream.ref().synchronize());
    return {n[0], n[1], n[2]};
  }
  // What is no step: the clusters of both, and another number for each.
  absl::Status rebind_to_all(std::uint32_t grid) {
    return exec.rebind([&](LaunchTarget target) -> absl::Status {
      for (const std::uint32_t width : {2u, 4u, 8u}) {
        const LaunchConfig config{.grid = 8, .block = 64, .attributes = {.cluster = {width}}};
        CGRT_RETURN_IF_ERROR(launch(target, config, cluster_kernel(), n + (width == 8 ? 1 : 0)));
      }
      return launch(target, {.grid = grid, .block = 64, .attributes = {.cluster = {2}}}, grid_kernel(), n + 2);
    });
  }
  absl::Status rebind(std::size_t i, std::uint32_t grid = 8) {
    return exec.rebind([&](LaunchTarget target) { return step(target, i, grid); });
  }

  PinnedBuffer numbers = *PinnedBuffer::create(device, 3 * sizeof(int));
  int* n = numbers.as<int>();
  Graph graph = *build_alternatives(device, 2, [this](LaunchTarget target, std::size_t i) { return step(target, i); });
  GraphExec exec = *instantiate_rebindable(graph);
};

TEST_CASE_METHOD(ClustersTest, "steps with other kernels with clusters have executables of their own",
                 "[graph][rebind]") {
  CHECK(run() == std::vector{2, 4, 8});
  REQUIRE_OK(rebind(1));
  CHECK(run() == std::vector{4, 8, 8});
  driver::Instrument instrument;

  for (const std::size_t step : {0u, 1u, 0u}) {
    REQUIRE_OK(rebind(step));
    CHECK(instrument.count("cuGraphExecNodeSetParams") == 0);
    CHECK(instrument.count("cuGraphNodeSetEnabled") == 0);
    CHECK(run() == (step == 0 ? std::vector{2, 4, 8} : std::vector{4, 8, 8}));
    CHECK(instrument.count("cuStreamWaitEvent") == 0);
    instrument.reset_counts();
  }
  REQUIRE_OK(rebind(1, 16));
  CHECK(instrument.count("cuGraphExecNodeSetParams") == 1);
  CHECK(run() == std::vector{4, 8, 16});
  REQUIRE_OK(rebind(0, 16));  // its grid, which it had before
  CHECK(instrument.count("cuGraphExecNodeSetParams") == 2);
  CHECK(run() == std::vector{2, 4, 16});
}

TEST_CASE_METHOD(ClustersTest, "launches of two steps in two streams run one after the other", "[graph][rebind]") {
  const Stream other = *Stream::create(device);
  REQUIRE_OK(exec.upload(other));
  simulator.hold(stream.ref().get());
  REQUIRE_OK(exec.launch(stream));
  REQUIRE_OK(rebind(1));
  REQUIRE_OK(exec.launch(other));
  for (int i = 0; i < 10; ++i) CHECK(*other.ref().completion() == Completion::kPending);
  simulator.release(stream.ref().get());
  REQUIRE_OK(other.ref().synchronize());

  CHECK(n[0] == 4);
  CHECK(n[1] == 8);
  CHECK(run() == std::vector{4, 8, 8});
}

TEST_CASE_METHOD(ClustersTest, "what is in no step together gets an executable when it is wanted", "[graph][rebind]") {
  REQUIRE_OK(rebind(1));
  driver::Instrument instrument;
  for (const std::uint32_t grid : {16u, 24u}) {
    REQUIRE_OK(rebind_to_all(grid));
    CHECK(instrument.count("cuGraphInstantiateWithParams") == 1);
    CHECK(run() == std::vector{4, 8, static_cast<int>(grid)});
    REQUIRE_OK(rebind(0, grid));
    CHECK(run() == std::vector{2, 4, static_cast<int>(grid)});
  }

  const KernelNode narrow = *find_node<KernelNode>(graph, {.nth = 0});
  REQUIRE_OK(exec.set_enabled(narrow, NodeState::kDisabled));
  n[0] = 0;
  CHECK(run() == std::vector{0, 4, 24});
}

TEST_CASE_METHOD(ClustersTest, "an executable that a rebind makes disturbs no capture", "[graph][rebind]") {
  const absl::StatusOr<Graph> captured = capture(stream, [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(rebind_to_all(16));
    return launch(s, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 2.0f, 1);
  });

  CHECK_OK(captured.status());
  CHECK(run() == std::vector{4, 8, 16});
}

TEST_CASE_METHOD(ClustersTest, "a rebind that fails leaves all steps as they were", "[graph][rebind]") {
  REQUIRE_OK(rebind(1, 16));
  const bool is_step = GENERATE(true, false);
  int refused = 0;
  for (std::int64_t call = 0; call < 200; ++call) {
    absl::Status status;
    {
      driver::Instrument instrument;
      instrument.fail_from(call, CUDA_ERROR_OUT_OF_MEMORY);
      status = is_step ? rebind(0, 4) : rebind_to_all(4);
    }
    if (status.ok()) {
      CHECK(run() == (is_step ? std::vector{2, 4, 4} : std::vector{4, 8, 4}));
      CHECK(refused >= 1);
      return;
    }
    ++refused;
    CHECK(driver::cuda_result(status) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(run() == std::vector{4, 8, 16});
  }
  FAIL("no rebind succeeded");
}

TEST_CASE_METHOD(ClustersTest, "a clone has executables for its steps, too, and one is given away as any other",
                 "[graph][rebind]") {
  exec = GraphExec();
  graph = *build_alternatives(device, 2, [this](LaunchTarget target, std::size_t i) { return step(target, i); });
  Graph copy = *graph.clone();
  graph = Graph();
  exec = *instantiate_rebindable(copy);
  REQUIRE_OK(rebind(1));
  driver::Instrument instrument;
  REQUIRE_OK(rebind(0));
  CHECK(instrument.count("cuGraphNodeSetEnabled") == 0);
  CHECK(run() == std::vector{2, 4, 8});

  const CUgraphExec current = exec.get();
  REQUIRE(std::move(exec).release() == current);
  n[0] = 0;
  REQUIRE(driver::api().GraphLaunch(current, stream.ref().get()) == CUDA_SUCCESS);
  REQUIRE_OK(stream.ref().synchronize());
  CHECK(n[0] == 2);
  CHECK(driver::api().GraphExecDestroy(current) == CUDA_SUCCESS);
}

// Of which nothing is instantiated yet.
struct BuiltClustersTest : ClustersTest {
  BuiltClustersTest() {
    exec = GraphExec();
    graph = *build_alternatives(device, 2, [this](LaunchTarget target, std::size_t i) { return step(target, i); });
  }
  absl::Status set_first_kernel() {
    const KernelNode first = *find_node<KernelNode>(graph, {.nth = 0});
    return graph.set_params(first, {.grid = 8, .block = 64, .attributes = {.cluster = {2}}}, grid_kernel(), n);
  }
};

TEST_CASE_METHOD(BuiltClustersTest, "alternatives of which a kernel was set run it as it was set", "[graph][rebind]") {
  REQUIRE_OK(set_first_kernel());

  exec = *instantiate_rebindable(graph);

  CHECK(run() == std::vector{8, 4, 8});
}

TEST_CASE_METHOD(BuiltClustersTest, "an edit that is refused leaves alternatives as they were", "[graph][rebind]") {
  const NodeRef first = list_nodes(graph)->front().node, last = list_nodes(graph)->back().node;

  CHECK_THAT(graph.add_edge(first, first), StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK_THAT(graph.remove_edge(first, last), StatusIs(absl::StatusCode::kInvalidArgument));

  exec = *instantiate_rebindable(graph);
  REQUIRE_OK(rebind(1));
  driver::Instrument instrument;
  REQUIRE_OK(rebind(0));
  CHECK(instrument.count("cuGraphNodeSetEnabled") == 0);
}

TEST_CASE_METHOD(BuiltClustersTest, "an executable of alternatives is of the graph as it was when it was made",
                 "[graph][rebind]") {
  exec = *instantiate_rebindable(graph);
  REQUIRE_OK(graph.add_kernel({}, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 7.0f, 1));
  REQUIRE_OK(set_first_kernel());
  x[1] = 0.0f;

  REQUIRE_OK(rebind_to_all(16));
  CHECK(run() == std::vector{4, 8, 16});
  CHECK(x[1] == 0.0f);
  const KernelNode narrow = *find_node<KernelNode>(graph, {.nth = 0});
  REQUIRE_OK(exec.set_enabled(narrow, NodeState::kDisabled));
  CHECK(run() == std::vector{4, 8, 16});
}

TEST_CASE_METHOD(BuiltClustersTest, "what alternatives keep lives until the last launch of each step has ended",
                 "[graph][rebind]") {
  collect_released();
  const bool is_clone = GENERATE(false, true), is_cursor = GENERATE(false, true);
  auto resource = std::make_shared<const int>(1);
  const std::weak_ptr<const int> kept = resource;
  REQUIRE_OK(is_cursor ? graph.cursor().keep(std::move(resource)) : graph.keep(std::move(resource)));
  if (is_clone) graph = *graph.clone();
  exec = *instantiate_rebindable(graph);
  simulator.hold(stream.ref().get());
  REQUIRE_OK(exec.launch(stream));

  exec = GraphExec();
  graph = Graph();
  collect_released();
  CHECK_FALSE(kept.expired());

  simulator.release(stream.ref().get());
  REQUIRE_OK(stream.ref().synchronize());
  collect_released();
  CHECK(kept.expired());
}

TEST_CASE_METHOD(AlternativesTest, "programmatic edges that alternatives were given are in their executable",
                 "[graph][rebind]") {
  const auto pair = [&](LaunchTarget target, std::size_t i) -> absl::Status {
    const LaunchConfig config{.grid = 4, .block = 64, .attributes = {.cluster = {i == 0 ? 2u : 4u}}};
    CGRT_RETURN_IF_ERROR(launch(target, config, waiting_kernel(), x + 1, x, 2.0f, 1));
    return launch(target, config, waiting_kernel(), x + 1, x, static_cast<float>(i + 2), 1);
  };
  Graph graph = *build_alternatives(device, 2, pair);
  REQUIRE(add_programmatic_edges(graph)->added == 3);
  GraphExec exec = *instantiate_rebindable(graph);
  driver::Instrument instrument;

  REQUIRE_OK(exec.rebind([&](LaunchTarget target) { return pair(target, 1); }));

  CHECK(instrument.count("cuGraphNodeSetEnabled") == 4);  // of all nodes, whose edges they are
  CHECK(run(exec) == 3.0f);
}

// One executable, as the graph was changed after it was built: the host switches its kernels with clusters.
struct EditedClustersTest : ClustersTest {
  EditedClustersTest() {
    exec = GraphExec();
    graph = *build_alternatives(device, 2, [this](LaunchTarget target, std::size_t i) { return step(target, i); });
    const std::vector<NodeInfo> nodes = *list_nodes(graph);
    CHECK_OK(graph.add_edge(nodes.front().node, nodes.back().node));
    exec = *instantiate_rebindable(graph);
  }
};

TEST_CASE_METHOD(EditedClustersTest, "kernels with clusters are set by the host, where they change",
                 "[graph][rebind]") {
  CHECK(run() == std::vector{2, 4, 8});
  REQUIRE_OK(rebind(1));
  CHECK(run() == std::vector{4, 8, 8});
  driver::Instrument instrument;

  REQUIRE_OK(rebind(1, 16));
  CHECK(instrument.count("cuGraphExecNodeSetParams") == 1);
  CHECK(instrument.count("cuGraphNodeSetEnabled") == 0);
  REQUIRE_OK(rebind(0, 16));
  CHECK(instrument.count("cuGraphExecNodeSetParams") == 2);  // clusters of 4 are in both steps, and write elsewhere
  CHECK(instrument.count("cuGraphNodeSetEnabled") == 2);     // those of 2 and of 8
  CHECK(run() == std::vector{2, 4, 16});
  CHECK(instrument.count("cuLaunchKernelEx") == 0);  // no patch
}

TEST_CASE_METHOD(EditedClustersTest, "a rebind that fails halfway leaves kernels with clusters as they were",
                 "[graph][rebind]") {
  REQUIRE_OK(rebind(1, 16));
  int calls = 0, refused = 0;
  for (bool is_reached = true; is_reached;) {
    absl::Status status;
    {
      driver::Instrument instrument;
      instrument.fail_call(calls++, CUDA_ERROR_OUT_OF_MEMORY);
      status = rebind(0, 4);
      is_reached = instrument.failed();
    }
    if (status.ok()) {  // also where a call failed that gives something back
      CHECK(run() == std::vector{2, 4, 4});
      REQUIRE_OK(rebind(1, 16));
    } else {
      ++refused;
      CHECK(driver::cuda_result(status) == CUDA_ERROR_OUT_OF_MEMORY);
      CHECK(run() == std::vector{4, 8, 16});
    }
  }
  CHECK(refused >= 4);  // two kernels set, two switched
}

TEST_CASE_METHOD(EditedClustersTest, "what a failed rebind could not take back of clusters is sent again",
                 "[graph][rebind]") {
  for (std::int64_t call = 0; call < 100; ++call) {
    REQUIRE_OK(rebind(1, 16));
    absl::Status status;
    {
      driver::Instrument instrument;
      instrument.fail_from(call, CUDA_ERROR_OUT_OF_MEMORY);
      status = rebind(0, 4);
    }
    REQUIRE_OK(rebind(1, 16));  // which changes nothing where the failed one did not
    CHECK(run() == std::vector{4, 8, 16});
    if (status.ok()) return;
  }
  FAIL("no rebind succeeded");
}

}  // namespace
}  // namespace cgrt::testing
