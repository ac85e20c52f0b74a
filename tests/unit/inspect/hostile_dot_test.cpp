// Dumps that somebody broke on purpose: each gives a graph, or an error that says where. Worth most under the
// sanitizers.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "cgrt/inspect/driver_dot.h"
#include "cgrt/inspect/json.h"
#include "cgrt/inspect/text.h"
#include "cgrt/ir/diff.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::inspect {
namespace {

using testing::StatusIs;

std::string node(const std::string& name, const std::string& label = "0\\nEMPTY") {
  return "\"" + name + "\"[label=\"" + label + "\"];\n";
}

std::string kernel(const std::string& rows) { return node("graph_1_node_0", "{KERNEL\n" + rows + "\n}"); }

// Of line 3 on.
std::string dump(const std::string& statements) {
  return "digraph dot {\nsubgraph cluster_1 {\n" + statements + "}\n}\n";
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

void check_refused(const std::string& text, const std::string& message) {
  INFO(text.substr(0, 1000));
  const absl::StatusOr<ir::GraphIr> graph = from_driver_dot(text);
  REQUIRE_FALSE(graph.ok());
  CHECK_THAT(graph.status(), StatusIs(absl::StatusCode::kInvalidArgument, message));
}

TEST_CASE("what is not DOT is refused with its line", "[inspect][dot][hostile]") {
  check_refused("", "not DOT: line 1: expected \"digraph\", found the end of the file");
  check_refused("graph dot {}", "not DOT: line 1: expected \"digraph\", found \"graph\"");
  check_refused("digraph\n\ndot", "not DOT: line 3: expected \"{\", found the end of the file");
  check_refused("digraph dot {\nsubgraph cluster_1 {\n", "not DOT: line 3: the file ends, and the \"{\" of line 2 is");
  check_refused("digraph dot {\n\"graph_1_node", "not DOT: line 2: the string that begins here has no end");
  check_refused("digraph dot {\n\"graph\\", "not DOT: line 2: the string that begins here has no end");
  check_refused("digraph dot {\n/* ", "not DOT: line 2: the comment that begins here has no end");
  check_refused("digraph dot {\n}\n}", "not DOT: line 3: expected the end of the file after the graph, found \"}\"");
  check_refused("digraph dot {}\ndigraph dot {}", "not DOT: line 2: expected the end of the file");
  check_refused("digraph dot {\na [label=]", "not DOT: line 2: expected a name or a string, found \"]\"");
  check_refused("digraph dot {\na [", "not DOT: line 2: expected an attribute or \"]\", found the end of the file");
  check_refused("digraph dot {\na:b [x=y]", "not DOT: line 2: expected a statement, found \":\"");
  check_refused("digraph dot {\na -> {b c}", "not DOT: line 2: expected the name of a node, found \"{\"");
  check_refused("digraph dot {\na [label=<b>]", "not DOT: line 2: expected a name or a string, found \"<\"");
  check_refused("digraph dot {\ngraph", "not DOT: line 2: expected \"[\"");
  check_refused("digraph dot {\na -- b", "not DOT: line 2: expected a statement, found \"-\"");
}

TEST_CASE("bytes that no dump has are refused with their line", "[inspect][dot][hostile]") {
  check_refused(dump(node("graph_1_node_0", std::string("0\nf\0g", 5))), "not DOT: line 4: a NUL byte");
  check_refused(dump(node("graph_1_node_0", "0\nf\xffg")), "not DOT: line 4: bytes that are not UTF-8");
  check_refused(dump(node("graph_1_node_0", "0\n\xed\xa0\x80")), "not DOT: line 4: bytes that are not UTF-8");
}

TEST_CASE("nesting is limited", "[inspect][dot][hostile]") {
  const std::size_t depth = GENERATE(std::size_t{64}, std::size_t{100000});

  check_refused("digraph dot {\n" + repeated("{", depth), "not DOT: line 2: nested deeper than 64 levels");
  check_refused("digraph dot {\n" + repeated("subgraph a {", depth), "not DOT: line 2: nested deeper than 64 levels");
  check_refused(dump(node("graph_1_node_0", repeated("{", depth))),
                "line 3: node \"graph_1_node_0\": the label has fields nested deeper than 16 levels");
}

TEST_CASE("nodes and graphs that are not the driver's are refused", "[inspect][dot][hostile]") {
  check_refused("digraph dot {\n}", "line 1: the file holds no graph of the driver (subgraph \"cluster_1\")");
  check_refused("digraph cgrt {\n}", "line 1: a picture that graphdump wrote");
  for (const char* name : {"n0", "graph_1_node_", "graph_1_node_x", "graph_-1_node_0", "graph_1_node_0x",
                           "graph_1_node_18446744073709551616", "graph_18446744073709551616_node_0"}) {
    check_refused(dump(node(name)), std::string("line 3: node \"") + name + "\": the driver names nodes like");
  }
  check_refused(dump(node("graph_1_node_0") + node("graph_1_node_0")),
                "line 4: node \"graph_1_node_0\" is there twice, first in line 3");
  check_refused(dump(node("graph_1_node_0") + node("graph_1_node_00")),
                "line 4: nodes \"graph_1_node_0\" and \"graph_1_node_00\" have one number");
  check_refused(dump("\"graph_1_node_0\"[shape=record];"), "line 3: node \"graph_1_node_0\" has no label");
  check_refused(dump("\"graph_1_node_0\";"), "line 3: node \"graph_1_node_0\" has no label");
}

TEST_CASE("numbers of nodes may be large", "[inspect][dot][hostile]") {
  CHECK_OK(from_driver_dot(dump(node("graph_1_node_18446744073709551615") + node("graph_1_node_4294967296"))));
}

TEST_CASE("kinds that are not known are refused by name", "[inspect][dot][hostile]") {
  const std::string place = "line 3: node \"graph_1_node_0\" is of the unknown kind ";
  check_refused(dump(node("graph_1_node_0", "{TELEPORT\n| {ID | 0}}")), place + "\"TELEPORT\"");
  check_refused(dump(node("graph_1_node_0", "0\nTELEPORT\n")), place + "\"TELEPORT\"");
  check_refused(dump(node("graph_1_node_0", "{\x1b[31m | a}")), place + "\"\\x1b[31m\"");
  check_refused(dump(node("graph_1_node_0", "0")), "the label is neither a record nor the number of the node");
  check_refused(dump(node("graph_1_node_0", "")), "the label is neither a record nor the number of the node");
  check_refused(dump(node("graph_1_node_0", "{}")), "the label does not begin with the kind of the node");
  check_refused(dump(node("graph_1_node_0", "{{| KERNEL}}")), "the label does not begin with the kind of the node");
}

TEST_CASE("labels that are no records are refused", "[inspect][dot][hostile]") {
  check_refused(dump(node("graph_1_node_0", "{KERNEL")), "the label has a \"{\" that is not closed");
  check_refused(dump(node("graph_1_node_0", "{KERNEL | a{b}")), "the label has a \"{\" that is not closed");
  check_refused(dump(node("graph_1_node_0", "{KERNEL | a{b")), "the label has a \"{\" that is not closed");
  check_refused(dump(node("graph_1_node_0", "{KERNEL}}")), "the label has a \"}\" without its \"{\"");
  check_refused(dump(node("graph_1_node_0", "{KERNEL | {a} b}")), "the label has text behind a \"}\"");
  check_refused(dump(node("graph_1_node_0", "{KERNEL | {a} {b}}")), "the label has a \"{\" behind a \"}\"");
}

TEST_CASE("names of groups are not copied to many rows", "[inspect][dot][hostile]") {
  const std::string name(100000, 'a'), rows = repeated("| {x | 1}", 100000), cells = repeated("| 1", 100000);

  CHECK_OK(from_driver_dot(dump(kernel("| {ID | 0 | f} | {" + name + rows + "}"))));
  CHECK_OK(from_driver_dot(dump(kernel("| {ID | 0 | f} | {" + name + "| {1" + cells + "} | {1" + cells + "}}"))));
  CHECK_OK(from_driver_dot(dump(kernel("| {ID | 0 | f} | {{" + name + "} | {1" + cells + "} | {1" + cells + "}}"))));
}

TEST_CASE("values that are not what they are to be are refused by name", "[inspect][dot][hostile]") {
  const std::string place = "line 3: node \"graph_1_node_0\": ";
  check_refused(dump(kernel("| {cooperative | 0}")), place + "the label does not name the kernel");
  check_refused(dump(kernel("| {ID | 0 | <<<1,1,0>>>}")), place + "the label does not name the kernel");
  for (const char* sizes : {"", "1", "1,1", "1,1,1,1", "{1,1", "{1,1,1,1},1,0", "-1,1,0", "4294967296,1,0", "1 ,1,0"}) {
    check_refused(dump(kernel(std::string("| {ID | 0 | f\\<\\<\\<") + sizes + "\\>\\>\\>}")),
                  sizes[0] == '{' && sizes[4] == '\0' ? place : place + "the launch is \"" + sizes);
  }
  check_refused(dump(kernel("| {ID | 0 | f} | {cooperative | yes}")),
                place + "cooperative is \"yes\", and is to be a number below 2^64");
  check_refused(dump(kernel("| {ID | 0 | f} | {cooperative | 4294967296}")),
                place + "cooperative is \"4294967296\", and is to be a number below 2^32");
  check_refused(dump(kernel("| {ID | 0 | f} | {priority | high}")), place + "priority is \"high\"");
  check_refused(dump(kernel("| {ID | 0 | f} | {cluster dim | 2x1}")), place + "cluster dim is \"2x1\"");
  const auto window = [](const std::string& values) {
    return dump(
        kernel("| {ID | 0 | f} | {accessPolicyWindow | {base_ptr | num_bytes | hitRatio | hitProp | missProp} | {" +
               values + "}}"));
  };
  check_refused(window("0x0 | 8 | nan | N | N"), place + "accessPolicyWindow.hitRatio is \"nan\"");
  check_refused(window("0x0 | 8 | 0.5 | X | N"), place + "accessPolicyWindow.hitProp is \"X\"");
  check_refused(window("here | 8 | 0.5 | N | N"), place + "accessPolicyWindow.base_ptr is \"here\"");
  check_refused(dump(node("graph_1_node_0", "{MEMSET | {{dptr | elementSize | width} | {0x1 | 3 | 4}}}")),
                place + "elementSize is \"3\", and is to be 1, 2 or 4");
  check_refused(dump(node("graph_1_node_0", "{MEMSET | {{dptr | elementSize | width} | {0x1 | 1 | -4}}}")),
                place + "width is \"-4\"");
}

TEST_CASE("edges that cannot be are refused by name", "[inspect][dot][hostile]") {
  const std::string nodes = node("graph_1_node_0") + node("graph_1_node_1") + node("graph_1_node_2");
  const auto edge = [](int from, int to, const char* attributes = "") {
    return "\"graph_1_node_" + std::to_string(from) + "\" -> \"graph_1_node_" + std::to_string(to) + "\"" + attributes +
           ";\n";
  };
  check_refused(dump(nodes + edge(0, 3)),
                "line 6: the edge \"graph_1_node_0\" -> \"graph_1_node_3\" has an end that is "
                "no node of the file: \"graph_1_node_3\"");
  check_refused(dump(nodes + edge(1, 1)), "line 6: the edge \"graph_1_node_1\" -> \"graph_1_node_1\" joins a node to");
  check_refused(dump(nodes + edge(0, 1) + edge(1, 2) + edge(0, 1)),
                "line 8: the edge \"graph_1_node_0\" -> \"graph_1_node_1\" is there twice, first in line 6");
  check_refused(dump(nodes + edge(0, 1) + edge(2, 1) + edge(1, 2)), " closes a cycle: nodes wait for each other");
  check_refused(dump(nodes + edge(0, 1, "[headlabel=256]")), "headlabel is \"256\", and is to be a port, 0 to 255");
  check_refused(dump(nodes + "}\nsubgraph cluster_2 {\n" + node("graph_2_node_0") +
                     node("graph_1_node_3", "3\ngraph_2") + "graph_1_node_0 -> graph_2_node_0"),
                "line 11: the edge \"graph_1_node_0\" -> \"graph_2_node_0\" joins nodes of two graphs");
}

// Read again for each edge they would take longer than a test may.
TEST_CASE("attributes of a statement are not read again for each of its edges", "[inspect][dot][hostile]") {
  const std::string nodes = node("graph_1_node_0") + node("graph_1_node_1");
  const std::string chain = "graph_1_node_0" + repeated(" -> graph_1_node_1 -> graph_1_node_0", 150000);

  check_refused(dump(nodes + chain + "[" + repeated("a ", 2000000) + "]"), "is there twice, first in line 5");
}

TEST_CASE("graphs inside of nodes that cannot be are refused by name", "[inspect][dot][hostile]") {
  const std::string second = "}\nsubgraph cluster_2 {\n";
  check_refused(dump(node("graph_1_node_0", "0\ngraph_3")), "has graph_3 inside, which is not in the file");
  check_refused(dump(node("graph_1_node_0") + second),
                "line 5: graph_2 is neither the first graph of the file nor inside");
  check_refused(dump(node("graph_1_node_0", "0\ngraph_1")), "line 2: the graphs of the file are inside of each other");
  check_refused(dump(second + "}\nsubgraph cluster_3 {\n" + node("graph_2_node_0", "0\ngraph_3") +
                     node("graph_3_node_0", "0\ngraph_2")),
                "line 4: graph_2 is inside of itself");
  check_refused(dump(node("graph_1_node_0", "0\ngraph_2") + node("graph_1_node_1", "1\ngraph_2") + second),
                "line 5: node \"graph_1_node_1\" has graph_2 inside, and so has node \"graph_1_node_0\"");
  check_refused(dump(node("graph_1_node_0", "{GRAPH | {graph_2 | graph_3}}") + second + "}\nsubgraph cluster_3 {\n"),
                "is a child graph, and has 2 graphs inside");
  check_refused(dump(node("graph_1_node_0", "0\nGRAPH") + second + "}\nsubgraph cluster_3 {\n"),
                "graph_2 is neither the first graph of the file nor inside of a node");
}

std::string golden(const std::string& name) {
  std::ifstream file(std::string(CGRT_TEST_DATA_DIR) + "/golden/" + name, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  REQUIRE_FALSE(text.empty());
  return text;
}

TEST_CASE("a dump with bytes changed, cut or doubled gives a graph or an error", "[inspect][dot][hostile]") {
  const std::string text = golden(GENERATE("driver_verbose.dot", "driver_plain.dot"));
  int graphs = 0, errors = 0;
  const auto survives = [&](const std::string& mutant) {
    const absl::StatusOr<ir::GraphIr> graph = from_driver_dot(mutant);
    ++(graph.ok() ? graphs : errors);
    if (!graph.ok()) {
      REQUIRE(graph.status().message().find("line ") != absl::string_view::npos);
      return;
    }
    REQUIRE(to_text(*graph).substr(0, 6) == "graph:");
    const absl::StatusOr<ir::GraphIr> again = from_json(to_json(*graph));
    REQUIRE_OK(again);
    REQUIRE(*again == *graph);
  };

  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {'9', '"', '{', '}', '|', '\\', '\0'}) {
      std::string mutant = text;
      mutant[i] = byte;
      survives(mutant);
    }
    survives(text.substr(0, i));
    survives(text.substr(0, i) + text.substr(std::min(text.size(), i + 97)));
    survives(text.substr(0, i) + text.substr(i / 2));
  }

  CHECK(graphs > 0);
  CHECK(errors > 0);
}

}  // namespace
}  // namespace cgrt::inspect
