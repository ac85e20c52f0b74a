#include "cgrt/inspect/timing.h"

#include <limits>

#include "cgrt/inspect/stats.h"
#include "cgrt/inspect/text.h"
#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::inspect {
namespace {

ir::GraphIr empty_nodes(std::size_t count, std::vector<ir::Edge> edges) {
  ir::GraphIr graph;
  graph.nodes.resize(count);
  graph.edges = std::move(edges);
  graph.timing = {.launches = 2, .median_ns = 1000, .busy_ns = 900, .nodes = std::vector<ir::NodeTime>(count)};
  return graph;
}

void set_time(ir::GraphIr& graph, std::size_t node, std::uint64_t ns) {
  graph.timing.nodes[node] = {.count = 2, .median_ns = ns, .min_ns = ns, .max_ns = ns};
}

TEST_CASE("the critical path is the one that takes the longest, not the one of most nodes", "[inspect][timing]") {
  ir::GraphIr graph = empty_nodes(5, {{0, 1}, {0, 2}, {1, 4}, {2, 3}, {3, 4}});
  set_time(graph, 0, 100);
  set_time(graph, 1, 5000);
  set_time(graph, 2, 1000);
  set_time(graph, 3, 1000);

  const std::string text = to_timing_text(graph);

  CHECK(text ==
        "2 launches of 1.0 us (median), idle 10.0 %; 4 of 5 nodes have a time, one after the other 7.1 us\n"
        "\n"
        "critical path by time: 3 nodes, 5.1 us\n"
        "node 0 (empty)  0.1 us\n"
        "node 1 (empty)  5.0 us\n"
        "node 4 (empty)  0.0 us\n"
        "\n"
        "  time  share    nodes  runs  what\n"
        "7.1 us  100.0 %  4      8     (empty)\n");
  CHECK(to_stats_text(graph).ends_with("\ntimes\n" + text));
}

TEST_CASE("a child graph takes as long as the longest path inside", "[inspect][timing]") {
  ir::GraphIr graph = empty_nodes(4, {{0, 1}, {2, 3}});
  graph.nodes[1].kind = ir::NodeKind::kChildGraph;
  graph.nodes[2].body = graph.nodes[3].body = 1;
  graph.bodies = {{1}};
  set_time(graph, 2, 2000);
  set_time(graph, 3, 3000);

  CHECK(to_timing_text(graph).find("node 1 (child graph)  5.0 us\n") != std::string::npos);
}

TEST_CASE("short kernels in a chain are counted for programmatic launch", "[inspect][timing]") {
  ir::GraphIr graph = empty_nodes(4, {{0, 1}, {1, 2}, {2, 3}});
  graph.functions.push_back({.name = "scale"});
  for (ir::Node& node : graph.nodes) {
    node.kind = ir::NodeKind::kKernel;
    node.params = ir::KernelParams{};
  }
  for (std::size_t node = 0; node < 3; ++node) set_time(graph, node, 9'999);
  set_time(graph, 3, 10'000);

  CHECK(to_timing_text(graph).find("2 edges join two kernels of less than 10 us") != std::string::npos);
}

TEST_CASE("graphs without times, and with numbers of a file's, are told", "[inspect][timing]") {
  ir::GraphIr graph = empty_nodes(2, {{0, 1}});
  set_time(graph, 0, std::numeric_limits<std::uint64_t>::max());
  set_time(graph, 1, std::numeric_limits<std::uint64_t>::max());

  CHECK(to_timing_text(graph).find("18446744073709552.0 us\n") != std::string::npos);
  graph.timing = {};
  CHECK(to_timing_text(graph) == "no times: the graph was not launched while it was measured\n");
  graph.edges.push_back({7, 8});
  CHECK(to_timing_text(graph).starts_with("not a valid graph: "));
}

TEST_CASE("show prints times and folds nodes whose times differ", "[inspect][timing]") {
  ir::GraphIr graph = empty_nodes(9, {});
  for (std::size_t node = 0; node < 9; ++node) set_time(graph, node, 1000 * node + 1000);

  const std::string text = to_text(graph);

  CHECK(text.find("0  empty  1.0 us\n... the node above repeats 8 times, up to node 8\n") != std::string::npos);
}

}  // namespace
}  // namespace cgrt::inspect
