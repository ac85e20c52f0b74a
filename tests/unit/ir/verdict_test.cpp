#include "cgrt/ir/verdict.h"

#include <functional>
#include <string>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::ir {
namespace {

using testing::conditional_node;
using testing::edge;
using testing::empty_nodes;
using testing::kernel_of;
using testing::memcpy_node;
using testing::memset_node;
using testing::small_graph;

Verdicts judge_change(GraphIr a, const std::function<void(GraphIr&)>& change) {
  GraphIr b = a;
  change(b);
  return judge(a, b, differences(a, b));
}

struct Expected {
  Rung rung;
  Update update;
};

// Of a graph and a changed copy of it, which differ in one field.
void check_one(const GraphIr& a, const std::function<void(GraphIr&)>& change, const Expected& expected) {
  const Verdicts verdicts = judge_change(a, change);

  REQUIRE(verdicts.changes.size() == 1);
  CHECK(verdicts.changes[0].rung == expected.rung);
  CHECK(verdicts.changes[0].update == expected.update);
  CHECK(verdicts.rung == expected.rung);
  CHECK(verdicts.update == expected.update);
  CHECK(verdicts.update_rule == (expected.update == Update::kTaken ? "" : verdicts.changes[0].rule));
}

constexpr Expected kRebind = {Rung::kRebind, Update::kTaken}, kSet = {Rung::kSetParams, Update::kTaken},
                   kUpdated = {Rung::kWholeUpdate, Update::kTaken}, kLost = {Rung::kInstantiate, Update::kLost},
                   kAnew = {Rung::kInstantiate, Update::kRefused}, kNothing = {Rung::kNone, Update::kTaken};

template <class Params, class Change>
std::function<void(GraphIr&)> of_node(std::size_t id, Change change) {
  return [=](GraphIr& graph) { change(std::get<Params>(graph.nodes[id].params)); };
}

TEST_CASE("equal graphs need nothing", "[ir][verdict]") {
  const Verdicts verdicts = judge(small_graph(), small_graph(), {});

  CHECK(verdicts.rung == Rung::kNone);
  CHECK(verdicts.update == Update::kTaken);
}

TEST_CASE("each field of a kernel has its verdict", "[ir][verdict]") {
  const auto kernel = [](auto change) { return [=](GraphIr& g) { change(kernel_of(g, 1)); }; };
  const auto attributes = [](auto change) { return [=](GraphIr& g) { change(kernel_of(g, 1).attributes); }; };
  const GraphIr graph = small_graph();

  check_one(graph, kernel([](KernelParams& k) { k.grid.x = 8; }), kRebind);
  check_one(graph, kernel([](KernelParams& k) { k.arguments[18] = 0x40; }), kRebind);
  check_one(graph, kernel([](KernelParams& k) { k.pointers[0].pointer.offset = 8; }), kRebind);
  check_one(graph, kernel([](KernelParams& k) { k.block.x = 32; }), kSet);
  check_one(graph, kernel([](KernelParams& k) { k.shared_bytes = 64; }), kSet);
  check_one(
      graph, [](GraphIr& g) { g.functions[0].name = "add"; }, kSet);
  check_one(
      graph, [](GraphIr& g) { g.nodes[1].device = 1; }, kAnew);
  check_one(graph, attributes([](LaunchAttributes& a) { a.cooperative = true; }), kAnew);
  check_one(graph, attributes([](LaunchAttributes& a) { a.cluster.x = 2; }), {Rung::kWholeUpdate, Update::kTaken});
  check_one(graph, attributes([](LaunchAttributes& a) { a.preferred_cluster.x = 2; }), kLost);
  check_one(graph, attributes([](LaunchAttributes& a) { a.is_remote_domain = true; }), kLost);
  check_one(graph, attributes([](LaunchAttributes& a) { a.shared_carveout_percent = 50; }), kLost);
  check_one(graph, attributes([](LaunchAttributes& a) { a.access_policy.bytes = 64; }), kLost);
  check_one(graph, attributes([](LaunchAttributes& a) { a.priority = -1; }), kNothing);
}

TEST_CASE("the host sets kernels that the device does not rebind", "[ir][verdict]") {
  const auto change = [](GraphIr& g) { kernel_of(g, 1).grid.x = 8; };

  GraphIr clusters = small_graph();
  kernel_of(clusters, 1).attributes.cluster.x = 2;
  check_one(clusters, change, kSet);

  GraphIr programmatic = small_graph();
  testing::add_kernel(programmatic, "add");
  programmatic.edges.push_back({1, 3, 1, 0, EdgeType::kProgrammatic});
  check_one(programmatic, change, kSet);

  GraphIr devices = small_graph();
  testing::add_kernel(devices, "add");
  devices.nodes[3].device = 1;
  check_one(devices, change, kSet);

  GraphIr body;
  body.nodes.push_back(conditional_node({}));
  body.bodies.push_back({0});
  testing::add_kernel(body, "add");
  body.nodes[1].body = 1;
  check_one(body, change, kSet);
}

TEST_CASE("a child graph node takes over launch attributes, an update of the whole graph does not", "[ir][verdict]") {
  GraphIr graph;
  graph.nodes.push_back({.kind = NodeKind::kChildGraph});
  graph.bodies.push_back({0});
  testing::add_kernel(graph, "add");
  graph.nodes[1].body = 1;

  check_one(graph, [](GraphIr& g) { kernel_of(g, 1).attributes.cluster.x = 2; }, {Rung::kWholeUpdate, Update::kTaken});
  check_one(
      graph, [](GraphIr& g) { kernel_of(g, 1).grid.x = 9; }, kRebind);
}

TEST_CASE("copies and memsets change addresses, values and one row's size", "[ir][verdict]") {
  const GraphIr graph = small_graph();
  const auto copy = [](auto change) { return of_node<MemcpyParams>(2, change); };
  const auto fill = [](auto change) { return of_node<MemsetParams>(0, change); };

  check_one(graph, copy([](MemcpyParams& p) { p.source->offset = 8; }), kSet);
  check_one(graph, copy([](MemcpyParams& p) { p.width_bytes = 8; }), kSet);
  check_one(graph, copy([](MemcpyParams& p) { p.destination = Pointer{0, 64}; }), kAnew);
  check_one(graph, copy([](MemcpyParams& p) { p.source = std::nullopt; }), kAnew);
  check_one(graph, copy([](MemcpyParams& p) { p.height = 2; }), kAnew);
  check_one(graph, fill([](MemsetParams& p) { p.destination.offset = 8; }), kSet);
  check_one(graph, fill([](MemsetParams& p) { p.value = 8; }), kSet);
  check_one(graph, fill([](MemsetParams& p) { p.width = 8; }), {Rung::kSetParams, Update::kMayBeRefused});
  check_one(graph, fill([](MemsetParams& p) { p.element_bytes = 1; }), {Rung::kSetParams, Update::kMayBeRefused});
  check_one(graph, fill([](MemsetParams& p) { p.height = 2; }), kAnew);

  GraphIr rows = graph;
  std::get<MemcpyParams>(rows.nodes[2].params).height = 4;
  std::get<MemsetParams>(rows.nodes[0].params).height = 4;
  check_one(rows, copy([](MemcpyParams& p) { p.source->offset = 8; }), kAnew);
  check_one(rows, copy([](MemcpyParams& p) { p.width_bytes = 8; }), kAnew);
  check_one(rows, fill([](MemsetParams& p) { p.value = 8; }), kSet);
  check_one(rows, fill([](MemsetParams& p) { p.width = 8; }), kAnew);
}

TEST_CASE("an allocation of another kind matters to copies and memsets", "[ir][verdict]") {
  GraphIr graph = small_graph();
  check_one(
      graph, [](GraphIr& g) { g.allocations[1].kind = MemoryKind::kManaged; }, kAnew);
  check_one(
      graph, [](GraphIr& g) { g.allocations[1].bytes = 8192; }, kSet);

  graph.nodes.resize(2);
  graph.edges.resize(1);
  check_one(
      graph, [](GraphIr& g) { g.allocations[1].kind = MemoryKind::kManaged; }, kRebind);
}

TEST_CASE("other kinds of nodes have their verdicts", "[ir][verdict]") {
  const auto one = [](NodeKind kind, auto params) {
    GraphIr graph = empty_nodes(1);
    graph.nodes[0].kind = kind;
    graph.nodes[0].params = params;
    graph.allocations.push_back({.kind = MemoryKind::kDevice, .device = 0, .bytes = 64});
    return graph;
  };
  const GraphIr ops = one(NodeKind::kBatchMemOp, BatchMemOpParams{{{MemOpKind::kWaitEqual, {}, 1}}});
  const auto op = [](auto change) {
    return of_node<BatchMemOpParams>(0, [=](BatchMemOpParams& p) { change(p.operations); });
  };
  check_one(ops, op([](std::vector<MemOp>& all) { all[0].value = 2; }), kSet);
  check_one(ops, op([](std::vector<MemOp>& all) { all[0].kind = MemOpKind::kWaitNor; }), kSet);
  check_one(ops, op([](std::vector<MemOp>& all) { all[0].kind = MemOpKind::kWrite; }), kAnew);
  check_one(ops, op([](std::vector<MemOp>& all) { all[0].bytes = 8; }), kAnew);
  check_one(ops, op([](std::vector<MemOp>& all) { all.push_back(all[0]); }), kAnew);

  const GraphIr signals = one(NodeKind::kSemaphoreSignal, SemaphoreParams{{{0, 1}}});
  check_one(signals, of_node<SemaphoreParams>(0, [](SemaphoreParams& p) { p.semaphores[0].value = 2; }), kSet);
  check_one(signals, of_node<SemaphoreParams>(0, [](SemaphoreParams& p) { p.semaphores.push_back({1, 1}); }), kAnew);

  GraphIr condition;
  condition.nodes.push_back(conditional_node({.at_launch = 1}));
  condition.bodies.push_back({0});
  check_one(condition, of_node<ConditionalParams>(0, [](ConditionalParams& p) { p.at_launch = 2; }), kUpdated);
  check_one(
      condition, [](GraphIr& g) { g.bodies.push_back({0}); }, kAnew);

  const GraphIr memory = one(NodeKind::kMemAlloc, MemAllocParams{{}, 64});
  check_one(memory, of_node<MemAllocParams>(0, [](MemAllocParams& p) { p.bytes = 32; }), kAnew);
}

TEST_CASE("the highest rung counts, and an update's first refusal is named", "[ir][verdict]") {
  const Verdicts verdicts = judge_change(small_graph(), [](GraphIr& g) {
    kernel_of(g, 1).grid.x = 8;
    kernel_of(g, 1).block.x = 32;
    g.edges.pop_back();
  });

  REQUIRE(verdicts.changes.size() == 2);
  CHECK(verdicts.changes[0].rung == Rung::kRebind);
  CHECK(verdicts.edges.rung == Rung::kInstantiate);
  CHECK(verdicts.rung == Rung::kInstantiate);
  CHECK(verdicts.update == Update::kRefused);
  CHECK(verdicts.update_rule == "the edges of an executable and their types stay");
}

TEST_CASE("nodes that match nobody are taken by their order", "[ir][verdict]") {
  GraphIr a, b;
  testing::add_kernel(a, "scale");
  testing::add_kernel(b, "add");

  const Verdicts verdicts = judge(a, b, differences(a, b));

  CHECK(verdicts.nodes.rung == Rung::kInstantiate);
  CHECK(verdicts.is_by_position);
  CHECK(verdicts.rung == Rung::kSetParams);
  CHECK(verdicts.update == Update::kTaken);
}

TEST_CASE("an update takes nodes by their order", "[ir][verdict]") {
  GraphIr a;
  a.nodes = {memset_node({.width = 8}), conditional_node({.at_launch = 1})};
  a.bodies.push_back({1});
  a.allocations.push_back({});
  GraphIr b = a;
  std::swap(b.nodes[0], b.nodes[1]);
  b.bodies[0].owner = 0;

  CHECK(judge(a, b, differences(a, b)).rung == Rung::kNone);
  CHECK(judge(a, b, differences(a, b)).update == Update::kRefused);

  std::get<ConditionalParams>(b.nodes[0].params).at_launch = 2;
  const Verdicts verdicts = judge(a, b, differences(a, b));
  CHECK(verdicts.changes[0].rung == Rung::kWholeUpdate);
  CHECK(verdicts.rung == Rung::kInstantiate);
  CHECK_FALSE(verdicts.rule.empty());
}

}  // namespace
}  // namespace cgrt::ir
