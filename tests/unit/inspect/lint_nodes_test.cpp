// Rules about nodes and edges: graphs with something wrong, each with its twin; and what findings look like.
#include <cstring>
#include <utility>

#include "cgrt/inspect/lint.h"
#include "unit/inspect/lint_cases.h"

namespace cgrt::inspect {
namespace {

using testing::add_kernel;
using testing::changed;
using testing::check_case;
using testing::conditional_node;
using testing::copy_bytes;
using testing::edge;
using testing::empty_nodes;
using testing::findings_of;
using testing::kernel_of;
using testing::LintCase;
using testing::pointer_argument;
using testing::programmatic_edge;
using testing::set_bytes;
using testing::small_graph;
using testing::value_argument;
using testing::with_edges;
using testing::with_memory;

constexpr Severity kError = Severity::kError, kWarning = Severity::kWarning, kNote = Severity::kNote;

ir::GraphIr launch(ir::Dim3 grid, ir::Dim3 block, ir::Dim3 cluster = {}) {
  ir::GraphIr graph;
  add_kernel(graph, "scale");
  kernel_of(graph, 0).grid = grid;
  kernel_of(graph, 0).block = block;
  kernel_of(graph, 0).attributes.cluster = cluster;
  return graph;
}

ir::GraphIr with_word(std::uint64_t word) {
  std::vector<std::uint8_t> bytes(8);
  std::memcpy(bytes.data(), &word, 8);
  ir::GraphIr graph;
  add_kernel(graph, "scale", {value_argument(0, {1, 0, 0, 0}), value_argument(8, bytes)});
  return graph;
}

TEST_CASE("launches that cannot be, and arguments that look like addresses, are found", "[inspect][lint]") {
  const ir::GraphIr right = launch({0x7fffffff, 65535, 1}, {256, 2, 2});

  check_case(GENERATE_COPY(
      LintCase{"no blocks", "launch-geometry", kError, {0}, launch({4, 0, 1}, {256}), right},
      LintCase{"no threads", "launch-geometry", kError, {0}, launch({4}, {32, 1, 0}), right},
      LintCase{"too many threads", "launch-geometry", kError, {0}, launch({4}, {32, 33, 1}), right},
      LintCase{"too many threads of z", "launch-geometry", kError, {0}, launch({4}, {1, 1, 65}), right},
      LintCase{"too many blocks of y", "launch-geometry", kError, {0}, launch({1, 65536, 1}, {32}), right},
      LintCase{"blocks left over", "launch-geometry", kError, {0}, launch({6}, {32}, {4}), launch({8}, {32}, {4})},
      LintCase{
          "too large a cluster", "launch-geometry", kError, {0}, launch({34}, {32}, {17}), launch({32}, {32}, {16})},
      LintCase{"an address of no memory",
               "stale-pointer",
               kWarning,
               {0},
               with_word(0x7f12'3450'0200),
               with_word(0x4000'0000'0000'0000)},  // 2.0
      LintCase{"another one",
               "stale-pointer",
               kWarning,
               {0},
               with_word(0x7e12'3450'0200),
               with_word(0x7ffd'50e0'0100)},  // of the stack, in a gap
      LintCase{"a third",
               "stale-pointer",
               kWarning,
               {0},
               with_word(0x7f2c'0f00'0400),
               with_word(0x7f2c'0000'0400)},  // 1024, and half of an address in a gap
      LintCase{"a priority",
               "update-attributes",
               kNote,
               {0},
               changed(right, [](ir::GraphIr& graph) { kernel_of(graph, 0).attributes.priority = -1; }),
               right}));
}

// node 0 with a body that has a memset, and with a kernel before it where asked for.
ir::GraphIr loop(ir::ConditionalKind kind, std::optional<std::uint32_t> at_launch, bool has_kernel_in_body) {
  ir::GraphIr graph = with_memory();
  graph.nodes = {conditional_node({kind, 0, at_launch})};
  if (has_kernel_in_body) {
    add_kernel(graph, "step");
  } else {
    graph.nodes.push_back(set_bytes({0, 0}, 64));
  }
  graph.nodes[1].body = 1;
  graph.bodies = {{0}};
  return graph;
}

ir::GraphIr one_node(ir::NodeKind kind) {
  ir::GraphIr graph;
  graph.nodes = {{.kind = kind}};
  if (kind == ir::NodeKind::kEventRecord || kind == ir::NodeKind::kEventWait) graph.nodes[0].params = ir::EventParams{};
  return graph;
}

TEST_CASE("what kinds of nodes and bodies say is found", "[inspect][lint]") {
  const ir::GraphIr record_and_wait = changed(one_node(ir::NodeKind::kEventRecord), [](ir::GraphIr& graph) {
    graph.nodes.push_back({.kind = ir::NodeKind::kEventWait, .params = ir::EventParams{}});
    graph.edges = {edge(0, 1)};
  });
  constexpr ir::ConditionalKind kWhile = ir::ConditionalKind::kWhile;

  check_case(GENERATE_COPY(
      LintCase{"a loop that begins and cannot end",
               "endless-while",
               kError,
               {0},
               loop(kWhile, 1, false),
               loop(kWhile, 1, true)},
      LintCase{"a loop that cannot end, if it begins",
               "endless-while",
               kWarning,
               {0},
               loop(kWhile, std::nullopt, false),
               loop(kWhile, 0, false)},
      LintCase{"a loop, and not a choice",
               "endless-while",
               kError,
               {0},
               loop(kWhile, 7, false),
               loop(ir::ConditionalKind::kIf, 7, false)},
      LintCase{"a loop that a kernel before it may stop",
               "endless-while",
               kWarning,
               {0},
               changed(loop(kWhile, 1, false),
                       [](ir::GraphIr& graph) {
                         add_kernel(graph, "begin");
                         std::swap(graph.nodes[1], graph.nodes[2]);
                         graph.edges = {edge(1, 0)};
                       }),
               loop(kWhile, 1, true)},
      LintCase{"no nodes", "empty-graph", kNote, {}, {}, small_graph()},
      LintCase{"no nodes in a child graph",
               "empty-body",
               kNote,
               {0},
               changed(one_node(ir::NodeKind::kChildGraph), [](ir::GraphIr& graph) { graph.bodies = {{0}}; }),
               loop(kWhile, 1, true)},
      LintCase{"a host function", "host-node", kNote, {0}, one_node(ir::NodeKind::kHost), small_graph()},
      LintCase{"an event that others record",
               "event-external",
               kNote,
               {0},
               one_node(ir::NodeKind::kEventWait),
               record_and_wait},
      LintCase{"an event that others wait for",
               "event-external",
               kNote,
               {0},
               one_node(ir::NodeKind::kEventRecord),
               record_and_wait}));
}

// Kernels with an address each, of device#0 and device#1 in turn, one after the other.
ir::GraphIr kernels_in_turn(std::uint32_t count, std::uint32_t allocations) {
  ir::GraphIr graph = with_memory();
  for (std::uint32_t n = 0; n < count; ++n) {
    add_kernel(graph, "scale", {pointer_argument(0, n % allocations)});
    if (n > 0) graph.edges.push_back(edge(n - 1, n));
  }
  return graph;
}

ir::GraphIr programmatic_kernels(std::vector<ir::Edge> edges) {
  return with_edges(kernels_in_turn(3, 2), std::move(edges));
}

TEST_CASE("what edges say is found", "[inspect][lint]") {
  const ir::GraphIr plain = kernels_in_turn(4, 1);

  check_case(
      GENERATE_COPY(LintCase{"an edge beside a path",
                             "redundant-edge",
                             kNote,
                             {0, 2},
                             empty_nodes(3, {edge(0, 1), edge(0, 2), edge(1, 2)}),
                             empty_nodes(3, {edge(0, 1), edge(0, 2)})},
                    LintCase{"an edge beside a path that is as strict",
                             "redundant-edge",
                             kNote,
                             {0, 2},
                             with_edges(kernels_in_turn(3, 1), {edge(0, 1), edge(0, 2), edge(1, 2)}),
                             with_edges(kernels_in_turn(3, 1), {programmatic_edge(0, 1), edge(0, 2), edge(1, 2)})},
                    LintCase{"one line for two", "serial-branches", kNote, {0, 1, 2, 3}, kernels_in_turn(4, 2), plain},
                    LintCase{"kernels that start early",
                             "programmatic-wait",
                             kNote,
                             {1},
                             programmatic_kernels({programmatic_edge(0, 1), edge(1, 2)}),
                             plain},
                    LintCase{"the kernel before the one before",
                             "programmatic-chain",
                             kWarning,
                             {2},
                             programmatic_kernels({programmatic_edge(0, 1), programmatic_edge(1, 2)}),
                             programmatic_kernels({edge(0, 1), programmatic_edge(1, 2)})},
                    LintCase{"the same, without an edge that waits for it",
                             "programmatic-chain",
                             kWarning,
                             {2},
                             programmatic_kernels({programmatic_edge(0, 1), programmatic_edge(1, 2)}),
                             programmatic_kernels({programmatic_edge(0, 1), edge(0, 2), programmatic_edge(1, 2)})}));
}

TEST_CASE("a graph that is not valid has one finding, which says why", "[inspect][lint]") {
  ir::GraphIr graph = small_graph();
  graph.edges[0].to = 9;

  const std::vector<Finding> findings = lint(graph);

  REQUIRE(findings.size() == 1);
  CHECK(to_text(findings[0]) ==
        "error not-valid: edge 0 (0 -> 9): names node 9; the graph has 3 nodes. Write the file again with cgrt.");
}

TEST_CASE("the example of lint.h is what is found", "[inspect][lint]") {
  ir::GraphIr graph = small_graph();
  graph.edges = {edge(0, 1)};

  CHECK(to_text(lint(graph)[0]) ==
        "error race: node 0 (memset) and node 2 (memcpy) are not ordered, and both touch device#0 [0, 4096); node 0 "
        "writes. Add an edge between them, or give each memory of its own.");
}

TEST_CASE("findings come most severe first", "[inspect][lint]") {
  ir::GraphIr graph = small_graph();
  graph.edges = {edge(0, 1)};
  graph.nodes.push_back({.kind = ir::NodeKind::kHost});

  const std::vector<Finding> findings = lint(graph);

  REQUIRE(findings.size() > 2);
  CHECK(std::is_sorted(findings.begin(), findings.end(),
                       [](const Finding& a, const Finding& b) { return a.severity > b.severity; }));
  CHECK(count_by_severity(findings)[2] == 1);
}

TEST_CASE("findings as JSON are those of the text", "[inspect][lint]") {
  CHECK(to_lint_json(std::vector<LintedFile>{{"empty.cgrt.json", lint({}), {"nodes is 0, and is to be > 0."}}}) ==
        R"({
  "schema": "cgrt-graph-lint-1",
  "files": [
    {
      "file": "empty.cgrt.json",
      "errors": 0,
      "warnings": 0,
      "notes": 1,
      "findings": [
        {"rule": "empty-graph", "severity": "note", "nodes": [], "text": "The graph has no nodes: a launch does nothing.", "remedy": "Make sure that the work was captured."}
      ],
      "broken_budgets": [
        "nodes is 0, and is to be > 0."
      ]
    }
  ]
}
)");
}

TEST_CASE("rules have ids of their own, and a sentence of what to do", "[inspect][lint]") {
  for (const Rule& rule : rules()) {
    CHECK(find_rule(rule.id) == &rule);
    CHECK(rule.remedy.ends_with("."));
  }
  CHECK(find_rule("no-such-rule") == nullptr);
}

}  // namespace
}  // namespace cgrt::inspect
