#include "cgrt/inspect/html.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::inspect {
namespace {

using testing::add_kernel;
using testing::conditional_node;
using testing::edge;
using testing::empty_nodes;
using testing::pointer_argument;
using testing::small_graph;
using testing::structure_argument;
using testing::value_argument;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What the page's script reads: the content of the element "graph".
std::string data_of(const std::string& page) {
  constexpr std::string_view kBegin = "<script id=\"graph\" type=\"application/json\">\n";
  const std::size_t begin = page.find(kBegin);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = page.find("</script>", begin);
  REQUIRE(end != std::string::npos);
  return page.substr(begin + kBegin.size(), end - begin - kBegin.size());
}

std::string data_of(const ir::GraphIr& graph) { return data_of(to_html(graph)); }

std::string with_kernel(std::string name) {
  ir::GraphIr graph;
  add_kernel(graph, std::move(name));
  return to_html(graph);
}

TEST_CASE("a page is one document that names no other", "[inspect][html]") {
  const std::string page = to_html(small_graph());

  CHECK(page.starts_with("<!DOCTYPE html>\n"));
  CHECK(page.ends_with("</html>\n"));
  CHECK(contains(page, "default-src 'none'"));
  for (const char* reference : {" src=", " href=", "url(", "@import", "http:", "https:", "fetch(", "import("}) {
    INFO(reference);
    const bool is_namespace = std::string_view(reference) == "http:";  // of SVG, which is fetched by nobody
    CHECK(count_of(page, reference) == (is_namespace ? 1 : 0));
  }
  CHECK_FALSE(contains(page, "{{"));
}

TEST_CASE("names reach the page as text only", "[inspect][html]") {
  const std::string page = to_html(small_graph());

  for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("}) {
    INFO(way);
    CHECK_FALSE(contains(page, way));
  }
}

TEST_CASE("the counts are those of the graph", "[inspect][html]") {
  CHECK(
      contains(data_of(small_graph()),
               R"("counts": {"nodes": 3, "inside": 0, "edges": 2, "depth": 3, "width": 1, "roots": 1, "leaves": 1})"));
}

TEST_CASE("a graph without nodes is a page as well", "[inspect][html]") {
  const std::string data = data_of(ir::GraphIr());

  CHECK(contains(data, R"("nodes": [],)"));
  CHECK(contains(data, R"("order": [])"));
}

TEST_CASE("a kernel has its names, dimensions and decoded arguments", "[inspect][html]") {
  ir::GraphIr graph = small_graph();
  testing::set_function(graph, testing::kernel_of(graph, 1), "ns::scale<ns::Op>",
                        {pointer_argument(0, 0, 256), value_argument(8, {0, 0, 0, 0x40}),
                         structure_argument(16, 24, {{0, {1, 0}}, {8, {0, 0}}})});
  graph.functions.erase(graph.functions.begin());
  testing::kernel_of(graph, 1).function = 0;
  testing::kernel_of(graph, 1).attributes.priority = -2;

  const std::string data = data_of(graph);

  CHECK(contains(data, R"({"name": "ns::scale\u003cns::Op>", "short": "scale\u003cOp>"})"));
  CHECK(contains(data, R"("kind": "kernel", "device": 0, "function": 0, "title": "scale\u003cOp>", )"));
  CHECK(contains(data, R"json(["grid", "(4,1,1)"], ["block", "(256,1,1)"], ["dynamic shared memory", "0 bytes"], )json"
                       R"(["priority", "-2"])"));
  CHECK(contains(data, R"("arguments": [[0, 8, "device#0+0x100", 0], [8, 4, "2.0f"], [16, 24, "{)"));
  CHECK(contains(data, R"(pinned#1 at 0, device#0 at 8}", 1, 0]])"));
  CHECK(contains(data, R"("uses": [[0, "touch"], [1, "touch"]])"));
}

TEST_CASE("copies read and write, sets write, and each use of an allocation is said once", "[inspect][html]") {
  ir::GraphIr graph = small_graph();
  graph.nodes.push_back(testing::memcpy_node(
      {.destination = ir::Pointer{0, 0}, .source = ir::Pointer{0, 512}, .width_bytes = 8, .height = 4}));

  const std::string data = data_of(graph);

  CHECK(contains(data, R"("note": "1024 x 4 bytes", "rows": [["destination", "device#0", 0], ["value", "0x0"], )"
                       R"(["size", "1024 x 4 bytes"]], "uses": [[0, "write"]]})"));
  CHECK(contains(data, R"("uses": [[0, "read"], [1, "write"]]})"));
  CHECK(contains(data, R"("note": "4 x 8 bytes")"));
  CHECK(contains(data, R"("uses": [[0, "read"], [0, "write"]]})"));
}

TEST_CASE("sizes keep all of their 64 bits, and unknown ones are left out", "[inspect][html]") {
  ir::GraphIr graph;
  graph.allocations = {{.kind = ir::MemoryKind::kDevice, .device = 1, .bytes = 9007199254740993},
                       {.kind = ir::MemoryKind::kPageableHost}};

  const std::string data = data_of(graph);

  CHECK(contains(data, R"({"label": "device#0", "kind": "device", "device": 1, "bytes": "9007199254740993"})"));
  CHECK(contains(data, R"({"label": "host#1", "kind": "pageable host"})"));
}

TEST_CASE("times are those of the nodes that ran, and a count keeps all of its bits", "[inspect][html]") {
  ir::GraphIr graph = empty_nodes(3);
  graph.timing = {.launches = 9007199254740993, .median_ns = 63040, .busy_ns = 54848, .nodes = {{}, {}, {}}};
  graph.timing.nodes[0] = {.count = 9007199254740993, .median_ns = 2592, .min_ns = 2463, .max_ns = 2912};
  graph.timing.nodes[2] = {.count = 1};

  const std::string data = data_of(graph);

  CHECK(contains(data, R"("timing": {"launches": "9007199254740993", "median": 63040, "busy": 54848},)"));
  CHECK(contains(data,
                 "    {\"kind\": \"empty\", \"time\": [\"9007199254740993\", 2592, 2463, 2912]},\n"
                 "    {\"kind\": \"empty\"},\n"
                 "    {\"kind\": \"empty\", \"time\": [\"1\", 0, 0, 0]}\n"));
  CHECK_FALSE(contains(data_of(small_graph()), "\"tim"));
}

TEST_CASE("edges say their type and ports where these are not the usual ones", "[inspect][html]") {
  ir::GraphIr graph = empty_nodes(3, {edge(0, 2), edge(1, 2)});
  graph.edges[1].type = ir::EdgeType::kProgrammatic;
  graph.edges[1].from_port = 1;

  const std::string data = data_of(graph);

  CHECK(contains(data, "    [0, 2],\n    [1, 2, 1, 1, 0]\n"));
}

TEST_CASE("a body says its owner, and its nodes come behind the owner in the order", "[inspect][html]") {
  ir::GraphIr graph = empty_nodes(5, {edge(0, 1), edge(1, 2)});
  graph.nodes[1] = conditional_node({.kind = ir::ConditionalKind::kIf});
  graph.nodes[3].body = 1;
  graph.nodes[4].body = 2;
  graph.bodies = {{.owner = 1}, {.owner = 1}};

  const std::string data = data_of(graph);

  CHECK(contains(data, R"({"owner": 1, "label": "then"})"));
  CHECK(contains(data, R"({"owner": 1, "label": "else"})"));
  CHECK(contains(data, R"({"kind": "empty", "body": 2})"));
  CHECK(contains(data, R"("order": [0, 1, 3, 4, 2])"));
}

TEST_CASE("a scope that several nodes are in is written once", "[inspect][html]") {
  ir::GraphIr graph = empty_nodes(3);
  graph.nodes[0].scope = graph.nodes[2].scope = "a/b";

  const std::string data = data_of(graph);

  CHECK(contains(data, "\"scopes\": [\n    \"\",\n    \"a/b\"\n  ]"));
  CHECK(count_of(data, R"({"kind": "empty", "scope": 1})") == 2);
}

TEST_CASE("no name ends the script that it is in, or begins another element", "[inspect][html]") {
  for (const char* name : {"</script><script>alert(1)</script>", "<!--<script>", "</SCRIPT >", "]]>"}) {
    INFO(name);
    ir::GraphIr graph = empty_nodes(1);
    add_kernel(graph, name);
    graph.nodes[0].scope = name;

    const std::string page = to_html(graph);

    CHECK(count_of(page, "<script") == count_of(to_html(ir::GraphIr()), "<script"));
    CHECK(count_of(page, "</script") == count_of(to_html(ir::GraphIr()), "</script"));
    CHECK_FALSE(contains(data_of(page), "<"));
  }
}

TEST_CASE("quotes, line ends and bytes that are not UTF-8 stay within their string", "[inspect][html]") {
  CHECK(contains(with_kernel(R"(a", "b": "\)"), R"({"name": "a\", \"b\": \"\\", )"));
  CHECK(contains(with_kernel("a\n\xff\x01"), R"({"name": "a\\x0a\\xff\\x01", )"));
  CHECK(contains(with_kernel("a\u2028\u202e"), R"({"name": "a\\xe2\\x80\\xa8\\xe2\\x80\\xae", )"));
  CHECK(contains(with_kernel(std::string("a\0b", 3)), R"({"name": "a\\x00b", )"));
}

TEST_CASE("a name that is a mark of the page's own frame is a name", "[inspect][html]") {
  const std::string page = with_kernel("{{script}}{{graph}}{{style}}");

  CHECK(contains(page, R"({"name": "{{script}}{{graph}}{{style}}", )"));
  CHECK(count_of(page, "\nstart();\n") == 1);
}

TEST_CASE("equal graphs give equal pages", "[inspect][html]") {
  CHECK(to_html(small_graph()) == to_html(small_graph()));
}

TEST_CASE("of a graph that is not valid the page says why", "[inspect][html]") {
  ir::GraphIr graph;
  add_kernel(graph, "<b>&\n");
  graph.nodes[0].kind = ir::NodeKind::kMemset;

  const std::string page = to_html(graph);

  CHECK(contains(page, R"(<p>not a valid graph: node 0 "&lt;b&gt;&amp;\x0a": is of the kind)"));
  CHECK_FALSE(contains(page, "<script"));
}

}  // namespace
}  // namespace cgrt::inspect
