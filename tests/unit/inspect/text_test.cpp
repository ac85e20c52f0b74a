#include "cgrt/inspect/text.h"

#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::inspect {
namespace {

using testing::add_kernel;
using testing::edge;
using testing::empty_nodes;
using testing::small_graph;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a graph is a header, a line per node and a line per allocation", "[inspect][text]") {
  CHECK(to_text(small_graph()) == R"(graph: 3 nodes, 2 edges, depth 3, width 1, 1 root, 1 leaf

0  memset  device#0              1024 x 4 bytes = 0x0
1  kernel  scale                 grid (4,1,1) block (256,1,1) shared 0  (device#0+0x100, pinned#1, 2.0f)  after 0
2  memcpy  pinned#1 <- device#0  4096 bytes                                                               after 1

allocations
device#0  4096 bytes  device 0
pinned#1  4096 bytes  pinned host
)");
}

TEST_CASE("the example of text.h is what is printed", "[inspect][text]") {
  ir::GraphIr graph = small_graph();
  graph.nodes.pop_back();
  graph.edges.pop_back();
  graph.allocations.pop_back();
  testing::set_arguments(graph, 1,
                         {testing::pointer_argument(0, 0), testing::value_argument(8, {0, 0, 0, 0x40}),
                          testing::value_argument(12, {0, 4, 0, 0})});

  CHECK(to_text(graph) == R"(graph: 2 nodes, 1 edge, depth 2, width 1, 1 root, 1 leaf

0  memset  device#0  1024 x 4 bytes = 0x0
1  kernel  scale     grid (4,1,1) block (256,1,1) shared 0  (device#0, 2.0f, 1024)  after 0

allocations
device#0  4096 bytes  device 0
)");
}

TEST_CASE("ids are aligned to the right", "[inspect][text]") {
  const std::string text = to_text(empty_nodes(11), {.fold = false});

  CHECK(contains(text, "\n 9  empty\n10  empty\n"));
}

TEST_CASE("one long name does not move the columns of other rows", "[inspect][text]") {
  ir::GraphIr graph;
  add_kernel(graph, "scale");
  add_kernel(graph, std::string(200, 'x'));

  const std::string text = to_text(graph);

  CHECK(contains(text, "scale  grid"));
  CHECK(contains(text, std::string(200, 'x') + "  grid"));
}

TEST_CASE("devices are shown when nodes run on several", "[inspect][text]") {
  ir::GraphIr graph;
  add_kernel(graph, "scale");
  add_kernel(graph, "scale");
  graph.nodes.emplace_back();
  CHECK_FALSE(contains(to_text(graph), "on 0"));

  graph.nodes[1].device = 1;

  CHECK(contains(to_text(graph), "0  kernel  on 0  scale"));
  CHECK(contains(to_text(graph), "1  kernel  on 1  scale"));
}

TEST_CASE("programmatic edges and unusual ports are said", "[inspect][text]") {
  ir::GraphIr graph = empty_nodes(4, {edge(0, 3), edge(1, 3), edge(2, 3)});
  graph.edges[0].type = ir::EdgeType::kProgrammatic;
  graph.edges[0].from_port = 1;
  graph.edges[1].type = ir::EdgeType::kProgrammatic;
  graph.edges[1].from_port = 2;
  graph.edges[2].to_port = 3;

  CHECK(contains(to_text(graph), "after 0 (programmatic), 1 (programmatic, from port 2), 2 (to port 3)"));
}

// Kernels in a chain.
ir::GraphIr chain(const std::vector<std::string>& names) {
  ir::GraphIr graph;
  for (std::uint32_t n = 0; n < names.size(); ++n) {
    add_kernel(graph, names[n], {testing::value_argument(0, {1, 0, 0, 0})});
    if (n > 0) graph.edges.push_back(edge(n - 1, n));
  }
  return graph;
}

TEST_CASE("nodes that repeat those before them are counted in one line", "[inspect][text]") {
  std::vector<std::string> names = {"begin"};
  for (int layer = 0; layer < 12; ++layer) names.insert(names.end(), {"norm", "matmul", "add"});
  names.emplace_back("end");
  ir::GraphIr graph = chain(names);

  std::string text = to_text(graph);
  CHECK(contains(text, "\n 3  kernel  add     grid"));
  CHECK(contains(text, "\n... the 3 nodes above repeat 11 times, up to node 36\n37  kernel  end"));
  CHECK_FALSE(contains(text, "\n 4  kernel"));
  CHECK(contains(to_text(graph, {.fold = false}), "\n36  kernel  add"));

  testing::kernel_of(graph, 20).arguments[0] = 2;
  text = to_text(graph);
  CHECK(contains(text, "up to node 36, with other arguments\n"));
  testing::kernel_of(graph, 20).grid.x = 2;
  text = to_text(graph);
  CHECK(contains(text, "the 3 nodes above repeat 5 times, up to node 18\n"));
  CHECK(contains(text, "\n20  kernel  matmul  grid (2,1,1)"));
}

TEST_CASE("few repeats are shown, and branches out of one node folded", "[inspect][text]") {
  CHECK_FALSE(contains(to_text(chain({"a", "a", "a", "a"})), "..."));

  ir::GraphIr graph = chain(std::vector<std::string>(100, "branch"));
  graph.edges.clear();
  for (std::uint32_t n = 1; n < 100; ++n) graph.edges.push_back(edge(0, n));
  CHECK(contains(to_text(graph), "after 0\n... the node above repeats 98 times, up to node 99\n"));
}

TEST_CASE("layers fold whose scopes differ in a number", "[inspect][text]") {
  ir::GraphIr graph = chain(std::vector<std::string>(24, "norm"));
  for (std::uint32_t n = 0; n < 24; ++n) graph.nodes[n].scope = n % 2 == 0 ? "layer" + std::to_string(n / 2) : "gap";
  CHECK(contains(to_text(graph), "... the 2 nodes above repeat 10 times, up to node 22\n"));
  graph.nodes[9].scope = "other";
  CHECK(contains(to_text(graph), "... the 2 nodes above repeat 3 times, up to node 8\n"));
  CHECK(contains(to_text(graph), " other/"));
}

TEST_CASE("scopes in scopes have lines up to a depth", "[inspect][text]") {
  ir::GraphIr graph = chain({"norm"});
  graph.nodes[0].scope = std::string(100000, '/');
  CHECK(to_text(graph).size() < 200000);
}

TEST_CASE("names of kernels are shown without namespaces", "[inspect][text]") {
  const auto shown = [](const std::string& name) {
    const std::string text = to_text(chain({name}));
    const std::size_t begin = text.find("kernel  ") + 8;
    return text.substr(begin, text.find("  grid") - begin);
  };
  CHECK(shown("scale") == "scale");
  CHECK(shown("a::b::norm<(a::Op)3, float>") == "norm<(Op)3, float>");
  CHECK(shown("void at::native::vectorized<4, at::Tensor::add<float>>(int)") == "void vectorized<4, add<float>>(int)");
  CHECK(shown("a::(anonymous namespace)::f") == "f");
  CHECK(shown("(anonymous namespace)::f<x::(anonymous namespace)::T>") == "f<T>");
  CHECK(shown("Outer<a::b>::run") == "Outer<b>::run");
  CHECK(shown("::f") == "::f");
  CHECK(contains(to_text(chain({"a::norm"}), {.short_names = false}), "kernel  a::norm  grid"));
}

TEST_CASE("names cannot steer the terminal", "[inspect][text]") {
  ir::GraphIr graph;
  add_kernel(graph, "\x1b[2J");
  graph.nodes[0].scope = "a\nb";

  CHECK(contains(to_text(graph), "\\x1b[2J"));
  CHECK(contains(to_text(graph), "a\\x0ab/"));
}

TEST_CASE("of a graph that is not valid the text says why", "[inspect][text]") {
  CHECK(to_text(empty_nodes(1, {edge(0, 4)})) ==
        "not a valid graph: edge 0 (0 -> 4): names node 4; the graph has 1 node.\n");
}

}  // namespace
}  // namespace cgrt::inspect
