// Parameters that are set node by node, as the recorder of `graphdump run` follows them, on the simulator.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/inspect/json.h"
#include "cgrt/simulator/simulator.h"
#include "inject/environment.h"
#include "inject/node_params.h"
#include "inject/recorder.h"
#include "inject/session.h"
#include "inject/writer.h"
#include "recording/nvtx.h"
#include "sessions.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"
#include "support/test_semaphore.h"

namespace graphdump {
namespace {

namespace fs = std::filesystem;
using namespace cgrt;
using namespace cgrt::testing;

const DeviceRef kDevice(0);
constexpr LaunchConfig kConfig{.grid = 1, .block = 32};
constexpr LaunchConfig kOther{.grid = 4, .block = 64};

// A process has one folder and one session.
const fs::path& folder() {
  static const fs::path& path = *[] {
    auto* made = new fs::path(fs::temp_directory_path() / absl::StrCat("cgrt-followed-", getpid()));
    fs::create_directories(*made);
    setenv(kFolderVariable, made->c_str(), 1);
    setenv(kMinNodesVariable, "2", 1);
    return made;
  }();
  return path;
}

// An executable that the recorder was told of: its calls are.
class Exec {
 public:
  explicit Exec(CUgraph graph) {
    folder();
    number_ = session()->header.execs.load();
    handle_ = reinterpret_cast<CUgraphExec>(std::uintptr_t{0x1000} + number_);
    recorder::on_instantiate(graph, handle_);
    writer::flush();
  }
  explicit Exec(const Graph& graph) : Exec(graph.ref().get()) {}
  ~Exec() { destroy(); }

  CUgraphExec get() const { return handle_; }
  const ExecRecord& record() const { return session()->execs[number_]; }

  void set(NodeRef node, const CUgraphNodeParams& params) const {
    recorder::on_set_params(handle_, node.get(), params);
  }
  void destroy() const {
    recorder::before_exec_destroy(handle_);
    recorder::after_exec_destroy(CUDA_SUCCESS);
  }
  void launch() const {
    recorder::on_launch(handle_, CU_STREAM_LEGACY);
    writer::flush();
  }
  fs::path file(int set) const {
    return folder() / absl::StrCat(file_prefix(), "-", number_, "-set", set, ".cgrt.json");
  }
  ir::GraphIr read(int set) const {
    const absl::StatusOr<ir::GraphIr> graph = inspect::read_file(file(set).string());
    REQUIRE_OK(graph);
    return *graph;
  }

 private:
  std::uint32_t number_ = 0;
  CUgraphExec handle_ = nullptr;
};

CUgraphNodeParams kernel_params(NodeRef node) {
  CUDA_KERNEL_NODE_PARAMS params{};
  REQUIRE(driver::api().GraphKernelNodeGetParams(node.get(), &params) == CUDA_SUCCESS);
  return to_node_params(params);
}

// Two kernels in a row, of which the first scales `memory`.
struct Pair {
  Pair(const DeviceBuffer& memory, float factor, const DeviceBuffer& second_memory, LaunchConfig config = kConfig)
      : first(*graph.add_kernel({}, config, scale_kernel(), memory.as<float>(), memory.as<float>(), factor, 32)),
        second(*graph.add_kernel(after(first), kConfig, scale_kernel(), second_memory.as<float>(),
                                 second_memory.as<float>(), 1.0f, 32)) {}
  Pair(const DeviceBuffer& memory, float factor) : Pair(memory, factor, memory) {}

  Graph graph = *Graph::create(kDevice);
  KernelNode first, second;
};

struct World {
  Simulator simulator;
  DeviceBuffer memory = *DeviceBuffer::create(kDevice, 1024), other = *DeviceBuffer::create(kDevice, 2048);
};

// A node of each kind that can be set.
struct AllKinds {
  AllKinds(float factor, const DeviceBuffer& memory, const Event& event, const ExternalSemaphore& semaphore,
           std::uint64_t value)
      : kernel(*graph.add_kernel({}, kConfig, scale_kernel(), memory.as<float>(), memory.as<float>(), factor, 32)),
        copy(*graph.add_copy(after(kernel), memory.as<char>() + value, memory.data(), 64)),
        fill(*graph.add_fill(after(kernel), {memory.data(), static_cast<std::uint32_t>(value), 4, value})),
        host(*graph.add_host(
            after(kernel), [](void*) {}, memory.data())),
        record(*graph.add_event_record(after(kernel), event.ref())),
        wait(*graph.add_event_wait(after(kernel), event.ref())),
        ops(*graph.add_memory_ops(after(kernel), {write_op(memory.as<std::uint64_t>(), value)})),
        signal(*graph.add_semaphore_signal(after(kernel), {SemaphoreValue{semaphore.get(), value}})),
        semaphore_wait(*graph.add_semaphore_wait(after(kernel), {SemaphoreValue{semaphore.get(), value}})) {}

  Graph graph = *Graph::create(kDevice);
  KernelNode kernel;
  MemcpyNode copy;
  MemsetNode fill;
  HostNode host;
  EventRecordNode record;
  EventWaitNode wait;
  BatchMemOpNode ops;
  SemaphoreSignalNode signal;
  SemaphoreWaitNode semaphore_wait;
};

TEST_CASE("what is set is written with the next launch, for every kind of node") {
  World world;
  const driver::Api& api = driver::api();
  const Event event = *Event::create(kDevice), late_event = *Event::create(kDevice);
  const TestSemaphore made = *TestSemaphore::create(SemaphoreKind::kTimeline);
  const ExternalSemaphore semaphore = *made.imported();
  AllKinds graph(2.0f, world.memory, event, semaphore, 8), wanted(3.0f, world.other, late_event, semaphore, 16);
  const CUcontext context = *ContextRef(kDevice).get();
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS fill{};
  CUDA_HOST_NODE_PARAMS host{};
  CUDA_BATCH_MEM_OP_NODE_PARAMS ops{};
  CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal{};
  CUDA_EXT_SEM_WAIT_NODE_PARAMS wait{};
  REQUIRE(api.GraphMemcpyNodeGetParams(wanted.copy.get(), &copy) == CUDA_SUCCESS);
  REQUIRE(api.GraphMemsetNodeGetParams(wanted.fill.get(), &fill) == CUDA_SUCCESS);
  REQUIRE(api.GraphHostNodeGetParams(wanted.host.get(), &host) == CUDA_SUCCESS);
  REQUIRE(api.GraphBatchMemOpNodeGetParams(wanted.ops.get(), &ops) == CUDA_SUCCESS);
  REQUIRE(api.GraphExternalSemaphoresSignalNodeGetParams(wanted.signal.get(), &signal) == CUDA_SUCCESS);
  REQUIRE(api.GraphExternalSemaphoresWaitNodeGetParams(wanted.semaphore_wait.get(), &wait) == CUDA_SUCCESS);
  ops.ctx = context;
  const Exec exec(graph.graph);

  exec.set(graph.kernel, kernel_params(wanted.kernel));
  exec.set(graph.copy, to_node_params(copy, context));
  exec.set(graph.fill, to_node_params(fill, context));
  exec.set(graph.host, to_node_params(host));
  exec.set(graph.record, to_record_params(late_event.ref().get()));
  exec.set(graph.wait, to_wait_params(late_event.ref().get()));
  exec.set(graph.ops, to_node_params(ops));
  exec.set(graph.signal, to_node_params(signal));
  exec.set(graph.semaphore_wait, to_node_params(wait));
  writer::flush();
  CHECK_FALSE(fs::exists(exec.file(1)));
  exec.launch();

  CHECK(exec.record().not_followed == NotFollowed::kNone);
  CHECK(exec.record().set_params == 9);
  CHECK(exec.read(1) == *snapshot(wanted.graph));
  CHECK(exec.read(1) != *snapshot(graph.graph));
}

TEST_CASE("the first version of a kernel's parameters, which has no context, is followed, too") {
  World world;
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f);
  CUDA_KERNEL_NODE_PARAMS latest{};
  REQUIRE(driver::api().GraphKernelNodeGetParams(wanted.first.get(), &latest) == CUDA_SUCCESS);
  const CUDA_KERNEL_NODE_PARAMS_v1 old{latest.func,         latest.gridDimX,  latest.gridDimY,  latest.gridDimZ,
                                       latest.blockDimX,    latest.blockDimY, latest.blockDimZ, latest.sharedMemBytes,
                                       latest.kernelParams, latest.extra};
  const Exec exec(graph.graph);

  exec.set(graph.first, to_node_params(old));
  exec.launch();

  CHECK(exec.read(1) == *snapshot(wanted.graph));
}

TEST_CASE("changes add up, and three of an executable are written: nothing is kept for it then") {
  World world;
  Pair graph(world.memory, 2.0f);
  const std::size_t before = world.simulator.live_handles();
  const Exec exec(graph.graph);

  exec.launch();
  CHECK_FALSE(fs::exists(exec.file(1)));
  for (int i = 1; i <= 5; ++i) {
    Pair wanted(world.memory, 2.0f + static_cast<float>(i));
    exec.set(i == 2 ? graph.second : graph.first, kernel_params(wanted.first));
    exec.launch();
    exec.launch();
  }

  const Pair second(world.memory, 3.0f), third(world.memory, 5.0f);
  CHECK(exec.read(1) == *snapshot(second.graph));
  ir::GraphIr both = *snapshot(second.graph);
  both.nodes[1] = snapshot(Pair(world.memory, 4.0f).graph)->nodes[0];
  CHECK(exec.read(2) == both);
  both.nodes[0] = snapshot(third.graph)->nodes[0];
  CHECK(exec.read(3) == both);
  CHECK_FALSE(fs::exists(exec.file(4)));
  CHECK(exec.record().set_params == 5);
  CHECK(exec.record().launches == 11);
  CHECK(exec.record().not_followed == NotFollowed::kNone);
  CHECK(world.simulator.live_handles() == before + 2);  // the two graphs above
}

TEST_CASE("a clone ends with its executable") {
  World world;
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f);
  const std::size_t before = world.simulator.live_handles();

  {
    const Exec exec(graph.graph);
    exec.set(graph.first, kernel_params(wanted.first));
    CHECK(world.simulator.live_handles() == before + 1);
  }

  CHECK(world.simulator.live_handles() == before);
}

// The node at `position` of the graph inside of a child graph node.
NodeRef node_inside(NodeRef child, std::size_t position) {
  CUgraph inside = nullptr;
  REQUIRE(driver::api().GraphChildGraphNodeGetGraph(child.get(), &inside) == CUDA_SUCCESS);
  CUgraphNode nodes[2] = {};
  std::size_t count = 2;
  REQUIRE(driver::api().GraphGetNodes(inside, nodes, &count) == CUDA_SUCCESS);
  return NodeRef(nodes[position]);
}

TEST_CASE("a node of a child graph inside of a child graph is followed") {
  World world;
  Pair innermost(world.memory, 2.0f), wanted(world.other, 3.0f);
  Graph middle = *Graph::create(kDevice), graph = *Graph::create(kDevice);
  REQUIRE_OK(middle.add_child({}, innermost.graph));
  const EmptyNode first = *graph.add_empty({});
  const ChildGraphNode outer = *graph.add_child(after(first), middle);
  const ir::GraphIr before = *snapshot(graph);
  const Exec exec(graph);

  exec.set(node_inside(node_inside(outer, 0), 1), kernel_params(wanted.first));
  exec.launch();

  REQUIRE(exec.record().not_followed == NotFollowed::kNone);
  const ir::GraphIr written = exec.read(1);
  REQUIRE(written.nodes.size() == 5);
  CHECK(written.edges == before.edges);
  CHECK(written.bodies == before.bodies);
  const auto& set = std::get<ir::KernelParams>(written.nodes[4].params);
  CHECK(set.arguments == std::get<ir::KernelParams>(snapshot(wanted.graph)->nodes[0].params).arguments);
  CHECK(written.allocations[set.pointers[0].pointer.allocation].bytes == 2048);
  CHECK(written.nodes[3] == before.nodes[3]);
}

TEST_CASE("nodes keep their scopes") {
  World world;
  const Nvtx nvtx;
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f);
  nvtx.push("layer");
  recorder::on_node(graph.second.get());
  nvtx.pop();
  const Exec exec(graph.graph);

  exec.set(graph.first, kernel_params(wanted.first));
  exec.launch();

  CHECK(exec.read(1).nodes[0].scope.empty());
  CHECK(exec.read(1).nodes[1].scope == "layer");
  recorder::on_node(graph.second.get());  // its handle may come back
}

TEST_CASE("a child graph that is set as a whole is not followed") {
  World world;
  Pair child(world.memory, 2.0f), wanted(world.memory, 3.0f);
  Graph graph = *Graph::create(kDevice);
  const ChildGraphNode node = *graph.add_child({}, child.graph);
  const std::size_t before = world.simulator.live_handles();
  const Exec exec(graph);

  exec.set(node, to_child_params(wanted.graph.ref().get()));
  exec.set(node_inside(node, 0), kernel_params(wanted.first));
  exec.launch();

  CHECK(exec.record().not_followed == NotFollowed::kChildGraph);
  CHECK(exec.record().set_params == 2);
  CHECK_FALSE(fs::exists(exec.file(1)));
  CHECK(world.simulator.live_handles() == before);
}

TEST_CASE("nothing is written where the graph was changed after it was instantiated") {
  World world;
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f);
  const auto change =
      GENERATE(as<std::string>(), "a parameter", "a node more", "a node less", "an edge", "a node that is set");
  const Exec exec(graph.graph);

  NodeRef node = graph.first;
  CUgraphNodeParams params = kernel_params(wanted.first);
  if (change == "a parameter") {
    REQUIRE_OK(graph.graph.set_params(graph.second, kConfig, scale_kernel(), world.memory.as<float>(),
                                      world.memory.as<float>(), 5.0f, 32));
  } else if (change == "an edge") {
    REQUIRE_OK(graph.graph.remove_edge(graph.first, graph.second));
  } else if (change == "a node less") {
    REQUIRE_OK(graph.graph.remove(graph.second));
  } else {
    const EmptyNode added = *graph.graph.add_empty({});
    if (change == "a node that is set") {
      node = added;
      params = {};
      params.type = CU_GRAPH_NODE_TYPE_EMPTY;
    }
  }
  exec.set(node, params);
  exec.launch();

  INFO(change);
  CHECK(exec.record().not_followed == NotFollowed::kGraphChanged);
  CHECK_FALSE(fs::exists(exec.file(1)));
}

TEST_CASE("a node that is set to the parameters that the graph was given since is followed") {
  World world;
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f);
  const Exec exec(graph.graph);

  REQUIRE_OK(graph.graph.set_params(graph.first, kConfig, scale_kernel(), world.memory.as<float>(),
                                    world.memory.as<float>(), 3.0f, 32));
  exec.set(graph.first, kernel_params(graph.first));
  exec.launch();

  CHECK(exec.read(1) == *snapshot(wanted.graph));
}

TEST_CASE("a node that is set to other memory, whose own is freed then, is followed") {
  World world;
  std::optional<DeviceBuffer> small = *DeviceBuffer::create(kDevice, 512);
  Pair graph(*small, 2.0f, world.memory), wanted(world.other, 2.0f, world.memory);
  const Exec exec(graph.graph);

  small.reset();
  exec.set(graph.first, kernel_params(wanted.first));
  exec.launch();

  CHECK(exec.record().not_followed == NotFollowed::kNone);
  CHECK(exec.read(1) == *snapshot(wanted.graph));
}

TEST_CASE("a graph whose memory is other than it was is not taken for another graph") {
  World world;
  std::optional<DeviceBuffer> filled = *DeviceBuffer::create(kDevice, 512);
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f);
  for (Graph* one : {&graph.graph, &wanted.graph}) REQUIRE_OK(one->add_fill({}, {filled->data(), 0, 4, 8}));
  const Exec exec(graph.graph);

  filled.reset();
  exec.set(graph.first, kernel_params(wanted.first));
  exec.launch();

  CHECK(exec.record().not_followed == NotFollowed::kNone);
  CHECK(exec.read(1) == *snapshot(wanted.graph));
}

TEST_CASE("a node that is set to memory of its own is followed where others share the memory that it had") {
  World world;
  Pair graph(world.memory, 2.0f), wanted(world.other, 2.0f, world.memory);
  const Exec exec(graph.graph);

  exec.set(graph.first, kernel_params(wanted.first));
  exec.launch();

  CHECK(exec.record().not_followed == NotFollowed::kNone);
  CHECK(exec.read(1) == *snapshot(wanted.graph));
}

TEST_CASE("where the graph is gone, nodes that are set are counted only") {
  World world;
  Pair wanted(world.memory, 3.0f);
  std::optional<Pair> graph(std::in_place, world.memory, 2.0f);
  const Exec exec(graph->graph);
  const NodeRef node = graph->first;

  recorder::before_graph_destroy(graph->graph.ref().get());
  recorder::after_graph_destroy(CUDA_SUCCESS);
  graph.reset();
  Pair at_the_same_address(world.memory, 5.0f);
  const Exec another(at_the_same_address.graph);
  exec.set(node, kernel_params(wanted.first));
  exec.launch();

  CHECK(exec.record().not_followed == NotFollowed::kGraphDestroyed);
  CHECK(exec.record().set_params == 1);
  CHECK_FALSE(fs::exists(exec.file(1)));
}

TEST_CASE("where the graph cannot be cloned, nodes that are set are counted only") {
  World world;
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f);
  REQUIRE_OK(graph.graph.add_if(after(graph.second), *graph.graph.add_conditional_handle(1)));
  const Exec exec(graph.graph);

  exec.set(graph.first, kernel_params(wanted.first));
  exec.set(graph.first, kernel_params(wanted.first));
  exec.launch();

  CHECK(exec.record().not_followed == NotFollowed::kNoClone);
  CHECK(exec.record().set_params == 2);
  CHECK_FALSE(fs::exists(exec.file(1)));
}

TEST_CASE("where the clone's node cannot be set, nodes that are set are counted only") {
  World world;
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f);
  const std::size_t before = world.simulator.live_handles();
  const Exec exec(graph.graph);
  driver::Instrument instrument;
  instrument.fail_entry("cuGraphNodeSetParams", CUDA_ERROR_INVALID_VALUE);

  exec.set(graph.first, kernel_params(wanted.first));
  exec.launch();

  CHECK(exec.record().not_followed == NotFollowed::kRefused);
  CHECK(world.simulator.live_handles() == before);
  CHECK_FALSE(fs::exists(exec.file(1)));
}

TEST_CASE("a graph that is not written is not cloned") {
  World world;
  Graph graph = *Graph::create(kDevice);
  const KernelNode node =
      *graph.add_kernel({}, kConfig, scale_kernel(), world.memory.as<float>(), world.memory.as<float>(), 2.0f, 32);
  const std::size_t before = world.simulator.live_handles();
  const Exec exec(graph);

  exec.set(node, kernel_params(node));

  CHECK(world.simulator.live_handles() == before);
  CHECK(exec.record().not_followed == NotFollowed::kNoFile);
}

TEST_CASE("after a whole-graph update nodes that are set are counted only") {
  World world;
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f), update(world.memory, 4.0f);
  const std::size_t before = world.simulator.live_handles();
  const Exec exec(graph.graph);
  exec.set(graph.first, kernel_params(wanted.first));

  recorder::on_update(exec.get(), update.graph.ref().get(), true);
  exec.launch();
  CHECK(exec.read(1) == *snapshot(wanted.graph));
  recorder::on_update(exec.get(), update.graph.ref().get(), false);
  exec.launch();
  CHECK(exec.record().not_followed == NotFollowed::kNone);
  CHECK(world.simulator.live_handles() == before);
  exec.set(graph.first, kernel_params(wanted.first));
  exec.launch();

  CHECK(exec.record().not_followed == NotFollowed::kUpdated);
  CHECK_FALSE(fs::exists(exec.file(2)));
}

TEST_CASE("the driver is called in relaxed capture mode, and not at all where nothing was or will be written") {
  World world;
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f);
  const CUgraphNodeParams params = kernel_params(wanted.first);
  driver::Instrument instrument;
  std::vector<std::string> calls;
  const auto are_relaxed = [&] {
    const std::vector<std::string> made = std::exchange(calls, {});
    return made.size() > 2 && made.front() == "cuThreadExchangeStreamCaptureMode" && made.back() == made.front() &&
           std::count(made.begin(), made.end(), made.front()) == 2;
  };
  {
    const Exec exec(graph.graph), never_launched(graph.graph);
    instrument.trace([&](const char* entry, CUresult) { calls.emplace_back(entry); });

    exec.launch();
    CHECK(calls.empty());
    for (int i = 0; i < 3; ++i) {
      exec.set(graph.first, params);
      CHECK(are_relaxed());
      exec.launch();
      CHECK(are_relaxed());
      exec.launch();
      CHECK(calls.empty());
    }
    exec.set(graph.first, params);
    exec.launch();
    CHECK(calls.empty());
    never_launched.set(graph.first, params);
    CHECK(are_relaxed());
    never_launched.destroy();
    CHECK(are_relaxed());
  }
}

TEST_CASE("threads follow executables of one graph at once") {
  World world;
  Pair graph(world.memory, 2.0f), wanted(world.memory, 3.0f);
  const CUgraphNodeParams params = kernel_params(wanted.first);
  std::vector<std::unique_ptr<Exec>> execs;
  execs.reserve(4);
  for (int i = 0; i < 4; ++i) execs.push_back(std::make_unique<Exec>(graph.graph));

  std::vector<std::thread> threads;
  threads.reserve(execs.size());
  for (const auto& exec : execs) {
    threads.emplace_back([&graph, &params, one = exec.get()] {
      for (int i = 0; i < 5; ++i) {
        one->set(graph.first, params);
        recorder::on_launch(one->get(), CU_STREAM_LEGACY);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer::flush();

  for (const auto& exec : execs) {
    CHECK(exec->record().not_followed == NotFollowed::kNone);
    CHECK(exec->read(3) == *snapshot(wanted.graph));
  }
}

TEST_CASE("whichever call of the driver fails, what is written is right, and no clone is left") {
  int written = 0, told = 0;
  for (int nth = 0;; ++nth) {
    REQUIRE(nth < 200);
    World world;
    Graph graph = *Graph::create(kDevice), wanted_graph = *Graph::create(kDevice);
    Pair child(world.memory, 2.0f), wanted(world.memory, 3.0f, world.memory, kOther);
    const ChildGraphNode node = *graph.add_child({}, child.graph);
    REQUIRE_OK(wanted_graph.add_child({}, wanted.graph));
    const NodeRef kernel = node_inside(node, 0);
    const CUgraphNodeParams params = kernel_params(wanted.first);
    const std::size_t before = world.simulator.live_handles();
    bool has_failed = false;
    {
      const Exec exec(graph);
      driver::Instrument instrument;
      instrument.fail_call(nth, CUDA_ERROR_OUT_OF_MEMORY);
      exec.set(kernel, params);
      exec.launch();
      has_failed = instrument.failed();
      const char* const entry =
          has_failed ? driver::kEntryNames[static_cast<std::size_t>(instrument.failed_entry())] : "none";
      instrument.fail_call(-1, CUDA_SUCCESS);

      INFO("call " << nth << ": " << entry);
      if (fs::exists(exec.file(1))) {
        CHECK(exec.record().not_followed == NotFollowed::kNone);
        CHECK(exec.read(1) == *snapshot(wanted_graph));
        ++written;
      } else {
        CHECK(exec.record().not_followed != NotFollowed::kNone);
        CHECK(world.simulator.live_handles() == before);
        ++told;
      }
    }
    CHECK(world.simulator.live_handles() == before);
    if (!has_failed) break;
  }
  CHECK(written > 0);
  CHECK(told > 0);
}

// Last: it takes the session.
TEST_CASE("run.json and the summary say what was set, and why it was not followed") {
  const auto [text, notes, files] = take_sessions(folder(), "graphs");
  std::ifstream file(folder() / "run.json");
  const std::string json{std::istreambuf_iterator<char>(file), {}};

  CHECK(text.find(", 9 nodes set\n") != std::string::npos);
  CHECK(text.find(", 2 nodes set (not followed: a child graph was set as a whole)\n") != std::string::npos);
  CHECK(json.find(R"("set_params": 9, "set_enabled": 0, "thread")") != std::string::npos);
  CHECK(json.find(R"("why_not_followed": "a whole-graph update came before")") != std::string::npos);
  CHECK(json.find(R"("why_not_followed": "the graph that it was made of had been destroyed")") != std::string::npos);
  fs::remove_all(folder());
}

}  // namespace
}  // namespace graphdump
