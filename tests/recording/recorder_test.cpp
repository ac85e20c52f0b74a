// The recorder of `graphdump run`, told by hand what CUPTI would tell it, on the simulator.

#include "inject/recorder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/inspect/json.h"
#include "cgrt/simulator/simulator.h"
#include "inject/environment.h"
#include "inject/session.h"
#include "inject/writer.h"
#include "recording/nvtx.h"
#include "sessions.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace graphdump {
namespace {

namespace fs = std::filesystem;
using namespace cgrt;
using namespace cgrt::testing;

const DeviceRef kDevice(0);
constexpr LaunchConfig kConfig{.grid = 1, .block = 32};

// A process has one folder and one session.
const fs::path& folder() {
  static const fs::path& path = *[] {
    auto* made = new fs::path(fs::temp_directory_path() / absl::StrCat("cgrt-recorder-", getpid()));
    fs::create_directories(*made);
    setenv(kFolderVariable, made->c_str(), 1);
    setenv(kMinNodesVariable, "2", 1);
    return made;
  }();
  return path;
}

// Its number in the session.
std::uint32_t instantiate_as(CUgraphExec exec, const Graph& graph) {
  const std::uint32_t number = session()->header.execs.load();
  recorder::on_instantiate(graph.ref().get(), exec);
  writer::flush();
  return number;
}

absl::StatusOr<ir::GraphIr> read(std::uint32_t number) {
  INFO(session()->execs[number].why_no_file);
  REQUIRE(session()->execs[number].file[0] != 0);
  return inspect::read_file((folder() / session()->execs[number].file).string());
}

CUgraphExec handle(std::uintptr_t value) { return reinterpret_cast<CUgraphExec>(value); }

TEST_CASE("a graph is written when it is instantiated, and what is done with it is counted") {
  folder();
  Simulator simulator;
  DeviceBuffer buffer = *DeviceBuffer::create(kDevice, 1024);
  Graph graph = *Graph::create(kDevice);
  const KernelNode first =
      *graph.add_kernel({}, kConfig, scale_kernel(), buffer.as<float>(), buffer.as<float>(), 2.0f, 256);
  REQUIRE_OK(graph.add_kernel({first}, kConfig, scale_kernel(), buffer.as<float>(), buffer.as<float>(), 3.0f, 256));

  const std::uint32_t number = instantiate_as(handle(0x1000), graph);
  recorder::on_launch(handle(0x1000));
  recorder::on_launch(handle(0x1000));
  recorder::on_exec_call(handle(0x1000), recorder::ExecCall::kSetEnabled);
  recorder::on_launch(handle(0x2000));  // not seen

  const ExecRecord& record = session()->execs[number];
  CHECK(record.nodes == 2);
  CHECK(record.launches == 2);
  CHECK(record.set_enabled == 1);
  CHECK(record.thread == gettid());
  CHECK(record.capture_thread == 0);
  const absl::StatusOr<ir::GraphIr> written = read(number);
  REQUIRE_OK(written);
  CHECK(*written == *snapshot(graph));
}

TEST_CASE("a node has the ranges that were open when it was made, and loses them when its handle comes back") {
  folder();
  Simulator simulator;
  const Nvtx nvtx;
  Graph graph = *Graph::create(kDevice);
  const EmptyNode a = *graph.add_empty({});
  const EmptyNode b = *graph.add_empty({a});

  CHECK(nvtx.push("layer/0") == 0);
  recorder::on_node(b.get());
  CHECK(nvtx.push("attention") == 1);
  recorder::on_node(a.get());
  CHECK(nvtx.pop() == 1);
  CHECK(nvtx.pop() == 0);
  CHECK(nvtx.pop() < 0);
  const absl::StatusOr<ir::GraphIr> first = read(instantiate_as(handle(0x3000), graph));
  recorder::on_node(a.get());
  const absl::StatusOr<ir::GraphIr> second = read(instantiate_as(handle(0x3001), graph));

  REQUIRE_OK(first);
  CHECK(first->nodes[0].scope == "layer|0/attention");
  CHECK(first->nodes[1].scope == "layer|0");
  REQUIRE_OK(second);
  CHECK(second->nodes[0].scope.empty());
  CHECK(second->nodes[1].scope == "layer|0");
}

TEST_CASE("captured nodes have the ranges of their time, also in a graph that had nodes before") {
  folder();
  Simulator simulator;
  const Nvtx nvtx;
  const driver::Api& api = driver::api();
  Stream stream = *Stream::create(kDevice);
  DeviceBuffer buffer = *DeviceBuffer::create(kDevice, 1024);
  const CUstream raw = stream.ref().get();
  const auto fill = [&] { REQUIRE_OK(fill32(stream, buffer.data(), 0, 256)); };
  REQUIRE(api.StreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS);
  recorder::on_capture_begin(raw, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

  fill();
  nvtx.push("layer");
  fill();
  fill();
  nvtx.pop();
  fill();
  CUgraph captured = nullptr;
  REQUIRE(api.StreamEndCapture(raw, &captured) == CUDA_SUCCESS);
  CHECK(recorder::on_capture_end(raw, captured, CUDA_SUCCESS));
  Graph graph = *Graph::adopt(captured, kDevice);
  const std::uint32_t number = instantiate_as(handle(0x3100), graph);
  const absl::StatusOr<ir::GraphIr> written = read(number);
  recorder::on_graph_destroy(captured);
  const std::uint32_t again = instantiate_as(handle(0x3200), graph);

  REQUIRE_OK(written);
  REQUIRE(written->nodes.size() == 4);
  CHECK(written->nodes[0].scope.empty());
  CHECK(written->nodes[1].scope == "layer");
  CHECK(written->nodes[2].scope == "layer");
  CHECK(written->nodes[3].scope.empty());
  CHECK(session()->execs[number].capture_thread == gettid());
  CHECK(session()->execs[again].capture_thread == 0);  // another graph could be at this address by now
}

TEST_CASE("a conditional node is written with the bodies that were seen being made") {
  folder();
  Simulator simulator;
  DeviceBuffer buffer = *DeviceBuffer::create(kDevice, 1024);
  Graph graph = *Graph::create(kDevice);
  const absl::StatusOr<CUgraphConditionalHandle> value = graph.add_conditional_handle(1);
  REQUIRE_OK(value);
  absl::StatusOr<Conditional> node = graph.add_if({}, *value);
  REQUIRE_OK(node);
  REQUIRE_OK(
      node->bodies[0].add_kernel({}, kConfig, scale_kernel(), buffer.as<float>(), buffer.as<float>(), 2.0f, 256));
  CUgraph body = node->bodies[0].ref().get();
  CUDA_CONDITIONAL_NODE_PARAMS params{};
  params.handle = *value;
  params.type = CU_GRAPH_COND_TYPE_IF;
  params.size = 1;
  params.phGraph_out = &body;
  params.ctx = *ContextRef(kDevice).get();

  recorder::on_conditional_handle(params.handle, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  recorder::on_node(node->node.get());
  recorder::on_conditional(node->node.get(), params);
  const std::uint32_t number = instantiate_as(handle(0x4000), graph);

  const absl::StatusOr<ir::GraphIr> written = read(number);
  REQUIRE_OK(written);
  CHECK(*written == *snapshot(graph));
  CHECK(written->bodies.size() == 1);
}

TEST_CASE("an update is written with its number, and a refused one is counted") {
  folder();
  Simulator simulator;
  Graph graph = *Graph::create(kDevice);
  REQUIRE_OK(graph.add_empty({}));
  REQUIRE_OK(graph.add_empty({}));
  const std::uint32_t number = instantiate_as(handle(0x5000), graph);

  recorder::on_update(handle(0x5000), graph.ref().get(), true);
  for (int i = 0; i < 5; ++i) recorder::on_update(handle(0x5000), graph.ref().get(), false);

  writer::flush();
  CHECK(session()->execs[number].updates == 5);
  CHECK(session()->execs[number].refused_updates == 1);
  const auto file = [&](int update) {
    return folder() / absl::StrCat(file_prefix(), "-", number, "-update", update, ".cgrt.json");
  };
  CHECK(fs::exists(file(1)));
  CHECK(fs::exists(file(3)));
  CHECK(!fs::exists(file(4)));
}

TEST_CASE("a captured graph has the thread and the stream of its capture, and so has its clone") {
  folder();
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  Graph graph = *Graph::create(kDevice), clone = *Graph::create(kDevice);

  recorder::on_capture_begin(stream.ref().get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  recorder::on_capture_end(stream.ref().get(), graph.ref().get(), CUDA_SUCCESS);
  recorder::on_clone(graph.ref().get(), clone.ref().get());
  const std::uint32_t number = instantiate_as(handle(0x6000), clone);

  CHECK(session()->execs[number].capture_thread == gettid());
  CHECK(session()->execs[number].capture_stream == reinterpret_cast<std::uintptr_t>(stream.ref().get()));
  CHECK(std::string(session()->execs[number].why_no_file) == "fewer nodes than --min-nodes");
}

TEST_CASE("a capture that fails is told with the call that ended it") {
  folder();
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  const driver::Api& api = driver::api();
  REQUIRE(api.StreamBeginCapture(stream.ref().get(), CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  recorder::on_capture_begin(stream.ref().get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(api.StreamSynchronize(stream.ref().get()) != CUDA_SUCCESS);
  CUgraph graph = nullptr;
  const CUresult result = api.StreamEndCapture(stream.ref().get(), &graph);
  REQUIRE(result != CUDA_SUCCESS);

  CHECK(recorder::on_capture_end(stream.ref().get(), graph, result));
  CHECK(!recorder::on_capture_end(stream.ref().get(), graph, result));

  const std::string notes = session()->header.notes;
  CHECK(notes.find("(global mode, begun by thread ") != std::string::npos);
  CHECK(notes.find("was ended by a call of the same thread: cuStreamSynchronize returned 900") != std::string::npos);
}

TEST_CASE("a child process neither waits for its parent's files nor writes them again") {
  folder();
  writer::write({}, "of_the_parent.cgrt.json", nullptr);  // its thread may be writing at the fork

  const pid_t child = fork();
  if (child == 0) {
    writer::flush();
    writer::write({}, "of_the_child.cgrt.json", nullptr);
    writer::flush();
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  writer::flush();

  CHECK(status == 0);
  CHECK(fs::exists(folder() / "of_the_parent.cgrt.json"));
  CHECK(fs::exists(folder() / "of_the_child.cgrt.json"));
}

TEST_CASE("the sessions of a folder are told, written as run.json, and removed") {
  folder();
  recorder::on_kernel_launch(2000);
  note("A sentence.");

  const auto [text, notes, files] = take_sessions(folder(), "graphs");

  CHECK(notes.find("  A sentence.\n") != std::string::npos);
  CHECK(text.find("A sentence.\n") != std::string::npos);
  CHECK(text.find("graphs/" + file_prefix() +
                  "-0.cgrt.json  2 nodes, launched 2 times, 1 node enabled or disabled\n") != std::string::npos);
  CHECK(text.find("(not written: fewer nodes than --min-nodes)") != std::string::npos);
  CHECK(files.size() == 7);  // of the cases above: 1, 2, 2, 1 and 1
  CHECK(fs::exists(folder() / "run.json"));
  CHECK(!fs::exists(folder() / (file_prefix() + kSessionSuffix)));
  fs::remove_all(folder());
}

}  // namespace
}  // namespace graphdump
