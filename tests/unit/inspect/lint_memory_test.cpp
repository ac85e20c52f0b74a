// Rules about what nodes do to memory: graphs with something wrong, each with its twin.
#include "cgrt/inspect/lint.h"
#include "unit/inspect/lint_cases.h"

namespace cgrt::inspect {
namespace {

using testing::add_kernel;
using testing::alloc_node;
using testing::batch_node;
using testing::changed;
using testing::check_case;
using testing::copy_bytes;
using testing::edge;
using testing::findings_of;
using testing::free_node;
using testing::LintCase;
using testing::memcpy_node;
using testing::memset_node;
using testing::pointer_argument;
using testing::programmatic_edge;
using testing::set_bytes;
using testing::structure_argument;
using testing::with_edges;
using testing::with_memory;

constexpr Severity kError = Severity::kError, kWarning = Severity::kWarning, kNote = Severity::kNote;

ir::GraphIr graph_of(std::vector<ir::Node> nodes, std::vector<ir::Edge> edges = {}) {
  ir::GraphIr graph = with_memory();
  graph.nodes = std::move(nodes);
  graph.edges = std::move(edges);
  return graph;
}

ir::Node set_rows(std::uint64_t offset, std::uint64_t width, std::uint64_t rows, std::uint64_t pitch) {
  return memset_node({.destination = {0, offset}, .element_bytes = 1, .width = width, .height = rows, .pitch = pitch});
}

// A memset of device#0 and a kernel that gets it, not ordered.
ir::GraphIr set_and_kernel(ir::Pointer address) {
  ir::GraphIr graph = graph_of({set_bytes({0, 0}, 1024)});
  add_kernel(graph, "scale", {pointer_argument(0, address.allocation, address.offset)});
  return graph;
}

// Two kernels that are not ordered, each with an output and an input.
ir::GraphIr two_kernels(const char* first, const char* second, std::uint64_t out, ir::Pointer in) {
  ir::GraphIr graph = with_memory();
  add_kernel(graph, first, {pointer_argument(0, 1, 0), pointer_argument(8, 0, 0)});
  add_kernel(graph, second, {pointer_argument(0, 1, out), pointer_argument(8, in.allocation, in.offset)});
  return graph;
}

// A memset in each of two child graphs.
ir::GraphIr sets_in_children() {
  ir::GraphIr graph = graph_of({{.kind = ir::NodeKind::kChildGraph},
                                {.kind = ir::NodeKind::kChildGraph},
                                set_bytes({0, 0}, 64),
                                set_bytes({0, 32}, 64)});
  graph.nodes[2].body = 1;
  graph.nodes[3].body = 2;
  graph.bodies = {{0}, {1}};
  return graph;
}

TEST_CASE("nodes that are not ordered and touch the same bytes are races", "[inspect][lint]") {
  check_case(
      GENERATE(LintCase{"two memsets",
                        "race",
                        kError,
                        {0, 1},
                        graph_of({set_bytes({0, 0}, 64), set_bytes({0, 63}, 64)}),
                        graph_of({set_bytes({0, 0}, 64), set_bytes({0, 64}, 64)})},
               LintCase{"a memset and a copy from there",
                        "race",
                        kError,
                        {0, 1},
                        graph_of({set_bytes({0, 0}, 64), copy_bytes({2, 0}, {0, 0}, 64)}),
                        graph_of({set_bytes({0, 0}, 64), copy_bytes({2, 0}, {0, 0}, 64)}, {edge(0, 1)})},
               LintCase{"a copy into host memory that another reads",
                        "race",
                        kError,
                        {0, 1},
                        graph_of({copy_bytes({2, 0}, {0, 0}, 64), copy_bytes({1, 0}, {2, 0}, 64)}),
                        graph_of({copy_bytes({0, 0}, {2, 0}, 64), copy_bytes({1, 0}, {2, 0}, 64)})},
               LintCase{"columns of a matrix",
                        "race",
                        kError,
                        {0, 1},
                        graph_of({set_rows(0, 33, 16, 64), set_rows(32, 32, 16, 64)}),
                        graph_of({set_rows(0, 32, 16, 64), set_rows(32, 32, 16, 64)})},
               LintCase{"rows between rows",
                        "race",
                        kError,
                        {0, 1},
                        graph_of({set_rows(0, 64, 8, 128), set_rows(64, 65, 8, 256)}),
                        graph_of({set_rows(0, 64, 8, 128), set_rows(64, 64, 8, 256)})},
               LintCase{"a memory operation and a memset",
                        "race",
                        kError,
                        {0, 1},
                        graph_of({set_bytes({0, 0}, 64), batch_node({{ir::MemOpKind::kWrite, {0, 60}, 1, 4}})}),
                        graph_of({set_bytes({0, 0}, 64), batch_node({{ir::MemOpKind::kWrite, {0, 64}, 1, 4}})})},
               LintCase{"one of two branches that join",
                        "race",
                        kError,
                        {1, 2},
                        graph_of({set_bytes({0, 0}, 64), set_bytes({0, 0}, 64), copy_bytes({1, 0}, {0, 0}, 64), {}},
                                 {edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)}),
                        graph_of({set_bytes({0, 0}, 64), set_bytes({0, 64}, 64), copy_bytes({1, 0}, {0, 0}, 64), {}},
                                 {edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)})},
               LintCase{"nodes of two child graphs",
                        "race",
                        kError,
                        {2, 3},
                        sets_in_children(),
                        with_edges(sets_in_children(), {edge(0, 1)})},
               LintCase{"nodes that a semaphore of the graph may order",
                        "race",
                        kWarning,
                        {0, 1},
                        graph_of({set_bytes({0, 0}, 64),
                                  set_bytes({0, 0}, 64),
                                  {.kind = ir::NodeKind::kSemaphoreSignal, .params = ir::SemaphoreParams{{{0, 1}}}},
                                  {.kind = ir::NodeKind::kSemaphoreWait, .params = ir::SemaphoreParams{{{0, 1}}}}},
                                 {edge(0, 2), edge(3, 1)}),
                        graph_of({set_bytes({0, 0}, 64), set_bytes({0, 0}, 64)}, {edge(0, 1)})}));
}

TEST_CASE("bodies of one conditional node never run at the same time", "[inspect][lint]") {
  ir::GraphIr graph = sets_in_children();
  graph.nodes[0] = testing::conditional_node({ir::ConditionalKind::kIf, 0, 1});
  graph.bodies[1] = {0};

  CHECK(findings_of(graph, "race").empty());
}

TEST_CASE("a race is said with its nodes, its bytes and who writes", "[inspect][lint]") {
  const ir::GraphIr graph = graph_of({set_bytes({0, 0}, 64), copy_bytes({2, 0}, {0, 32}, 64)});

  CHECK(to_text(findings_of(graph, "race")[0]) ==
        "error race: node 0 (memset) and node 1 (memcpy) are not ordered, and both touch device#0 [32, 64); node 0 "
        "writes. Add an edge between them, or give each memory of its own.");
}

TEST_CASE("kernels that get an address that another node may touch at the same time may race", "[inspect][lint]") {
  check_case(GENERATE(
      LintCase{
          "a memset writes there", "may-race", kWarning, {0, 1}, set_and_kernel({0, 1023}), set_and_kernel({0, 1024})},
      LintCase{"a memset writes there, and the kernel comes later",
               "may-race",
               kWarning,
               {0, 1},
               set_and_kernel({0, 0}),
               with_edges(set_and_kernel({0, 0}), {edge(0, 1)})},
      LintCase{"another kernel gets it",
               "may-race",
               kWarning,
               {0, 1},
               two_kernels("scale", "add", 64, {0, 0}),
               two_kernels("scale", "add", 64, {0, 64})},
      LintCase{"the output of one is the input of another",
               "may-race",
               kWarning,
               {0, 1},
               two_kernels("scale", "scale", 64, {1, 0}),
               two_kernels("scale", "scale", 64, {0, 0})},
      LintCase{"two launches do the same",
               "may-race",
               kWarning,
               {0, 1},
               two_kernels("scale", "scale", 0, {0, 0}),
               with_edges(two_kernels("scale", "scale", 0, {0, 0}), {edge(0, 1)})},
      LintCase{"the start of one kernel waits only for the start of the other",
               "may-race",
               kWarning,
               {0, 1},
               changed(two_kernels("scale", "add", 64, {0, 0}),
                       [](ir::GraphIr& graph) {
                         graph.edges = {edge(0, 1)};
                         graph.edges[0].from_port = 2;
                       }),
               with_edges(two_kernels("scale", "add", 64, {0, 0}), {programmatic_edge(0, 1)})}));
}

// alloc, use, free of device#0.
ir::GraphIr lifetime(ir::Node use, std::vector<ir::Edge> edges) {
  return graph_of({alloc_node({0, 0}, 4096), std::move(use), free_node({0, 0})}, std::move(edges));
}
ir::GraphIr kernel_lifetime(std::vector<ir::Edge> edges) {
  ir::GraphIr graph = graph_of({alloc_node({0, 0}, 4096)});
  add_kernel(graph, "scale", {structure_argument(0, 24, {{8, {0, 256}}})});
  graph.nodes.push_back(free_node({0, 0}));
  graph.edges = std::move(edges);
  return graph;
}

TEST_CASE("memory of a graph's own is used between its allocation and its end", "[inspect][lint]") {
  const ir::GraphIr right = lifetime(set_bytes({0, 8}, 64), {edge(0, 1), edge(1, 2)});

  check_case(GENERATE_COPY(
      LintCase{"before it is allocated",
               "use-outside-lifetime",
               kError,
               {0, 1},
               lifetime(set_bytes({0, 8}, 64), {edge(0, 2), edge(1, 2)}),
               right},
      LintCase{"after it was freed",
               "use-outside-lifetime",
               kError,
               {1, 2},
               lifetime(set_bytes({0, 8}, 64), {edge(0, 2), edge(2, 1)}),
               right},
      LintCase{"while it may be freed",
               "use-outside-lifetime",
               kError,
               {1, 2},
               kernel_lifetime({edge(0, 1), edge(0, 2)}),
               kernel_lifetime({edge(0, 1), edge(1, 2)})},
      LintCase{"freed before it is allocated",
               "use-outside-lifetime",
               kError,
               {0, 1},
               graph_of({alloc_node({0, 0}, 64), free_node({0, 0})}, {edge(1, 0)}),
               graph_of({alloc_node({0, 0}, 64), free_node({0, 0})}, {edge(0, 1)})},
      LintCase{"freed twice",
               "double-free",
               kError,
               {1, 2},
               graph_of({alloc_node({0, 0}, 64), free_node({0, 0}), free_node({0, 0})}, {edge(0, 1), edge(1, 2)}),
               graph_of({alloc_node({0, 0}, 64), free_node({0, 0}), alloc_node({0, 0}, 64), free_node({0, 0})},
                        {edge(0, 1), edge(1, 2), edge(2, 3)})},
      LintCase{"never freed", "unfreed-allocation", kWarning, {0}, graph_of({alloc_node({0, 0}, 64)}), right},
      LintCase{
          "freed, and allocated elsewhere", "free-unallocated", kNote, {0}, graph_of({free_node({0, 0})}), right}));
}

TEST_CASE("a use in the second of two lifetimes of one address is right", "[inspect][lint]") {
  const ir::GraphIr graph = graph_of(
      {alloc_node({0, 0}, 64), free_node({0, 0}), alloc_node({0, 0}, 64), set_bytes({0, 0}, 64), free_node({0, 0})},
      {edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 4)});

  CHECK(findings_of(graph, "use-outside-lifetime").empty());
}

ir::GraphIr with_allocation(ir::GraphIr graph, ir::Allocation allocation) {
  graph.allocations[0] = allocation;
  return graph;
}

TEST_CASE("operands that are out of bounds, overlap or are in host memory are found", "[inspect][lint]") {
  const ir::GraphIr plain = graph_of({copy_bytes({0, 0}, {1, 0}, 64)});

  check_case(GENERATE_COPY(
      LintCase{"a memset past the end",
               "out-of-bounds",
               kError,
               {0},
               graph_of({set_bytes({0, 4000}, 97)}),
               graph_of({set_bytes({0, 4000}, 96)})},
      LintCase{"a copy from past the end",
               "out-of-bounds",
               kError,
               {0},
               graph_of({copy_bytes({0, 0}, {1, 1}, 4096)}),
               graph_of({copy_bytes({0, 0}, {1, 0}, 4096)})},
      LintCase{"the last row",
               "out-of-bounds",
               kError,
               {0},
               graph_of({set_rows(0, 65, 5, 1008)}),
               graph_of({set_rows(0, 64, 5, 1008)})},
      LintCase{"a wait past the end",
               "out-of-bounds",
               kError,
               {0},
               graph_of({batch_node({{ir::MemOpKind::kWaitEqual, {0, 4092}, 1, 8}})}),
               graph_of({batch_node({{ir::MemOpKind::kWaitEqual, {0, 4092}, 1, 4}})})},
      LintCase{"behind memory that may go on",
               "out-of-bounds",
               kWarning,
               {0},
               with_allocation(graph_of({set_bytes({0, 0}, (2 << 20) + 1)}), {ir::MemoryKind::kDevice, 0, 2 << 20}),
               with_allocation(graph_of({set_bytes({0, 0}, 2 << 20)}), {ir::MemoryKind::kDevice, 0, 2 << 20})},
      LintCase{"a copy onto itself",
               "overlapping-copy",
               kError,
               {0},
               graph_of({copy_bytes({0, 63}, {0, 0}, 64)}),
               graph_of({copy_bytes({0, 64}, {0, 0}, 64)})},
      LintCase{"rows onto rows",
               "overlapping-copy",
               kError,
               {0},
               graph_of({memcpy_node({.destination = ir::Pointer{0, 95},
                                      .source = ir::Pointer{0, 0},
                                      .width_bytes = 32,
                                      .height = 8,
                                      .destination_pitch = 96,
                                      .source_pitch = 64})}),
               graph_of({memcpy_node({.destination = ir::Pointer{0, 32},
                                      .source = ir::Pointer{0, 0},
                                      .width_bytes = 32,
                                      .height = 8,
                                      .destination_pitch = 64,
                                      .source_pitch = 64})})},
      LintCase{"pageable memory",
               "pageable-operand",
               kWarning,
               {0},
               with_allocation(plain, {ir::MemoryKind::kPageableHost, -1, 0}),
               plain},
      LintCase{"host memory",
               "host-operand",
               kNote,
               {0},
               graph_of({copy_bytes({0, 0}, {2, 0}, 64)}),
               graph_of({copy_bytes({2, 0}, {0, 0}, 64)})}));
}

}  // namespace
}  // namespace cgrt::inspect
