#include "cgrt/ir/relation.h"

#include <vector>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::ir {
namespace {

using testing::conditional_node;
using testing::edge;
using testing::empty_nodes;

using Edges = std::vector<Edge>;

TEST_CASE("of ordered nodes the shortest path is said, in both directions", "[ir][relation]") {
  const GraphIr graph = empty_nodes(5, {edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 4), edge(3, 4)});

  const Relation forward = relation_between(graph, 0, 4), backward = relation_between(graph, 4, 0);

  CHECK(forward.order == Order::kBefore);
  CHECK(forward.path == Edges{edge(0, 2), edge(2, 4)});
  CHECK(backward.order == Order::kAfter);
  CHECK(backward.path == forward.path);
}

TEST_CASE("of paths of one length the one with the lowest ids is said", "[ir][relation]") {
  const GraphIr graph = empty_nodes(4, {edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)});

  CHECK(relation_between(graph, 0, 3).path == Edges{edge(0, 1), edge(1, 3)});
}

TEST_CASE("nodes of branches have a last common ancestor and a first common descendant", "[ir][relation]") {
  // 0 -> 1 -> {2, 3} -> 4 -> 5
  const GraphIr graph = empty_nodes(6, {edge(0, 1), edge(1, 2), edge(1, 3), edge(2, 4), edge(3, 4), edge(4, 5)});

  const Relation relation = relation_between(graph, 3, 2);

  CHECK(relation.order == Order::kUnordered);
  CHECK(relation.path.empty());
  CHECK(relation.last_common_ancestor == 1u);
  CHECK(relation.first_common_descendant == 4u);
}

TEST_CASE("nodes that have nothing to do with each other have neither", "[ir][relation]") {
  const Relation relation = relation_between(empty_nodes(2), 0, 1);

  CHECK(relation.order == Order::kUnordered);
  CHECK(relation.last_common_ancestor == std::nullopt);
  CHECK(relation.first_common_descendant == std::nullopt);
}

TEST_CASE("a node is the same as itself", "[ir][relation]") {
  CHECK(relation_between(empty_nodes(1), 0, 0).order == Order::kSame);
}

TEST_CASE("a path that waits for an end is said before a shorter one that does not", "[ir][relation]") {
  GraphIr graph = empty_nodes(3, {edge(0, 1), edge(0, 2), edge(1, 2)});
  graph.edges[1].from_port = 2;

  const Relation relation = relation_between(graph, 0, 2);

  CHECK(relation.order == Order::kBefore);
  CHECK(relation.path == Edges{graph.edges[0], graph.edges[2]});
}

TEST_CASE("an edge that waits for the start alone orders the starts", "[ir][relation]") {
  GraphIr graph = empty_nodes(3, {edge(0, 1), edge(1, 2)});
  graph.edges[0].from_port = 2;

  CHECK(relation_between(graph, 0, 2).order == Order::kStartsAfter);
  CHECK(relation_between(graph, 2, 0).order == Order::kStartsBefore);
  CHECK(relation_between(graph, 1, 2).order == Order::kBefore);
}

TEST_CASE("a programmatic edge orders, as far as its end waits", "[ir][relation]") {
  GraphIr graph = empty_nodes(2, {edge(0, 1)});
  graph.edges[0].from_port = 1;
  graph.edges[0].type = EdgeType::kProgrammatic;

  CHECK(relation_between(graph, 0, 1).order == Order::kBefore);
}

// 0 (if) -> 1 (child graph) -> 2; 3 and 4 in the bodies of 0, 5 in 1, which has 6 in a child graph of its own, 7.
GraphIr nested() {
  GraphIr graph = empty_nodes(7, {edge(0, 1), edge(1, 2)});
  graph.nodes[0] = conditional_node({ConditionalKind::kIf, 0, 1});
  graph.nodes[1].kind = graph.nodes[5].kind = NodeKind::kChildGraph;
  graph.bodies = {{0}, {0}, {1}, {5}};
  graph.nodes[3].body = 1;
  graph.nodes[4].body = 2;
  graph.nodes[5].body = 3;
  graph.nodes[6].body = 4;
  return graph;
}

TEST_CASE("nodes of different bodies are as ordered as those that have them inside", "[ir][relation]") {
  const Relation relation = relation_between(nested(), 6, 3);

  CHECK(relation.order == Order::kAfter);
  CHECK(relation.a == 1);
  CHECK(relation.b == 0);
  CHECK(relation.path == Edges{edge(0, 1)});
}

TEST_CASE("bodies of one node exclude each other, and a node has its own inside", "[ir][relation]") {
  CHECK(relation_between(nested(), 3, 4).order == Order::kExclusive);
  CHECK(relation_between(nested(), 6, 1).order == Order::kSame);
  CHECK(relation_between(nested(), 1, 5).order == Order::kSame);
}

}  // namespace
}  // namespace cgrt::ir
