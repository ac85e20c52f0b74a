#include "cgrt/ir/analysis.h"

#include <vector>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::ir {
namespace {

using testing::edge;
using testing::empty_nodes;

using Ids = std::vector<std::uint32_t>;

TEST_CASE("the topological order puts nodes after what they wait for, lower ids first within a level",
          "[ir][analysis]") {
  const GraphIr graph = empty_nodes(5, {edge(2, 3), edge(3, 0), edge(4, 0), edge(4, 1)});

  CHECK(topological_order(graph) == Ids{2, 4, 1, 3, 0});
}

TEST_CASE("a graph with a cycle has no order and no shape", "[ir][analysis]") {
  const GraphIr graph = empty_nodes(3, {edge(0, 1), edge(1, 2), edge(2, 1)});

  CHECK(topological_order(graph) == std::nullopt);
  CHECK(shape_of(graph).depth == 0);
}

TEST_CASE("an empty graph has an empty order and no levels", "[ir][analysis]") {
  CHECK(topological_order(GraphIr()) == Ids{});
  CHECK(shape_of(GraphIr()).depth == 0);
  CHECK(shape_of(GraphIr()).roots == 0);
}

TEST_CASE("a chain is as deep as it has nodes and one wide", "[ir][analysis]") {
  GraphIr graph = empty_nodes(10000);
  for (std::uint32_t n = 0; n + 1 < 10000; ++n) graph.edges.push_back(edge(n, n + 1));

  const Shape shape = shape_of(graph);

  CHECK(shape.depth == 10000);
  CHECK(shape.width == 1);
  CHECK(shape.roots == 1);
  CHECK(shape.leaves == 1);
}

TEST_CASE("depth follows the longest path and width counts the fullest level", "[ir][analysis]") {
  // 0 -> {1, 2, 3} -> 4, and 0 -> 4 directly; 5 stands alone.
  const GraphIr graph =
      empty_nodes(6, {edge(0, 1), edge(0, 2), edge(0, 3), edge(0, 4), edge(1, 4), edge(2, 4), edge(3, 4)});

  const Shape shape = shape_of(graph);

  CHECK(shape.depth == 3);
  CHECK(shape.width == 3);
  CHECK(shape.roots == 2);
  CHECK(shape.leaves == 2);
}

TEST_CASE("the critical path is the longest chain, in the order in which it runs", "[ir][analysis]") {
  // 3 -> 1 -> 4 -> 0, with the short cuts 3 -> 0 and 2 -> 0.
  const GraphIr graph = empty_nodes(5, {edge(1, 4), edge(2, 0), edge(3, 0), edge(3, 1), edge(4, 0)});

  CHECK(critical_path(graph) == Ids{3, 1, 4, 0});
}

TEST_CASE("of critical paths of one length the one with the lowest ids is taken, compared from the front",
          "[ir][analysis]") {
  // {1, 2} -> {3, 4} -> 5 in all ways but 1 -> 3; 0 leads to nothing as long.
  const GraphIr graph = empty_nodes(6, {edge(0, 5), edge(1, 4), edge(2, 3), edge(2, 4), edge(3, 5), edge(4, 5)});

  CHECK(critical_path(graph) == Ids{1, 4, 5});
}

TEST_CASE("lowest ids are taken on the critical path in whatever order the edges are", "[ir][analysis]") {
  const GraphIr graph = empty_nodes(3, {edge(0, 2), edge(0, 1)});

  CHECK(critical_path(graph) == Ids{0, 1});
}

TEST_CASE("edges between the same nodes on several ports do not lengthen the critical path", "[ir][analysis]") {
  GraphIr graph = empty_nodes(2, {edge(0, 1), edge(0, 1)});
  graph.edges[1].from_port = 1;

  CHECK(critical_path(graph) == Ids{0, 1});
}

TEST_CASE("the critical path of nodes without edges is the first node", "[ir][analysis]") {
  CHECK(critical_path(empty_nodes(3)) == Ids{0});
}

TEST_CASE("a graph that is empty or has a cycle has no critical path", "[ir][analysis]") {
  CHECK(critical_path(GraphIr()).empty());
  CHECK(critical_path(empty_nodes(3, {edge(0, 1), edge(1, 2), edge(2, 1)})).empty());
}

TEST_CASE("the critical path of a chain against the order of ids is the whole chain", "[ir][analysis]") {
  GraphIr graph = empty_nodes(10000);
  for (std::uint32_t n = 1; n < 10000; ++n) graph.edges.push_back(edge(n, n - 1));

  const Ids path = critical_path(graph);

  REQUIRE(path.size() == 10000);
  CHECK(path.front() == 9999);
  CHECK(path.back() == 0);
}

TEST_CASE("the critical path is as long as the graph is deep where paths are too many to list", "[ir][analysis]") {
  // 1000 layers of two nodes, each waiting for both of the layer before: 2^1000 paths.
  GraphIr graph = empty_nodes(2000);
  for (std::uint32_t n = 0; n + 2 < 2000; ++n) {
    const std::uint32_t next_layer = (n / 2 + 1) * 2;
    graph.edges.push_back(edge(n, next_layer));
    graph.edges.push_back(edge(n, next_layer + 1));
  }

  const Ids path = critical_path(graph);

  REQUIRE(path.size() == shape_of(graph).depth);
  CHECK(path[1] == 2);
  CHECK(path.back() == 1998);
}

}  // namespace
}  // namespace cgrt::ir
