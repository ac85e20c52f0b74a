#include "cgrt/ir/varying.h"

#include <cstring>
#include <string>

#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::ir {
namespace {

using testing::add_kernel;
using testing::pointer_argument;
using testing::structure_argument;
using testing::value_argument;

std::vector<std::uint8_t> bytes_of(auto value) {
  std::vector<std::uint8_t> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

// Two kernels of a step: one counts, the other does not.
GraphIr step(std::uint32_t counter, std::uint64_t offset) {
  GraphIr graph;
  graph.allocations.push_back({.kind = MemoryKind::kDevice, .device = 0, .bytes = 4096});
  add_kernel(graph, "write",
             {pointer_argument(0, 0, offset), value_argument(8, bytes_of(counter)),
              value_argument(12, bytes_of(std::uint32_t{1024}))});
  add_kernel(graph, "read", {pointer_argument(0, 0), value_argument(8, bytes_of(7.5f))});
  graph.edges.push_back(testing::edge(0, 1));
  return graph;
}

TEST_CASE("arguments that differ between captures are listed with their values", "[ir][varying]") {
  const GraphIr graphs[] = {step(1, 0), step(2, 256), step(3, 512)};

  const Varying found = find_varying(graphs);

  CHECK(found.nodes == 2);
  CHECK(found.left_out == 0);
  REQUIRE(found.varying.size() == 2);
  CHECK(found.varying[0].node == 0);
  CHECK(found.varying[0].values == std::vector<std::string>{"device#0", "device#0+0x100", "device#0+0x200"});
  CHECK(found.varying[1].place == WordPlace{1, 0, 4});
  CHECK(describe(found.varying[1].place) == "argument 1, 4 bytes");
  CHECK(found.varying[1].values == std::vector<std::string>{"1", "2", "3"});
}

TEST_CASE("numbers that do not vary are listed of kernels of which something does", "[ir][varying]") {
  const GraphIr graphs[] = {step(5, 0), step(5, 256)};

  const Varying found = find_varying(graphs);

  REQUIRE(found.constant.size() == 2);  // none of "read"
  CHECK(graphs[0].functions[found.constant[0].function].name == "write");
  CHECK(found.constant[0].place == WordPlace{1, 0, 4});
  CHECK(found.constant[0].values == std::vector<std::string>{"5"});
  CHECK(found.constant[0].nodes == 1);
  CHECK(found.constant[1].values == std::vector<std::string>{"1024"});
  CHECK(found.seeds.empty());
}

TEST_CASE("constants of one function are one entry", "[ir][varying]") {
  const auto layers = [](std::uint64_t at) {
    GraphIr graph;
    graph.allocations.push_back({.kind = MemoryKind::kDevice, .device = 0, .bytes = 4096});
    for (std::uint32_t i = 0; i < 3; ++i) {
      add_kernel(graph, "layer", {pointer_argument(0, 0, at + 64 * i), value_argument(8, bytes_of(i / 2))});
      if (i != 0) graph.edges.push_back(testing::edge(i - 1, i));
    }
    return graph;
  };
  const GraphIr graphs[] = {layers(0), layers(512)};

  const Varying found = find_varying(graphs);

  REQUIRE(found.constant.size() == 1);
  CHECK(found.constant[0].nodes == 3);
  CHECK(found.constant[0].values == std::vector<std::string>{"0", "1"});
}

TEST_CASE("structures are taken apart", "[ir][varying]") {
  GraphIr a;
  a.allocations.resize(2);
  add_kernel(a, "gather", {structure_argument(0, 24, {{8, {0, 0}}})});
  GraphIr b = a;
  testing::kernel_of(b, 0).pointers[0].pointer.offset = 16;
  testing::kernel_of(b, 0).arguments[20] = 9;
  const GraphIr graphs[] = {a, b};

  const Varying found = find_varying(graphs);

  REQUIRE(found.varying.size() == 2);
  CHECK(found.varying[0].place == WordPlace{0, 8, 8});
  CHECK(found.varying[1].place == WordPlace{0, 20, 4});
  CHECK(describe(found.varying[1].place) == "argument 0 byte 20, 4 bytes");
  CHECK(found.constant.size() == 3);  // bytes 0, 4 and 16
}

TEST_CASE("seeds that are the same in all captures are pointed at", "[ir][varying]") {
  const auto check = [](const char* name, std::uint64_t seed, std::uint64_t other, std::size_t expected) {
    const auto graph = [&](std::uint64_t value) {
      GraphIr out;
      add_kernel(out, name, {value_argument(0, bytes_of(value)), value_argument(8, bytes_of(std::uint64_t{4}))});
      return out;
    };
    const GraphIr graphs[] = {graph(seed), graph(other)};
    CHECK(find_varying(graphs).seeds.size() == expected);
  };

  check("fused_dropout", 42, 42, 2);
  check("fused_dropout", 42, 43, 1);
  check("at::native::Philox4x32", 42, 42, 2);
  check("scale", 67280421310721, 67280421310721, 2);  // a pair, the first too large for a size
  check("scale", 67280421310721, 67280421310722, 0);
  check("scale", 42, 42, 0);
  check("scale", 0x3fb999999999999a, 0x3fb999999999999a, 0);  // 0.1
}

TEST_CASE("seeds in structures are found, too", "[ir][varying]") {
  GraphIr a;
  std::vector<std::uint8_t> state(24);
  std::memcpy(state.data(), bytes_of(std::uint64_t{67280421310721}).data(), 8);
  add_kernel(a, "sample", {value_argument(0, state)});
  const GraphIr graphs[] = {a, a};

  const Varying found = find_varying(graphs);

  REQUIRE(found.seeds.size() == 2);
  CHECK(found.seeds[0].place == WordPlace{0, 0, 8});
  CHECK(found.seeds[0].values[0] == "0x3d30f19cd101");
  CHECK(found.seeds[1].place == WordPlace{0, 8, 8});
}

TEST_CASE("two sizes or floats of a structure are no seed", "[ir][varying]") {
  for (const std::uint64_t value : {0x0000040000000200u, 0x3f80000040000000u}) {
    GraphIr a;
    std::vector<std::uint8_t> state(16);
    std::memcpy(state.data(), bytes_of(value).data(), 8);
    add_kernel(a, "sample", {value_argument(0, state)});
    const GraphIr graphs[] = {a, a};

    CHECK(find_varying(graphs).seeds.empty());
  }
}

TEST_CASE("kernels that not all captures have are left out", "[ir][varying]") {
  GraphIr longer = step(1, 0);
  add_kernel(longer, "more");
  const GraphIr graphs[] = {longer, step(2, 0)};

  const Varying found = find_varying(graphs);

  CHECK(found.nodes == 2);
  CHECK(found.left_out == 1);
  CHECK(found.varying.size() == 1);
}

}  // namespace
}  // namespace cgrt::ir
