#include "cgrt/inspect/dot.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::inspect {
namespace {

using testing::add_kernel;
using testing::edge;
using testing::empty_nodes;
using testing::small_graph;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::string with_kernel(std::string name) {
  ir::GraphIr graph;
  add_kernel(graph, std::move(name));
  return to_dot(graph);
}

// Braces outside of strings close what they open, and every string ends on its line.
bool is_balanced(std::string_view dot) {
  int open = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < dot.size(); ++i) {
    if (in_string) {
      if (dot[i] == '\n') return false;
      if (dot[i] == '\\') {
        ++i;
      } else if (dot[i] == '"') {
        in_string = false;
      }
      continue;
    }
    if (dot[i] == '"') in_string = true;
    if (dot[i] == '{') ++open;
    if (dot[i] == '}' && --open < 0) return false;
  }
  return open == 0 && !in_string;
}

TEST_CASE("the example of dot.h is what is printed", "[inspect][dot]") {
  ir::GraphIr graph = small_graph();
  graph.nodes.pop_back();
  graph.edges.pop_back();
  graph.nodes[1].scope = "layer0";

  CHECK(to_dot(graph) == R"dot(digraph cgrt {
  node [shape=ellipse, style=filled, fillcolor="#ffffff"];
  n0 [label="0 memset", shape=parallelogram, fillcolor="#d9ead3"];
  subgraph cluster_0 {
    label="layer0";
    n1 [label="1 scale\ngrid (4,1,1) block (256,1,1)", shape=box, fillcolor="#cfe2f3"];
  }
  n0 -> n1;
}
)dot");
}

TEST_CASE("nodes of one scope are together, and scopes nest, wherever their nodes are in the graph", "[inspect][dot]") {
  ir::GraphIr graph = empty_nodes(5);
  graph.nodes[0].scope = "a/b";
  graph.nodes[1].scope = "c";
  graph.nodes[2].scope = "a";
  graph.nodes[3].scope = "a/b";

  CHECK(contains(to_dot(graph), R"(
  n4 [label="4 empty"];
  subgraph cluster_0 {
    label="a";
    n2 [label="2 empty"];
    subgraph cluster_1 {
      label="b";
      n0 [label="0 empty"];
      n3 [label="3 empty"];
    }
  }
  subgraph cluster_2 {
    label="c";
    n1 [label="1 empty"];
  }
}
)"));
}

TEST_CASE("scopes of one name within different scopes are different clusters", "[inspect][dot]") {
  ir::GraphIr graph = empty_nodes(2);
  graph.nodes[0].scope = "a/mlp";
  graph.nodes[1].scope = "b/mlp";

  const std::string dot = to_dot(graph);

  CHECK(contains(dot, "subgraph cluster_1 {\n      label=\"mlp\";\n      n0 "));
  CHECK(contains(dot, "subgraph cluster_3 {\n      label=\"mlp\";\n      n1 "));
}

TEST_CASE("scopes without a name are clusters without a name", "[inspect][dot]") {
  ir::GraphIr graph = empty_nodes(1);
  graph.nodes[0].scope = "/";

  const std::string dot = to_dot(graph);

  CHECK(contains(dot, "subgraph cluster_1 {\n      label=\"\";\n      n0 "));
  CHECK(is_balanced(dot));
}

TEST_CASE("a scope of very many levels is 32 clusters, the innermost with the rest of the name", "[inspect][dot]") {
  ir::GraphIr graph = empty_nodes(1);
  for (int i = 0; i < 100000; ++i) graph.nodes[0].scope += "s/";

  const std::string dot = to_dot(graph);

  CHECK(contains(dot, "subgraph cluster_31 {"));
  CHECK_FALSE(contains(dot, "subgraph cluster_32 {"));
  CHECK(contains(dot, "label=\"s/s/s/"));
  CHECK(is_balanced(dot));
}

TEST_CASE("programmatic edges are dashed and ports other than 0 stand at the ends", "[inspect][dot]") {
  ir::GraphIr graph = empty_nodes(4, {edge(0, 3), edge(1, 3), edge(2, 3)});
  graph.edges[0].type = ir::EdgeType::kProgrammatic;
  graph.edges[0].from_port = 1;
  graph.edges[1].to_port = 3;

  const std::string dot = to_dot(graph);

  CHECK(contains(dot, "  n0 -> n3 [style=dashed, taillabel=\"1\"];\n"));
  CHECK(contains(dot, "  n1 -> n3 [headlabel=\"3\"];\n"));
  CHECK(contains(dot, "  n2 -> n3;\n"));
}

TEST_CASE("quotes and backslashes in names do not end the label", "[inspect][dot]") {
  CHECK(contains(with_kernel(R"(a"]; evil [b=")"), R"(label="0 a\"]; evil [b=\"\ngrid)"));
  CHECK(contains(with_kernel(R"(a\)"), R"(label="0 a\\\ngrid)"));
  CHECK(contains(with_kernel(R"(a\")"), R"(label="0 a\\\"\ngrid)"));
}

TEST_CASE("line ends and control characters in names are written in hexadecimal", "[inspect][dot]") {
  const std::string dot = with_kernel("a\n}\r\x1b[2J\x7f\xff");

  CHECK(contains(dot, R"(label="0 a\\x0a}\\x0d\\x1b[2J\\x7f\\xff\ngrid)"));
  CHECK(is_balanced(dot));
}

TEST_CASE("a zero byte in a name does not end the text", "[inspect][dot]") {
  CHECK(contains(with_kernel(std::string("a\0b", 3)), R"(label="0 a\\x00b\ngrid)"));
}

TEST_CASE("names are shown as they are, not as Graphviz's own escapes and entities", "[inspect][dot]") {
  CHECK(contains(with_kernel(R"(\N\G\l)"), R"(label="0 \\N\\G\\l\ngrid)"));
  CHECK(contains(with_kernel("f<int&>&lt;"), R"(label="0 f<int&amp;>&amp;lt;\ngrid)"));
  CHECK(contains(with_kernel("<b>bold</b>"), R"(label="0 <b>bold</b>\ngrid)"));
}

TEST_CASE("scopes are escaped as names are", "[inspect][dot]") {
  ir::GraphIr graph = empty_nodes(1);
  graph.nodes[0].scope = "a\"\n\\";

  const std::string dot = to_dot(graph);

  CHECK(contains(dot, R"(label="a\"\\x0a\\";)"));
  CHECK(is_balanced(dot));
}

TEST_CASE("every kind of node has a statement, also those that have no look of their own", "[inspect][dot]") {
  ir::GraphIr graph = empty_nodes(2);
  graph.nodes[0].kind = ir::NodeKind::kHost;
  graph.nodes[1].kind = ir::NodeKind::kBatchMemOp;

  const std::string dot = to_dot(graph);

  CHECK(contains(dot, "n0 [label=\"0 host\", shape=hexagon"));
  CHECK(contains(dot, "n1 [label=\"1 batch mem op\"];"));
}

TEST_CASE("a chain of 10,000 nodes, each in a scope of its own, has a line for each part", "[inspect][dot]") {
  ir::GraphIr graph = empty_nodes(10000);
  for (std::uint32_t n = 0; n < 10000; ++n) graph.nodes[n].scope = "layer" + std::to_string(n);
  for (std::uint32_t n = 0; n + 1 < 10000; ++n) graph.edges.push_back(edge(n, n + 1));

  const std::string dot = to_dot(graph);

  CHECK(lines_of(dot) == 3 + 10000 * 4 + 9999);
  CHECK(contains(dot, "subgraph cluster_9999 {"));
  CHECK(contains(dot, "n9998 -> n9999;\n"));
}

TEST_CASE("of a graph that is not valid the picture says why", "[inspect][dot]") {
  ir::GraphIr graph;
  add_kernel(graph, "a\"");
  graph.nodes[0].kind = ir::NodeKind::kMemset;

  const std::string dot = to_dot(graph);

  CHECK(contains(dot, "digraph cgrt {\n  label=\"not a valid graph: node 0 \\\"a\\\"\\\": is of the kind"));
  CHECK(is_balanced(dot));
}

}  // namespace
}  // namespace cgrt::inspect
