#include "cgrt/graph/snapshot.h"

#include <cstring>
#include <limits>

#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/inspect/text.h"
#include "cgrt/ir/diff.h"
#include "cgrt/ir/validate.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/named_kernels.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

constexpr LaunchConfig kConfig{.grid = 1, .block = 32};
const DeviceRef kDevice(0);

const ir::KernelParams& kernel_of(const ir::GraphIr& graph, std::size_t id) {
  return std::get<ir::KernelParams>(graph.nodes.at(id).params);
}

const std::string& name_of(const ir::GraphIr& graph, std::size_t id) {
  return function_of(graph, kernel_of(graph, id)).name;
}

// A node with a structure that holds addresses, in a program that has `bytes_before` allocated before.
ir::GraphIr graph_of_rows(std::size_t bytes_before) {
  Simulator simulator;
  DeviceBuffer before = *DeviceBuffer::create(kDevice, bytes_before);
  DeviceBuffer in = *DeviceBuffer::create(kDevice, 1024), out = *DeviceBuffer::create(kDevice, 2048);
  Graph graph = *Graph::create(kDevice);
  Rows rows{in.as<float>() + 4, 7, out.as<float>(), 0.5};
  REQUIRE_OK(graph.add_kernel({}, kConfig, rows_kernel(), 3, rows));
  return *snapshot(graph);
}

TEST_CASE("addresses inside a structure are written as allocations, not as bytes", "[graph][snapshot]") {
  const ir::GraphIr graph = graph_of_rows(16);

  const std::vector<ir::Argument> arguments = arguments_of(graph, kernel_of(graph, 0));
  REQUIRE(arguments.size() == 2);
  const ir::Argument& rows = arguments[1];
  const std::uint32_t offset = rows.parameter.offset;
  CHECK(kernel_of(graph, 0).pointers == std::vector<ir::InnerPointer>{{offset, {0, 16}}, {offset + 16, {1, 0}}});
  CHECK(rows.pointers.size() == 2);
  CHECK(graph.allocations.at(1).bytes == 2048);
  CHECK(std::count(rows.bytes.begin(), rows.bytes.begin() + 8, 0) == 8);
  CHECK(rows.bytes[8] == 7);
  CHECK(std::count(rows.bytes.begin() + 16, rows.bytes.begin() + 24, 0) == 8);
  double scale = 0;
  std::memcpy(&scale, &rows.bytes[24], sizeof(scale));
  CHECK(scale == 0.5);
  CHECK(describe_node(nullptr) == "a node");
  CHECK_OK(ir::validate(graph));
  CHECK(inspect::to_text(graph).find(".. 32 bytes, device#0+0x10 at 0, device#1 at 16}") != std::string::npos);
}

TEST_CASE("two runs that put their memory elsewhere have the same graph", "[graph][snapshot]") {
  CHECK(inspect::to_json(graph_of_rows(16)) == inspect::to_json(graph_of_rows(1 << 20)));
}

TEST_CASE("the driver is asked once for each word of a large argument", "[graph][snapshot]") {
  Simulator simulator;
  DeviceBuffer buffer = *DeviceBuffer::create(kDevice, 4096);
  Graph graph = *Graph::create(kDevice);
  Table table;
  for (std::size_t i = 0; i < std::size(table.words); ++i) table.words[i] = 0x0123456789000000 + 8 * i;  // no addresses
  for (int node = 0; node < 10; ++node) {
    table.words[100 + node] = reinterpret_cast<std::uint64_t>(buffer.as<char>() + node);
    table.words[200 + node] = 17;                   // too small for an address
    table.words[300 + node] = 0x4045000000000000u;  // 42.0: too large for one
    REQUIRE_OK(graph.add_kernel({}, kConfig, table_kernel(), table));
  }
  driver::Instrument instrument;

  const absl::StatusOr<ir::GraphIr> read = snapshot(graph);

  REQUIRE_OK(read);
  CHECK(kernel_of(*read, 9).pointers.size() == 10);
  CHECK(read->allocations.size() == 1);
  CHECK(instrument.count("cuPointerGetAttributes") <= std::size(table.words));
}

TEST_CASE("a share of the window that is no number is written as one that can be read", "[graph][snapshot]") {
  Simulator simulator;
  DeviceBuffer window = *DeviceBuffer::create(kDevice, 4096);
  Graph graph = *Graph::create(kDevice);
  for (const float share : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    LaunchConfig config = kConfig;
    config.attributes.access_policy = {window.data(), 2048, share};
    REQUIRE_OK(graph.add_kernel({}, config, c_kernel()));
  }

  const absl::StatusOr<ir::GraphIr> read = snapshot(graph);

  REQUIRE_OK(read);
  CHECK_OK(inspect::from_json(inspect::to_json(*read)));
}

TEST_CASE("kernels have the names that a device gives them", "[graph][snapshot]") {
  Simulator simulator;
  Graph graph = *Graph::create(kDevice);
  for (const auto& kernel : {norm_kernel(), unnamed_kernel(), c_kernel(), long_kernel(), no_rtti_kernel()}) {
    REQUIRE_OK(graph.add_kernel({}, kConfig, kernel));
  }

  const absl::StatusOr<ir::GraphIr> read = snapshot(graph);

  REQUIRE_OK(read);
  CHECK(name_of(*read, 0) == "cgrt::testing::norm<(cgrt::testing::Op)3>");
  CHECK(name_of(*read, 1) == "cgrt::testing::of_hidden<(cgrt::testing::Hidden)1>");
  CHECK(name_of(*read, 2) == "c_kernel_of_tests");
  CHECK(name_of(*read, 3).size() > 800);
  CHECK(name_of(*read, 3).ends_with("WouldDo<8> > >"));
  CHECK(name_of(*read, 4) == "cgrt::testing::norm<cgrt::testing::Op::kNone>");  // the exception
}

TEST_CASE("a child that another library put in has no scopes of those beside it", "[graph][snapshot]") {
  Simulator simulator;
  Graph inner = *Graph::create(kDevice);
  REQUIRE_OK(inner.add_empty({}));
  CUgraph raw = nullptr;
  REQUIRE(driver::api().GraphCreate(&raw, 0) == CUDA_SUCCESS);
  Graph graph = *Graph::adopt(raw, kDevice);
  CUgraphNode node = nullptr;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = inner.ref().get();
  REQUIRE(driver::api().GraphAddNode(&node, raw, nullptr, nullptr, 0, &params) == CUDA_SUCCESS);
  Graph named = *Graph::create(kDevice);
  {
    Scope scope("ours");
    REQUIRE_OK(named.add_empty({}));
  }
  REQUIRE_OK(graph.add_child({}, named));

  const ir::GraphIr ir = *snapshot(graph);

  REQUIRE(ir.nodes.size() == 4);
  CHECK(ir.nodes[2].scope.empty());
  CHECK(ir.nodes[3].scope == "ours");
}

TEST_CASE("a snapshot tells which memory of the process its allocations are", "[graph][snapshot]") {
  Simulator simulator;
  const DeviceBuffer shared = *DeviceBuffer::create(kDevice, 1024);
  const auto ids_of = [&](float* out) {
    Graph graph = *Graph::create(kDevice);
    REQUIRE_OK(graph.add_kernel({}, kConfig, scale_kernel(), out, shared.as<float>(), 2.0f, 256));
    std::vector<AllocationId> ids;
    const absl::StatusOr<ir::GraphIr> ir = snapshot(
        graph.ref(), [](CUgraphNode) -> const NodeNote* { return nullptr; }, ids);
    REQUIRE_OK(ir);
    REQUIRE(ids.size() == ir->allocations.size());
    return ids;
  };
  std::vector<AllocationId> first, second;
  {
    DeviceBuffer own = *DeviceBuffer::create(kDevice, 1024);
    first = ids_of(own.as<float>());
  }
  {
    DeviceBuffer own = *DeviceBuffer::create(kDevice, 1024);
    second = ids_of(own.as<float>() + 1);
  }

  CHECK(first.at(1) == second.at(1));
  CHECK(first.at(1).start == reinterpret_cast<CUdeviceptr>(shared.as<float>()));
  CHECK(first.at(0).buffer_id != 0);
  CHECK(first.at(0).buffer_id != second.at(0).buffer_id);
}

}  // namespace
}  // namespace cgrt::testing
