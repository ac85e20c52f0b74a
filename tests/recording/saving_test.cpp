// What `graphdump save` adds to the recorder, told by hand what the hooks, CUPTI and NVTX would tell it, on the
// simulator.

#include "inject/saving.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/bundle/cubin.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/saved/folder.h"
#include "cgrt/simulator/simulator.h"
#include "inject/environment.h"
#include "inject/images.h"
#include "inject/marks.h"
#include "inject/node_params.h"
#include "inject/recorder.h"
#include "inject/session.h"
#include "recording/nvtx.h"
#include "support/catch.h"
#include "support/loaded_kernels.h"
#include "support/mapped_memory.h"
#include "support/status_matchers.h"

namespace graphdump {
namespace {

namespace fs = std::filesystem;
using namespace cgrt;
using namespace cgrt::testing;

const DeviceRef kDevice(0);
constexpr LaunchConfig kConfig{.grid = 1, .block = 32};

// A process saves the graphs of one context into one folder.
const fs::path& folder() {
  static const fs::path& path = *[] {
    auto* made = new fs::path(fs::temp_directory_path() / absl::StrCat("cgrt-saving-", getpid()));
    fs::remove_all(*made);  // left by an earlier process with the same ID
    fs::create_directories(*made);
    std::atexit([] { fs::remove_all(folder()); });
    setenv(kFolderVariable, made->c_str(), 1);
    setenv(kSaveVariable, made->c_str(), 1);
    setenv(kSaveLaunchVariable, "2", 1);
    setenv(kMinNodesVariable, "2", 1);
    static const Simulator& simulator = *new Simulator();
    static_cast<void>(simulator);
    return made;
  }();
  return path;
}

std::string notes() { return session()->header.notes; }

// What is saved by now.
saved::Manifest manifest() {
  const absl::StatusOr<saved::Folder> opened = saved::Folder::open((folder() / file_prefix()).string());
  if (opened.ok()) return opened->manifest();
  UNSCOPED_INFO(opened.status().ToString());
  return {};
}

// A graph of two kernels of a library, in memory of its own, and an executable of it that the recorder was told of.
struct Recorded {
  explicit Recorded(int count = 2) {
    images::on_loaded(loaded_cubin());
    REQUIRE_OK(fill8(stream, x, 0, MappedMemory::kPieceBytes));
    nodes = fill(graph, 2.0f, count);
    exec = *instantiate(graph);
  }
  // The nodes that were added.
  std::vector<KernelNode> fill(Graph& to, float factor, int count = 2) const {
    std::vector<KernelNode> added;
    for (int i = 0; i < count; ++i) added.push_back(*to.add_kernel({}, kConfig, scale, x + 1024 * i, x, factor, 4));
    return added;
  }
  void tell() {
    number = session()->header.execs.load();
    recorder::on_instantiate(graph.ref().get(), exec.get());
  }
  void launch(bool is_capturing = false) { launch(exec, is_capturing); }
  void launch(GraphExec& one, bool is_capturing = false) {
    saving::before_launch(one.get(), is_capturing);
    const absl::Status status = one.launch(stream);
    saving::after_launch(one.get(), status.ok() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    REQUIRE_OK(status);
  }
  ~Recorded() { destroy(exec); }
  static void destroy(const GraphExec& one) {
    recorder::before_exec_destroy(one.get());
    recorder::after_exec_destroy(CUDA_SUCCESS);
  }
  std::string name() const { return absl::StrCat("graph-", number); }
  std::string marked(const char* kind, const char* buffer_name, std::size_t offset = 0) const {
    return absl::StrCat("cgrt:", kind, ":", buffer_name, ":0x", absl::Hex(reinterpret_cast<std::uintptr_t>(x) + offset),
                        ":256:float32:8x8");
  }

  const fs::path& path = folder();
  Library library = *Library::load(kDevice, loaded_cubin());
  Kernel<float*, const float*, float, int> scale = *library.kernel<loaded_scale>("scale");
  MappedMemory memory;
  float* x = memory.as<float>();
  Stream stream = *Stream::create(kDevice);
  Graph graph = *Graph::create(kDevice);
  std::vector<KernelNode> nodes;
  GraphExec exec;
  std::uint32_t number = 0;
};

const saved::SavedGraph* find(const saved::Manifest& manifest, const std::string& name) {
  for (const saved::SavedGraph& graph : manifest.graphs) {
    if (graph.name == name) return &graph;
  }
  return nullptr;
}

TEST_CASE("the launch that was asked for is saved, with the names of marks") {
  Recorded graph;
  const Nvtx nvtx;
  nvtx.mark(graph.marked("input", "tokens").c_str());
  graph.tell();
  nvtx.mark("cgrt:dead:0x1000:4096");
  nvtx.mark("cgrt:dead:clear");
  nvtx.mark(absl::StrCat("cgrt:dead:0x", absl::Hex(reinterpret_cast<std::uintptr_t>(graph.x) + 65536), ":512").c_str());

  graph.launch();
  CHECK(manifest().graphs.empty());
  graph.launch();

  const saved::Manifest written = manifest();
  const saved::SavedGraph* const saved = find(written, graph.name());
  REQUIRE(saved != nullptr);
  CHECK(saved->launch == 2);
  REQUIRE(saved->inputs.size() == 1);
  CHECK(saved->inputs[0].name == "tokens");
  CHECK(saved->inputs[0].shape == std::vector<std::uint64_t>{8, 8});
  CHECK(saved->dead == std::vector<saved::Range>{{0, 65536, 512}});
}

TEST_CASE("a launch during a capture is passed over, and the next one taken") {
  Recorded graph;
  graph.tell();
  graph.launch();

  graph.launch(true);
  CHECK(find(manifest(), graph.name()) == nullptr);
  graph.launch();

  const saved::Manifest written = manifest();
  INFO(notes());
  REQUIRE(find(written, graph.name()) != nullptr);
  CHECK(find(written, graph.name())->launch == 3);
  CHECK(notes().find(absl::StrCat("Launch 2 of graph ", graph.number, " was passed over")) != std::string::npos);
}

TEST_CASE("what changes between launches without the graph is a note and in the manifest") {
  Recorded graph;
  graph.tell();
  graph.launch();
  graph.launch();

  REQUIRE_OK(fill8(graph.stream, graph.x + 65536, 1, 4));
  graph.launch();

  const saved::Manifest written = manifest();
  REQUIRE(find(written, graph.name()) != nullptr);
  CHECK(find(written, graph.name())->changed_outside.size() == 1);
  CHECK(notes().find(absl::StrCat("Between launches of graph ", graph.number, " 4096 bytes")) != std::string::npos);
}

TEST_CASE("a mark after a graph begins a new list, and a graph without marks has the last ones") {
  Recorded graph;
  const Nvtx nvtx;
  GraphExec others[] = {*instantiate(graph.graph), *instantiate(graph.graph)};
  nvtx.mark(graph.marked("input", "a").c_str());
  nvtx.mark(graph.marked("input", "a", 256).c_str());
  nvtx.mark(graph.marked("output", "b").c_str());
  graph.tell();
  recorder::on_instantiate(graph.graph.ref().get(), others[0].get());
  nvtx.mark(graph.marked("input", "c").c_str());
  recorder::on_instantiate(graph.graph.ref().get(), others[1].get());
  for (GraphExec* exec : {&graph.exec, &others[0], &others[1]}) {
    graph.launch(*exec);
    graph.launch(*exec);
  }

  const saved::Manifest written = manifest();
  const auto* const first = find(written, graph.name());
  const auto* const second = find(written, absl::StrCat("graph-", graph.number + 1));
  const auto* const third = find(written, absl::StrCat("graph-", graph.number + 2));
  for (const GraphExec& exec : others) Recorded::destroy(exec);

  INFO(notes());
  REQUIRE(first != nullptr);
  REQUIRE(first->inputs.size() == 1);
  CHECK(first->inputs[0].range.offset == 256);
  CHECK(first->outputs.size() == 1);
  REQUIRE(second != nullptr);
  CHECK(second->inputs == first->inputs);
  REQUIRE(third != nullptr);
  REQUIRE(third->inputs.size() == 1);
  CHECK(third->inputs[0].name == "c");
  CHECK(third->outputs.empty());
}

// The factors of the kernels of a graph that was saved.
std::vector<float> saved_factors(const std::string& name) {
  const absl::StatusOr<saved::Folder> opened = saved::Folder::open((folder() / file_prefix()).string());
  REQUIRE_OK(opened);
  CHECK(opened->verify().empty());
  const saved::SavedGraph* const graph = opened->find_graph(name);
  REQUIRE(graph != nullptr);
  const absl::StatusOr<ir::GraphIr> ir = opened->read_graph(*graph);
  REQUIRE_OK(ir);
  std::vector<float> factors;
  for (const ir::Node& node : ir->nodes) {
    const std::vector<std::uint8_t>& arguments = std::get<ir::KernelParams>(node.params).arguments;
    std::memcpy(&factors.emplace_back(), arguments.data() + 16, sizeof(float));
  }
  return factors;
}

CUgraphNodeParams params_of(KernelNode node) {
  CUDA_KERNEL_NODE_PARAMS params{};
  REQUIRE(driver::api().GraphKernelNodeGetParams(node.get(), &params) == CUDA_SUCCESS);
  return to_node_params(params);
}

TEST_CASE("an executable that was updated as a whole is saved as it is then") {
  Recorded graph;
  graph.tell();
  graph.launch();
  Graph other = *Graph::create(kDevice);
  graph.fill(other, 3.0f);

  REQUIRE_OK(graph.exec.update(other));
  recorder::on_update(graph.exec.get(), other.ref().get(), false);
  graph.launch();

  CHECK(saved_factors(graph.name()) == std::vector<float>{3, 3});
}

TEST_CASE("an executable whose nodes were set is saved as it is then") {
  Recorded graph;
  const Nvtx nvtx;
  nvtx.mark(graph.marked("input", "x").c_str());
  graph.tell();
  graph.launch();
  Graph values = *Graph::create(kDevice);
  const std::vector<KernelNode> wanted = graph.fill(values, 5.0f);

  REQUIRE_OK(graph.graph.set_params(graph.nodes[0], kConfig, graph.scale, graph.x, graph.x, 7.0f, 4));  // not of `exec`
  recorder::on_set_params(graph.exec.get(), graph.nodes[1].get(), params_of(wanted[1]));
  graph.launch();

  CHECK(saved_factors(graph.name()) == std::vector<float>{2, 5});
  CHECK(find(manifest(), graph.name())->inputs.size() == 1);
}

TEST_CASE("an executable that is not what is known is refused") {
  Recorded graph;
  graph.tell();
  graph.launch();
  std::string how;
  SECTION("a node that is switched off") {
    recorder::on_exec_call(graph.exec.get(), recorder::ExecCall::kSetEnabled);
    how = "a node was enabled or disabled after it was instantiated.";
  }
  SECTION("a node of another graph") {
    Graph other = *Graph::create(kDevice);
    const std::vector<KernelNode> nodes = graph.fill(other, 3.0f);
    recorder::on_set_params(graph.exec.get(), nodes[0].get(), params_of(nodes[0]));
    how = "parameters of a node were set after it was instantiated.";
  }
  SECTION("a node after an update as a whole") {
    Graph other = *Graph::create(kDevice);
    const std::vector<KernelNode> nodes = graph.fill(other, 3.0f);
    REQUIRE_OK(graph.exec.update(other));
    recorder::on_update(graph.exec.get(), other.ref().get(), false);
    recorder::on_set_params(graph.exec.get(), graph.nodes[0].get(), params_of(nodes[0]));
    how = "parameters of a node were set after it was instantiated.";
  }
  SECTION("an update by a graph that cannot be saved") {
    Graph other = *Graph::create(kDevice);
    REQUIRE_OK(other.add_empty({}));
    REQUIRE_OK(other.add_host({}, [] {}));
    recorder::on_update(graph.exec.get(), other.ref().get(), false);
    how = "Node 1 (host) cannot be saved";
  }

  graph.launch();

  CHECK(find(manifest(), graph.name()) == nullptr);
  CHECK(notes().find(absl::StrCat("Graph ", graph.number, " was not saved: ", how)) != std::string::npos);
}

TEST_CASE("an executable has a handle from its instantiation until the driver is told to destroy it") {
  Recorded graph;
  graph.tell();

  recorder::before_exec_destroy(graph.exec.get());
  graph.tell();  // another thread was given the handle
  recorder::after_exec_destroy(CUDA_SUCCESS);
  graph.launch();
  recorder::before_exec_destroy(graph.exec.get());
  recorder::after_exec_destroy(CUDA_ERROR_INVALID_VALUE);
  graph.launch();

  INFO(notes());
  CHECK(find(manifest(), graph.name()) != nullptr);
  CHECK(find(manifest(), absl::StrCat("graph-", graph.number - 1)) == nullptr);
}

TEST_CASE("small graphs are left out, and those that cannot be saved are told") {
  Recorded small(1);
  small.tell();
  small.launch();
  small.launch();
  Graph host = *Graph::create(kDevice);
  REQUIRE_OK(host.add_empty({}));
  REQUIRE_OK(host.add_host({}, [] {}));
  const std::uint32_t number = session()->header.execs.load();

  recorder::on_instantiate(host.ref().get(), reinterpret_cast<CUgraphExec>(0x1000));

  CHECK(find(manifest(), small.name()) == nullptr);
  CHECK(session()->execs[number].nodes == 2);
  CHECK(notes().find(absl::StrCat("Graph ", number, " was not saved: Node 1 (host) cannot be saved")) !=
        std::string::npos);
  CHECK(notes().find(absl::StrCat("Graph ", small.number, " ")) == std::string::npos);
}

TEST_CASE("marks are understood, or refused with what is wrong") {
  const auto mark = parse_mark("cgrt:output:y:0x7f00:64:int8:");
  REQUIRE_OK(mark);
  CHECK((*mark)->kind == Mark::Kind::kOutput);
  CHECK((*mark)->buffer.address == 0x7f00);
  CHECK((*mark)->buffer.bytes == 64);
  CHECK((*mark)->buffer.shape.empty());
  CHECK(!parse_mark("epoch 3")->has_value());
  for (const char* wrong : {"cgrt:", "cgrt:input:x", "cgrt:input:a b:0x10:4", "cgrt:input:x:10:4",
                            "cgrt:input:x:0x10:", "cgrt:input:x:0x10:0", "cgrt:input:x:0x10:4:int8",
                            "cgrt:input:x:0x10:4:int8:4,4", "cgrt:dead:0x10", "cgrt:dead:all"}) {
    INFO(wrong);
    CHECK_THAT(parse_mark(wrong).status(), StatusIs(absl::StatusCode::kInvalidArgument, wrong));
  }
}

TEST_CASE("operands are understood, or refused with what is wrong") {
  const auto operand = parse_operand("x=3:1+64:128:float16:4x16");
  REQUIRE_OK(operand);
  CHECK(operand->name == "x");
  CHECK(operand->place->node == 3);
  CHECK(operand->place->operand == 1);
  CHECK(operand->place->offset == 64);
  CHECK(operand->shape == std::vector<std::uint64_t>{4, 16});
  CHECK(parse_operand("x=0:0")->bytes == 0);
  for (const char* wrong : {"x", "=0:0", "x=0", "x=a:0", "x=0:0+", "x=0:0:4:int8"}) {
    INFO(wrong);
    CHECK_THAT(parse_operand(wrong).status(), StatusIs(absl::StatusCode::kInvalidArgument, wrong));
  }
}

// A copy of the cubin with another byte in the code of its kernels.
std::string changed_cubin() {
  std::string image(loaded_cubin());
  const absl::StatusOr<internal::Cubin> cubin = internal::Cubin::read(image);
  REQUIRE_OK(cubin);
  const std::string_view code = cubin->find("scale")->code;
  const std::size_t at = static_cast<std::size_t>(code.data() - image.data());
  image[at] = static_cast<char>(image[at] + 1);
  return image;
}

// Its kernels have other names, but for the one.
std::string renamed_cubin() {
  std::string image = changed_cubin();
  for (std::size_t at = image.find("cluster_width"); at != std::string::npos; at = image.find("cluster_width")) {
    image.replace(at, 7, "cabinet");
  }
  return image;
}

CUfunction function_of(const Kernel<float*, const float*, float, int>& kernel) {
  const driver::ResolvedFunction* found = nullptr;
  REQUIRE(driver::resolve_function(*kernel.identity(), *ContextRef(kDevice).get(), &found) == CUDA_SUCCESS);
  return found->function;
}

TEST_CASE("the image of a function is the one whose load gave its module, or the only one that may be") {
  folder();
  const Library library = *Library::load(kDevice, loaded_cubin());
  const auto scale = *library.kernel<loaded_scale>("scale");
  const CUfunction function = function_of(scale);
  CUmodule module = nullptr;
  REQUIRE(driver::api().FuncGetModule(&module, function) == CUDA_SUCCESS);
  const auto context = ScopedContext::enter(*ContextRef(kDevice).get());
  REQUIRE_OK(context);
  images::on_loaded(loaded_cubin());
  CHECK(*images::image_of(function, "scale") == loaded_cubin());
  CHECK_THAT(images::image_of(function, "shift").status(), StatusIs(absl::StatusCode::kNotFound, "not seen"));

  // Another module's, as its names tell.
  images::on_loaded(renamed_cubin());
  for (int nth = 0;; ++nth) {
    driver::Instrument instrument;
    instrument.fail_call(nth, CUDA_ERROR_OUT_OF_MEMORY);
    const absl::StatusOr<std::string_view> image = images::image_of(function, "scale");
    if (!instrument.failed()) {
      REQUIRE_OK(image);
      CHECK(*image == loaded_cubin());
      break;
    }
    CHECK_THAT(image.status(), StatusIs(absl::StatusCode::kResourceExhausted));
  }

  const std::string changed = changed_cubin();
  images::on_loaded(changed);
  CHECK_THAT(images::image_of(function, "scale").status(), StatusIs(absl::StatusCode::kNotFound, "one of 3 images"));

  images::before_load();
  images::on_loaded(changed);
  images::after_load(module, changed.data());
  CHECK(*images::image_of(function, "scale") == changed);

  images::before_unload(module);
  images::after_unload(CUDA_ERROR_INVALID_VALUE);
  CHECK(*images::image_of(function, "scale") == changed);

  images::before_unload(module);
  images::after_unload(CUDA_SUCCESS);
  CHECK_THAT(images::image_of(function, "scale").status(), StatusIs(absl::StatusCode::kNotFound, "one of 3 images"));

  images::before_load();
  images::after_load(module, loaded_cubin().data());  // without CUPTI
  CHECK(*images::image_of(function, "scale") == loaded_cubin());
}

}  // namespace
}  // namespace graphdump
