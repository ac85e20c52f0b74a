// Dumps of the driver that are in order. What is wrong with others: hostile_dot_test.cpp.

#include "cgrt/inspect/driver_dot.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cgrt/inspect/dot.h"
#include "cgrt/inspect/emit.h"
#include "cgrt/inspect/json.h"
#include "cgrt/inspect/kernel_name.h"
#include "cgrt/inspect/lint.h"
#include "cgrt/inspect/text.h"
#include "cgrt/ir/diff.h"
#include "cgrt/launch/function_name.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::inspect {
namespace {

std::string node(int number, const std::string& label, const std::string& shape = "record") {
  return "\"graph_1_node_" + std::to_string(number) + "\"[style=\"solid\" shape=\"" + shape + "\" label=\"" + label +
         "\"];\n";
}

std::string edge(int from, int to, const std::string& attributes = "[headlabel=0]") {
  return "\"graph_1_node_" + std::to_string(from) + "\" -> \"graph_1_node_" + std::to_string(to) + "\" " + attributes +
         ";\n";
}

std::string dump(const std::string& statements, const std::string& more = "") {
  return "digraph dot {\nsubgraph cluster_1 {\nlabel=\"graph_1\" graph[style=\"dashed\"];\n" + statements + "}\n" +
         more + "}\n";
}

std::string kernel_label(const std::string& what, const std::string& rows = "") {
  return "{KERNEL\n| {ID | 0 (topoId: 0) | " + what + "}\n" + rows + "}";
}

ir::GraphIr read(const std::string& text) {
  const absl::StatusOr<ir::GraphIr> graph = from_driver_dot(text);
  REQUIRE_OK(graph);
  return *graph;
}

ir::KernelParams kernel_of(const std::string& label) {
  return std::get<ir::KernelParams>(read(dump(node(0, label))).nodes.at(0).params);
}

TEST_CASE("the launch of a kernel is read in each form", "[inspect][dot]") {
  struct Row {
    const char* sizes;
    ir::Dim3 grid, block;
    std::uint32_t shared_bytes;
  };
  const Row row =
      GENERATE(Row{R"(\<\<\<1,128,0\>\>\>)", {1}, {128}, 0}, Row{R"(\<\<\<{8,32},32,8704\>\>\>)", {8, 32}, {32}, 8704},
               Row{R"(\<\<\<\{16,10,4\},\{32,4\},8\>\>\>)", {16, 10, 4}, {32, 4}, 8},
               Row{"<<<(4,5,6),(7,8,9),1>>>", {4, 5, 6}, {7, 8, 9}, 1},
               Row{R"(\<\<\<4294967295,1024,232448\>\>\>)", {4294967295}, {1024}, 232448});

  const ir::KernelParams kernel = kernel_of(kernel_label(std::string("f") + row.sizes));

  CHECK(kernel.grid == row.grid);
  CHECK(kernel.block == row.block);
  CHECK(kernel.shared_bytes == row.shared_bytes);
  CHECK(has_sizes(kernel));
}

TEST_CASE("a kernel without sizes has none", "[inspect][dot]") {
  const std::string label = GENERATE("{KERNEL | {ID | 0 | f} | {cooperative | 0}}", "0\\nf\\n", "0\nf\n");

  const ir::GraphIr graph = read(dump(node(0, label, label[0] == '{' ? "record" : "octagon")));

  const auto& kernel = std::get<ir::KernelParams>(graph.nodes.at(0).params);
  CHECK_FALSE(has_sizes(kernel));
  CHECK(graph.functions.at(0).name == "f");
  CHECK(to_text(graph).find("kernel  f  size unknown  (?)") != std::string::npos);
  CHECK(to_dot(graph).find("grid") == std::string::npos);
  CHECK(to_program(graph).find("of one thread here: its sizes and arguments are not in the file") != std::string::npos);
  CHECK(lint(graph).empty());
}

TEST_CASE("a kernel's name may stand in a row of its own", "[inspect][dot]") {
  const std::string label =
      GENERATE("{KERNEL | {{ID | node handle} | {0 (topoId: 0) | 0x1}} | {function | _Z1fv\\<\\<\\<4,32,0\\>\\>\\>}}",
               "{{KERNEL | {{ID | name} | {0 | f\\<\\<\\<4,32,0\\>\\>\\>}}}}");

  const ir::GraphIr graph = read(dump(node(0, label)));

  CHECK(graph.functions.at(0).name == "f");
  CHECK(std::get<ir::KernelParams>(graph.nodes.at(0).params).grid == ir::Dim3{4});
}

TEST_CASE("attributes of a kernel are read, and rows that are not known skipped", "[inspect][dot]") {
  const ir::LaunchAttributes attributes =
      kernel_of(kernel_label("f<<<4,32,0>>>",
                             "| {{node handle | func handle} | {0x1 | 0x2}}\n"
                             "| {accessPolicyWindow | {base_ptr | num_bytes | hitRatio | hitProp | missProp} | "
                             "{0x00007F0000001000 | 4096 | 0.250000 | P | S}}\n"
                             "| {cooperative | 1} | {priority | -3} | {cluster dim | (2,1,1)}\n"
                             "| {preferred cluster dim | (4,1,1)} | {news | {of | {a | later}} | driver} | more"))
          .attributes;

  CHECK(attributes.cooperative);
  CHECK(attributes.priority == -3);
  CHECK(attributes.cluster == ir::Dim3{2, 1, 1});
  CHECK(attributes.preferred_cluster == ir::Dim3{4, 1, 1});
  CHECK(attributes.access_policy == ir::AccessPolicyWindow{.base = {0, 0},
                                                           .bytes = 4096,
                                                           .hit_ratio = 0.25F,
                                                           .hit = ir::AccessProperty::kPersisting,
                                                           .miss = ir::AccessProperty::kStreaming});
}

TEST_CASE("a cluster of zeros is none", "[inspect][dot]") {
  CHECK(kernel_of(kernel_label("f<<<4,32,0>>>", "| {cluster dim | (0,0,0)}")).attributes == ir::LaunchAttributes());
}

TEST_CASE("names of kernels are those of snapshots", "[inspect][dot]") {
  for (const char* symbol : {"scale", "_Z5scalePfPKffi", "_ZN2ns4normILNS_2OpE3EfEEvPT0_i",
                             "_ZN12_GLOBAL__N_15scaleIfEEvPT_", "_Z", "_Zz", "f", "N4cgrt3fooE", "triton_poi_fused_0",
                             "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctor"
                             "IfffNS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_",
                             "_Z1fIFvvEEvPT_"}) {
    CHECK(kernel_name(symbol) == internal::function_name(symbol));
  }
}

TEST_CASE("a symbol whose name would fill the memory stays as it is", "[inspect][dot]") {
  std::string symbol = "_Z1f1aIiiE";
  for (const char c : std::string_view("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    symbol += std::string("S_IS") + c + "_S" + c + "_E";  // twice as long as the part before
  }

  CHECK(kernel_name(symbol) == symbol);
}

TEST_CASE("operands of copies have the kind of memory that the dump says", "[inspect][dot]") {
  const auto [kind, destination, source] = GENERATE(table<const char*, ir::MemoryKind, ir::MemoryKind>(
      {{"DtoD (DEVICE to DEVICE)", ir::MemoryKind::kDevice, ir::MemoryKind::kDevice},
       {"HtoD (HOST to DEVICE)", ir::MemoryKind::kDevice, ir::MemoryKind::kHost},
       {"DtoH", ir::MemoryKind::kHost, ir::MemoryKind::kDevice},
       {"something else", ir::MemoryKind::kUnknown, ir::MemoryKind::kUnknown}}));

  const ir::GraphIr graph = read(dump(
      node(0, std::string("{\nMEMCPY\n| {{ID | node handle} | {0 (topoId: 0) | 0x1}}\n| {kind | ") + kind +
                  "}\n| {{srcPtr | dstPtr} | {pitch | ptr | xsize | ysize | pitch | ptr | xsize | ysize} | {0 | 0x1000 "
                  "| 0 | 0 | 0 | 0x2000 | 0 | 0}}\n| {{srcPos | {{x | 0} | {y | 0} | {z | 0}}} | {dstPos | {{x | 0} | "
                  "{y | 0} | {z | 0}}} | {Extent | {{Width | 16} | {Height | 1} | {Depth | 1}}}}\n}")));

  const auto& copy = std::get<ir::MemcpyParams>(graph.nodes.at(0).params);
  CHECK(copy == ir::MemcpyParams{.destination = ir::Pointer{0, 0}, .source = ir::Pointer{1, 0}, .width_bytes = 16});
  CHECK(graph.allocations.at(0) == ir::Allocation{.kind = destination});
  CHECK(graph.allocations.at(1) == ir::Allocation{.kind = source});
}

TEST_CASE("arrays are no allocation", "[inspect][dot]") {
  const ir::GraphIr graph = read(dump(node(0, "0\nMEMCPY\n(AtoD,4096)", "trapezium")));

  const auto& copy = std::get<ir::MemcpyParams>(graph.nodes.at(0).params);
  CHECK(copy.source == std::nullopt);
  CHECK(copy.width_bytes == 4096);
  CHECK(graph.allocations.size() == 1);
}

std::string memset_label(const std::string& address, int width) {
  return "{\nMEMSET\n| {{ID | node handle | dptr | pitch | value | elementSize | width | height} | {0 (topoId: 0) | "
         "0x1 "
         "| " +
         address + " | 0 | 255 | 4 | " + std::to_string(width) + " | 1}}}";
}

TEST_CASE("operands that overlap are in one allocation, and others are not", "[inspect][dot]") {
  const ir::GraphIr graph =
      read(dump(node(0, memset_label("0x1010", 4)) + node(1, memset_label("0x1000", 8)) +
                node(2, memset_label("0x1020", 4)) + node(3, memset_label("0x1000", 1)) + edge(0, 1) + edge(1, 2)));

  const auto destination = [&](std::size_t n) {
    return std::get<ir::MemsetParams>(graph.nodes.at(n).params).destination;
  };
  CHECK(graph.allocations.size() == 2);
  CHECK(destination(0) == ir::Pointer{0, 16});
  CHECK(destination(1) == ir::Pointer{0, 0});
  CHECK(destination(2) == ir::Pointer{1, 0});
  CHECK(destination(3) == ir::Pointer{0, 0});
  const std::vector<Finding> findings = lint(graph);
  REQUIRE(findings.size() == 1);  // a race that is one: 3 with 1
  CHECK(findings[0].rule->id == "race");
  CHECK(findings[0].nodes == std::vector<std::uint32_t>{1, 3});
}

TEST_CASE("addresses that may be in one allocation are not said to have none in common", "[inspect][dot][lint]") {
  std::string statements;
  for (int i = 0; i < 8; ++i) {
    statements += node(i, memset_label("0x" + std::to_string(i + 1) + "000", 4));
    if (i > 0) statements += edge(i - 1, i);
  }
  ir::GraphIr graph = read(dump(statements));

  CHECK(lint(graph).empty());

  for (ir::Allocation& allocation : graph.allocations) allocation.bytes = 4096;  // now they are known to be apart
  REQUIRE(lint(graph).size() == 1);
  CHECK(lint(graph)[0].rule->id == "serial-branches");
}

TEST_CASE("memory of allocation nodes has their size", "[inspect][dot]") {
  const ir::GraphIr graph = read(dump(
      node(
          0,
          "{MEM_ALLOC\n| {{ID | node handle | dptr | bytesize} | {0 (topoId: 2) | 0x1 | 0x00007F0000000000 | 4096}}}") +
      node(1, memset_label("0x00007F0000000100", 16)) +
      node(2, "{MEM_FREE\n| {{ID | node handle | dptr} | {2 (topoId: 0) | 0x3 | 0x00007F0000000000}}}") + edge(0, 1) +
      edge(1, 2)));

  CHECK(graph.allocations == std::vector<ir::Allocation>{{.kind = ir::MemoryKind::kDevice, .bytes = 4096}});
  CHECK(std::get<ir::MemsetParams>(graph.nodes.at(1).params).destination == ir::Pointer{0, 256});
  CHECK(std::holds_alternative<ir::MemFreeParams>(graph.nodes.at(2).params));
  CHECK(lint(graph).empty());
}

TEST_CASE("each word is a kind of node", "[inspect][dot]") {
  const auto [word, kind] =
      GENERATE(table<const char*, ir::NodeKind>({{"MEMSET", ir::NodeKind::kMemset},
                                                 {"MEMCPY", ir::NodeKind::kMemcpy},
                                                 {"HOST", ir::NodeKind::kHost},
                                                 {"GRAPH", ir::NodeKind::kChildGraph},
                                                 {"EMPTY", ir::NodeKind::kEmpty},
                                                 {"EVENT_WAIT", ir::NodeKind::kEventWait},
                                                 {"WAIT_EVENT", ir::NodeKind::kEventWait},
                                                 {"EVENT_RECORD", ir::NodeKind::kEventRecord},
                                                 {"RECORD_EVENT", ir::NodeKind::kEventRecord},
                                                 {"EXT_SEMAS_SIGNAL", ir::NodeKind::kSemaphoreSignal},
                                                 {"EXT_SEMAS_WAIT", ir::NodeKind::kSemaphoreWait},
                                                 {"MEM_ALLOC", ir::NodeKind::kMemAlloc},
                                                 {"MEM_FREE", ir::NodeKind::kMemFree},
                                                 {"BATCH_MEM_OP", ir::NodeKind::kBatchMemOp},
                                                 {"CONDITIONAL", ir::NodeKind::kConditional}}));
  const std::string label = GENERATE_COPY(std::string("{") + word + "\n| {{ID | node handle} | {0 | 0x1}}}",
                                          std::string("0\n") + word + "\n", std::string("0\\n") + word + "\\n");

  const ir::GraphIr graph = read(dump(node(0, label)));

  CHECK(graph.nodes.at(0) == ir::Node{.kind = kind});
  CHECK(from_json(to_json(graph)).value() == graph);
  CHECK(ir::differences(graph, graph).empty());
  const bool says_so = to_program(graph).find("an empty node here: not in the file") != std::string::npos;
  CHECK(says_so == (kind == ir::NodeKind::kMemcpy || kind == ir::NodeKind::kMemset ||
                    kind == ir::NodeKind::kEventWait || kind == ir::NodeKind::kEventRecord ||
                    kind == ir::NodeKind::kMemAlloc || kind == ir::NodeKind::kBatchMemOp ||
                    kind == ir::NodeKind::kConditional));
}

TEST_CASE("files say what is not known, and differ from those that know it", "[inspect][dot][json]") {
  const ir::GraphIr graph = read(dump(node(0, kernel_label("f<<<4,32,0>>>")) + node(1, "1\nMEMSET\n")));

  const std::string json = to_json(graph);
  ir::GraphIr known = graph;
  known.functions[0].has_parameters = true;

  CHECK(json.find("\"version\": 5") != std::string::npos);
  CHECK(json.find("\"shared_bytes\": 0, \"arguments\": \"not known\"}") != std::string::npos);
  CHECK(json.find("\"kind\": \"memset\", \"parameters\": \"not known\"}") != std::string::npos);
  CHECK(from_json(json).value() == graph);
  CHECK(to_json(known).find("\"arguments\": []") != std::string::npos);
  const std::optional<ir::Difference> difference = ir::first_difference(graph, known);
  REQUIRE(difference.has_value());
  CHECK(difference->where == "node 0 \"f\": number of arguments");
  CHECK(difference->a == "not known");
  CHECK(difference->b == "0");
}

TEST_CASE("events are told apart by their handles", "[inspect][dot]") {
  const auto event = [](const char* word, const char* handle) {
    return std::string("{") + word + "\n| {{ID | node handle | event} | {0 | 0x1 | " + handle + "}}}";
  };

  const ir::GraphIr graph = read(dump(node(0, event("EVENT_RECORD", "0xA")) + node(1, event("EVENT_RECORD", "0xB")) +
                                      node(2, event("WAIT_EVENT", "0xA"))));

  CHECK(std::get<ir::EventParams>(graph.nodes.at(0).params).event == 0);
  CHECK(std::get<ir::EventParams>(graph.nodes.at(1).params).event == 1);
  CHECK(std::get<ir::EventParams>(graph.nodes.at(2).params).event == 0);
}

TEST_CASE("edges have the type and port that their attributes say", "[inspect][dot]") {
  const auto [attributes, type, port] = GENERATE(
      table<const char*, ir::EdgeType, int>({{"", ir::EdgeType::kFull, 0},
                                             {"[headlabel=0]", ir::EdgeType::kFull, 0},
                                             {"[headlabel=\"1\" style=\"dashed\"]", ir::EdgeType::kProgrammatic, 1},
                                             {"[taillabel=1, headlabel=0]", ir::EdgeType::kProgrammatic, 1},
                                             {"[label=\"PROGRAMMATIC\"]", ir::EdgeType::kProgrammatic, 1},
                                             {"[headlabel=2]", ir::EdgeType::kFull, 2},
                                             {"[color=red] [news]", ir::EdgeType::kFull, 0}}));

  const ir::GraphIr graph =
      read(dump(edge(0, 1, attributes) + node(0, kernel_label("f")) + node(1, kernel_label("g"))));

  CHECK(graph.edges == std::vector<ir::Edge>{{0, 1, static_cast<std::uint8_t>(port), 0, type}});
}

TEST_CASE("all edges of a statement have its attributes, and no others", "[inspect][dot]") {
  std::string nodes;
  for (int i = 0; i < 5; ++i) nodes += node(i, "0\nEMPTY");
  const std::string chain = "graph_1_node_0 -> graph_1_node_1 -> graph_1_node_2 [headlabel=1];\n";

  const ir::GraphIr graph = read(dump(nodes + chain + edge(2, 3, "") + edge(3, 4, "[headlabel=2]")));

  CHECK(graph.edges == std::vector<ir::Edge>{{0, 1, 1, 0, ir::EdgeType::kProgrammatic},
                                             {1, 2, 1, 0, ir::EdgeType::kProgrammatic},
                                             {2, 3},
                                             {3, 4, 2, 0}});
}

TEST_CASE("nodes are in the order of their numbers, those of graphs inside after them", "[inspect][dot]") {
  const std::string inside =
      "subgraph cluster_2 {\n\"graph_2_node_0\"[label=\"0\nHOST\"];\n}\n"
      "subgraph cluster_4 {}\n"
      "subgraph cluster_3 {\n\"graph_3_node_7\"[label=\"7\nEMPTY\"];\n}\n";

  const ir::GraphIr graph = read(dump(
      node(10, "10\ngraph_2\n") + node(9, "9\ngraph_3\n") + node(2, "2\nEMPTY\n") + node(3, "3\ngraph_4"), inside));

  CHECK(to_text(graph).find("child of node 1 (child graph)\n\nchild of node 2") != std::string::npos);
  CHECK(graph.bodies == std::vector<ir::Body>{{1}, {2}, {3}});
  CHECK(graph.nodes.at(4).body == 2);
  CHECK(graph.nodes.at(4).kind == ir::NodeKind::kEmpty);
  CHECK(graph.nodes.at(5).body == 3);
}

TEST_CASE("graphs that no label names are inside of the one node that can have them", "[inspect][dot]") {
  const std::string inside = "subgraph cluster_2 {\n\"graph_2_node_0\"[label=\"0\nHOST\"];\n}\nsubgraph cluster_3 {}\n";

  const ir::GraphIr graph =
      read(dump(node(0, "0\nEMPTY") + node(1, "{CONDITIONAL\n| {{ID | node handle} | {1 | 0x1}}}"), inside));

  CHECK(graph.bodies == std::vector<ir::Body>{{1}, {1}});
}

TEST_CASE("a graph without nodes is one", "[inspect][dot]") { CHECK(read(dump("")) == ir::GraphIr()); }

TEST_CASE("what is not of the driver's own style of DOT is read, too", "[inspect][dot]") {
  const std::string text =
      "\t\r\n// a comment\n# another\nSTRICT DiGraph \"dot\" { /* a third */ node [shape=box]\r\nrankdir = LR;\r\n"
      "subgraph cluster_1 { { graph_1_node_0 [shape=octagon; label=\"0\\nf\"] } }\r\n"
      "graph_1_node_1 [ label = \"1\r\nEMPTY\r\n\" , shape = box ]\r\n"
      "graph_1_node_2 [label=\"2\\nHOST\"]; graph_1_node_0 -> graph_1_node_1 -> graph_1_node_2 }\r\n";

  const absl::StatusOr<ir::GraphIr> graph = from_text(text);

  REQUIRE_OK(graph);
  CHECK(graph->nodes.size() == 3);
  CHECK(graph->edges == std::vector<ir::Edge>{{0, 1}, {1, 2}});
}

}  // namespace
}  // namespace cgrt::inspect
