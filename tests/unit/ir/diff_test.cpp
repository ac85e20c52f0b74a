#include "cgrt/ir/diff.h"

#include <functional>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::ir {
namespace {

using testing::add_kernel;
using testing::conditional_node;
using testing::edge;
using testing::empty_nodes;
using testing::kernel_of;
using testing::pointer_argument;
using testing::set_arguments;
using testing::small_graph;
using testing::structure_argument;
using testing::value_argument;

struct Expected {
  std::string where, a, b;
};

// Of small_graph() and a changed copy of it.
void check_difference(const std::function<void(GraphIr&)>& change, const Expected& expected) {
  GraphIr changed = small_graph();
  change(changed);

  const std::optional<Difference> difference = first_difference(small_graph(), changed);

  REQUIRE(difference.has_value());
  CHECK(difference->where == expected.where);
  CHECK(difference->a == expected.a);
  CHECK(difference->b == expected.b);
}

TEST_CASE("equal graphs have no difference", "[ir][diff]") {
  CHECK_FALSE(first_difference(GraphIr(), GraphIr()).has_value());
  CHECK_FALSE(first_difference(small_graph(), small_graph()).has_value());
}

TEST_CASE("scopes do not make graphs different", "[ir][diff]") {
  GraphIr renamed = small_graph();
  renamed.nodes[1].scope = "layer0";

  CHECK_FALSE(first_difference(small_graph(), renamed).has_value());
}

TEST_CASE("each field of a kernel node is compared", "[ir][diff]") {
  check_difference([](GraphIr& g) { g.nodes[1].device = 1; }, {"node 1 \"scale\": device", "0", "1"});
  check_difference([](GraphIr& g) { g.functions[0].name = "add"; },
                   {"node 1 \"scale\": function", "\"scale\"", "\"add\""});
  check_difference([](GraphIr& g) { kernel_of(g, 1).grid.y = 2; }, {"node 1 \"scale\": grid", "(4,1,1)", "(4,2,1)"});
  check_difference([](GraphIr& g) { kernel_of(g, 1).block.x = 32; },
                   {"node 1 \"scale\": block", "(256,1,1)", "(32,1,1)"});
  check_difference([](GraphIr& g) { kernel_of(g, 1).shared_bytes = 64; },
                   {"node 1 \"scale\": shared bytes", "0", "64"});
  check_difference(
      [](GraphIr& g) {
        set_arguments(g, 1, {pointer_argument(0, 0, 256), pointer_argument(8, 1)});
      },
      {"node 1 \"scale\": number of arguments", "3", "2"});
}

TEST_CASE("arguments are compared one by one and shown as pointers and numbers", "[ir][diff]") {
  check_difference([](GraphIr& g) { kernel_of(g, 1).pointers[0].pointer.offset = 512; },
                   {"node 1 \"scale\": argument 0", "device#0+0x100", "device#0+0x200"});
  check_difference([](GraphIr& g) { kernel_of(g, 1).pointers[1].pointer.allocation = 0; },
                   {"node 1 \"scale\": argument 1", "pinned#1", "device#0"});
  check_difference([](GraphIr& g) { kernel_of(g, 1).arguments[18] = 0x40; },
                   {"node 1 \"scale\": argument 2", "2.0f", "3.0f"});
  check_difference([](GraphIr& g) { g.functions[0].parameters[2].offset = 20; },
                   {"node 1 \"scale\": argument 2 offset", "16", "20"});
  check_difference([](GraphIr& g) { g.functions[0].parameters[2].size = 2; },
                   {"node 1 \"scale\": argument 2 size", "4", "2"});
}

TEST_CASE("long arguments are told apart by their first differing byte", "[ir][diff]") {
  GraphIr a = small_graph();
  set_arguments(a, 1, {value_argument(16, std::vector<std::uint8_t>(100, 7))});
  GraphIr b = a;
  kernel_of(b, 1).arguments[16 + 99] = 8;

  const std::optional<Difference> difference = first_difference(a, b);

  REQUIRE(difference.has_value());
  CHECK(difference->where == "node 1 \"scale\": argument 0 byte 99");
  CHECK(difference->a == "0x07");
  CHECK(difference->b == "0x08");
}

TEST_CASE("structures are told apart by their first differing byte or address", "[ir][diff]") {
  const auto check = [](const std::function<void(KernelParams&)>& change, const Expected& expected) {
    GraphIr a = small_graph();
    set_arguments(a, 1, {value_argument(0, {1}), structure_argument(16, 40, {{8, {0, 4}}, {24, {1, 0}}})});
    GraphIr b = a;
    change(kernel_of(b, 1));
    const std::optional<Difference> difference = first_difference(a, b);
    REQUIRE(difference.has_value());
    CHECK(difference->where == "node 1 \"scale\": argument 1 byte " + expected.where);
    CHECK(difference->a == expected.a);
    CHECK(difference->b == expected.b);
  };

  check([](KernelParams& b) { b.pointers[1].pointer.offset = 16; }, {"24", "pinned#1", "pinned#1+0x10"});
  check([](KernelParams& b) { b.pointers.pop_back(); }, {"24", "pinned#1", "0x00"});
  check([](KernelParams& b) { b.pointers[0].at = 16; }, {"0", "0x00", "device#0+0x4"});
  check([](KernelParams& b) { b.pointers[1].pointer.offset = 16, b.arguments[16 + 20] = 3; }, {"20", "0x00", "0x03"});
}

TEST_CASE("each field of a memcpy is compared", "[ir][diff]") {
  const auto change = [](auto field, auto value) {
    return [=](GraphIr& g) { std::get<MemcpyParams>(g.nodes[2].params).*field = value; };
  };
  using P = MemcpyParams;

  check_difference(change(&P::destination, Pointer{1, 8}),
                   {"node 2 (memcpy): destination", "pinned#1", "pinned#1+0x8"});
  check_difference(change(&P::source, std::nullopt), {"node 2 (memcpy): source", "device#0", "array"});
  check_difference(change(&P::width_bytes, 1u), {"node 2 (memcpy): width bytes", "4096", "1"});
  check_difference(change(&P::height, 2u), {"node 2 (memcpy): height", "1", "2"});
  check_difference(change(&P::depth, 2u), {"node 2 (memcpy): depth", "1", "2"});
  check_difference(change(&P::destination_pitch, 2u), {"node 2 (memcpy): destination pitch", "0", "2"});
  check_difference(change(&P::source_pitch, 2u), {"node 2 (memcpy): source pitch", "0", "2"});
}

TEST_CASE("each field of a memset is compared", "[ir][diff]") {
  const auto change = [](auto field, auto value) {
    return [=](GraphIr& g) { std::get<MemsetParams>(g.nodes[0].params).*field = value; };
  };
  using P = MemsetParams;

  check_difference(change(&P::destination, Pointer{0, 4}),
                   {"node 0 (memset): destination", "device#0", "device#0+0x4"});
  check_difference(change(&P::value, 1u), {"node 0 (memset): value", "0", "1"});
  check_difference(change(&P::element_bytes, 1u), {"node 0 (memset): element bytes", "4", "1"});
  check_difference(change(&P::width, 1u), {"node 0 (memset): width", "1024", "1"});
  check_difference(change(&P::height, 2u), {"node 0 (memset): height", "1", "2"});
  check_difference(change(&P::pitch, 2u), {"node 0 (memset): pitch", "0", "2"});
}

TEST_CASE("nodes of different kinds differ by their kind", "[ir][diff]") {
  check_difference([](GraphIr& g) { add_kernel(g, "fill"), std::swap(g.nodes[0], g.nodes.back()); },
                   {"node 0: kind", "memset", "kernel"});
}

TEST_CASE("graphs that are not valid are compared too", "[ir][diff]") {
  check_difference([](GraphIr& g) { g.nodes[1].params = NoParams(); }, {"node 1: parameters", "of a kernel", "none"});
  check_difference([](GraphIr& g) { kernel_of(g, 1).pointers[0].pointer.allocation = 7; },
                   {"node 1 \"scale\": argument 0", "device#0+0x100", "unknown#7+0x100"});
  check_difference([](GraphIr& g) { kernel_of(g, 1).arguments.push_back(1); },
                   {"node 1 \"scale\": bytes that belong to no argument", "20", "21"});
}

TEST_CASE("functions are the same however the two graphs number them", "[ir][diff]") {
  GraphIr other = small_graph();
  other.functions.insert(other.functions.begin(), {.name = "add", .parameters = {}});
  kernel_of(other, 1).function = 1;
  CHECK_FALSE(first_difference(small_graph(), other).has_value());

  kernel_of(other, 1).function = 0;
  CHECK(first_difference(small_graph(), other)->where == "node 1 \"scale\": function");
  kernel_of(other, 1).function = 2;
  CHECK(first_difference(small_graph(), other)->b == "\"?\"");
}

TEST_CASE("the first difference is the one of the lowest node", "[ir][diff]") {
  check_difference(
      [](GraphIr& g) {
        std::get<MemcpyParams>(g.nodes[2].params).height = 2;
        kernel_of(g, 1).shared_bytes = 64;
        g.edges.pop_back();
      },
      {"node 1 \"scale\": shared bytes", "0", "64"});
}

TEST_CASE("edges and allocations are compared after the nodes", "[ir][diff]") {
  check_difference([](GraphIr& g) { g.edges.pop_back(); }, {"edge 1", "1 -> 2", "no further edge"});
  check_difference([](GraphIr& g) { g.edges[0] = edge(0, 2); }, {"edge 0", "0 -> 1", "0 -> 2"});
  check_difference(
      [](GraphIr& g) {
        g.edges[1].type = EdgeType::kProgrammatic;
        g.edges[1].from_port = 1;
      },
      {"edge 1", "1 -> 2", "1 -> 2, programmatic, port 1 to port 0"});
  check_difference([](GraphIr& g) { g.allocations[1].kind = MemoryKind::kManaged; },
                   {"allocation 1: kind", "pinned host", "managed"});
  check_difference([](GraphIr& g) { g.allocations[0].device = 1; }, {"allocation 0: device", "0", "1"});
  check_difference([](GraphIr& g) { g.allocations[0].bytes = 1; }, {"allocation 0: bytes", "4096", "1"});
  check_difference([](GraphIr& g) { g.allocations.emplace_back(); }, {"number of allocations", "2", "3"});
}

TEST_CASE("each field of a conditional node is compared", "[ir][diff]") {
  const auto check = [](const ConditionalParams& other, const Expected& expected) {
    GraphIr a = empty_nodes(0), b = empty_nodes(0);
    a.nodes.push_back(conditional_node({.kind = ConditionalKind::kIf, .handle = 0, .at_launch = 1}));
    b.nodes.push_back(conditional_node(other));

    const std::optional<Difference> difference = first_difference(a, b);

    REQUIRE(difference.has_value());
    CHECK(difference->where == expected.where);
    CHECK(difference->a == expected.a);
    CHECK(difference->b == expected.b);
  };
  check({.kind = ConditionalKind::kWhile, .handle = 0, .at_launch = 1},
        {"node 0 (if): conditional kind", "if", "while"});
  check({.kind = ConditionalKind::kIf, .handle = 1, .at_launch = 1}, {"node 0 (if): conditional handle", "0", "1"});
  check({.kind = ConditionalKind::kIf, .handle = 0, .at_launch = {}},
        {"node 0 (if): value at launch", "1", "as it was"});
}

TEST_CASE("nodes that only one graph has are named", "[ir][diff]") {
  GraphIr longer = small_graph();
  add_kernel(longer, "add");
  longer.nodes.emplace_back();

  const std::optional<Difference> there = first_difference(small_graph(), longer);
  const std::optional<Difference> back = first_difference(longer, small_graph());

  REQUIRE((there.has_value() && back.has_value()));
  CHECK(there->where == "number of nodes");
  CHECK(there->a == "3");
  CHECK(there->b == "5");
  CHECK(there->only_in_a.empty());
  CHECK(there->only_in_b == "node 3 \"add\", node 4 (empty)");
  CHECK(back->only_in_a == there->only_in_b);
}

TEST_CASE("a long list of nodes is cut", "[ir][diff]") {
  const std::optional<Difference> difference = first_difference(GraphIr(), empty_nodes(1000));

  REQUIRE(difference.has_value());
  CHECK(difference->only_in_b.find("node 7 (empty) and 992 more") != std::string::npos);
}

}  // namespace
}  // namespace cgrt::ir
