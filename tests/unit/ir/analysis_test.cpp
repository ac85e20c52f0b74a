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

}  // namespace
}  // namespace cgrt::ir
