// Rules about what processes did with their executables: runs with something wrong, each with its twin.
#include "cgrt/inspect/lint_run.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "unit/inspect/lint_cases.h"

namespace cgrt::inspect {
namespace {

using testing::add_kernel;
using testing::batch_node;
using testing::copy_bytes;
using testing::empty_nodes;
using testing::free_node;
using testing::memset_node;
using testing::pointer_argument;
using testing::set_bytes;
using testing::structure_argument;
using testing::with_memory;

constexpr Severity kWarning = Severity::kWarning, kNote = Severity::kNote;

std::vector<Finding> only(std::vector<Finding> findings, std::string_view rule) {
  std::erase_if(findings, [&](const Finding& finding) { return finding.rule->id != rule; });
  return findings;
}

RecordedExec launched(std::vector<std::string> streams) {
  return {.file = "a.cgrt.json", .launches = 5, .uploads = 1, .streams = std::move(streams)};
}

// Of one executable; the twin has `graph`, too.
struct ExecCase {
  const char* sentence;
  const char* rule;
  Severity severity;
  std::vector<std::uint32_t> nodes;
  ir::GraphIr graph;
  RecordedExec faulty, twin;
};

RecordedExec without_upload(RecordedExec exec) {
  exec.uploads = 0;
  return exec;
}
RecordedExec with_host_data(std::vector<std::uint32_t> nodes, bool has_user_objects) {
  RecordedExec exec = launched({"0x10"});
  exec.host_data = std::move(nodes);
  exec.has_user_objects = has_user_objects;
  return exec;
}
RecordedExec with_stack_nodes(std::vector<std::uint32_t> nodes) {
  RecordedExec exec = launched({"0x10"});
  exec.stack_nodes = std::move(nodes);
  return exec;
}
ir::GraphIr host_nodes(std::size_t count) {
  ir::GraphIr graph;
  graph.nodes.assign(count, {.kind = ir::NodeKind::kHost});
  return graph;
}

TEST_CASE("what is done with an executable is found", "[inspect][lint][run]") {
  const ExecCase one = GENERATE(ExecCase{"launched without an upload",
                                         "first-launch",
                                         kNote,
                                         {},
                                         empty_nodes(100),
                                         without_upload(launched({"0x10"})),
                                         launched({"0x10"})},
                                ExecCase{"not launched at all",
                                         "first-launch",
                                         kNote,
                                         {},
                                         empty_nodes(100),
                                         without_upload(launched({"0x10"})),
                                         {.file = "a.cgrt.json"}},
                                ExecCase{"launched into two streams",
                                         "several-streams",
                                         kNote,
                                         {},
                                         empty_nodes(1),
                                         launched({"0x10", "0x20"}),
                                         launched({"0x10"})},
                                ExecCase{"host functions with data and no owner",
                                         "host-owner",
                                         kNote,
                                         {0, 2},
                                         host_nodes(3),
                                         with_host_data({0, 2}, false),
                                         with_host_data({0, 2}, true)},
                                ExecCase{"host functions without data",
                                         "host-owner",
                                         kNote,
                                         {1},
                                         host_nodes(3),
                                         with_host_data({1}, false),
                                         with_host_data({}, false)},
                                ExecCase{"data on a stack",
                                         "stack-memory",
                                         kWarning,
                                         {1},
                                         host_nodes(2),
                                         with_stack_nodes({1}),
                                         with_stack_nodes({})});
  INFO(one.sentence);

  const auto found = lint(one.graph, one.faulty), of_twin = lint(one.graph, one.twin);

  REQUIRE_OK(found);
  REQUIRE_OK(of_twin);
  REQUIRE(only(*found, one.rule).size() == 1);
  CHECK(only(*found, one.rule)[0].severity == one.severity);
  CHECK(only(*found, one.rule)[0].nodes == one.nodes);
  CHECK(only(*of_twin, one.rule).empty());
}

TEST_CASE("a small graph may be launched without an upload", "[inspect][lint][run]") {
  CHECK(only(*lint(empty_nodes(99), without_upload(launched({"0x10"}))), "first-launch").empty());
}

TEST_CASE("findings about an executable name its file and say what was done", "[inspect][lint][run]") {
  RecordedExec exec = without_upload(launched({"0x10", "0x20", "0x30", "legacy"}));
  exec.has_more_streams = true;

  const auto found = lint(empty_nodes(1000), exec);

  REQUIRE_OK(found);
  CHECK(to_text(only(*found, "first-launch")[0]) ==
        "note first-launch: a.cgrt.json, of 1000 nodes, was launched 5 times and never uploaded: its first launch took "
        "it to the device, about 0.7 ms more (0.7 us a node on an H200). Upload it before (cuGraphUpload) where the "
        "time of the first launch matters.");
  CHECK(only(*found, "several-streams")[0].text ==
        "a.cgrt.json was launched 5 times, into more than 4 streams: CUDA orders launches of one executable after each "
        "other, also those of other streams.");
}

TEST_CASE("the findings of the graph alone are there, too", "[inspect][lint][run]") {
  CHECK(only(*lint(ir::GraphIr{}, launched({"0x10"})), "empty-graph").size() == 1);
}

TEST_CASE("a run that speaks of what the graph does not have is refused", "[inspect][lint][run]") {
  RecordedExec memory = launched({"0x10"}), host = memory, stack = memory;
  memory.memory = {7, 8};
  host.host_data = {2};
  stack.stack_nodes = {4000000000};

  CHECK(lint(host_nodes(2), memory).status().message() ==
        "run.json and a.cgrt.json are not of one run: \"memory\" has 2 numbers, and the graph 0 allocations.");
  CHECK(lint(host_nodes(2), host).status().message() ==
        "run.json and a.cgrt.json are not of one run: one speaks of node 2, and the other has 2 nodes.");
  CHECK_FALSE(lint(host_nodes(2), stack).ok());
}

// Of two executables, of which the second's memory is numbered from 2 on: its allocation 1 is the first's allocation 0.
struct Use {
  ir::GraphIr graph;
  RecordedExec exec;
};
Use first_use(ir::GraphIr graph, std::vector<std::string> streams = {"0x10"}) {
  RecordedExec exec = launched(std::move(streams));
  exec.memory = {71, 72, 73};
  return {std::move(graph), std::move(exec)};
}
Use second_use(ir::GraphIr graph, std::vector<std::string> streams = {"0x20"}) {
  RecordedExec exec = launched(std::move(streams));
  exec.file = "b.cgrt.json";
  exec.number = 1;
  exec.memory = {74, 71, 75};
  return {std::move(graph), std::move(exec)};
}

std::vector<Finding> shared_by(const std::vector<Use>& uses) {
  SharedMemory shared;
  for (const Use& use : uses) {
    REQUIRE_OK(lint(use.graph, use.exec));
    shared.add(use.graph, use.exec);
  }
  return std::move(shared).findings();
}

ir::GraphIr graph_of(std::vector<ir::Node> nodes) {
  ir::GraphIr graph = with_memory();
  graph.nodes = std::move(nodes);
  return graph;
}
// A kernel with an output and an input.
ir::GraphIr kernel(const char* name, ir::Pointer out, ir::Pointer in) {
  ir::GraphIr graph = with_memory();
  add_kernel(graph, name,
             {pointer_argument(0, out.allocation, out.offset), pointer_argument(8, in.allocation, in.offset)});
  return graph;
}
ir::Node set_rows(std::uint32_t allocation, std::uint64_t offset, std::uint64_t width) {
  return memset_node(
      {.destination = {allocation, offset}, .element_bytes = 1, .width = width, .height = 8, .pitch = 64});
}

struct SharedCase {
  const char* sentence;
  Severity severity;
  Use first, faulty, twin;
};

TEST_CASE("memory that two executables in different streams touch is found", "[inspect][lint][run]") {
  const SharedCase one = GENERATE(
      SharedCase{"both write", kWarning, first_use(graph_of({set_bytes({0, 0}, 64)})),
                 second_use(graph_of({set_bytes({1, 63}, 64)})), second_use(graph_of({set_bytes({1, 64}, 64)}))},
      SharedCase{"one writes, and the other reads", kWarning, first_use(graph_of({copy_bytes({2, 0}, {0, 0}, 64)})),
                 second_use(graph_of({batch_node({{ir::MemOpKind::kWrite, {1, 60}, 1, 4}})})),
                 second_use(graph_of({copy_bytes({2, 0}, {1, 0}, 64)}))},
      SharedCase{"one writes, and a kernel of the other gets an address there", kWarning,
                 first_use(graph_of({set_bytes({0, 0}, 64)})), second_use(kernel("scale", {0, 0}, {1, 63})),
                 second_use(kernel("scale", {0, 0}, {1, 64}))},
      SharedCase{"columns of a matrix", kWarning, first_use(graph_of({set_rows(0, 0, 33)})),
                 second_use(graph_of({set_rows(1, 32, 32)})), second_use(graph_of({set_rows(1, 33, 31)}))},
      SharedCase{"the same streams", kWarning, first_use(graph_of({set_bytes({0, 0}, 64)})),
                 second_use(graph_of({set_bytes({1, 0}, 64)})),
                 second_use(graph_of({set_bytes({1, 0}, 64)}), {"0x10"})},
      SharedCase{"several streams", kWarning, first_use(graph_of({set_bytes({0, 0}, 64)})),
                 second_use(graph_of({set_bytes({1, 0}, 64)}), {"0x10", "0x20"}),
                 second_use(graph_of({set_bytes({1, 0}, 64)}), {"0x10"})},
      SharedCase{"per-thread streams of two threads", kWarning,
                 first_use(graph_of({set_bytes({0, 0}, 64)}), {"per-thread 4711"}),
                 second_use(graph_of({set_bytes({1, 0}, 64)}), {"per-thread 4712"}),
                 second_use(graph_of({set_bytes({1, 0}, 64)}), {"per-thread 4711"})},
      SharedCase{"the legacy stream, which waits for those that are blocking", kNote,
                 first_use(graph_of({set_bytes({0, 0}, 64)}), {"legacy"}),
                 second_use(graph_of({set_bytes({1, 0}, 64)}), {"0x20"}),
                 second_use(graph_of({set_bytes({1, 0}, 64)}), {"per-thread 4711"})},
      SharedCase{"kernels get one address", kNote, first_use(kernel("scale", {0, 256}, {1, 0})),
                 second_use(kernel("add", {1, 256}, {0, 0})), second_use(kernel("add", {1, 264}, {0, 0}))},
      SharedCase{"what one kernel puts out is the input of another", kNote, first_use(kernel("scale", {0, 0}, {1, 0})),
                 second_use(kernel("scale", {0, 0}, {1, 0})), second_use(kernel("scale", {1, 0}, {0, 0}))},
      SharedCase{"a kernel gets what a copy reads", kNote, first_use(graph_of({copy_bytes({2, 0}, {0, 8}, 64)})),
                 second_use(kernel("scale", {1, 8}, {0, 0})), second_use(graph_of({copy_bytes({2, 0}, {1, 8}, 64)}))});
  INFO(one.sentence);

  const std::vector<Finding> found = shared_by({one.first, one.faulty}), of_twin = shared_by({one.first, one.twin});

  REQUIRE(found.size() == 1);
  CHECK(found[0].rule->id == "shared-memory");
  CHECK(found[0].severity == one.severity);
  CHECK(of_twin.empty());
}

const ir::GraphIr& set_first() {
  static const ir::GraphIr graph = graph_of({set_bytes({0, 0}, 64)});
  return graph;
}
const ir::GraphIr& set_second() {
  static const ir::GraphIr graph = graph_of({set_bytes({1, 0}, 64)});
  return graph;
}

TEST_CASE("executables that were not there at the same time share no memory", "[inspect][lint][run]") {
  Use before = first_use(set_first()), after = second_use(set_second());
  before.exec.destroyed_before = GENERATE(0u, 1u, 2u);

  CHECK(shared_by({before, after}).size() == (before.exec.destroyed_before == 1 ? 0 : 1));
}

TEST_CASE("memory that is not known, and that of the graph's own, is not compared", "[inspect][lint][run]") {
  Use unknown = second_use(set_second()), old = unknown, not_launched = unknown;
  unknown.exec.memory[1] = 0;
  old.exec.memory.clear();
  not_launched.exec.launches = 0;
  Use first = first_use(set_first()), first_unknown = first;
  first_unknown.exec.memory[0] = 0;
  Use own = second_use(graph_of({testing::alloc_node({1, 0}, 4096), set_bytes({1, 0}, 64), free_node({1, 0})}));

  CHECK(shared_by({first, old}).empty());
  CHECK(shared_by({first, not_launched}).empty());
  CHECK(shared_by({first_unknown, unknown}).empty());
  CHECK(shared_by({first, own}).empty());
  CHECK(shared_by({first, second_use(set_second())}).size() == 1);
}

TEST_CASE("what an update may have changed is a note", "[inspect][lint][run]") {
  Use changed = second_use(set_second());
  changed.exec.set_params = 1;

  const std::vector<Finding> found = shared_by({first_use(set_first()), changed});

  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == kNote);
  CHECK(found[0].text.ends_with(" An update may have changed it meanwhile."));
}

TEST_CASE("shared memory is said with files, streams, nodes and the place in each graph", "[inspect][lint][run]") {
  const std::vector<Finding> found =
      shared_by({first_use(graph_of({{}, set_bytes({0, 0}, 64)})), second_use(kernel("scale", {0, 0}, {1, 32}))});

  REQUIRE(found.size() == 1);
  CHECK(
      to_text(found[0]) ==
      "warning shared-memory: a.cgrt.json (launched into stream 0x10) and b.cgrt.json (stream 0x20): node 1 (memset) "
      "writes device#0+0x20 of the first, and node 0 \"scale\" gets the address device#1+0x20 of the second, the same "
      "memory. Give each memory of its own, or have one stream wait for the other; nothing is wrong where they only "
      "read.");
}

TEST_CASE("a certain write is said of a pair, and no more", "[inspect][lint][run]") {
  ir::GraphIr both = kernel("scale", {0, 0}, {0, 512});
  both.nodes.push_back(set_bytes({0, 1024}, 64));
  ir::GraphIr other = kernel("add", {1, 0}, {1, 512});
  other.nodes.push_back(set_bytes({1, 1024}, 64));

  const std::vector<Finding> found = shared_by({first_use(both), second_use(other)});

  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == kWarning);
}

// `count` executables of one memory, each with a stream of its own.
std::vector<Finding> shared_by_many(std::uint64_t count, const ir::GraphIr& graph) {
  SharedMemory shared;
  for (std::uint64_t i = 0; i < count; ++i) {
    RecordedExec exec = launched({absl::StrCat("0x", 16 * (i + 1))});
    exec.number = i;
    exec.memory = {71, 72, 73};
    shared.add(graph, exec);
  }
  return std::move(shared).findings();
}

TEST_CASE("ten pairs are said, and the others counted", "[inspect][lint][run]") {
  const std::vector<Finding> found = shared_by_many(6, set_first());

  REQUIRE(found.size() == 10);
  CHECK(found[8].text.ends_with("the same memory."));
  CHECK(found[9].text.ends_with(" And 5 more pairs."));
}

TEST_CASE("work does not grow with the square of the executables", "[inspect][lint][run][scale]") {
  const ir::GraphIr graph = GENERATE(graph_of({set_bytes({0, 0}, 64)}), kernel("scale", {0, 0}, {1, 0}));

  const std::vector<Finding> found = shared_by_many(65536, graph);

  REQUIRE(found.size() == 11);
  CHECK(found[10].rule->id == "not-checked");
  CHECK(found[10].text.starts_with("The rule shared-memory came to the limit of its work: "));
}

}  // namespace
}  // namespace cgrt::inspect
