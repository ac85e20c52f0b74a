#include "cgrt/inspect/json.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>

#include "cgrt/inspect/json_value.h"
#include "cgrt/ir/validate.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/ir/graphs.h"

namespace cgrt::inspect {
namespace {

using cgrt::testing::kernel_of;
using cgrt::testing::small_graph;
using cgrt::testing::StatusIs;

// The JSON of small_graph() with the first `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = to_json(small_graph());
  const std::size_t at = text.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void check_refused(const std::string& text, const std::string& message) {
  CHECK_THAT(from_json(text).status(), StatusIs(absl::StatusCode::kInvalidArgument, message));
}

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("cgrt_json_test_" + name)).string();
}

TEST_CASE("a graph read back equals the one written", "[inspect][json]") {
  ir::GraphIr graph = small_graph();
  graph.nodes[1].scope = "layer0/\"quoted\"\\\x01 \xc3\xa9";
  graph.nodes.push_back({.kind = ir::NodeKind::kChildGraph, .device = -1, .scope = {}, .params = {}});
  graph.edges[0] = {.from = 0, .to = 1, .from_port = 255, .to_port = 2, .type = ir::EdgeType::kProgrammatic};
  graph.allocations.push_back({.kind = ir::MemoryKind::kArray, .device = 3, .bytes = ~std::uint64_t{0}});
  kernel_of(graph, 1).grid = {0xffffffff, 0, 1};
  graph.functions[0].parameters.push_back({20, 0});
  std::get<ir::MemcpyParams>(graph.nodes[2].params).source = std::nullopt;
  std::get<ir::MemcpyParams>(graph.nodes[2].params).depth = 7;
  std::get<ir::MemsetParams>(graph.nodes[0].params).pitch = 512;

  const absl::StatusOr<ir::GraphIr> again = from_json(to_json(graph));

  REQUIRE_OK(again);
  CHECK(*again == graph);
}

TEST_CASE("times are written and read, and must be of nodes that are there", "[inspect][json]") {
  ir::GraphIr graph = small_graph();
  graph.timing = {
      .launches = 10, .median_ns = 5000, .busy_ns = 4000, .nodes = std::vector<ir::NodeTime>(graph.nodes.size())};
  graph.timing.nodes[1] = {.count = 10, .median_ns = 2000, .min_ns = 1900, .max_ns = 2500};

  const std::string text = to_json(graph);
  const absl::StatusOr<ir::GraphIr> again = from_json(text);

  REQUIRE_OK(again);
  CHECK(*again == graph);
  const std::string node = "{\"node\": 1, ";
  std::string wrong = text;
  wrong.replace(text.find(node), node.size(), "{\"node\": 99, ");
  check_refused(wrong, "timing.nodes[0].node: expected the id of a node, found 99");
  graph.timing.nodes.pop_back();
  CHECK_THAT(ir::validate(graph), StatusIs(absl::StatusCode::kInvalidArgument, "timing: has times of"));
}

TEST_CASE("a graph is written in the lowest version that can say it", "[inspect][json]") {
  const auto version = [](const ir::GraphIr& graph) {
    const std::string text = to_json(graph);
    return text.substr(text.find("\"version\": "), 12);
  };
  ir::GraphIr graph = small_graph();
  CHECK(version(graph) == "\"version\": 1");
  graph.nodes[1].kind = ir::NodeKind::kChildGraph;
  graph.bodies.push_back({1});
  CHECK(version(graph) == "\"version\": 2");
  graph = small_graph();
  testing::set_arguments(graph, 1, {testing::structure_argument(16, 24, {{8, {1, 0}}})});
  CHECK(version(graph) == "\"version\": 3");
}

TEST_CASE("addresses inside arguments are read back, and refused with their path", "[inspect][json]") {
  ir::GraphIr graph = small_graph();
  testing::set_arguments(graph, 1, {testing::structure_argument(16, 24, {{8, {1, 0}}, {16, {0, 4}}})});
  std::string text = to_json(graph);

  const absl::StatusOr<ir::GraphIr> again = from_json(text);
  REQUIRE_OK(again);
  CHECK(*again == graph);

  text.replace(text.find("\"at\": 8"), 7, "\"at\": -8");
  check_refused(text, "nodes[1].arguments[0].inner_pointers[0].at: expected an integer from 0 to");
  text.replace(text.find("\"at\": -8"), 8, "\"at\": 17");
  check_refused(text, "nodes[1].arguments[0]: has an address that begins at byte 17 of 24");
}

TEST_CASE("gaps between arguments are read as compilers leave them", "[inspect][json]") {
  ir::GraphIr graph;
  const std::uint32_t aligned = 1024;  // a structure of that size
  for (int i = 0; i < 1100; ++i) {
    testing::add_kernel(graph, "few", {testing::value_argument(0, {1}), testing::value_argument(256, {2})});
    testing::add_kernel(graph, "aligned",
                        {testing::value_argument(0, {1}), testing::structure_argument(aligned, aligned, {})});
  }

  const absl::StatusOr<ir::GraphIr> again = from_json(to_json(graph));

  REQUIRE_OK(again);
  CHECK(*again == graph);
}

TEST_CASE("a small file cannot ask for much memory by gaps between arguments", "[inspect][json]") {
  const auto with_gaps = [](int count) {
    ir::GraphIr graph;
    for (int i = 0; i < count; ++i) {
      testing::add_kernel(graph, "far", {testing::value_argument(ir::kMaxParameterBytes - 1, {1})});
    }
    return graph;
  };

  const absl::StatusOr<ir::GraphIr> again = from_json(to_json(with_gaps(16)));
  REQUIRE_OK(again);
  CHECK(*again == with_gaps(16));

  const std::string text = to_json(with_gaps(100));
  CHECK(text.size() < 30'000);
  check_refused(text,
                "nodes[16].arguments[0]: leaves a gap of 65535 bytes in front of it; gaps of more than 256 bytes may "
                "have 1048576 together, and up to here they have 1114095");
}

// Whatever a number is: a graph that is not valid, or one that reads back the same.
TEST_CASE("numbers at the end of their range are written and read", "[inspect][json]") {
  const auto most = [](auto& field) { field = std::numeric_limits<std::decay_t<decltype(field)>>::max(); };
  ir::GraphIr graph = small_graph();
  graph.nodes.push_back({.kind = ir::NodeKind::kEventWait, .device = -1, .scope = {}, .params = ir::EventParams{~0u}});
  for (ir::Allocation& allocation : graph.allocations) most(allocation.bytes), most(allocation.device);
  most(graph.nodes[0].device);
  auto& memset = std::get<ir::MemsetParams>(graph.nodes[0].params);
  most(memset.value), most(memset.width), most(memset.height), most(memset.pitch);
  memset.destination.offset = ~std::uint64_t{0} - 1;
  auto& memcpy = std::get<ir::MemcpyParams>(graph.nodes[2].params);
  most(memcpy.width_bytes), most(memcpy.height), most(memcpy.depth);
  most(memcpy.destination_pitch), most(memcpy.source_pitch);
  ir::KernelParams& kernel = kernel_of(graph, 1);
  const std::uint32_t end = ir::kMaxParameterBytes;
  testing::set_arguments(graph, 1, {testing::value_argument(end - 1, {1}), testing::value_argument(end, {})});
  kernel.grid = kernel.block = kernel.attributes.cluster = {~0u, ~0u, ~0u};
  most(kernel.shared_bytes), most(kernel.attributes.shared_carveout_percent);
  kernel.attributes.priority = std::numeric_limits<std::int32_t>::min();
  ir::AccessPolicyWindow& window = kernel.attributes.access_policy;
  most(window.bytes);

  using Limits = std::numeric_limits<float>;
  for (const float share : {0.0f, 0.6f, -1.0f, Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min()}) {
    window.hit_ratio = share;
    const absl::StatusOr<ir::GraphIr> again = from_json(to_json(graph));
    REQUIRE_OK(again);
    CHECK(*again == graph);
  }
  for (const float share : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    window.hit_ratio = share;
    CHECK_THAT(write_file(scratch("share"), graph),
               StatusIs(absl::StatusCode::kInvalidArgument, "share: not a graph that could be read again: node 1"));
    CHECK_FALSE(std::filesystem::remove(scratch("share")));
  }
}

TEST_CASE("a share that no float holds is refused", "[inspect][json]") {
  ir::GraphIr graph = small_graph();
  kernel_of(graph, 1).attributes.access_policy = {.base = {0, 0}, .bytes = 16, .hit_ratio = 0.5f};
  const std::string text = to_json(graph);
  const auto with_share = [&](const std::string& share) {
    return std::string(text).replace(text.find("\"hit_ratio\": 0.5") + 13, 3, share);
  };
  const std::string path = "nodes[1].attributes.access_policy.hit_ratio: expected a number";

  CHECK_OK(from_json(with_share("1")));
  check_refused(with_share("1e300"), path + " up to 3.40282e+38, found the number 1e+300");
  check_refused(with_share("-1e300"), path + " up to 3.40282e+38, found the number -1e+300");
  check_refused(with_share("1e400"), "not JSON: number overflow");
  check_refused(with_share("null"), path + ", found null");
  check_refused(with_share("NaN"), "not JSON");
}

TEST_CASE("text that is not UTF-8 is written as something that can be read", "[inspect][json]") {
  ir::GraphIr graph = small_graph();
  graph.functions[0].name = "a\xff";

  absl::StatusOr<ir::GraphIr> again = from_json(to_json(graph));

  REQUIRE_OK(again);
  CHECK(again->functions[0].name == "a\xef\xbf\xbd");
}

TEST_CASE("keys that the reader does not know are skipped, with all within", "[inspect][json]") {
  const absl::StatusOr<ir::GraphIr> graph =
      from_json(changed("\"id\": 1, ", "\"id\": 1, \"priority\": {\"x\": [1, {}, null, 2.5, true]}, "));

  REQUIRE_OK(graph);
  CHECK(*graph == small_graph());
}

TEST_CASE("another schema or version is refused by name", "[inspect][json]") {
  check_refused(changed("\"version\": 1", "\"version\": 7"), "version 7; this reader knows 1");
  check_refused(changed("\"version\": 1", "\"version\": 0"), "version 0; this reader knows 1");
  check_refused(changed("\"version\": 1", "\"version\": \"1\""), "version: expected an integer from 0 to");
  check_refused(changed("cgrt-graph", "cgrt-record-1"),
                "not a cgrt graph: schema: expected \"cgrt-graph\", found the string \"cgrt-record-1\"");
  check_refused("{}", "not a cgrt graph: the key \"schema\" is missing");
  check_refused("[1]", "not a cgrt graph: expected an object, found an array of 1");
  check_refused("3", "not a cgrt graph: expected an object, found 3");
}

TEST_CASE("every key that is required is missed by name", "[inspect][json]") {
  // Renaming a key removes it: the reader skips the new name.
  const auto check_missing = [](const std::string& key, const std::string& place) {
    check_refused(changed("\"" + key + "\"", "\"_\""), place + "the key \"" + key + "\" is missing");
  };

  for (const char* key : {"schema", "version", "nodes", "edges", "allocations"}) check_missing(key, "");
  for (const char* key : {"id", "kind", "value", "element_bytes", "width", "destination"}) {
    check_missing(key, "nodes[0]: ");
  }
  for (const char* key : {"function", "grid", "block", "shared_bytes", "arguments"}) check_missing(key, "nodes[1]: ");
  for (const char* key : {"offset", "size"}) check_missing(key, "nodes[1].arguments[0]: ");
  check_refused(changed("\"pointer\"", "\"_\""), "nodes[1].arguments[0]: the key \"bytes\" is missing");
  check_missing("width_bytes", "nodes[2]: ");
  for (const char* key : {"from", "to"}) check_missing(key, "edges[0]: ");
}

TEST_CASE("values of a wrong type or size are refused with their path", "[inspect][json]") {
  check_refused(changed("\"grid\": [4, 1, 1]", "\"grid\": [4, 1]"),
                "nodes[1].grid: expected 3 integers, found an array of 2");
  check_refused(changed("\"grid\": [4, 1, 1]", "\"grid\": 4"), "nodes[1].grid: expected 3 integers, found 4");
  check_refused(changed("\"grid\": [4,", "\"grid\": [-4,"),
                "nodes[1].grid[0]: expected an integer from 0 to 4294967295, found -4");
  check_refused(changed("\"grid\": [4,", "\"grid\": [4294967296,"), "nodes[1].grid[0]: expected an integer");
  check_refused(changed("\"grid\": [4,", "\"grid\": [4.0,"), "found the number 4");
  check_refused(changed("\"grid\": [4,", "\"grid\": [123456789012345678901234567890,"), "found the number 1.23457e+29");
  check_refused(changed("\"grid\": [4,", "\"grid\": [1e999,"), "not JSON: number overflow");
  check_refused(changed("\"id\": 1", "\"id\": 2"), "nodes[1].id: expected 1, its position, found 2");
  check_refused(changed("\"kernel\"", "\"kernal\""),
                "nodes[1].kind: expected a kind of node, found the string \"kernal\"");
  check_refused(changed("\"kernel\"", "null"), "nodes[1].kind: expected a string, found null");
  check_refused(changed("\"device\": 0", "\"device\": -2147483649"), "nodes[0].device: expected an integer from -2147");
  check_refused(changed("\"device\": 0", "\"device\": -2"), "node 0 (memset): names device -2.");
  check_refused(changed("[0, 256]", "[0]"), "nodes[1].arguments[0].pointer: expected an allocation and an offset");
  check_refused(changed("[0, 256]", "[9, 0]"), "argument 0 points into allocation 9; the graph has 2.");
  check_refused(changed("[0, 256]", "[0, 256], \"bytes\": \"00\""), "has both \"pointer\" and \"bytes\"");
  check_refused(changed("\"00000040\"", "\"0000004\""), "nodes[1].arguments[2].bytes: expected an even number of hex");
  check_refused(changed("\"00000040\"", "\"0000004g\""), "expected an even number of hexadecimal digits");
  check_refused(changed("\"00000040\"", "\"0000\""), "nodes[1].arguments[2]: has the size 4 and 2 bytes of value");
  check_refused(changed("\"offset\": 16", "\"offset\": 4294967295"),
                "nodes[1].arguments[2]: ends at byte 4294967299 of the parameter buffer, which has at most 65536");
  check_refused(changed("\"offset\": 16", "\"offset\": 15"),
                "function 0 \"scale\": parameter 2 begins at byte 15, and the one before ends at 16");
  check_refused(changed("\"offset\": 8, \"size\": 8", "\"offset\": 8, \"size\": 4"),
                "nodes[1].arguments[1]: has the size 4 and 8 bytes of value");
  check_refused(changed("{\"from\": 0, \"to\": 1}", "[0, 1]"), "edges[0]: expected an object, found an array of 2");
  check_refused(changed("\"to\": 1}", "\"to\": 3}"), "edge 0 (0 -> 3): names node 3");
  check_refused(changed("\"to\": 1}", "\"to\": 1, \"from_port\": 256}"),
                "edges[0].from_port: expected an integer from 0 to 255");
  check_refused(changed("\"to\": 1}", "\"to\": 1, \"type\": \"half\"}"), "edges[0].type: expected a type of edge");
  check_refused(changed("\"pinned host\"", "\"pinned\""), "allocations[1].kind: expected a kind of memory");
}

TEST_CASE("text that is not JSON is refused with line and column", "[inspect][json]") {
  check_refused("", "not JSON: line 1, column 1");
  check_refused("{\n  \"schema\" 3}", "not JSON: line 2, column 12");
  check_refused("# Readme\n", "not JSON: line 1, column 1");
  check_refused(to_json(small_graph()) + "x", "not JSON: line");
  check_refused(changed("\"scale\"", "\"sc\xff\""), "ill-formed UTF-8");
  check_refused(std::string("\0", 1), "not JSON");
  check_refused("\"\x1b[31m\"", "not JSON");
}

TEST_CASE("a key that appears twice is refused with its object", "[inspect][json]") {
  check_refused(changed("\"id\": 1, ", "\"id\": 1, \"id\": 1, "), "nodes[1]: key \"id\" appears twice");
  check_refused(changed("\"version\": 1", "\"version\": 1, \"version\": 1"), "key \"version\" appears twice");
}

TEST_CASE("deep nesting is refused at any depth above the limit", "[inspect][json]") {
  CHECK_OK(parse_json(std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']')));
  check_refused(std::string(kMaxJsonDepth + 1, '['), "nested deeper than 64 levels");
  check_refused(std::string(1'000'000, '['), "nested deeper than 64 levels");

  std::string objects = "{\"schema\": \"cgrt-graph\", \"version\": 1, \"x\": ";
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  check_refused(objects, "x.a.a: nested deeper than 64 levels");
}

TEST_CASE("more values than the limit are refused", "[inspect][json][.slow]") {
  std::string text = "[0";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) text += ",0";

  CHECK_THAT(parse_json(text + "]").status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "more than 16777216 values"));
}

TEST_CASE("a file that was cut anywhere is refused", "[inspect][json]") {
  const std::string text = to_json(small_graph());

  for (std::size_t length = 0; length + 2 < text.size(); ++length) {  // the last byte is a newline
    CHECK_FALSE(from_json(std::string_view(text).substr(0, length)).ok());
  }
}

TEST_CASE("files of 10,000 nodes are written and read", "[inspect][json]") {
  ir::GraphIr graph = small_graph();
  for (std::uint32_t n = 3; n < 10'000; ++n) {
    graph.nodes.push_back(graph.nodes[1]);
    graph.edges.push_back(testing::edge(n - 1, n));
  }

  const absl::StatusOr<ir::GraphIr> again = from_json(to_json(graph));

  REQUIRE_OK(again);
  CHECK(*again == graph);
}

TEST_CASE("a graph goes through a file", "[inspect][json]") {
  const std::string path = scratch("graph.cgrt.json");

  CHECK_OK(write_file(path, small_graph()));
  const absl::StatusOr<ir::GraphIr> again = read_file(path);
  std::filesystem::remove(path);

  REQUIRE_OK(again);
  CHECK(*again == small_graph());
}

TEST_CASE("errors of files name the path", "[inspect][json]") {
  const std::string missing = scratch("missing/graph.cgrt.json");
  CHECK_THAT(read_file(missing).status(), StatusIs(absl::StatusCode::kNotFound, missing + ": cannot be opened"));
  CHECK_THAT(write_file(missing, {}),
             StatusIs(absl::StatusCode::kNotFound, missing + ": cannot be opened for writing"));

  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK_FALSE(read_file(folder).ok());
  CHECK_FALSE(write_file(folder, {}).ok());

  if (std::filesystem::exists("/dev/full")) {
    CHECK_THAT(write_file("/dev/full", {}),
               StatusIs(absl::StatusCode::kResourceExhausted, "/dev/full: cannot be written"));
  }
}

TEST_CASE("the graph in json_schema.md is written as it stands there", "[inspect][json]") {
  std::ifstream file(std::string(CGRT_TEST_DATA_DIR) + "/../runtime/cgrt/inspect/json_schema.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const std::size_t begin = page.find("\n```\n") + 5, end = page.find("```\n", begin);
  REQUIRE(end != std::string::npos);
  const std::string text = page.substr(begin, end - begin);
  const absl::StatusOr<ir::GraphIr> graph = from_json(text);
  REQUIRE_OK(graph);
  CHECK(to_json(*graph) == text);
}

}  // namespace
}  // namespace cgrt::inspect
