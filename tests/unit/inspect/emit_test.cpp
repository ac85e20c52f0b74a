#include "cgrt/inspect/emit.h"

#include <string>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::inspect {
namespace {

using testing::edge;
using testing::empty_nodes;
using testing::small_graph;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("each node becomes a call with its parameters and edges", "[inspect][emit]") {
  const std::string program = to_program(small_graph());

  CHECK(has(program, "// \"scale\"\n__global__ void stub_0(Bytes<8, 8>, Bytes<8, 8>, Bytes<4, 4>) {}"));
  CHECK(has(program, "memory[0] = device_memory(4096);"));
  CHECK(has(program, "memory[1] = pinned_memory(4096);"));
  CHECK(has(program, "add_memset(0, graphs[0], {}, memory[0], 0u, 4, 1024, 1, 0);"));
  CHECK(has(program, "put(arguments, 0, memory[0] + 256);"));
  CHECK(has(program,
            "add_kernel(1, graphs[0], {{0, 0, 0, 0}}, functions[0], dim3(4, 1, 1), dim3(256, 1, 1), 0, "
            "parameters);"));
  CHECK(has(program, "{CU_MEMORYTYPE_HOST, memory[1], 4096}, {CU_MEMORYTYPE_DEVICE, memory[0], 4096}, 4096, 1, 1);"));
  CHECK(program == to_program(small_graph()));
}

TEST_CASE("edges out of nodes that come later are added behind them", "[inspect][emit]") {
  const std::string program = to_program(empty_nodes(2, {edge(1, 0)}));

  const std::size_t last = program.find("add_empty(1, graphs[0], {});");
  CHECK(last != std::string::npos);
  CHECK(program.find("add_edge(graphs[0], 0, {1, 0, 0, 0});") > last);
}

TEST_CASE("large graphs are made by several functions", "[inspect][emit]") {
  const std::string program = to_program(empty_nodes(250));

  CHECK(has(program, "void build_2() {\n  {  // node 200, empty\n"));
  CHECK(has(program, "  build_0();\n  build_1();\n  build_2();\n  run();\n"));
  CHECK_FALSE(has(program, "build_3"));
}

TEST_CASE("a name cannot end its comment", "[inspect][emit]") {
  ir::GraphIr graph = small_graph();
  graph.functions[0].name = "scale\nint oops;\\";

  const std::string program = to_program(graph);

  CHECK(has(program, "// \"scale\\x0aint oops;\\\"\n__global__"));
}

TEST_CASE("memory of unknown size is as large as nodes use it", "[inspect][emit]") {
  ir::GraphIr graph = small_graph();
  graph.allocations[1] = {.kind = ir::MemoryKind::kPageableHost};
  std::get<ir::MemcpyParams>(graph.nodes[2].params).destination->offset = 4096;

  CHECK(has(to_program(graph), "memory[1] = pageable_memory(8192);"));
}

TEST_CASE("what is inside of a node that is not decoded is left out", "[inspect][emit]") {
  ir::GraphIr graph = empty_nodes(2);
  graph.nodes[0].kind = ir::NodeKind::kConditional;
  graph.bodies = {{.owner = 0}};
  graph.nodes[1].body = 1;

  const std::string program = to_program(graph);

  CHECK(has(program, "add_empty(0, graphs[0], {});"));
  CHECK_FALSE(has(program, "graphs[1],"));
}

TEST_CASE("loops begin with 0", "[inspect][emit]") {
  ir::GraphIr graph;
  graph.nodes.push_back(testing::conditional_node({.kind = ir::ConditionalKind::kWhile, .at_launch = 1}));
  graph.bodies.push_back({0});

  CHECK(has(to_program(graph), "graphs[0], context, 0u, CU_GRAPH_COND_ASSIGN_DEFAULT"));
}

}  // namespace
}  // namespace cgrt::inspect
