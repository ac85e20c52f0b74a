#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cgrt/saved/manifest.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/saved/bundles.h"

namespace cgrt::saved {
namespace {

using cgrt::testing::memcpy_node;
using cgrt::testing::memset_node;
using cgrt::testing::small_graph;
using cgrt::testing::small_manifest;
using cgrt::testing::StatusIs;

constexpr std::uint64_t kHuge = ~std::uint64_t{0};

void check_refused(const std::string& message, const std::function<void(Manifest&)>& change) {
  Manifest manifest = small_manifest();
  change(manifest);
  CHECK_THAT(validate(manifest), StatusIs(absl::StatusCode::kInvalidArgument, message));
}

// Of the first graph.
void check_graph_refused(const std::string& message, const std::function<void(SavedGraph&)>& change) {
  check_refused("graph \"prefill\"" + message, [&](Manifest& manifest) { change(manifest.graphs[0]); });
}

// A graph that does not fit to what the manifest says of it.
void check_nodes_refused(const std::string& message, const std::function<void(ir::GraphIr&, SavedGraph&)>& change) {
  const Manifest manifest = small_manifest();
  SavedGraph saved = manifest.graphs[0];
  ir::GraphIr graph = small_graph();
  change(graph, saved);
  CHECK_THAT(validate(manifest, saved, graph),
             StatusIs(absl::StatusCode::kInvalidArgument, "graph \"prefill\": " + message));
}

TEST_CASE("the small manifest is valid, and its graphs are", "[saved][validate]") {
  const Manifest manifest = small_manifest();

  CHECK_OK(validate(manifest));
  for (const SavedGraph& saved : manifest.graphs) CHECK_OK(validate(manifest, saved, small_graph()));
}

TEST_CASE("names are of letters, digits and few others", "[saved][validate]") {
  for (const char* name : {"a", "decode", "Step_2-b.1", "_", "-"}) {
    INFO(name);
    CHECK(is_name(name));
  }
  CHECK(is_name(std::string(100, 'x')));
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "a b", "a\n", "\xc3\xa9", "a:b", "a\\b"}) {
    INFO(name);
    CHECK_FALSE(is_name(name));
  }
  CHECK_FALSE(is_name(std::string(101, 'x')));
  CHECK_FALSE(is_name(std::string_view("a\0b", 3)));
}

TEST_CASE("modules have 1 byte to 1 GiB", "[saved][validate]") {
  check_refused("module 0: has 0 bytes; an image has 1 to 1073741824.", [](auto& m) { m.modules[0].bytes = 0; });
  check_refused("module 0: has 1073741825 bytes", [](auto& m) { m.modules[0].bytes = kMaxCodeBytes + 1; });
}

TEST_CASE("blocks ascend, do not overlap and do not wrap", "[saved][validate]") {
  check_refused("block 0: has the address 0x0 and 2097152 bytes.", [](auto& m) { m.blocks[0].address = 0; });
  check_refused("block 0: has the address 0x200000000000 and 0 bytes.", [](auto& m) { m.blocks[0].bytes = 0; });
  check_refused("block 2: has the address 0xfffffffffffff000 and 8192 bytes.",
                [](auto& m) { m.blocks[2].address = ~std::uint64_t{0xfff}; });
  check_refused("block 2: has the address 0x220000000000 and 18446744073709551615 bytes.",
                [](auto& m) { m.blocks[2].bytes = kHuge; });
  check_refused("block 1: has the address 0x2000001fffff, and the one before ends at 0x200000200000; blocks ascend",
                [](auto& m) { m.blocks[1].address = 0x2000001fffff; });
  check_refused("block 1: has the address 0x1000, ", [](auto& m) { m.blocks[1].address = 0x1000; });
  CHECK_OK(validate([] {
    Manifest manifest = small_manifest();
    manifest.blocks[1].address = 0x200000200000;
    return manifest;
  }()));
}

TEST_CASE("blocks are of memory that can be made again", "[saved][validate]") {
  for (const ir::MemoryKind kind : {ir::MemoryKind::kUnknown, ir::MemoryKind::kArray, ir::MemoryKind::kHost}) {
    check_refused(std::string("block 0: is of the kind \"") + ir::to_string(kind) + "\", which no bundle has.",
                  [&](auto& m) { m.blocks[0].kind = kind; });
  }
  for (const ir::MemoryKind kind : {ir::MemoryKind::kManaged, ir::MemoryKind::kPageableHost}) {
    Manifest manifest = small_manifest();
    manifest.blocks[2].kind = kind;
    CHECK_OK(validate(manifest));
  }
}

TEST_CASE("variables are of a module, and in device or managed memory", "[saved][validate]") {
  check_refused("block 1, variable \"table\": is of module 1; the bundle has 1 module.",
                [](auto& m) { m.blocks[1].module = 1; });
  check_refused("block 1, variable \"table\": is of the kind \"pinned host\"",
                [](auto& m) { m.blocks[1].kind = ir::MemoryKind::kPinnedHost; });
  check_refused("block 1, variable \"a\\x0a\": has characters that no name has.",
                [](auto& m) { m.blocks[1].variable = "a\n"; });
  check_refused("block 0: is of module 1 and no variable.", [](auto& m) { m.blocks[0].module = 1; });
}

TEST_CASE("names of devices go to terminals as they are", "[saved][validate]") {
  check_refused("machine: its device has characters that no name has.", [](auto& m) { m.machine.device = "\x1b[2J"; });
}

TEST_CASE("graphs have names of their own", "[saved][validate]") {
  check_refused("graph \"decode\": is there twice.", [](auto& m) { m.graphs[0].name = "decode"; });
  check_refused("graph \"../etc\": is no name: letters", [](auto& m) { m.graphs[0].name = "../etc"; });
  check_graph_refused(": is of launch 0; the first is 1.", [](auto& g) { g.launch = 0; });
}

TEST_CASE("kernels are of modules, and nodes of kernels, that are there", "[saved][validate]") {
  check_graph_refused(": kernel 0 \"_Z5scalePfS_f\": is of module 1; the bundle has 1 module.",
                      [](auto& g) { g.kernels[0].module = 1; });
  check_graph_refused(": kernel 0 \"\": has no name that a symbol can have.",
                      [](auto& g) { g.kernels[0].symbol = ""; });
  check_graph_refused(": kernel 0 \"a\\x00\": has no name that a symbol can have.",
                      [](auto& g) { g.kernels[0].symbol = std::string("a\0", 2); });
  check_graph_refused(": kernel node 0 runs kernel 1; the graph has 1 kernel.", [](auto& g) { g.node_kernels[0] = 1; });
}

TEST_CASE("ranges are inside of their block", "[saved][validate]") {
  check_graph_refused(": allocation 1: is in block 3; the bundle has 3 blocks.",
                      [](auto& g) { g.allocations[1].block = 3; });
  check_graph_refused(": allocation 1: has 0 bytes.", [](auto& g) { g.allocations[1].bytes = 0; });
  check_graph_refused(": allocation 1: is [1, 8193) of block 2, which has 8192 bytes.", [](auto& g) {
    g.allocations[1] = {2, 1, 8192};
  });
  check_graph_refused(": allocation 1: is [4096, 18446744073709551615) of block 2", [](auto& g) {
    g.allocations[1] = {2, 4096, kHuge};
  });
  check_graph_refused(": allocation 1: is [18446744073709551615, 18446744073709551615) of block 2", [](auto& g) {
    g.allocations[1] = {2, kHuge, 1};
  });
}

TEST_CASE("pieces ascend, do not overlap and are short", "[saved][validate]") {
  const auto set = [](SavedGraph& graph, Range a, Range b) { graph.memory = {{a, Hash{1, 2}}, {b, Hash{1, 2}}}; };
  check_graph_refused(": piece 1: is [4095, 4096) of block 0, and the one before [0, 4096) of block 0; they ascend",
                      [&](auto& g) {
                        set(g, {0, 0, 4096}, {0, 4095, 1});
                      });
  check_graph_refused(": piece 1: is [0, 16) of block 0, and the one before [0, 16) of block 1", [&](auto& g) {
    set(g, {1, 0, 16}, {0, 0, 16});
  });
  check_refused("graph \"prefill\": piece 0: has 4194305 bytes; a file has at most 4194304.", [](auto& m) {
    m.blocks[0].bytes = 8 << 20;
    m.graphs[0].memory = {{{0, 0, kMaxPieceBytes + 1}, Hash{}}};
  });
  Manifest manifest = small_manifest();
  manifest.blocks[0].bytes = 1 << 30;
  manifest.graphs[0].memory = {{{0, 0, 4096}, Hash{}}, {{0, 4096, (1 << 30) - 4096}, {}}};
  CHECK_OK(validate(manifest));
}

TEST_CASE("what is expected, changes or is dead ascends, too", "[saved][validate]") {
  const std::vector<Range> overlapping = {{0, 0, 16}, {0, 8, 16}};
  check_graph_refused(": expected range 1: is [8, 24) of block 0", [&](auto& g) { g.expected.ranges = overlapping; });
  check_graph_refused(": range that changes outside 1: is [8, 24)", [&](auto& g) { g.changed_outside = overlapping; });
  check_graph_refused(": dead range 1: is [8, 24)", [&](auto& g) { g.dead = overlapping; });
  check_graph_refused(": has hashes of memory after the launch and no ranges of them.", [](auto& g) {
    g.expected.hashes = {1, 2};
  });
}

TEST_CASE("named buffers have a name of their own, and a range", "[saved][validate]") {
  check_graph_refused(": input \"a b\": is no name", [](auto& g) { g.inputs = {{"a b", {0, 0, 1}, {}, {}}}; });
  check_graph_refused(": output \"x\": is there twice.", [](auto& g) {
    g.outputs = {{"x", {0, 0, 1}, {}, {}}, {"x", {0, 8, 1}, {}, {}}};
  });
  check_graph_refused(": input \"x\": is in block 9", [](auto& g) { g.inputs = {{"x", {9, 0, 1}, {}, {}}}; });
  check_graph_refused(": input \"x\": has a dtype with characters", [](auto& g) {
    g.inputs = {{"x", {0, 0, 1}, "\x07", {}}};
  });
  Manifest manifest = small_manifest();
  manifest.graphs[0].inputs = manifest.graphs[0].outputs = {{"x", {0, 0, 1}, {}, {}}};
  CHECK_OK(validate(manifest));
}

TEST_CASE("slices are ascending by node", "[saved][validate]") {
  check_graph_refused(": slices of node 2 come after those of node 2.", [](auto& g) {
    g.slices = {{2, 1, 1}, {2, 1, 1}};
  });
}

TEST_CASE("the manifest has the kernels and allocations of the graph", "[saved][validate]") {
  check_nodes_refused("has 1 kernel node, and the manifest kernels of 0.",
                      [](auto&, auto& saved) { saved.node_kernels.clear(); });
  check_nodes_refused("has 2 allocations, and the manifest places of 3.", [](auto&, auto& saved) {
    saved.allocations.push_back({0, 0, 1});
  });
  check_nodes_refused("allocation 0: has 8192 bytes, and its place 4096.",
                      [](auto& graph, auto&) { graph.allocations[0].bytes = 8192; });
  check_nodes_refused("has slices of node 1, which is no copy.", [](auto&, auto& saved) {
    saved.slices = {{1, 1, 1}};
  });
  check_nodes_refused("has slices of node 3, which is no copy.", [](auto&, auto& saved) {
    saved.slices = {{3, 1, 1}};
  });
  check_nodes_refused("edge 1 (1 -> 3): names node 3", [](auto& graph, auto&) { graph.edges[1].to = 3; });
}

TEST_CASE("what nodes reach is inside of blocks", "[saved][validate]") {
  check_nodes_refused("node 1 \"scale\": reaches [2097152, 2097153) of block 0, which has 2097152 bytes.",
                      [](auto& graph, auto& saved) {
                        graph.nodes[0] = memset_node({.width = 1});
                        saved.allocations[0] = {0, (2 << 20) - 256, 4096};
                      });
  const auto set = [](ir::GraphIr& graph, ir::Node node) {
    graph.allocations[0].bytes = graph.allocations[1].bytes = 0;
    graph.nodes[2] = std::move(node);
  };
  check_nodes_refused("node 2 (memset): reaches [0, 8193) of block 2, which has 8192 bytes.", [&](auto& graph, auto&) {
    set(graph, memset_node({.destination = {1, 0}, .width = 8193}));
  });
  check_nodes_refused("node 2 (memset): reaches [0, 18446744073709551615) of block 2", [&](auto& graph, auto&) {
    set(graph, memset_node({.destination = {1, 0}, .element_bytes = 4, .width = kHuge / 2}));
  });
  check_nodes_refused("node 2 (memset): reaches [0, 8196) of block 2", [&](auto& graph, auto&) {
    set(graph, memset_node({.destination = {1, 0}, .width = 4, .height = 3, .pitch = 4096}));
  });
  check_nodes_refused("node 2 (memset): has rows of 8 bytes, 4 bytes apart.", [&](auto& graph, auto&) {
    set(graph, memset_node({.destination = {1, 0}, .width = 8, .height = 2, .pitch = 4}));
  });
  check_nodes_refused("node 2 (memcpy): reaches [4, 8196) of block 2", [&](auto& graph, auto&) {
    set(graph, memcpy_node({.destination = ir::Pointer{0, 0}, .source = ir::Pointer{1, 4}, .width_bytes = 8192}));
  });
  check_nodes_refused("node 2 (batch mem op): reaches [8189, 8193) of block 2", [&](auto& graph, auto&) {
    set(graph,
        {.kind = ir::NodeKind::kBatchMemOp, .device = 0, .params = ir::BatchMemOpParams{{{.address = {1, 8189}}}}});
  });
  check_nodes_refused("node 2 (mem alloc): reaches [0, 8193) of block 2", [&](auto& graph, auto&) {
    set(graph, {.kind = ir::NodeKind::kMemAlloc, .device = 0, .params = ir::MemAllocParams{{1, 0}, 8193}});
  });
}

TEST_CASE("copies in three dimensions reach as far as their slices", "[saved][validate]") {
  const auto check = [](const std::vector<Slices>& slices) {
    const Manifest manifest = small_manifest();
    SavedGraph saved = manifest.graphs[0];
    saved.slices = slices;
    ir::GraphIr graph = small_graph();
    graph.allocations[0].bytes = graph.allocations[1].bytes = 0;
    graph.nodes[2] = memcpy_node({.destination = ir::Pointer{1, 0},
                                  .source = ir::Pointer{0, 0},
                                  .width_bytes = 16,
                                  .height = 2,
                                  .depth = 4,
                                  .destination_pitch = 1024,
                                  .source_pitch = 16});
    return validate(manifest, saved, graph);
  };

  CHECK_OK(check({}));
  CHECK_OK(check({{2, 100, 2}}));
  CHECK_THAT(check({{2, 2, 3}}),
             StatusIs(absl::StatusCode::kInvalidArgument, "node 2 (memcpy): reaches [0, 10256) of block 2"));
  CHECK_THAT(check({{2, kHuge, 2}}), StatusIs(absl::StatusCode::kInvalidArgument, "of block 0"));
  CHECK_THAT(check({{2, 1, 2}}),
             StatusIs(absl::StatusCode::kInvalidArgument, "node 2 (memcpy): copies 2 rows of slices of 1 and 2."));
}

TEST_CASE("a hash is expected for each 4096 bytes and for the rest", "[saved][validate]") {
  CHECK(expected_hashes({}) == 0);
  CHECK(expected_hashes({{{0, 0, 4096}, {0, 8192, 4097}, {1, 0, 1}}, {}}) == 4);
}

}  // namespace
}  // namespace cgrt::saved
