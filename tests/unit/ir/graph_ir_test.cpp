#include "cgrt/ir/graph_ir.h"

#include <string>

#include "cgrt/ir/describe.h"
#include "support/catch.h"
#include "unit/ir/graphs.h"

namespace cgrt::ir {
namespace {

using testing::small_graph;
using testing::value_argument;

TEST_CASE("the names of all enumerators are read back as the enumerators", "[ir]") {
  for (int i = 0; i <= static_cast<int>(NodeKind::kConditional); ++i) {
    const auto kind = static_cast<NodeKind>(i);
    CHECK(parse_node_kind(to_string(kind)) == kind);
  }
  for (int i = 0; i <= static_cast<int>(MemoryKind::kArray); ++i) {
    const auto kind = static_cast<MemoryKind>(i);
    CHECK(parse_memory_kind(to_string(kind)) == kind);
  }
  CHECK(parse_edge_type("full") == EdgeType::kFull);
  CHECK(parse_edge_type("programmatic") == EdgeType::kProgrammatic);
}

TEST_CASE("names that no enumerator has are refused", "[ir]") {
  CHECK(parse_node_kind("") == std::nullopt);
  CHECK(parse_node_kind("Kernel") == std::nullopt);
  CHECK(parse_edge_type("unknown") == std::nullopt);
  CHECK(parse_memory_kind("gpu") == std::nullopt);
}

TEST_CASE("enumerators of a newer driver have the name unknown", "[ir]") {
  CHECK(std::string(to_string(static_cast<NodeKind>(14))) == "unknown");
  CHECK(std::string(to_string(static_cast<EdgeType>(2))) == "unknown");
}

TEST_CASE("a node's label has the function of a kernel and the kind of others", "[ir][describe]") {
  const GraphIr graph = small_graph();

  CHECK(node_label(graph, 0) == "node 0 (memset)");
  CHECK(node_label(graph, 1) == "node 1 \"scale\"");
  CHECK(node_label(graph, 7) == "node 7");
}

TEST_CASE("a pointer names the kind of its memory, the allocation and the offset", "[ir][describe]") {
  const GraphIr graph = small_graph();

  CHECK(describe(graph, Pointer{0, 256}) == "device#0+0x100");
  CHECK(describe(graph, Pointer{1, 0}) == "pinned#1");
  CHECK(describe(graph, Pointer{9, 1}) == "unknown#9+0x1");
}

// Of the kernel of small_graph() with this argument alone.
std::string text_of(const testing::ArgumentValue& argument) {
  GraphIr graph = small_graph();
  testing::set_arguments(graph, 1, {argument});
  const std::vector<Argument> arguments = arguments_of(graph, testing::kernel_of(graph, 1));
  REQUIRE(arguments.size() == 1);
  return describe(graph, arguments[0]);
}

TEST_CASE("a scalar argument is written as the number that it most likely is", "[ir][describe]") {
  const auto text = [](std::vector<std::uint8_t> bytes) { return text_of(value_argument(0, std::move(bytes))); };

  CHECK(text({0, 4, 0, 0}) == "1024");
  CHECK(text({0xff, 0xff, 0xff, 0xff}) == "-1");
  CHECK(text({0, 0, 0, 0x40}) == "2.0f");
  CHECK(text({0, 0, 0xc0, 0xbf}) == "-1.5f");
  CHECK(text({0, 0, 0, 0x80}) == "0x80000000");
  CHECK(text({0, 0, 0xc0, 0x7f}) == "0x7fc00000");
  CHECK(text({0, 0, 0, 0, 0, 0, 0xe0, 0x3f}) == "0.5");
  CHECK(text({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}) == "-1");
  CHECK(text({0, 0, 0x10, 0x32, 0x11, 0x7f, 0, 0}) == "0x7f1132100000");
  CHECK(text({1}) == "1");
  CHECK(text({1, 2, 3}) == "0x30201");
  CHECK(text({}) == "{}");
  CHECK(text({0, 1, 2, 3, 4, 5, 6, 7, 8}) == "{000102030405060708}");
  CHECK(text(std::vector<std::uint8_t>(4096, 0xab)) == "{abababababababababababababababab.. 4096 bytes}");
}

TEST_CASE("the addresses of a structure follow its bytes", "[ir][describe]") {
  std::vector<InnerPointer> many;
  for (std::uint32_t i = 0; i < 6; ++i) many.push_back({8 * i, {0, i}});

  CHECK(text_of(testing::structure_argument(16, 16, {{8, {1, 4}}})) ==
        "{00000000000000000000000000000000, pinned#1+0x4 at 8}");
  CHECK(text_of(testing::structure_argument(0, 48, many)) ==
        "{00000000000000000000000000000000.. 48 bytes, device#0 at 0, device#0+0x1 at 8, device#0+0x2 at 16, "
        "device#0+0x3 at 24 and 2 more}");
}

TEST_CASE("arguments are read where the buffer ends early, and of functions that are not there", "[ir]") {
  GraphIr graph = small_graph();
  testing::kernel_of(graph, 1).arguments.resize(18);
  const std::vector<Argument> arguments = arguments_of(graph, testing::kernel_of(graph, 1));
  REQUIRE(arguments.size() == 3);
  CHECK(*arguments[1].pointer() == Pointer{1, 0});
  CHECK(arguments[2].bytes.size() == 2);

  testing::kernel_of(graph, 1).function = 3;
  CHECK(function_of(graph, testing::kernel_of(graph, 1)).name == "?");
  CHECK(arguments_of(graph, testing::kernel_of(graph, 1)).empty());
}

TEST_CASE("control characters are made visible and other text is left alone", "[ir][describe]") {
  CHECK(printable("scale<float>") == "scale<float>");
  CHECK(printable("\x1b[31mred\n") == "\\x1b[31mred\\x0a");
  CHECK(printable("a\xc2\x9b.") == "a\\xc2\\x9b.");
  CHECK(printable("caf\xc3\xa9 \xc2\xb5 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "caf\xc3\xa9 \xc2\xb5 \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST_CASE("marks that turn text around, and bytes that are no text, are made visible", "[ir][describe]") {
  CHECK(printable("\xe2\x80\xae.") == "\\xe2\\x80\\xae.");  // U+202E
  CHECK(printable("\xe2\x80\xa8.") == "\\xe2\\x80\\xa8.");  // U+2028
  CHECK(printable("\xe2\x81\xa6.") == "\\xe2\\x81\\xa6.");  // U+2066
  CHECK(printable("\xd8\x9c.") == "\\xd8\\x9c.");           // U+061C
  CHECK(printable("cut \xc2") == "cut \\xc2");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // too long a form
}

}  // namespace
}  // namespace cgrt::ir
