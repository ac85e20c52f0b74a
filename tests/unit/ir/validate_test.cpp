#include "cgrt/ir/validate.h"

#include <limits>

#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/ir/graphs.h"

namespace cgrt::ir {
namespace {

using cgrt::testing::edge;
using cgrt::testing::empty_nodes;
using cgrt::testing::kernel_of;
using cgrt::testing::memset_node;
using cgrt::testing::set_arguments;
using cgrt::testing::small_graph;
using cgrt::testing::StatusIs;
using cgrt::testing::structure_argument;
using cgrt::testing::value_argument;

void check_refused(const GraphIr& graph, const std::string& message) {
  CHECK_THAT(validate(graph), StatusIs(absl::StatusCode::kInvalidArgument, message));
}

TEST_CASE("graphs in order are valid", "[ir][validate]") {
  CHECK_OK(validate(GraphIr()));
  CHECK_OK(validate(small_graph()));
  CHECK_OK(validate(empty_nodes(3, {edge(0, 2), edge(1, 2)})));
}

TEST_CASE("two edges between the same nodes are valid when their ports differ", "[ir][validate]") {
  GraphIr graph = empty_nodes(2, {edge(0, 1), edge(0, 1)});
  graph.edges[1].from_port = 1;

  CHECK_OK(validate(graph));
}

TEST_CASE("an edge to a node that is not there is refused with its ends", "[ir][validate]") {
  check_refused(empty_nodes(2, {edge(0, 1), edge(0, 2)}), "edge 1 (0 -> 2): names node 2; the graph has 2 nodes.");
}

TEST_CASE("a node that waits for itself is refused", "[ir][validate]") {
  check_refused(empty_nodes(2, {edge(1, 1)}), "edge 0 (1 -> 1): a node cannot wait for itself.");
}

TEST_CASE("an edge that is there twice is refused", "[ir][validate]") {
  check_refused(empty_nodes(2, {edge(0, 1), edge(0, 1)}), "edge 1 (0 -> 1): is there twice.");
}

TEST_CASE("edges that do not ascend are refused", "[ir][validate]") {
  check_refused(empty_nodes(3, {edge(1, 2), edge(0, 1)}), "edge 1 (0 -> 1): comes after (1 -> 2)");
}

TEST_CASE("an edge of an unknown type is refused", "[ir][validate]") {
  GraphIr graph = empty_nodes(2, {edge(0, 1)});
  graph.edges[0].type = static_cast<EdgeType>(9);

  check_refused(graph, "edge 0 (0 -> 1): has the unknown type 9.");
}

TEST_CASE("a cycle is refused with the nodes on it, not those that lead there", "[ir][validate]") {
  check_refused(empty_nodes(5, {edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 1), edge(3, 4)}), "1 -> 2 -> 3 -> 1.");
}

TEST_CASE("the message of a long cycle is cut", "[ir][validate]") {
  GraphIr graph = empty_nodes(100);
  for (std::uint32_t n = 0; n < 99; ++n) graph.edges.push_back(edge(n, n + 1));
  graph.edges.push_back(edge(99, 0));

  check_refused(graph, " -> ....");
}

TEST_CASE("parameters of another kind are refused", "[ir][validate]") {
  GraphIr graph = small_graph();
  graph.nodes[1].kind = NodeKind::kHost;
  check_refused(graph, "node 1 \"scale\": is of the kind \"host\" and has the parameters of a kernel.");

  graph = small_graph();
  graph.nodes[0].kind = NodeKind::kMemcpy;
  check_refused(graph, "node 0 (memcpy): is of the kind \"memcpy\" and has the parameters of a memset.");

  graph = small_graph();
  graph.nodes[2].kind = NodeKind::kEmpty;
  check_refused(graph, "has the parameters of a memcpy");
}

TEST_CASE("a kernel without parameters is refused", "[ir][validate]") {
  GraphIr graph = empty_nodes(1);
  graph.nodes[0].kind = NodeKind::kKernel;

  check_refused(graph, "node 0 (kernel): has no parameters.");
}

TEST_CASE("other nodes without parameters are not decoded", "[ir][validate]") {
  GraphIr graph = empty_nodes(1);
  graph.nodes[0].kind =
      GENERATE(NodeKind::kMemcpy, NodeKind::kMemset, NodeKind::kEventWait, NodeKind::kEventRecord, NodeKind::kMemAlloc);

  CHECK_OK(validate(graph));
}

TEST_CASE("a function with parameters that are not known is refused", "[ir][validate]") {
  GraphIr graph = empty_nodes(1);
  graph.nodes[0].kind = NodeKind::kKernel;
  graph.nodes[0].params = KernelParams{.arguments = std::vector<std::uint8_t>(4)};
  graph.functions = {{.name = "f", .parameters = {{0, 4}}, .has_parameters = false}};

  check_refused(graph, "function 0 \"f\": has 1 parameter, and they are not known.");
}

TEST_CASE("a node of an unknown kind is refused", "[ir][validate]") {
  GraphIr graph = empty_nodes(1);
  graph.nodes[0].kind = static_cast<NodeKind>(14);

  check_refused(graph, "node 0 (unknown): has the unknown kind 14.");
}

TEST_CASE("pointers into allocations that are not there are refused wherever they stand", "[ir][validate]") {
  GraphIr graph = small_graph();
  kernel_of(graph, 1).pointers[1].pointer.allocation = 2;
  check_refused(graph, "node 1 \"scale\": argument 1 points into allocation 2; the graph has 2.");

  graph = small_graph();
  std::get<MemcpyParams>(graph.nodes[2].params).source = Pointer{5, 0};
  check_refused(graph, "node 2 (memcpy): source points into allocation 5");

  graph = small_graph();
  std::get<MemcpyParams>(graph.nodes[2].params).destination = Pointer{6, 0};
  check_refused(graph, "destination points into allocation 6");

  graph = small_graph();
  graph.nodes[0] = memset_node({.destination = {7, 0}, .width = 1});
  check_refused(graph, "node 0 (memset): destination points into allocation 7");

  graph = small_graph();
  graph.allocations[0].bytes = 64;
  graph.nodes[0] = memset_node({.destination = {0, 64}, .width = 1});
  check_refused(graph, "node 0 (memset): destination points 64 bytes into allocation 0, which has 64.");
}

TEST_CASE("conditional nodes have as many bodies as their kind can have", "[ir][validate]") {
  const auto with = [](ConditionalKind kind, std::size_t bodies) {
    GraphIr graph = testing::empty_nodes(0);
    graph.nodes.push_back(testing::conditional_node({.kind = kind, .handle = 0, .at_launch = {}}));
    graph.bodies.assign(bodies, {0});
    return graph;
  };
  CHECK_OK(validate(with(ConditionalKind::kIf, 2)));
  check_refused(with(ConditionalKind::kIf, 3), "body 3: node 0 (if) has 3 bodies.");
  CHECK_OK(validate(with(ConditionalKind::kWhile, 1)));
  check_refused(with(ConditionalKind::kWhile, 2), "body 2: node 0 (while) has 2 bodies.");
  CHECK_OK(validate(with(ConditionalKind::kSwitch, 100)));
  check_refused(with(static_cast<ConditionalKind>(3), 1), "is of the unknown conditional kind 3");

  GraphIr wrong = with(ConditionalKind::kIf, 0);
  wrong.nodes[0].kind = NodeKind::kHost;
  check_refused(wrong, "node 0");
}

TEST_CASE("bodies belong to nodes that can have them, and edges stay inside", "[ir][validate]") {
  GraphIr graph = small_graph();
  graph.nodes[2].body = 1;
  check_refused(graph, "node 2 (memcpy): is in body 1; the graph has 0.");
  graph.bodies = {{7}};
  check_refused(graph, "body 1: is owned by node 7; the graph has 3 nodes.");
  graph.bodies = {{0}};
  check_refused(graph, "body 1: is owned by node 0 (memset), which cannot have one.");
  graph.nodes[0] = {.kind = NodeKind::kChildGraph, .device = -1, .scope = {}, .params = {}};
  check_refused(graph, "edge 1 (1 -> 2): leaves its body.");
  graph.edges = {};
  CHECK_OK(validate(graph));
  graph.bodies = {{0}, {0}};
  check_refused(graph, "body 2: node 0 (child graph) has 2 bodies.");
  graph.nodes[2] = graph.nodes[0];
  graph.nodes[2].body = 1;
  graph.bodies = {{2}};
  check_refused(graph, "body 1: is owned by node 2 (child graph) of body 1");
}

TEST_CASE("copies and memsets of nothing are refused, and elements of odd sizes", "[ir][validate]") {
  GraphIr graph = small_graph();
  graph.nodes[0] = memset_node({.destination = {0, 0}, .element_bytes = 3, .width = 1});
  check_refused(graph, "node 0 (memset): has elements of 3 bytes; there are 1, 2 and 4.");
  graph.nodes[0] = memset_node({.destination = {0, 0}, .width = 1, .height = 0});
  check_refused(graph, "node 0 (memset): sets 0 elements.");

  graph = small_graph();
  std::get<MemcpyParams>(graph.nodes[2].params).depth = 0;
  check_refused(graph, "node 2 (memcpy): copies 0 bytes.");
}

TEST_CASE("a copy of an array that was not decoded is valid", "[ir][validate]") {
  GraphIr graph = small_graph();
  std::get<MemcpyParams>(graph.nodes[2].params).source = std::nullopt;

  CHECK_OK(validate(graph));
}

TEST_CASE("functions are there once, and their parameters apart", "[ir][validate]") {
  GraphIr graph = small_graph();
  graph.functions.push_back(graph.functions[0]);
  check_refused(graph, "function 1 \"scale\": is there twice.");

  graph = small_graph();
  graph.functions[0].parameters[2].offset = 15;
  check_refused(graph, "function 0 \"scale\": parameter 2 begins at byte 15, and the one before ends at 16.");
  graph.functions[0].parameters[2] = {0xffffffff, 0xffffffff};
  check_refused(graph, "parameter 2 ends at byte 8589934590; no kernel has more than 65536.");

  graph = small_graph();
  kernel_of(graph, 1).function = 1;
  check_refused(graph, "node 1 \"?\": runs function 1; the graph has 1.");
}

TEST_CASE("functions are numbered as nodes mention them", "[ir][validate]") {
  GraphIr graph = small_graph();
  graph.functions.push_back({.name = "add", .parameters = {}});
  check_refused(graph, "function 1 \"add\": no node runs it.");

  kernel_of(graph, 1).function = 1;
  kernel_of(graph, 1).arguments.clear();
  kernel_of(graph, 1).pointers.clear();
  check_refused(graph, "node 1 \"add\": runs function 1, and no node before it function 0.");
}

TEST_CASE("a kernel has the bytes that its function takes", "[ir][validate]") {
  GraphIr graph = small_graph();
  kernel_of(graph, 1).arguments.pop_back();
  check_refused(graph, "node 1 \"scale\": has 19 bytes of arguments; its function takes 20.");

  graph = small_graph();
  set_arguments(graph, 1, {value_argument(0, {1}), value_argument(8, {1})});
  CHECK_OK(validate(graph));
  kernel_of(graph, 1).arguments[7] = 1;
  check_refused(graph, "has addresses or bytes that are not 0 outside of its arguments.");
  kernel_of(graph, 1).arguments[7] = 0;
  kernel_of(graph, 1).pointers = {{1, {0, 0}}};
  check_refused(graph, "has addresses or bytes that are not 0 outside of its arguments.");
}

TEST_CASE("addresses inside an argument have their place and their allocation", "[ir][validate]") {
  GraphIr graph = small_graph();
  set_arguments(graph, 1, {value_argument(0, {1}), structure_argument(16, 24, {{0, {0, 4}}, {16, {1, 0}}})});
  CHECK_OK(validate(graph));

  KernelParams& kernel = kernel_of(graph, 1);
  kernel.pointers[1].pointer.allocation = 2;
  check_refused(graph, "node 1 \"scale\": argument 1 at byte 16 points into allocation 2; the graph has 2.");
  kernel.pointers[1] = {16 + 17, {1, 0}};
  check_refused(graph, "argument 1 of 24 bytes has an address at byte 17; they are ascending, 8 bytes each");
  kernel.pointers[1] = {16 + 4, {1, 0}};
  check_refused(graph, "argument 1 of 24 bytes has an address at byte 4;");
  kernel.pointers[1] = {16 + 8, {1, 0}};
  kernel.arguments[16 + 15] = 1;
  check_refused(graph, "argument 1 has an address at byte 8 and bytes that are not 0 there.");

  set_arguments(graph, 1, {value_argument(0, {0, 0, 0, 0})});
  kernel_of(graph, 1).pointers = {{0, {0, 0}}};
  check_refused(graph, "argument 0 of 4 bytes has an address at byte 0;");
}

TEST_CASE("an access policy window that no file can hold is refused", "[ir][validate]") {
  const auto with_window = [](const AccessPolicyWindow& window) {
    GraphIr graph = small_graph();
    kernel_of(graph, 1).attributes.access_policy = window;
    return graph;
  };
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

  CHECK_OK(validate(with_window({.base = {0, 0}, .bytes = 16, .hit_ratio = 1.5f})));
  check_refused(with_window({.base = {0, 0}, .bytes = 16, .hit_ratio = infinity}),
                "node 1 \"scale\": access policy window has the hit ratio inf.");
  check_refused(with_window({.base = {0, 0}, .bytes = 16, .hit_ratio = nan}), "has the hit ratio nan.");
  check_refused(with_window({.base = {2, 0}, .bytes = 16}), "access policy window points into allocation 2");
  check_refused(with_window({.base = {0, 0}, .bytes = 16, .hit = static_cast<AccessProperty>(3)}),
                "has the unknown property 3.");
  check_refused(with_window({.base = {0, 0}, .bytes = 0, .hit_ratio = 0.5f}), "of 0 bytes that says more than that.");
}

TEST_CASE("an allocation of an unknown kind is refused", "[ir][validate]") {
  GraphIr graph = small_graph();
  graph.allocations[1].kind = static_cast<MemoryKind>(7);

  check_refused(graph, "allocation 1: has the kind 7");
}

}  // namespace
}  // namespace cgrt::ir
