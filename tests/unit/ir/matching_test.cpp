#include "cgrt/ir/matching.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "cgrt/ir/diff.h"
#include "cgrt/ir/function_table.h"
#include "cgrt/ir/validate.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/ir/graphs.h"

namespace cgrt::ir {
namespace {

using testing::add_kernel;
using testing::conditional_node;
using testing::edge;
using testing::kernel_of;
using testing::memset_node;
using testing::pointer_argument;
using testing::value_argument;

using Ids = std::vector<std::uint32_t>;

// Kernels that read one allocation and write the next.
GraphIr chain(const std::vector<std::string>& names) {
  GraphIr graph;
  graph.allocations.assign(names.size() + 1, {.kind = MemoryKind::kDevice, .device = 0, .bytes = 4096});
  for (std::uint32_t n = 0; n < names.size(); ++n) {
    add_kernel(graph, names[n], {pointer_argument(0, n), pointer_argument(8, n + 1)});
    if (n > 0) graph.edges.push_back(edge(n - 1, n));
  }
  return graph;
}

// The same graph with its nodes made in the order `order`, and all that is numbered by mention numbered anew.
GraphIr reordered(const GraphIr& graph, const Ids& order) {
  GraphIr out;
  Ids position(order.size());
  FunctionTable functions(out.functions);
  std::map<std::uint32_t, std::uint32_t> allocations;
  for (const std::uint32_t node : order) {
    position[node] = static_cast<std::uint32_t>(out.nodes.size());
    out.nodes.push_back(graph.nodes[node]);
    auto* kernel = std::get_if<KernelParams>(&out.nodes.back().params);
    if (kernel == nullptr) continue;
    kernel->function = functions.add(graph.functions[kernel->function]);
    for (InnerPointer& one : kernel->pointers) {
      std::uint32_t& allocation = one.pointer.allocation;
      const auto [found, is_new] = allocations.try_emplace(allocation, static_cast<std::uint32_t>(allocations.size()));
      if (is_new) out.allocations.push_back(graph.allocations[allocation]);
      allocation = found->second;
    }
  }
  for (const Edge& one : graph.edges) out.edges.push_back(edge(position[one.from], position[one.to]));
  std::sort(out.edges.begin(), out.edges.end());
  return out;
}

// Layers of kernels of few kinds, each of which reads what one or two of the layer before wrote.
GraphIr random_graph(std::mt19937& random) {
  const auto below = [&](std::size_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  GraphIr graph;
  Ids before;
  for (int layer = 0; layer < 12; ++layer) {
    Ids made;
    for (std::uint32_t i = 0; i < 1 + below(4); ++i) {
      const auto id = static_cast<std::uint32_t>(graph.nodes.size());
      graph.allocations.push_back({.kind = MemoryKind::kDevice, .device = 0, .bytes = 4096});
      std::vector<testing::ArgumentValue> arguments = {pointer_argument(0, id)};
      Ids read;
      if (!before.empty()) read = {before[below(before.size())], before[below(before.size())]};
      std::sort(read.begin(), read.end());
      read.erase(std::unique(read.begin(), read.end()), read.end());
      for (const std::uint32_t one : read) {
        arguments.push_back(pointer_argument(static_cast<std::uint32_t>(8 * arguments.size()), one));
        graph.edges.push_back(edge(one, id));
      }
      add_kernel(graph, absl::StrCat("kernel", below(3)), arguments);
      made.push_back(id);
    }
    before = made;
  }
  std::sort(graph.edges.begin(), graph.edges.end());
  return graph;
}

TEST_CASE("a graph matches itself", "[ir][matching]") {
  const GraphIr graph = chain({"a", "b", "b", "b", "c"});
  CHECK(match_nodes(graph, graph) == Ids{0, 1, 2, 3, 4});
  CHECK(match_nodes(GraphIr(), graph).empty());
  CHECK(match_nodes(graph, GraphIr()) == Ids(5, kNoNode));
}

TEST_CASE("the order in which nodes were made makes no difference", "[ir][matching]") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const GraphIr graph = random_graph(random);
    Ids order(graph.nodes.size());
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    const GraphIr other = reordered(graph, order);
    REQUIRE_OK(validate(graph));
    REQUIRE_OK(validate(other));

    const Differences found = differences(graph, other);

    CAPTURE(round);
    CHECK(found.empty());
  }
}

TEST_CASE("a node that was put in or taken out is the only difference", "[ir][matching]") {
  const GraphIr before = chain(std::vector<std::string>(100, "scale"));
  GraphIr after = before;
  after.nodes.push_back(memset_node({.destination = {3, 0}, .value = 0, .element_bytes = 4, .width = 1024}));
  after.edges.push_back(edge(39, 100));
  after.edges.push_back(edge(100, 40));
  after.edges.erase(std::find(after.edges.begin(), after.edges.end(), edge(39, 40)));
  std::sort(after.edges.begin(), after.edges.end());

  const Differences in = differences(before, after), out = differences(after, before);

  CHECK(in.changes.empty());
  CHECK(in.only_in_a.empty());
  CHECK(in.only_in_b == Ids{100});
  CHECK(in.edges_only_in_a == std::vector<Edge>{edge(39, 40)});
  CHECK(in.edges_only_in_b.empty());
  CHECK(out.only_in_a == Ids{100});
  CHECK(out.edges_only_in_b == std::vector<Edge>{edge(39, 40)});
}

TEST_CASE("a kernel like its neighbours that was put in leaves them matched", "[ir][matching]") {
  const Differences found =
      differences(chain(std::vector<std::string>(100, "scale")), chain(std::vector<std::string>(101, "scale")));
  CHECK(found.only_in_b.size() == 1);
  CHECK(found.only_in_a.empty());
}

TEST_CASE("another kernel in the place of one is a change of that node", "[ir][matching]") {
  const Differences found = differences(chain({"a", "b", "c", "d"}), chain({"a", "b", "tiled", "d"}));
  REQUIRE(found.changes.size() == 1);
  CHECK(found.changes[0].place == "node 2 \"c\"");
  CHECK(found.changes[0].field == "function");
  CHECK(found.only_in_a.empty());
  CHECK(found.only_in_b.empty());
}

TEST_CASE("another buffer is a change where it is used, not of those after it", "[ir][matching]") {
  GraphIr before = chain({"a", "a", "a", "a"});
  for (std::uint32_t node = 0; node < 4; ++node) kernel_of(before, node).pointers[0].pointer.allocation = 0;
  before = reordered(before, {0, 1, 2, 3});
  GraphIr after = before;
  after.allocations.push_back(after.allocations[0]);
  kernel_of(after, 1).pointers[0].pointer.allocation = 5;
  after = reordered(after, {0, 1, 2, 3});  // numbers it before those of the nodes behind

  const Differences found = differences(before, after);

  REQUIRE(found.changes.size() == 1);
  CHECK(found.changes[0].place == "node 1 \"a\"");
  CHECK(found.changes[0].field == "argument 0");
  CHECK(found.changes[0].a == "device#0");
  CHECK(found.changes[0].b == "device#5");
}

TEST_CASE("all fields that differ are told, with the node's id in both graphs", "[ir][matching]") {
  const GraphIr before = chain({"a", "b"});
  GraphIr after = reordered(before, {1, 0});
  kernel_of(after, 0).grid.x = 8;
  kernel_of(after, 0).block.x = 32;

  const Differences found = differences(before, after);

  REQUIRE(found.changes.size() == 2);
  CHECK(found.changes[0].place == "node 1 \"b\" (node 0 of the other)");
  CHECK(found.changes[0].field == "grid");
  CHECK(found.changes[0].b == "(8,1,1)");
  CHECK(found.changes[1].place == found.changes[0].place);
  CHECK(found.changes[1].field == "block");
}

TEST_CASE("an edge that is gone is told", "[ir][matching]") {
  const GraphIr before = chain({"a", "b", "c"});
  GraphIr after = before;
  after.edges.pop_back();

  const Differences found = differences(before, after);

  CHECK(found.edges_only_in_a == std::vector<Edge>{edge(1, 2)});
  CHECK(found.changes.empty());
}

TEST_CASE("nodes match inside the bodies whose owners match", "[ir][matching]") {
  const auto with_bodies = [](const std::vector<std::string>& then) {
    GraphIr graph = chain({"a"});
    for (std::uint32_t handle = 0; handle < 2; ++handle) {
      graph.nodes.push_back(conditional_node({.kind = ConditionalKind::kIf, .handle = handle, .at_launch = {}}));
    }
    graph.edges = {edge(0, 1), edge(1, 2)};
    graph.bodies = {{1}, {2}};
    for (std::size_t i = 0; i < then.size(); ++i) {
      add_kernel(graph, then[i], {value_argument(0, {1, 2, 3, 4})});
      graph.nodes.back().body = static_cast<std::uint32_t>(i + 1);
    }
    return graph;
  };
  REQUIRE_OK(validate(with_bodies({"x", "y"})));
  CHECK(match_nodes(with_bodies({"x", "y"}), with_bodies({"x", "y"})) == Ids{0, 1, 2, 3, 4});
  const Differences found = differences(with_bodies({"x", "y"}), with_bodies({"y", "x"}));
  REQUIRE_FALSE(found.empty());
  CHECK(found.changes.size() + found.only_in_a.size() >= 2);
}

}  // namespace
}  // namespace cgrt::ir
