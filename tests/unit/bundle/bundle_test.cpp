// Bundles, written by hand, loaded and replayed on the simulator.
#include "cgrt/bundle/bundle.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cgrt/base/status_macros.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "unit/bundle/small_bundle.h"

namespace cgrt::testing {
namespace {

constexpr DeviceRef kDevice(0);

absl::StatusOr<LoadedBundle> load(const SmallBundle& small, const LoadOptions& options = {}) {
  const absl::StatusOr<Bundle> bundle = Bundle::open(small.path());
  if (!bundle.ok()) return bundle.status();
  return bundle->load(kDevice, options);
}

// The differences after one launch from the memory that was saved, as text.
std::vector<std::string> replay(LoadedBundle& loaded, std::string_view graph = "step") {
  const Stream stream = *Stream::create(kDevice);
  CHECK_OK(loaded.restore(graph));
  CHECK_OK(loaded.launch(graph, stream));
  CHECK_OK(stream.ref().synchronize());
  const absl::StatusOr<std::vector<MemoryDifference>> differences = loaded.check(graph);
  CHECK_OK(differences);
  std::vector<std::string> texts;
  for (const MemoryDifference& one : *differences) texts.push_back(one.text);
  return texts;
}

// The kernel of "step" writes to z, and a copy brings that to y.
void write_to_host(SmallBundle& small) {
  std::get<ir::KernelParams>(small.graph.nodes[1].params).pointers[0].pointer = {2, 0};
  small.graph.nodes[2].params = ir::MemcpyParams{
      .destination = ir::Pointer{1, 0}, .source = ir::Pointer{2, 0}, .width_bytes = SmallBundle::kCount * 4};
  const std::vector<float> z = small.y_after;
  small.expect_z = std::vector<float>(z.size(), 0.0f);
  std::copy_n(z.begin(), SmallBundle::kCount, small.expect_z.begin());
}

float* floats(const NamedBuffer& buffer) { return static_cast<float*>(buffer.data); }

TEST_CASE("a bundle is replayed at the addresses that it had, bit by bit", "[bundle]") {
  SmallBundle small;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  {
    absl::StatusOr<LoadedBundle> loaded = load(small);
    REQUIRE_OK(loaded);

    CHECK(replay(*loaded).empty());
    CHECK(replay(*loaded).empty());  // and again

    const NamedBuffer x = *loaded->input("step", "x"), z = *loaded->output("step", "z");
    CHECK(x.data == reinterpret_cast<void*>(small.address()));
    CHECK(x.bytes == 256);
    CHECK(x.dtype == "float32");
    CHECK(x.shape == std::vector<std::uint64_t>{8, 8});
    CHECK(floats(z)[63] == 126);
    CHECK(loaded->blocks() == std::vector<void*>{x.data, z.data});
    CHECK(loaded->times().memory_bytes == 2 * SmallBundle::kPage);
  }
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("a replay reads the inputs that it is given", "[bundle]") {
  SmallBundle small;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small);
  REQUIRE_OK(loaded);
  const Stream stream = *Stream::create(kDevice);
  const std::vector<float> input(64, 5.0f);
  const NamedBuffer x = *loaded->input("step", "x");

  CHECK_OK(copy(stream, x.data, input.data(), x.bytes));
  CHECK_OK(loaded->launch("step", stream));
  CHECK_OK(stream.ref().synchronize());

  CHECK(floats(*loaded->output("step", "z"))[7] == 10);
}

TEST_CASE("the first difference of each block is named, in the words of outputs and inputs", "[bundle]") {
  SmallBundle small;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small);
  REQUIRE_OK(loaded);
  CHECK(replay(*loaded).empty());

  floats(*loaded->output("step", "z"))[1] = 0;
  reinterpret_cast<float*>(small.address())[1100] = 0;  // in y, which has no name
  absl::StatusOr<std::vector<MemoryDifference>> differences = loaded->check("step");

  REQUIRE_OK(differences);
  REQUIRE(differences->size() == 2);
  CHECK((*differences)[0].range == saved::Range{0, 4096, 4096});
  CHECK_THAT((*differences)[0].text,
             Catch::Contains("memory 0 (0x") && Catch::Contains("), bytes 4096 to 8191 of 8192"));
  CHECK((*differences)[1].text == "output \"z\", bytes 0 to 255 of 256");

  floats(*loaded->input("step", "x"))[0] = 7;
  differences = loaded->check("step");
  REQUIRE_OK(differences);
  CHECK((*differences)[0].text == "input \"x\", bytes 0 to 255 of 256");
}

TEST_CASE("names that are not there are told with those that are", "[bundle]") {
  SmallBundle small;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small);
  REQUIRE_OK(loaded);
  const Stream stream = *Stream::create(kDevice);
  const auto is_not_found = [](std::string text) { return StatusIs(absl::StatusCode::kNotFound, std::move(text)); };

  CHECK_THAT(loaded->launch("prefill", stream), is_not_found("There is no graph \"prefill\"; there is \"step\"."));
  CHECK_THAT(loaded->exec("prefill").status(), is_not_found("prefill"));
  CHECK_THAT(loaded->restore("prefill"), is_not_found("prefill"));
  CHECK_THAT(loaded->check("prefill").status(), is_not_found("prefill"));
  CHECK_THAT(loaded->input("step", "y").status(), is_not_found("There is no input \"y\"; there is \"x\"."));
  CHECK_THAT(loaded->output("step", "x").status(), is_not_found("There is no output \"x\"; there is \"z\"."));
  CHECK_THAT(load(small, {.graphs = {"prefill"}}).status(), is_not_found("\"step\""));
}

TEST_CASE("a loaded bundle that was moved from says so, and the other one goes on", "[bundle]") {
  SmallBundle small;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small);
  REQUIRE_OK(loaded);
  const Stream stream = *Stream::create(kDevice);
  const auto refused = [] {
    return StatusIs(absl::StatusCode::kFailedPrecondition, "This LoadedBundle is empty: it was moved from");
  };

  LoadedBundle other = *std::move(loaded);

  CHECK_THAT(loaded->launch("step", stream), refused());
  CHECK_THAT(loaded->exec("step").status(), refused());
  CHECK_THAT(loaded->input("step", "x").status(), refused());
  CHECK_THAT(loaded->output("step", "z").status(), refused());
  CHECK_THAT(loaded->restore("step"), refused());
  CHECK_THAT(loaded->check("step").status(), refused());
  CHECK(loaded->blocks().empty());
  CHECK(loaded->times().memory_bytes == 0);
  CHECK(loaded->times().code == absl::ZeroDuration());
  CHECK(replay(other).empty());
  *loaded = std::move(other);
  CHECK(replay(*loaded).empty());
}

TEST_CASE("a second copy in one process is refused, and the first goes on", "[bundle]") {
  SmallBundle small;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small);
  REQUIRE_OK(loaded);
  const std::size_t before = simulator.live_handles();

  const absl::Status second = load(small).status();

  CHECK_THAT(second,
             StatusIs(absl::StatusCode::kFailedPrecondition, "are taken in this process. Load the bundle before"));
  CHECK(simulator.live_handles() == before);
  CHECK(replay(*loaded).empty());
}

TEST_CASE("addresses that something of the program's has are told, of the device's and of the host's", "[bundle]") {
  SmallBundle small;
  write_to_host(small);
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  const auto taken = [&](std::uint64_t address) {
    void* const page = mmap(reinterpret_cast<void*>(address), SmallBundle::kPage, PROT_READ,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    REQUIRE(page == reinterpret_cast<void*>(address));
    const absl::Status status = load(small).status();
    munmap(page, SmallBundle::kPage);
    return status;
  };

  CHECK_THAT(taken(small.address() + kRegionBytes - SmallBundle::kPage),
             StatusIs(absl::StatusCode::kFailedPrecondition, "are taken"));
  CHECK_THAT(taken(small.manifest.blocks[1].address), StatusIs(absl::StatusCode::kFailedPrecondition, "are taken"));
  CHECK(simulator.live_handles() == 0);
  CHECK(are_addresses_taken(taken(small.address())));
  CHECK_OK(load(small));
}

TEST_CASE("attributes, structures with addresses, child graphs and two-dimensional copies are replayed", "[bundle]") {
  SmallBundle small;
  const auto kPage = SmallBundle::kPage;
  small.saved.kernels.push_back({.symbol = "cluster", .allows_large_clusters = true});
  small.saved.kernels.push_back(
      {.symbol = "pair", .max_dynamic_shared_bytes = 100000, .preferred_carveout_percent = 50});
  // Nodes 3, 4 and 5 of the graph, and 6 inside of 5: y[1000] = 4; y[1001] = *pair.in + 3 + 2; a copy of two rows.
  ir::KernelParams cluster{.function = 1, .grid = {8, 1, 1}, .block = {1, 1, 1}};
  cluster.arguments.resize(8);
  cluster.pointers = {{0, {1, 4000}}};
  cluster.attributes.cluster = {4, 1, 1};
  cluster.attributes.priority = -1;
  ir::KernelParams pair{.function = 2, .grid = {1, 1, 1}, .block = {1, 1, 1}, .shared_bytes = 90000};
  pair.arguments.resize(32);
  pair.pointers = {{0, {1, 4004}}, {8, {0, 8}}};
  pair.arguments[16] = 3;
  pair.arguments[24] = 2;
  pair.attributes.shared_carveout_percent = 30;
  pair.attributes.access_policy = {
      {0, 0}, kPage, 0.5f, ir::AccessProperty::kPersisting, ir::AccessProperty::kStreaming};
  ir::MemcpyParams rows{
      .destination = ir::Pointer{1, 4008}, .source = ir::Pointer{0, 4}, .width_bytes = 4, .height = 2};
  rows.destination_pitch = 4;
  rows.source_pitch = 8;
  std::vector<ir::Node>& nodes = small.graph.nodes;
  small.graph.functions.push_back({.name = "cluster", .parameters = {{0, 8}}});
  small.graph.functions.push_back({.name = "pair", .parameters = {{0, 8}, {8, 16}, {24, 8}}});
  const ir::Node to_host = nodes[2];
  nodes[2] = {.kind = ir::NodeKind::kKernel, .device = 0, .params = cluster};
  nodes.push_back({.kind = ir::NodeKind::kChildGraph});
  nodes.push_back({.kind = ir::NodeKind::kMemcpy, .device = 0, .params = rows});
  nodes.push_back(to_host);
  nodes.push_back({.kind = ir::NodeKind::kKernel, .device = 0, .params = pair, .body = 1});
  nodes.push_back({.kind = ir::NodeKind::kEmpty, .body = 1});
  small.graph.bodies = {{3}};
  small.graph.edges = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {7, 6}};  // the last to a node that was made before
  small.saved.node_kernels = {0, 1, 2};
  const int four = 4;
  std::memcpy(&small.y_after[1000], &four, sizeof(four));
  small.y_after[1001] = 2 + 3 + 2;
  small.y_after[1002] = 1;
  small.y_after[1003] = 3;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  {
    absl::StatusOr<LoadedBundle> loaded = load(small);
    REQUIRE_OK(loaded);

    CHECK(replay(*loaded).empty());
  }
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("a built graph has the kinds, attributes and edges that were saved", "[bundle]") {
  SmallBundle small;
  small.graph.nodes.push_back(
      {.kind = ir::NodeKind::kKernel, .device = 0, .params = SmallBundle::scale({0, 1024}, {0, 0}, 3)});
  small.graph.nodes.push_back(
      {.kind = ir::NodeKind::kKernel, .device = 0, .params = SmallBundle::scale({0, 2048}, {0, 0}, 3)});
  small.graph.edges.push_back({1, 3, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, ir::EdgeType::kProgrammatic});
  small.graph.edges.push_back({3, 4, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, 0, ir::EdgeType::kFull});
  small.saved.node_kernels = {0, 0, 0};
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  static std::optional<ir::GraphIr> seen;
  seen.reset();
  set_instantiate_observer([](const Graph& graph) { seen = *snapshot(graph); });

  CHECK_OK(load(small));

  set_instantiate_observer(nullptr);
  REQUIRE(seen.has_value());
  CHECK(seen->edges == small.graph.edges);
  CHECK(seen->nodes.size() == small.graph.nodes.size());
  for (std::size_t i = 0; i < seen->nodes.size(); ++i) CHECK(seen->nodes[i].kind == small.graph.nodes[i].kind);
}

TEST_CASE("allocations, frees and event records become empty nodes", "[bundle]") {
  SmallBundle small;
  std::vector<ir::Node>& nodes = small.graph.nodes;
  nodes.push_back({.kind = ir::NodeKind::kMemAlloc, .device = 0, .params = ir::MemAllocParams{{1, 0}, 4096}});
  nodes.push_back({.kind = ir::NodeKind::kMemFree, .params = ir::MemFreeParams{{1, 0}}});
  nodes.push_back({.kind = ir::NodeKind::kEventRecord, .params = ir::EventParams{0}});
  small.graph.edges = {{0, 1}, {1, 2}, {2, 4}, {2, 5}, {3, 0}};
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small);
  REQUIRE_OK(loaded);

  CHECK(replay(*loaded).empty());
}

TEST_CASE("memory operations are replayed", "[bundle]") {
  SmallBundle small;
  const std::uint32_t value = 77;
  small.graph.nodes.push_back({.kind = ir::NodeKind::kBatchMemOp,
                               .device = 0,
                               .params = ir::BatchMemOpParams{{{ir::MemOpKind::kWrite, {1, 4092}, value, 4},
                                                               {ir::MemOpKind::kWaitEqual, {1, 4092}, value, 4}}}});
  small.graph.edges = {{0, 1}, {1, 3}, {3, 2}};
  std::memcpy(&small.y_after[1023], &value, sizeof(value));
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small);
  REQUIRE_OK(loaded);

  CHECK(replay(*loaded).empty());
}

TEST_CASE("variables of a module keep the driver's address, and get the content that was saved", "[bundle]") {
  SmallBundle small;
  small.manifest.blocks.insert(
      small.manifest.blocks.begin(),
      saved::Block{
          .kind = ir::MemoryKind::kDevice, .address = small.address() - 4096, .bytes = 4096, .variable = "table"});
  for (saved::Range& range : small.saved.allocations) ++range.block;
  small.saved.inputs[0].range.block = 1;
  small.saved.outputs[0].range.block = 2;
  small.saved.allocations.push_back({0, 0, 4096});
  small.graph.allocations.push_back({ir::MemoryKind::kDevice, 0, 4096});
  std::get<ir::MemcpyParams>(small.graph.nodes[2].params).source = ir::Pointer{3, 0};  // the variable to z
  std::vector<float> table(1024);
  std::iota(table.begin(), table.end(), 0.0f);
  small.add_module(kPtxImage);
  const auto page = SmallBundle::kPage;
  small.add_piece(small.saved, {0, 0, page}, SmallBundle::bytes_of(table));
  small.add_piece(small.saved, {1, 0, page}, SmallBundle::bytes_of(small.x));
  small.set_expected(small.saved, {{{0, 0, page}, SmallBundle::bytes_of(table)},
                                   {{1, page, page}, SmallBundle::bytes_of(small.y_after)},
                                   {{2, 0, page}, SmallBundle::bytes_of(table)}});
  small.add_graph(small.saved, small.graph);
  small.finish();
  Simulator simulator;
  SmallBundle::provide(simulator);
  {
    absl::StatusOr<LoadedBundle> loaded = load(small);
    REQUIRE_OK(loaded);

    CHECK(replay(*loaded).empty());
    CHECK(loaded->blocks()[0] != nullptr);
    CHECK(loaded->blocks()[0] != reinterpret_cast<void*>(small.address() - 4096));
    static_cast<float*>(loaded->blocks()[0])[5] = 0;
    CHECK_THAT(loaded->check("step")->front().text, Catch::Contains("memory 0 (table), bytes 0 to 4095 of 4096"));
  }
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("memory of the host that no kernel names lies elsewhere, and operands of copies follow it", "[bundle]") {
  SmallBundle small;
  const auto kind = GENERATE(ir::MemoryKind::kPageableHost, ir::MemoryKind::kPinnedHost);
  small.manifest.blocks[1].kind = kind;
  small.graph.allocations[2].kind = kind;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small);
  REQUIRE_OK(loaded);

  CHECK(replay(*loaded).empty());
  CHECK(loaded->output("step", "z")->data != reinterpret_cast<void*>(small.manifest.blocks[1].address));
}

TEST_CASE("pinned memory that kernels name keeps its address, also between pages of a device's", "[bundle]") {
  SmallBundle small;
  const std::uint64_t distance = GENERATE(std::uint64_t{4} << 20, 2 * kRegionBytes);
  small.manifest.blocks[1].address = small.address() + distance;
  write_to_host(small);
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  for (int i = 0; i < 2; ++i) {
    absl::StatusOr<LoadedBundle> loaded = load(small);
    REQUIRE_OK(loaded);

    CHECK(replay(*loaded).empty());
    CHECK(loaded->output("step", "z")->data == reinterpret_cast<void*>(small.address() + distance));
  }
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("graphs share memory, and where they differ the first of them has the last word", "[bundle]") {
  SmallBundle small;
  small.add_module(kPtxImage);
  // "next" scales y into x, and was saved with another x, and with a page of y that "step" does not speak of.
  saved::SavedGraph next{.name = "next",
                         .kernels = {{.symbol = "scale"}},
                         .node_kernels = {0},
                         .allocations = {{0, 0, 4096}, {0, 4096, 4096}}};
  ir::GraphIr next_graph;
  next_graph.allocations = {small.graph.allocations[0], small.graph.allocations[1]};
  next_graph.functions = small.graph.functions;
  next_graph.nodes.push_back(
      {.kind = ir::NodeKind::kKernel, .device = 0, .params = SmallBundle::scale({0, 0}, {1, 0}, 3)});
  const std::vector<float> other(1024, 4.0f), y(1024, 8.0f);
  std::vector<float> scaled = other;
  std::fill_n(scaled.begin(), 64, 24.0f);
  const auto page = SmallBundle::kPage;
  small.add_piece(next, {0, 0, page}, SmallBundle::bytes_of(other));
  small.add_piece(next, {0, page, page}, SmallBundle::bytes_of(y));
  small.set_expected(next, {{{0, 0, page}, SmallBundle::bytes_of(scaled)}});
  small.add_piece(small.saved, {0, 0, page}, SmallBundle::bytes_of(small.x));
  small.set_expected(small.saved, {{{1, 0, page}, SmallBundle::bytes_of(small.y_after)}});
  small.add_graph(small.saved, small.graph);
  small.add_graph(next, next_graph);
  small.finish();
  Simulator simulator;
  SmallBundle::provide(simulator);
  {
    absl::StatusOr<LoadedBundle> loaded = load(small);
    REQUIRE_OK(loaded);
    const auto* const memory = reinterpret_cast<const float*>(small.address());
    CHECK(memory[3] == 3);     // x as "step" has it
    CHECK(memory[1024] == 8);  // y as "next" has it

    const Stream stream = *Stream::create(kDevice);
    CHECK_OK(loaded->launch("step", stream));
    CHECK_OK(loaded->launch("next", stream));
    CHECK_OK(stream.ref().synchronize());

    CHECK(memory[3] == 18);
    CHECK(replay(*loaded, "next").empty());
    CHECK(replay(*loaded, "step").empty());
  }
  CHECK(simulator.live_handles() == 0);
  absl::StatusOr<LoadedBundle> one = load(small, {.graphs = {"next"}});
  REQUIRE_OK(one);
  CHECK(replay(*one, "next").empty());
  CHECK_THAT(one->exec("step").status(), StatusIs(absl::StatusCode::kNotFound, "there is \"next\""));
}

TEST_CASE("inputs and outputs of a rebindable bundle are the caller's own memory", "[bundle]") {
  SmallBundle small;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small, {.rebinding = BundleRebinding::kRebindable});
  REQUIRE_OK(loaded);
  const Stream stream = *Stream::create(kDevice);
  const DeviceBuffer mine = *DeviceBuffer::create(kDevice, 256);
  CHECK_OK(fill32(stream, mine.data(), 0x40000000, 64));  // 2.0f
  GraphExec* const exec = *loaded->exec("step");
  const NamedBuffer x = *loaded->input("step", "x");

  CHECK(*exec->rebind_buffer(x.data, x.bytes, mine.data()) == 1);
  CHECK_OK(loaded->launch("step", stream));
  CHECK_OK(stream.ref().synchronize());

  CHECK(floats(*loaded->output("step", "z"))[9] == 4);
}

TEST_CASE("a damaged piece is told by its file, and read unchecked where the caller trusts the disk", "[bundle]") {
  SmallBundle small;
  small.write();
  const std::string hash = to_string(*small.saved.memory[0].hash);
  const std::string file = small.path() + "/memory/" + hash;
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).write("damaged", 7);
  Simulator simulator;
  SmallBundle::provide(simulator);

  CHECK_THAT(load(small).status(), StatusIs(absl::StatusCode::kDataLoss, hash));
  CHECK(simulator.live_handles() == 0);
  CHECK_OK(load(small, {.check = saved::HashCheck::kSkip}));
}

TEST_CASE("what the device is not is told before anything is loaded", "[bundle]") {
  SmallBundle small;
  small.manifest.machine.major = 8;
  small.manifest.machine.device = "NVIDIA A100";
  small.add_module(std::string_view("\x7f\x45\x4c\x46 a cubin\0 of another kind", 30));
  small.write();
  Simulator simulator;

  CHECK_THAT(load(small).status(),
             StatusIs(absl::StatusCode::kFailedPrecondition,
                      "saved on NVIDIA A100, of compute capability 8.0, and its code does not run on device 0"));
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("PTX runs on another architecture", "[bundle]") {
  SmallBundle small;
  small.manifest.machine.major = 8;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);

  CHECK_OK(load(small));
}

TEST_CASE("graphs whose blocks run at once need as many multiprocessors as they had", "[bundle]") {
  SmallBundle small;
  small.manifest.machine.multiprocessors = 144;
  SECTION("cooperative") { std::get<ir::KernelParams>(small.graph.nodes[1].params).attributes.cooperative = true; }
  SECTION("clusters") { std::get<ir::KernelParams>(small.graph.nodes[1].params).attributes.cluster = {1, 1, 2}; }
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);

  CHECK_THAT(load(small).status(), StatusIs(absl::StatusCode::kFailedPrecondition, "144 multiprocessors"));
  CHECK_THAT(load(small).status(), StatusIs(absl::StatusCode::kFailedPrecondition, "node 1 \"scale\""));
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("a module of a newer driver is told to be of one when it is refused", "[bundle]") {
  SmallBundle small;
  small.manifest.machine.driver = 13020;
  small.saved.kernels[0].symbol = "scale_of_13_2";
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);

  CHECK_THAT(load(small).status(), StatusIs(absl::StatusCode::kNotFound,
                                            "saved with a driver for CUDA 13.2, and this one is older (CUDA 13.0)"));
}

TEST_CASE("code without the kernel, and with a kernel of another layout, is told", "[bundle]") {
  SmallBundle small;
  Simulator simulator;
  SECTION("no such kernel") {
    small.saved.kernels[0].symbol = "scale_it";
    small.write();
    CHECK_THAT(load(small).status(), StatusIs(absl::StatusCode::kNotFound, "no kernel named \"scale_it\""));
  }
  SECTION("a name of the source is no symbol") {
    small.add_module(".version 8.0\n.target sm_90\n.visible .entry _ZN2ns5scaleEv()\n{ ret; }\n");
    small.write();
    CHECK_THAT(load(small).status(), StatusIs(absl::StatusCode::kNotFound, "has no kernel \"scale\""));
  }
  SECTION("another layout") {
    small.saved.kernels[0].symbol = "cluster";
    small.write();
    CHECK_THAT(load(small).status(),
               StatusIs(absl::StatusCode::kInvalidArgument,
                        "4 parameters in 24 bytes for it, and its code takes 1 parameter in 8 bytes"));
  }
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("nodes that cannot be replayed are told by name", "[bundle]") {
  SmallBundle small;
  ir::Node node;
  SECTION("host") { node = {.kind = ir::NodeKind::kHost}; }
  SECTION("conditional") { node = {.kind = ir::NodeKind::kConditional}; }
  SECTION("a wait for an event") { node = {.kind = ir::NodeKind::kEventWait, .params = ir::EventParams{0}}; }
  SECTION("a copy of an array") {
    node = {.kind = ir::NodeKind::kMemcpy, .params = ir::MemcpyParams{.source = ir::Pointer{0, 0}, .width_bytes = 4}};
  }
  small.graph.nodes.push_back(node);
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);

  CHECK_THAT(load(small).status(), StatusIs(absl::StatusCode::kUnimplemented, "Graph \"step\": node 3"));
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("managed memory is refused by name", "[bundle]") {
  SmallBundle small;
  small.manifest.blocks[1].kind = ir::MemoryKind::kManaged;
  small.graph.allocations[2].kind = ir::MemoryKind::kManaged;
  small.write();
  Simulator simulator;

  CHECK_THAT(load(small).status(),
             StatusIs(absl::StatusCode::kUnimplemented, "Memory 1 of the bundle (4096 bytes) is managed"));
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("limits of the context are as high as they were, and as before afterwards", "[bundle]") {
  SmallBundle small;
  small.manifest.machine.stack_bytes = 4096;
  small.manifest.machine.heap_bytes = 1024;  // lower than it is
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  const auto limit = [](CUlimit which) {
    const absl::StatusOr<ScopedContext> current = ScopedContext::enter(*ContextRef(kDevice).get());
    std::size_t value = 0;
    CHECK(driver::api().CtxGetLimit(&value, which) == CUDA_SUCCESS);
    return value;
  };
  {
    const absl::StatusOr<LoadedBundle> loaded = load(small);
    CHECK_OK(loaded);
    CHECK(limit(CU_LIMIT_STACK_SIZE) == 4096);
    CHECK(limit(CU_LIMIT_MALLOC_HEAP_SIZE) == std::size_t{8} << 20);
  }
  CHECK(limit(CU_LIMIT_STACK_SIZE) == 1024);
}

TEST_CASE("launches in flight end before their bundle", "[bundle]") {
  SmallBundle small;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  const Stream stream = *Stream::create(kDevice);
  {
    absl::StatusOr<LoadedBundle> loaded = load(small);
    REQUIRE_OK(loaded);
    CHECK_OK(loaded->launch("step", stream));
  }
  CHECK(*stream.ref().is_complete());
  CHECK(simulator.live_handles() == 1);  // the stream
}

TEST_CASE("several threads launch", "[bundle]") {
  SmallBundle small;
  small.write();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small);
  REQUIRE_OK(loaded);
  std::vector<absl::Status> results(3);
  {
    std::vector<std::jthread> threads;
    for (absl::Status& result : results) {
      threads.emplace_back([&loaded, &result] {
        const Stream stream = *Stream::create(kDevice);
        for (int i = 0; i < 20 && result.ok(); ++i) result = loaded->launch("step", stream);
        result.Update(stream.ref().synchronize());
      });
    }
  }

  for (const absl::Status& result : results) CHECK_OK(result);
  CHECK(loaded->check("step")->empty());
}

TEST_CASE("large memory and code are loaded, and memory compared, by several threads", "[bundle]") {
  SmallBundle small;
  constexpr std::uint64_t kBytes = std::uint64_t{48} << 20;
  small.manifest.blocks[0].bytes = kBytes;
  small.saved.allocations[0] = {0, 0, SmallBundle::kPage};
  std::vector<std::uint64_t> all(kBytes / 8);
  std::iota(all.begin(), all.end(), std::uint64_t{1});
  const std::string blanks(std::size_t{2} << 20, '\n');
  small.add_module(kPtxImage + blanks);
  small.add_module(kPtxImage + blanks + blanks);
  small.saved.kernels.push_back({.symbol = "cluster", .module = 1});
  for (std::uint64_t at = 0; at < kBytes; at += saved::kMaxPieceBytes) {
    small.add_piece(small.saved, {0, at, saved::kMaxPieceBytes},
                    SmallBundle::bytes_of(all).subspan(at, saved::kMaxPieceBytes));
  }
  small.set_expected(small.saved, {{{0, 0, kBytes}, SmallBundle::bytes_of(all)}});
  small.add_graph(small.saved, small.graph);
  small.finish();
  Simulator simulator;
  SmallBundle::provide(simulator);
  absl::StatusOr<LoadedBundle> loaded = load(small);
  REQUIRE_OK(loaded);

  CHECK(loaded->check("step")->empty());  // nothing was launched
  reinterpret_cast<std::uint64_t*>(small.address())[kBytes / 16] = 0;
  const absl::StatusOr<std::vector<MemoryDifference>> differences = loaded->check("step");

  REQUIRE_OK(differences);
  REQUIRE(differences->size() == 1);
  CHECK(differences->front().range == saved::Range{0, kBytes / 2, 4096});
}

// Calls whose failure a load does not tell: what gives something back, and what only the wording of an error is from.
bool may_be_swallowed(std::string_view entry) {
  for (std::string_view quiet : {"cuGetErrorName",
                                 "cuGetErrorString",
                                 "cuCtxPopCurrent",
                                 "cuStreamDestroy",
                                 "cuEventDestroy",
                                 "cuMemFree",
                                 "cuMemFreeHost",
                                 "cuGraphDestroy",
                                 "cuGraphExecDestroy",
                                 "cuLibraryUnload",
                                 "cuLogsRegisterCallback",
                                 "cuLogsUnregisterCallback",
                                 "cuMemHostUnregister",
                                 "cuMemUnmap",
                                 "cuMemAddressFree",
                                 "cuMemRelease",
                                 "cuThreadExchangeStreamCaptureMode",
                                 "cuCtxPushCurrent",
                                 "cuCtxSetLimit",
                                 "cuGraphInstantiateWithParams"}) {
    if (entry == quiet) return true;
  }
  return false;
}

TEST_CASE("a load survives the failure of each of its driver calls", "[bundle][fault]") {
  SmallBundle small;
  small.manifest.machine.stack_bytes = 4096;
  small.saved.kernels[0].preferred_carveout_percent = 50;
  small.manifest.blocks.push_back({.kind = ir::MemoryKind::kDevice,
                                   .address = small.address() + 3 * kRegionBytes,
                                   .bytes = 4096,
                                   .variable = "table"});
  small.saved.allocations.push_back({2, 0, 4096});
  small.graph.allocations.push_back({ir::MemoryKind::kDevice, 0, 4096});
  write_to_host(small);
  small.write();
  std::map<std::string, int> failed;
  bool all_after = false;
  for (int nth = 0;; ++nth) {
    REQUIRE(nth < 1000);
    Simulator simulator;
    SmallBundle::provide(simulator);
    INFO("driver call " << nth);
    bool fault_happened = false;
    {
      driver::Instrument instrument;
      if (all_after) {
        instrument.fail_from(nth, CUDA_ERROR_OUT_OF_MEMORY);
      } else {
        instrument.fail_call(nth, CUDA_ERROR_OUT_OF_MEMORY);
      }
      const auto use = [&]() -> absl::Status {
        CGRT_ASSIGN_OR_RETURN(LoadedBundle loaded, load(small));
        CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(kDevice));
        CGRT_RETURN_IF_ERROR(loaded.restore("step"));
        CGRT_RETURN_IF_ERROR(loaded.launch("step", stream));
        CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
        return loaded.check("step").status();
      };
      const absl::Status status = use();
      fault_happened = instrument.failed();
      if (!fault_happened) CHECK_OK(status);
      if (fault_happened) {
        const std::string entry = driver::kEntryNames[static_cast<std::size_t>(instrument.failed_entry())];
        INFO("failed entry " << entry << ", status " << status.ToString());
        ++failed[entry];
        const bool is_quiet = status.ok() && may_be_swallowed(entry);
        if (!is_quiet) CHECK_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
      }
    }
    INFO(simulator.live_handles_text());
    collect_released();
    CHECK(simulator.live_handles() == 0);
    CUcontext none = nullptr;
    CHECK(driver::api().CtxPopCurrent(&none) == CUDA_ERROR_INVALID_CONTEXT);
    if (fault_happened) continue;
    if (std::exchange(all_after, true)) break;
    nth = -1;
  }

  for (const char* entry :
       {"cuCtxGetLimit", "cuCtxSetLimit", "cuMemHostRegister", "cuMemHostUnregister", "cuMemGetAllocationGranularity",
        "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap",
        "cuMemSetAccess", "cuFuncGetModule", "cuModuleGetGlobal", "cuKernelSetAttribute"}) {
    INFO(entry);
    CHECK(failed[entry] > 0);
  }
}

}  // namespace
}  // namespace cgrt::testing
