#include "cgrt/inspect/stats.h"

#include <cstdint>
#include <string>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::inspect {
namespace {

using testing::add_kernel;
using testing::edge;
using testing::empty_nodes;
using testing::kernel_of;
using testing::memcpy_node;
using testing::memset_node;
using testing::small_graph;

constexpr char kMax[] = "18446744073709551615";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

ir::GraphIr chain(std::uint32_t count) {
  ir::GraphIr graph = empty_nodes(count);
  for (std::uint32_t n = 0; n + 1 < count; ++n) graph.edges.push_back(edge(n, n + 1));
  return graph;
}

TEST_CASE("the example of stats.h is what is printed", "[inspect][stats]") {
  CHECK(to_stats_text(small_graph()) == R"(nodes   3
edges   2: 2 full, 0 programmatic
depth   3
width   1
roots   1
leaves  1
copied  4096 bytes a launch
set     4096 bytes a launch

nodes by kind
1  kernel
1  memcpy
1  memset

critical path: 3 nodes
node 0 (memset)
node 1 "scale"
node 2 (memcpy)

kernels by name
1  scale  1024 threads

allocations by kind
1  device       4096 bytes
1  pinned host  4096 bytes
)");
}

TEST_CASE("statistics as JSON are the numbers of the text", "[inspect][stats]") {
  CHECK(to_stats_json(small_graph()) == R"({
  "schema": "cgrt-graph-stats-1",
  "nodes": 3,
  "edges": {"full": 2, "programmatic": 0},
  "depth": 3,
  "width": 1,
  "roots": 1,
  "leaves": 1,
  "copied_bytes": 4096,
  "set_bytes": 4096,
  "nodes_by_kind": [
    {"kind": "kernel", "nodes": 1},
    {"kind": "memcpy", "nodes": 1},
    {"kind": "memset", "nodes": 1}
  ],
  "critical_path": [0, 1, 2],
  "kernels": [
    {"function": "scale", "nodes": 1, "threads": 1024}
  ],
  "allocations": [
    {"kind": "device", "allocations": 1, "bytes": 4096, "unknown_sizes": 0},
    {"kind": "pinned host", "allocations": 1, "bytes": 4096, "unknown_sizes": 0}
  ]
}
)");
}

TEST_CASE("kernels are listed by count, then by name, with the threads of all their nodes", "[inspect][stats]") {
  ir::GraphIr graph;
  for (const char* name : {"scale", "gelu", "add", "scale"}) add_kernel(graph, name);
  kernel_of(graph, 2).grid = {2, 3, 5};
  kernel_of(graph, 2).block = {7, 11, 1};

  CHECK(contains(to_stats_text(graph), R"(
kernels by name
2  scale  2048 threads
1  add    2310 threads
1  gelu   1024 threads
)"));
}

TEST_CASE("copied and set bytes count every row of every slice", "[inspect][stats]") {
  ir::GraphIr graph;
  graph.nodes = {memcpy_node({.destination = {}, .source = {}, .width_bytes = 10, .height = 3, .depth = 2}),
                 memcpy_node({.destination = {}, .source = {}, .width_bytes = 1}),
                 memset_node({.destination = {}, .element_bytes = 4, .width = 5, .height = 2})};
  graph.allocations = {{}};

  const std::string text = to_stats_text(graph);

  CHECK(contains(text, "copied  61 bytes a launch\n"));
  CHECK(contains(text, "set     40 bytes a launch\n"));
}

TEST_CASE("programmatic edges are counted apart", "[inspect][stats]") {
  ir::GraphIr graph = chain(4);
  graph.edges[1].type = ir::EdgeType::kProgrammatic;

  CHECK(contains(to_stats_text(graph), "edges   3: 2 full, 1 programmatic\n"));
}

TEST_CASE("allocations of unknown size are said, and not counted as bytes", "[inspect][stats]") {
  ir::GraphIr graph;
  graph.allocations = {{.kind = ir::MemoryKind::kDevice, .device = 0, .bytes = 256},
                       {.kind = ir::MemoryKind::kDevice, .device = 1, .bytes = 0},
                       {.kind = ir::MemoryKind::kPageableHost, .device = -1, .bytes = 0}};

  const std::string text = to_stats_text(graph);

  CHECK(contains(text, "2  device         256 bytes, and 1 of unknown size\n"));
  CHECK(contains(text, "1  pageable host  size unknown\n"));
}

TEST_CASE("a critical path of twelve nodes is listed whole and a longer one without its middle", "[inspect][stats]") {
  const std::string listed = to_stats_text(chain(12)), elided = to_stats_text(chain(13));

  CHECK(contains(listed, "node 5 (empty)\nnode 6 (empty)\nnode 7 (empty)\n"));
  CHECK(contains(elided, "critical path: 13 nodes\n"));
  CHECK(contains(elided, "node 5 (empty)\n... 2 more\nnode 8 (empty)\n"));
  CHECK(contains(elided, "node 12 (empty)\n"));
}

TEST_CASE("the critical path as JSON is never shortened", "[inspect][stats]") {
  CHECK(contains(to_stats_json(chain(14)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]"));
}

TEST_CASE("a chain of 10,000 nodes is one critical path", "[inspect][stats]") {
  const std::string text = to_stats_text(chain(10000));

  CHECK(contains(text, "depth   10000\n"));
  CHECK(contains(text, "node 5 (empty)\n... 9989 more\nnode 9995 (empty)\n"));
}

TEST_CASE("sums that do not fit stop at the largest number", "[inspect][stats]") {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;
  ir::GraphIr graph;
  add_kernel(graph, "scale");
  graph.nodes.push_back(memcpy_node({.destination = {}, .source = {}, .width_bytes = kHuge, .height = 2}));
  for (int i = 0; i < 2; ++i) {
    graph.nodes.push_back(memset_node({.destination = {}, .element_bytes = 1, .width = kHuge}));
  }
  kernel_of(graph, 0).grid = kernel_of(graph, 0).block = {0xffffffff, 0xffffffff, 0xffffffff};
  graph.allocations = {{.kind = ir::MemoryKind::kDevice, .device = 0, .bytes = kHuge},
                       {.kind = ir::MemoryKind::kDevice, .device = 0, .bytes = kHuge}};

  const std::string text = to_stats_text(graph);

  CHECK(contains(text, std::string("scale  ") + kMax + " threads\n"));
  CHECK(contains(text, std::string("copied  ") + kMax + " bytes"));
  CHECK(contains(text, std::string("set     ") + kMax + " bytes"));
  CHECK(contains(text, std::string("device  ") + kMax + " bytes\n"));
}

TEST_CASE("a grid of no blocks has no threads, however large its other sizes", "[inspect][stats]") {
  ir::GraphIr graph;
  add_kernel(graph, "scale");
  kernel_of(graph, 0).grid = {0xffffffff, 0xffffffff, 0};
  kernel_of(graph, 0).block = {0xffffffff, 0xffffffff, 0xffffffff};

  CHECK(contains(to_stats_text(graph), "scale  0 threads\n"));
}

TEST_CASE("kernel names in statistics cannot steer the terminal", "[inspect][stats]") {
  ir::GraphIr graph;
  add_kernel(graph, "a\x1b[2J\n");

  const std::string text = to_stats_text(graph);

  CHECK(contains(text, "1  a\\x1b[2J\\x0a  1024 threads\n"));
  CHECK(contains(text, "node 0 \"a\\x1b[2J\\x0a\"\n"));
}

TEST_CASE("of a graph that is not valid the statistics say why", "[inspect][stats]") {
  const ir::GraphIr graph = empty_nodes(1, {edge(0, 4)});

  CHECK(to_stats_text(graph) == "not a valid graph: edge 0 (0 -> 4): names node 4; the graph has 1 node.\n");
  CHECK(to_stats_json(graph) == R"({
  "schema": "cgrt-graph-stats-1",
  "error": "not a valid graph: edge 0 (0 -> 4): names node 4; the graph has 1 node."
}
)");
}

}  // namespace
}  // namespace cgrt::inspect
