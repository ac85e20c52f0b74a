// The recorder of `graphdump run`, told by hand what CUPTI would tell it, on the simulator.

#include "inject/recorder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/capture_log.h"
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
  recorder::on_launch(handle(0x1000), CU_STREAM_LEGACY);
  recorder::on_launch(handle(0x1000), CU_STREAM_LEGACY);
  recorder::on_exec_call(handle(0x1000), recorder::ExecCall::kSetEnabled);
  recorder::on_launch(handle(0x2000), CU_STREAM_LEGACY);  // not seen

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
  recorder::on_capture_end(raw, captured, CUDA_SUCCESS);
  Graph graph = *Graph::adopt(captured, kDevice);
  const std::uint32_t number = instantiate_as(handle(0x3100), graph);
  const absl::StatusOr<ir::GraphIr> written = read(number);
  recorder::before_graph_destroy(captured);
  recorder::after_graph_destroy(CUDA_SUCCESS);
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

TEST_CASE("the first streams of an executable's launches are recorded, and that it was destroyed") {
  folder();
  Simulator simulator;
  Graph graph = *Graph::create(kDevice);
  const std::uint32_t number = instantiate_as(handle(0x7000), graph);
  const ExecRecord& record = session()->execs[number];
  const auto launch = [](CUstream stream) { recorder::on_launch(handle(0x7000), stream); };

  for (int i = 0; i < 3; ++i) launch(CU_STREAM_LEGACY);
  launch(CU_STREAM_PER_THREAD);
  pid_t other_thread = 0;
  std::thread([&] {
    other_thread = gettid();
    launch(CU_STREAM_PER_THREAD);
    launch(CU_STREAM_LEGACY);
  }).join();
  launch(reinterpret_cast<CUstream>(0x55d0a0));
  launch(CU_STREAM_PER_THREAD);

  CHECK(record.launches == 8);
  CHECK(record.streams[0] == kLegacyStream);
  CHECK(record.streams[1] == (static_cast<std::uint64_t>(gettid()) << kThreadShift | kPerThreadStream));
  CHECK(record.streams[2] == (static_cast<std::uint64_t>(other_thread) << kThreadShift | kPerThreadStream));
  CHECK(record.streams[3] == 0x55d0a0);
  CHECK(record.has_more_streams == 0);
  launch(reinterpret_cast<CUstream>(0x55d0b0));
  CHECK(record.has_more_streams == 1);
  CHECK(record.destroyed_before == 0);
  recorder::before_exec_destroy(handle(0x7000));
  recorder::after_exec_destroy(CUDA_SUCCESS);
  CHECK(record.destroyed_before == number + 1);
}

void CUDA_CB do_nothing(void*) {}

using Listed = std::vector<std::uint64_t>;
Listed memory_of(std::uint32_t number) {
  const ExecRecord& record = session()->execs[number];
  const std::uint64_t* const begin = session()->listed + record.first_listed;
  return {begin, begin + record.memory_count};
}

TEST_CASE("the memory of graphs is recorded: which it is, and which host memory is nobody's or on the stack") {
  folder();
  Simulator simulator;
  static int of_program = 0;
  const auto on_heap = std::make_unique<int>(0);
  int on_stack = 0;
  DeviceBuffer buffer = *DeviceBuffer::create(kDevice, 1024), other = *DeviceBuffer::create(kDevice, 1024);
  Graph graph = *Graph::create(kDevice), fills = *Graph::create(kDevice);
  for (void* data : {static_cast<void*>(nullptr), static_cast<void*>(&of_program), static_cast<void*>(on_heap.get()),
                     static_cast<void*>(&on_stack)}) {
    REQUIRE_OK(graph.add_host({}, &do_nothing, data));
  }
  REQUIRE_OK(graph.add_copy({}, buffer.data(), &on_stack, sizeof(int)));
  REQUIRE_OK(graph.add_copy({}, buffer.data(), on_heap.get(), sizeof(int)));
  REQUIRE_OK(fills.add_fill({}, {.destination = other.data(), .value = 0, .element_bytes = 1, .count = 64}));
  REQUIRE_OK(fills.add_fill({}, {.destination = buffer.data(), .value = 0, .element_bytes = 1, .count = 64}));

  const std::uint32_t first = instantiate_as(handle(0x8000), graph), second = instantiate_as(handle(0x8001), fills);

  const Listed of_first = memory_of(first), of_second = memory_of(second);
  REQUIRE(of_first.size() == 3);  // the buffer, the stack, the heap
  CHECK(of_first[0] != 0);
  CHECK(of_first[1] == 0);
  CHECK(of_first[2] == 0);
  REQUIRE(of_second.size() == 2);
  CHECK(of_second[0] != of_first[0]);
  CHECK(of_second[1] == of_first[0]);
  const ExecRecord& record = session()->execs[first];
  const std::uint64_t* const nodes = session()->listed + record.first_listed + record.memory_count;
  CHECK(Listed(nodes, nodes + record.host_data_count) == Listed{2});
  CHECK(Listed(nodes + record.host_data_count, nodes + record.host_data_count + record.stack_node_count) ==
        Listed{3, 4});
}

TEST_CASE("a graph has the user objects that were given to it, to its original or to a child of it") {
  folder();
  Simulator simulator;
  Graph graph = *Graph::create(kDevice), clone = *Graph::create(kDevice), parent = *Graph::create(kDevice);
  for (Graph* one : {&graph, &clone}) {
    REQUIRE_OK(one->add_empty({}));
    REQUIRE_OK(one->add_empty({}));
  }
  const auto has_objects = [&](const Graph& one) {
    return session()->execs[instantiate_as(handle(0x9000), one)].has_user_objects != 0;
  };
  CHECK(!has_objects(graph));

  recorder::on_user_object(graph.ref().get());
  recorder::on_clone(graph.ref().get(), clone.ref().get());
  const absl::StatusOr<ChildGraphNode> child = parent.add_child({}, graph);
  REQUIRE_OK(child);
  recorder::on_child(child->get(), graph.ref().get());
  CHECK(has_objects(graph));
  CHECK(has_objects(clone));
  CHECK(has_objects(parent));
  recorder::before_graph_destroy(graph.ref().get());
  recorder::after_graph_destroy(CUDA_ERROR_INVALID_VALUE);
  CHECK(has_objects(graph));
  recorder::before_graph_destroy(graph.ref().get());
  recorder::after_graph_destroy(CUDA_SUCCESS);

  CHECK(!has_objects(graph));
  CHECK(has_objects(parent));
}

TEST_CASE("a capture that fails is told with the call that ended it") {
  folder();
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  const driver::Api& api = driver::api();
  for (std::size_t i = 0; i < driver::LoggedThread::kMaxNested; ++i) {  // others before it, which another thread ends
    recorder::on_capture_begin(stream.ref().get(), CU_STREAM_CAPTURE_MODE_RELAXED);
    std::thread([&] { recorder::on_capture_end(stream.ref().get(), nullptr, CUDA_SUCCESS); }).join();
  }
  REQUIRE(api.StreamBeginCapture(stream.ref().get(), CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  recorder::on_capture_begin(stream.ref().get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(api.StreamSynchronize(stream.ref().get()) != CUDA_SUCCESS);
  CUgraph graph = nullptr;
  const CUresult result = api.StreamEndCapture(stream.ref().get(), &graph);
  REQUIRE(result != CUDA_SUCCESS);

  recorder::on_capture_end(stream.ref().get(), graph, result);

  const std::string notes = session()->header.notes;
  CHECK(notes.find("(global mode, begun by thread ") != std::string::npos);
  CHECK(notes.find("was ended by a call of the same thread: cuStreamSynchronize returned 900") != std::string::npos);
}

TEST_CASE("captures of the per-thread streams of two threads are told apart") {
  folder();
  Simulator simulator;
  Graph graph = *Graph::create(kDevice), of_other = *Graph::create(kDevice);
  pid_t other_thread = 0;

  recorder::on_capture_begin(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED);
  std::thread([&] {
    other_thread = gettid();
    recorder::on_capture_begin(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED);
    recorder::on_capture_end(CU_STREAM_PER_THREAD, of_other.ref().get(), CUDA_SUCCESS);
  }).join();
  CHECK(recorder::is_capturing());
  recorder::on_capture_end(CU_STREAM_PER_THREAD, graph.ref().get(), CUDA_SUCCESS);

  CHECK(!recorder::is_capturing());
  CHECK(session()->execs[instantiate_as(handle(0xa000), graph)].capture_thread == gettid());
  CHECK(session()->execs[instantiate_as(handle(0xa001), of_other)].capture_thread == other_thread);
}

TEST_CASE("a capture that another thread ended is not counted to the thread that began it") {
  folder();
  Simulator simulator;
  const Nvtx nvtx;
  Stream stream = *Stream::create(kDevice);
  const CUstream raw = stream.ref().get();
  Graph graph = *Graph::create(kDevice);
  for (int i = 0; i < 2; ++i) REQUIRE_OK(graph.add_empty({}));
  const auto begin = [&] { recorder::on_capture_begin(raw, CU_STREAM_CAPTURE_MODE_RELAXED); };
  const auto end = [&] { recorder::on_capture_end(raw, graph.ref().get(), CUDA_SUCCESS); };

  begin();
  std::thread([&] {
    end();
    begin();
  }).join();
  nvtx.push("of the first thread");
  end();
  nvtx.pop();

  const absl::StatusOr<ir::GraphIr> written = read(instantiate_as(handle(0xb000), graph));
  REQUIRE_OK(written);
  CHECK(written->nodes[0].scope.empty());
  CHECK(!recorder::is_capturing());
}

TEST_CASE("an executable has a handle from its instantiation until the driver is told to destroy it") {
  folder();
  Simulator simulator;
  Graph graph = *Graph::create(kDevice);
  const CUgraphExec exec = handle(0xc000);
  const std::uint32_t first = instantiate_as(exec, graph);

  recorder::before_exec_destroy(exec);
  recorder::after_exec_destroy(CUDA_ERROR_INVALID_VALUE);
  recorder::on_launch(exec, CU_STREAM_LEGACY);
  CHECK(session()->execs[first].launches == 1);
  CHECK(session()->execs[first].destroyed_before == 0);
  recorder::before_exec_destroy(exec);
  std::uint32_t second = 0;
  std::thread([&] { second = instantiate_as(exec, graph); }).join();
  recorder::after_exec_destroy(CUDA_SUCCESS);
  recorder::on_launch(exec, CU_STREAM_LEGACY);

  CHECK(session()->execs[first].launches == 1);
  CHECK(session()->execs[first].destroyed_before == second + 1);
  CHECK(session()->execs[second].launches == 1);
  CHECK(session()->execs[second].destroyed_before == 0);
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

  // As if the process had ended while it wrote one graph, and before it wrote another.
  const fs::path part = folder() / (file_prefix() + "-16.cgrt.json" + kPartSuffix);
  const fs::path part_of_other = folder() / absl::StrCat("other-1-0.cgrt.json", kPartSuffix);
  for (const fs::path& path : {part, part_of_other}) std::ofstream(path) << "{";
  for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
    CHECK((entry.path().extension() != kPartSuffix || entry.path() == part || entry.path() == part_of_other));
  }

  const auto [text, notes, files] = take_sessions(folder(), "graphs");

  CHECK(!fs::exists(part));
  CHECK(fs::exists(part_of_other));

  CHECK(notes.find("  A sentence.\n") != std::string::npos);
  CHECK(text.find("A sentence.\n") != std::string::npos);
  CHECK(text.find("graphs/" + file_prefix() +
                  "-0.cgrt.json  2 nodes, launched 2 times, 1 node enabled or disabled\n") != std::string::npos);
  CHECK(text.find("(not written: fewer nodes than --min-nodes)") != std::string::npos);
  CHECK(files.size() == 17);  // of the cases above: 1, 2, 2, 1, 1, 2, 7 and 1
  const absl::StatusOr<inspect::RecordedRun> run = inspect::read_run((folder() / "run.json").string());
  REQUIRE_OK(run);
  REQUIRE(run->processes.size() == 1);
  CHECK(run->processes[0].process == getpid());
  const auto& execs = run->processes[0].execs;
  REQUIRE(execs.size() == 23);
  CHECK(execs[0].file == file_prefix() + "-0.cgrt.json");
  CHECK(execs[0].launches == 2);
  CHECK(execs[0].streams == std::vector<std::string>{"legacy"});
  CHECK(execs[0].memory.size() == 1);
  CHECK(execs[8].streams ==
        std::vector<std::string>{"legacy", absl::StrCat("per-thread ", gettid()), execs[8].streams.at(2), "0x55d0a0"});
  CHECK(execs[8].has_more_streams);
  CHECK(execs[8].destroyed_before == 9);
  CHECK(execs[9].host_data == std::vector<std::uint32_t>{2});
  CHECK(execs[9].stack_nodes == std::vector<std::uint32_t>{3, 4});
  CHECK(execs[9].memory.at(0) == execs[10].memory.at(1));
  CHECK(execs[12].has_user_objects);
  CHECK(!execs[16].has_user_objects);
  for (const inspect::RecordedExec& exec : execs) {
    if (exec.file.empty()) continue;
    const absl::StatusOr<ir::GraphIr> graph = inspect::read_file((folder() / exec.file).string());
    REQUIRE_OK(graph);
    CHECK_OK(inspect::lint(*graph, exec).status());
  }
  CHECK(!fs::exists(folder() / (file_prefix() + kSessionSuffix)));
  fs::remove_all(folder());
}

}  // namespace
}  // namespace graphdump
