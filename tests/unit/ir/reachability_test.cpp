#include "cgrt/ir/reachability.h"

#include <algorithm>
#include <random>
#include <vector>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::ir {
namespace {

using testing::edge;
using testing::empty_nodes;

// Every edge from a lower to a higher number of a shuffled list of nodes, some of them with ports or programmatic.
GraphIr random_graph(std::mt19937& random, std::uint32_t nodes, double density) {
  std::vector<std::uint32_t> names(nodes);
  for (std::uint32_t n = 0; n < nodes; ++n) names[n] = n;
  std::shuffle(names.begin(), names.end(), random);
  GraphIr graph = empty_nodes(nodes);
  for (std::uint32_t a = 0; a < nodes; ++a) {
    for (std::uint32_t b = a + 1; b < nodes; ++b) {
      if (std::bernoulli_distribution(density)(random)) {
        Edge one = edge(names[a], names[b]);
        one.from_port = static_cast<std::uint8_t>(random() % 3);
        if (one.from_port == 1) one.type = EdgeType::kProgrammatic;
        graph.edges.push_back(one);
      }
    }
  }
  std::sort(graph.edges.begin(), graph.edges.end());
  return graph;
}

// Whether a path leads there, by looking at all of them.
bool has_path(const GraphIr& graph, std::uint32_t from, std::uint32_t to, Paths paths, std::size_t length = 0) {
  return std::any_of(graph.edges.begin(), graph.edges.end(), [&](const Edge& one) {
    const bool is_plain = one.type == EdgeType::kFull && one.from_port == 0;
    const bool is_first = length == 0;
    if (one.from != from) return false;
    if (paths == Paths::kIndirectFull && !is_plain) return false;
    if (is_first && paths == Paths::kFullFirst && !is_plain) return false;
    if (is_first && paths == Paths::kWaiting && !waits_for_end(one)) return false;
    if (one.to == to && (paths != Paths::kIndirectFull || length > 0)) return true;
    return has_path(graph, one.to, to, paths, length + 1);
  });
}

TEST_CASE("answers are those of a search along all paths", "[ir][reachability]") {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const GraphIr graph = random_graph(random, 12, round % 2 == 0 ? 0.15 : 0.3);
    std::vector<NodePair> pairs;
    for (std::uint32_t a = 0; a < 12; ++a) {
      for (std::uint32_t b = 0; b < 12; ++b) pairs.push_back({a, b});
    }
    for (const Paths paths : {Paths::kWaiting, Paths::kFullFirst, Paths::kIndirectFull}) {
      const std::vector<Reach> answers = Reachability(graph).ask(pairs, paths);

      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const bool expected = has_path(graph, pairs[i].from, pairs[i].to, paths);
        INFO(round << ": " << pairs[i].from << " -> " << pairs[i].to << ", " << static_cast<int>(paths));
        REQUIRE(answers[i] == (expected ? Reach::kYes : Reach::kNone));
      }
    }
  }
}

TEST_CASE("more starts than fit into one pass are answered", "[ir][reachability]") {
  GraphIr graph = empty_nodes(3000);
  std::vector<NodePair> pairs;
  for (std::uint32_t n = 0; n + 2 < 3000; ++n) {
    graph.edges.push_back(edge(n, n + 2));  // two chains
    pairs.push_back({n, n % 3 == 0 ? 2998 + n % 2 : 2999 - n % 2});
  }

  const std::vector<Reach> answers = Reachability(graph).ask(pairs, Paths::kWaiting);

  for (std::uint32_t n = 0; n + 2 < 2998; ++n) REQUIRE(answers[n] == (n % 3 == 0 ? Reach::kYes : Reach::kNone));
}

TEST_CASE("a chain and a fan cost no more than a few steps for each node", "[ir][reachability]") {
  constexpr std::uint32_t kCount = 100000;
  constexpr std::uint64_t kFewPerNode = std::uint64_t{4} * kCount;
  GraphIr chain = empty_nodes(kCount), fan = empty_nodes(kCount);
  std::vector<NodePair> of_chain, of_fan;
  for (std::uint32_t n = 0; n + 2 < kCount; ++n) {
    chain.edges.push_back(edge(n, n + 1));
    of_chain.push_back({n, n + 2});
  }
  for (std::uint32_t n = 1; n + 1 < kCount; ++n) {
    fan.edges.push_back(edge(0, n));
    of_fan.push_back({n, n == 1 ? kCount - 1 : n - 1});
    of_fan.push_back({n, kCount - 1});
  }
  for (std::uint32_t n = 1; n + 1 < kCount; ++n) fan.edges.push_back(edge(n, kCount - 1));
  Reachability in_chain(chain), in_fan(fan);

  (void)in_chain.ask(of_chain, Paths::kWaiting);
  (void)in_fan.ask(of_fan, Paths::kWaiting);

  CHECK(in_chain.steps() < kFewPerNode);
  CHECK(in_fan.steps() < kFewPerNode);
}

TEST_CASE("what lies beyond the limit is said", "[ir][reachability]") {
  GraphIr chain = empty_nodes(100);
  for (std::uint32_t n = 0; n + 1 < 100; ++n) chain.edges.push_back(edge(n, n + 1));
  Reachability reachability(chain, 50);

  CHECK(reachability.ask(std::vector<NodePair>{{0, 10}}, Paths::kWaiting)[0] == Reach::kYes);
  CHECK(reachability.ask(std::vector<NodePair>{{0, 99}}, Paths::kWaiting)[0] == Reach::kNotLookedAt);
  CHECK(reachability.ask(std::vector<NodePair>{{0, 1}}, Paths::kWaiting)[0] == Reach::kYes);  // needs no pass
}

TEST_CASE("the order puts the nodes of a body behind the node that has them inside", "[ir][reachability]") {
  GraphIr graph = empty_nodes(5, {edge(1, 0), edge(4, 3)});
  graph.nodes[1].kind = NodeKind::kChildGraph;
  graph.nodes[2].kind = NodeKind::kChildGraph;
  graph.bodies = {{1}};
  graph.nodes[3].body = graph.nodes[4].body = 1;
  Reachability reachability(graph);

  CHECK(reachability.order() == std::vector<std::uint32_t>{1, 4, 3, 2, 0});
  CHECK(reachability.in_common_body({3, 0}) == NodePair{1, 0});
  CHECK(reachability.in_common_body({3, 4}) == NodePair{3, 4});
  CHECK(reachability.in_common_body({3, 1}) == NodePair{1, 1});
}

TEST_CASE("nodes at any depth have a common body", "[ir][reachability]") {
  // Body n has node n, a child graph in which the next body is.
  GraphIr graph = empty_nodes(101);
  for (std::uint32_t n = 0; n < 100; ++n) {
    graph.nodes[n].kind = NodeKind::kChildGraph;
    graph.nodes[n + 1].body = n + 1;
    graph.bodies.push_back({n});
  }
  const Reachability reachability(graph);

  for (std::uint32_t a = 0; a < 100; ++a) {
    for (std::uint32_t b = a + 1; b < 100; ++b) {
      REQUIRE(reachability.in_common_body({a, b}) == NodePair{a, a});
      REQUIRE(reachability.in_common_body({b, a}) == NodePair{a, a});
    }
  }
}

TEST_CASE("nodes deep inside of two nodes have the body of these in common", "[ir][reachability]") {
  // Nodes 0 and 1 in the graph itself; nodes 2n and 2n + 1 inside of the two before.
  GraphIr graph = empty_nodes(80);
  for (std::uint32_t n = 0; n < 80; ++n) {
    graph.nodes[n].kind = NodeKind::kChildGraph;
    if (n < 78) graph.bodies.push_back({n});
    if (n > 1) graph.nodes[n].body = n - 1;
  }
  const Reachability reachability(graph);

  for (std::uint32_t a = 0; a < 80; a += 2) {
    for (std::uint32_t b = 1; b < 80; b += 2) REQUIRE(reachability.in_common_body({a, b}) == NodePair{0, 1});
  }
}

}  // namespace
}  // namespace cgrt::ir
