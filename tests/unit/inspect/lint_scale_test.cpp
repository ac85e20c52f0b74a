// That races are found as by comparing all pairs, and that large graphs cost work in proportion.
#include <random>
#include <set>
#include <vector>

#include "cgrt/inspect/lint.h"
#include "cgrt/inspect/meetings.h"
#include "cgrt/ir/reachability.h"
#include "unit/inspect/lint_cases.h"

namespace cgrt::inspect {
namespace {

using testing::add_kernel;
using testing::copy_bytes;
using testing::edge;
using testing::findings_of;
using testing::pointer_argument;
using testing::set_bytes;
using testing::with_memory;

constexpr std::uint32_t kCount = 100000;
constexpr std::size_t kFewPerNode = std::size_t{4} * kCount;

// One bit for each byte of an allocation that the node reads or writes.
using Bytes = std::set<std::pair<std::uint32_t, std::uint64_t>>;

Bytes bytes_of(const ir::Node& node, bool writes) {
  Bytes bytes;
  const auto add = [&](const ir::Pointer& start, std::uint64_t width, std::uint64_t rows, std::uint64_t pitch) {
    for (std::uint64_t row = 0; row < rows; ++row) {
      for (std::uint64_t i = 0; i < width; ++i) bytes.insert({start.allocation, start.offset + row * pitch + i});
    }
  };
  if (const auto* copy = std::get_if<ir::MemcpyParams>(&node.params)) {
    add(writes ? *copy->destination : *copy->source, copy->width_bytes, copy->height,
        writes ? copy->destination_pitch : copy->source_pitch);
  } else if (const auto* set = std::get_if<ir::MemsetParams>(&node.params); set != nullptr && writes) {
    add(set->destination, set->width, set->height, set->pitch);
  }
  return bytes;
}

// Allocations with a race between two nodes.
std::set<std::uint32_t> racy_allocations(const ir::GraphIr& graph) {
  std::set<std::uint32_t> racy;
  std::vector<ir::NodePair> pairs;
  for (std::uint32_t a = 0; a < graph.nodes.size(); ++a) {
    for (std::uint32_t b = 0; b < graph.nodes.size(); ++b) pairs.push_back({a, b});
  }
  const std::vector<ir::Reach> answers = ir::Reachability(graph).ask(pairs, ir::Paths::kWaiting);
  const auto reaches = [&](std::uint32_t a, std::uint32_t b) {
    return answers[a * graph.nodes.size() + b] == ir::Reach::kYes;
  };
  for (const auto& [a, b] : pairs) {
    if (a == b || reaches(a, b) || reaches(b, a)) continue;
    const Bytes written = bytes_of(graph.nodes[a], true);
    for (const bool writes : {false, true}) {
      for (const auto& byte : bytes_of(graph.nodes[b], writes)) {
        if (written.contains(byte)) racy.insert(byte.first);
      }
    }
  }
  return racy;
}

TEST_CASE("races are found in the allocations where comparing all pairs finds them", "[inspect][lint]") {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  std::size_t with_race = 0, without = 0;
  for (int round = 0; round < 400; ++round) {
    ir::GraphIr graph = with_memory();
    for (int n = 0; n < 7; ++n) {
      const ir::Pointer to{below(2), below(40)}, from{2, below(40)};
      if (below(2) == 0) {
        graph.nodes.push_back(
            copy_bytes(to, below(2) == 0 ? from : ir::Pointer{1 - to.allocation, below(40)}, 1 + below(12)));
      } else {
        const std::uint64_t width = 1 + below(6);
        graph.nodes.push_back(testing::memset_node({.destination = to,
                                                    .element_bytes = 1,
                                                    .width = width,
                                                    .height = 1 + below(4),
                                                    .pitch = width + below(6)}));
      }
    }
    for (std::uint32_t a = 0; a < 7; ++a) {
      for (std::uint32_t b = a + 1; b < 7; ++b) {
        if (below(5) < 2 || b == a + 1 + below(3)) graph.edges.push_back(edge(a, b));
      }
    }
    const std::set<std::uint32_t> expected = racy_allocations(graph);

    const std::vector<Finding> found = findings_of(graph, "race");

    INFO(round);
    REQUIRE(found.size() == expected.size());
    ++(expected.empty() ? without : with_race);
  }
  CHECK(with_race > 50);
  CHECK(without > 20);
}

ir::GraphIr chain() {
  ir::GraphIr graph = with_memory();
  for (std::uint32_t n = 0; n < kCount; ++n) {
    if (n % 2 == 0) {
      graph.nodes.push_back(copy_bytes({n % 4 / 2, 0}, {1 - n % 4 / 2, 0}, 4096));
    } else {
      add_kernel(graph, "scale", {pointer_argument(0, 0, 64), pointer_argument(8, 1, std::uint64_t{8} * (n % 64))});
    }
    if (n > 0) graph.edges.push_back(edge(n - 1, n));
  }
  return graph;
}

// A memset, nodes that each read it and set bytes of their own, and a copy of all.
ir::GraphIr fan() {
  ir::GraphIr graph;
  graph.allocations = {{ir::MemoryKind::kDevice, 0, 4096},
                       {ir::MemoryKind::kDevice, 0, std::uint64_t{kCount} * 8},
                       {ir::MemoryKind::kDevice, 0, std::uint64_t{kCount} * 8}};
  graph.nodes.push_back(set_bytes({0, 0}, 4096));
  for (std::uint64_t n = 1; n + 1 < kCount; ++n) {
    if (n % 2 == 0) {
      graph.nodes.push_back(copy_bytes({1, n * 8}, {0, n % 512 * 8}, 8));
    } else {
      add_kernel(graph, "scale", {pointer_argument(0, 1, n * 8), pointer_argument(8, 0, 4)});
    }
    graph.edges.push_back(edge(0, static_cast<std::uint32_t>(n)));
  }
  for (std::uint32_t n = 1; n + 1 < kCount; ++n) graph.edges.push_back(edge(n, kCount - 1));
  graph.nodes.push_back(copy_bytes({2, 0}, {1, 0}, std::uint64_t{kCount} * 8));
  return graph;
}

TEST_CASE("a chain and a fan of 100,000 nodes are looked at whole", "[inspect][lint]") {
  const ir::GraphIr graph = GENERATE(0, 1) == 0 ? chain() : fan();
  REQUIRE_OK(ir::validate(graph));

  CHECK(findings_of(graph, "not-checked").empty());
  CHECK(findings_of(graph, "race").empty());
  CHECK(findings_of(graph, "may-race").empty());
}

TEST_CASE("a race at the end of a fan of 100,000 nodes is found", "[inspect][lint]") {
  ir::GraphIr graph = fan();
  graph.edges.pop_back();  // the last node of the fan is not waited for

  CHECK(findings_of(graph, "race").size() + findings_of(graph, "may-race").size() == 1);
}

TEST_CASE("only as many pairs are asked about as there are accesses", "[inspect][lint]") {
  const ir::GraphIr graph = GENERATE(0, 1) == 0 ? chain() : fan();
  ir::Reachability reachability(graph);

  const Meetings found = find_meetings(graph, reachability.order());

  CHECK(found.left_out == 0);
  CHECK(found.meetings.size() < kFewPerNode);
}

TEST_CASE("operands with more rows than are looked at are said", "[inspect][lint]") {
  ir::GraphIr graph;
  graph.allocations = {{ir::MemoryKind::kDevice, 0, 0}};
  for (int n = 0; n < 2; ++n) {
    graph.nodes.push_back(testing::memset_node(
        {.destination = {0, 0}, .element_bytes = 1, .width = 1, .height = std::uint64_t{1} << 60, .pitch = 2}));
  }

  const std::vector<Finding> found = findings_of(graph, "not-checked");

  REQUIRE(found.size() == 1);
  CHECK(found[0].text == "The rule race came to the limit of its work: 2 operands not looked at.");
}

TEST_CASE("what ends at the end of all addresses is no race with what begins there", "[inspect][lint]") {
  ir::GraphIr graph;
  graph.allocations = {{ir::MemoryKind::kUnknown, -1, 0}};
  graph.nodes = {set_bytes({0, 8}, UINT64_MAX), set_bytes({0, UINT64_MAX}, 8)};
  add_kernel(graph, "scale", {pointer_argument(0, 0, UINT64_MAX)});

  CHECK(findings_of(graph, "race").empty());
  CHECK(findings_of(graph, "may-race").empty());
}

TEST_CASE("races in many allocations are one warning where kernels take part", "[inspect][lint]") {
  ir::GraphIr graph;
  for (std::uint32_t n = 0; n < 50; ++n) {
    graph.allocations.push_back({ir::MemoryKind::kDevice, 0, 64});
    graph.nodes.push_back(set_bytes({n, 0}, 64));
  }
  for (std::uint32_t n = 0; n < 50; ++n) add_kernel(graph, "scale", {pointer_argument(0, n)});

  const std::vector<Finding> found = findings_of(graph, "may-race");

  REQUIRE(found.size() == 1);
  CHECK(found[0].nodes.size() == 100);
  CHECK(found[0].text.ends_with(" And 49 more pairs, in 50 allocations."));
}

}  // namespace
}  // namespace cgrt::inspect
