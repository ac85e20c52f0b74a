#include "cgrt/saved/movable.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/ir/graphs.h"
#include "unit/saved/bundles.h"

namespace cgrt::saved {
namespace {

using cgrt::testing::ScratchPath;
using cgrt::testing::StatusIs;

constexpr std::uint64_t kPage = 4096;

// Blocks by what they are for; in a manifest they are in the order of their addresses.
enum Part : std::uint32_t { kInput, kOutput, kTable, kVariable, kUnused, kParts };

constexpr std::array<std::uint64_t, kParts> kHere = {0x7f0000000000, 0x7f0000400000, 0x7f0000800000, 0x7f0000c00000,
                                                     0x7f0001000000};
// Elsewhere, and in another order.
constexpr std::array<std::uint64_t, kParts> kThere = {0x302000000, 0x300000000, 0x7e0000000000, 0x7e0000200000,
                                                      0x7e0000400000};

// What a process that is saved has. A kernel node has the addresses of input and output. Word 1 of the input is the
// address of the table at byte 16; the table has in its word 0 the end of the input, and in word 511 its own address.
struct Save {
  explicit Save(const std::array<std::uint64_t, kParts>& at) : addresses(at) {
    kinds.fill(ir::MemoryKind::kDevice);
    for (std::uint32_t part = 0; part < kParts; ++part) {
      words[part].resize(bytes_of(part) / 8);
      std::iota(words[part].begin(), words[part].end(), part * 1000);
    }
    words[kInput][1] = addresses[kTable] + 16;
    words[kTable][0] = addresses[kInput] + kPage;
    words[kTable][511] = addresses[kTable];
    graph.allocations = {{ir::MemoryKind::kDevice, 0, kPage}, {ir::MemoryKind::kDevice, 0, kPage}};
    cgrt::testing::add_kernel(graph, "scale",
                              {cgrt::testing::pointer_argument(0, 0), cgrt::testing::pointer_argument(8, 1, 64),
                               cgrt::testing::value_argument(16, {1, 2, 3, 4, 5, 6, 7, 8})});
  }

  static std::uint64_t bytes_of(std::uint32_t part) { return part == kVariable ? 64 : kPage; }

  ir::KernelParams& kernel() { return std::get<ir::KernelParams>(graph.nodes[0].params); }

  void write(const std::string& path) const {
    absl::StatusOr<FolderWriter> writer = FolderWriter::create(path);
    REQUIRE_OK(writer);
    REQUIRE_OK(writer->add_code(code));
    std::array<std::uint32_t, kParts> order{}, number{};
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return addresses[a] < addresses[b]; });
    Manifest manifest;
    manifest.modules = {{.code = hash_of(std::as_bytes(std::span(code))), .bytes = code.size()}};
    SavedGraph saved = description;
    saved.name = "step";
    saved.kernels = {{.symbol = "scale"}};
    saved.node_kernels = {0};
    for (const std::uint32_t part : order) {
      number[part] = static_cast<std::uint32_t>(manifest.blocks.size());
      manifest.blocks.push_back({.kind = kinds[part], .address = addresses[part], .bytes = bytes_of(part)});
      if (part == kVariable) manifest.blocks.back().variable = "counter";
      for (const auto& [first, count] : pieces_of(part)) {
        const std::span<const std::byte> bytes = std::as_bytes(std::span(words[part]).subspan(first, count));
        const absl::StatusOr<Hash> hash = writer->add_memory(bytes);
        REQUIRE_OK(hash);
        saved.memory.push_back({{number[part], first * 8, count * 8}, *hash});
      }
    }
    for (const Part part : allocated) saved.allocations.push_back({number[part], 0, bytes_of(part)});
    for (Range& range : saved.dead) range.block = number[range.block];
    const absl::StatusOr<Hash> file = writer->add_graph("step", graph);
    REQUIRE_OK(file);
    saved.file = *file;
    manifest.graphs = {std::move(saved)};
    REQUIRE_OK(writer->finish(manifest));
  }

  std::vector<std::pair<std::size_t, std::size_t>> pieces_of(std::uint32_t part) const {
    const std::size_t all = words[part].size();
    if (part != cut_part) return {{0, all}};
    return {{0, cut}, {cut, all - cut}};
  }

  std::array<std::uint64_t, kParts> addresses;
  std::array<ir::MemoryKind, kParts> kinds;
  std::array<std::vector<std::uint64_t>, kParts> words;
  ir::GraphIr graph;
  std::vector<Part> allocated = {kInput, kOutput};  // what the graph's allocations are
  SavedGraph description;                           // with parts in the place of blocks
  std::string code = "some code";
  std::uint32_t cut_part = kParts;  // it is in two pieces,
  std::size_t cut = 0;              // of which the first has so many words
};

struct Pair {
  Save first{kHere}, second{kThere};

  absl::StatusOr<std::vector<Movability>> compare() const {
    const ScratchPath path("movable_first"), other("movable_second");
    first.write(path.string());
    second.write(other.string());
    const absl::StatusOr<Folder> a = Folder::open(path.string()), b = Folder::open(other.string());
    REQUIRE_OK(a);
    REQUIRE_OK(b);
    return compare_saves(*a, *b);
  }

  void check_movable(const std::vector<AddressWord>& addresses) const {
    const absl::StatusOr<std::vector<Movability>> found = compare();
    REQUIRE_OK(found);
    CHECK(found->at(0).why_not.empty());
    INFO(found->at(0).why_not);
    CHECK(found->at(0).addresses == addresses);
  }

  void check_not(const std::string& why) const {
    const absl::StatusOr<std::vector<Movability>> found = compare();
    REQUIRE_OK(found);
    CHECK(found->at(0).why_not == why);
    CHECK(found->at(0).addresses.empty());
  }
};

// The first bundle of a pair, with what was found written into it.
class Marked {
 public:
  explicit Marked(const Pair& pair) {
    pair.first.write(path_.string());
    pair.second.write(other_.string());
    const Folder first = *Folder::open(path_.string());
    const absl::StatusOr<std::vector<Movability>> found = compare_saves(first, *Folder::open(other_.string()));
    REQUIRE_OK(found);
    REQUIRE_OK(mark_movable(first, *found));
  }
  Folder folder() const {
    const absl::StatusOr<Folder> opened = Folder::open(path_.string());
    REQUIRE_OK(opened);
    return *opened;
  }

 private:
  const ScratchPath path_{"movable_first"}, other_{"movable_second"};
};

const std::vector<AddressWord> kAddresses = {{kInput, 8}, {kTable, 0}, {kTable, 4088}};

TEST_CASE("words that move with their memory are addresses", "[saved][movable]") { Pair{}.check_movable(kAddresses); }

TEST_CASE("pieces of the two saves need not be cut at the same places", "[saved][movable]") {
  Pair pair;
  pair.second.cut_part = kTable;
  pair.second.cut = 511;

  pair.check_movable(kAddresses);
}

TEST_CASE("an address before a cut and one behind it are both found", "[saved][movable]") {
  Pair pair;
  pair.first.cut_part = kInput;
  pair.first.cut = 1;

  pair.check_movable(kAddresses);
}

TEST_CASE("numbers that differ between two saves are no addresses", "[saved][movable]") {
  Pair pair;
  pair.first.words[kInput][7] = 0x1234567812345678;
  pair.second.words[kInput][7] = 0x8765432187654321;
  pair.first.words[kInput][8] = 0x7f1234567890;
  pair.second.words[kInput][8] = 0x7f1234567898;

  pair.check_movable(kAddresses);
}

TEST_CASE("an address of a variable is one", "[saved][movable]") {
  Pair pair;
  pair.first.words[kInput][2] = kHere[kVariable] + 8;
  pair.second.words[kInput][2] = kThere[kVariable] + 8;

  pair.check_movable({{kInput, 8}, {kInput, 16}, {kTable, 0}, {kTable, 4088}});
}

TEST_CASE("an address in a variable is one", "[saved][movable]") {
  Pair pair;
  pair.first.words[kVariable][3] = kHere[kUnused];
  pair.second.words[kVariable][3] = kThere[kUnused];

  pair.check_movable({{kInput, 8}, {kTable, 0}, {kTable, 4088}, {kVariable, 24}});
}

TEST_CASE("memory that nothing points to may have whatever it has", "[saved][movable]") {
  Pair pair;
  pair.first.words[kUnused][5] = kHere[kInput];

  pair.check_movable(kAddresses);
}

TEST_CASE("a word that points into memory and did not move is not certain", "[saved][movable]") {
  Pair pair;
  pair.first.words[kInput][3] = kHere[kTable] + 32;
  pair.second.words[kInput][3] = kHere[kTable] + 32;

  pair.check_not(
      "The word at byte 24 of memory 0 (device, 4096 bytes at 0x7f0000000000), 0x7f0000800020, is in memory 2 (device, "
      "4096 bytes at 0x7f0000800000), and the second save has 0x7f0000800020, where the same address is "
      "0x7e0000000020: whether it is an address is not certain.");
}

TEST_CASE("a word that moved to another place of its memory is not certain", "[saved][movable]") {
  Pair pair;
  pair.second.words[kTable][0] -= 8;

  pair.check_not(
      "The word at byte 0 of memory 2 (device, 4096 bytes at 0x7f0000800000), 0x7f0000001000, is in memory 0 (device, "
      "4096 bytes at 0x7f0000000000), and the second save has 0x302000ff8, where the same address is 0x302001000: "
      "whether it is an address is not certain.");
}

TEST_CASE("a word of dead memory is not looked at", "[saved][movable]") {
  Pair pair;
  pair.first.words[kInput][3] = pair.second.words[kInput][3] = kHere[kTable] + 32;
  pair.first.description.dead = {{kInput, 24, 8}};

  pair.check_movable(kAddresses);
}

TEST_CASE("a word of which only a part is in dead memory is looked at", "[saved][movable]") {
  Pair pair;
  pair.first.words[kInput][3] = pair.second.words[kInput][3] = kHere[kTable] + 32;
  pair.first.description.dead = {{kInput, 20, 8}};

  const absl::StatusOr<std::vector<Movability>> found = pair.compare();

  REQUIRE_OK(found);
  CHECK_FALSE(found->at(0).why_not.empty());
}

TEST_CASE("a number that moved as far as memory did is not certain", "[saved][movable]") {
  Pair pair;
  pair.first.words[kOutput][9] = kHere[kTable] - 64;
  pair.second.words[kOutput][9] = kThere[kTable] - 64;

  pair.check_not(
      "The word at byte 72 of memory 1 (device, 4096 bytes at 0x7f0000400000), 0x7f00007fffc0, is in no memory of the "
      "bundle, and moved to 0x7dffffffffc0 as far as memory 2 (device, 4096 bytes at 0x7f0000800000) did in the second "
      "save: whether it is an address is not certain.");
}

TEST_CASE("8 bytes across two words that moved are named", "[saved][movable]") {
  Pair pair;
  for (Save* save : {&pair.first, &pair.second}) {
    const std::uint64_t address = save->addresses[kOutput];
    save->words[kInput][20] = address << 32;
    save->words[kInput][21] = address >> 32;
  }

  pair.check_not(
      "The 8 bytes from byte 164 of memory 0 (device, 4096 bytes at 0x7f0000000000) moved with memory 1 (device, 4096 "
      "bytes at 0x7f0000400000) and are no multiple of 8: only words are followed.");
}

TEST_CASE("memory with the same address in both saves has no certain addresses", "[saved][movable]") {
  const std::string ending =
      ", which has the same address in the second save, so that it may be a number. Displace this memory there.";
  SECTION("in an argument") {
    Pair pair{Save(kHere), Save({kHere[kInput], kThere[kOutput], kThere[kTable], kThere[kVariable], kThere[kUnused]})};

    pair.check_not(
        "node 0 \"scale\" has at byte 0 of its arguments a word that is in memory 0 (device, 4096 bytes at "
        "0x7f0000000000)" +
        ending);
  }
  SECTION("in memory") {
    Pair pair{Save(kHere), Save({kThere[kInput], kThere[kOutput], kHere[kTable], kThere[kVariable], kThere[kUnused]})};

    pair.check_not(
        "The word at byte 8 of memory 0 (device, 4096 bytes at 0x7f0000000000) is in memory 2 (device, 4096 bytes at "
        "0x7f0000800000)" +
        ending);
  }
  SECTION("nothing points to it") {
    Pair pair{Save(kHere), Save({kThere[kInput], kThere[kOutput], kThere[kTable], kHere[kVariable], kHere[kUnused]})};

    pair.check_movable(kAddresses);
  }
}

TEST_CASE("the end of memory with memory behind it is certain where they move together", "[saved][movable]") {
  Pair pair{Save({0x7f0000000000, 0x7f0000001000, kHere[kTable], kHere[kVariable], kHere[kUnused]}),
            Save({0x302000000, 0x302001000, kThere[kTable], kThere[kVariable], kThere[kUnused]})};

  pair.check_movable(kAddresses);
}

TEST_CASE("the end of memory is not certain where other memory began behind it", "[saved][movable]") {
  Pair pair{Save({0x7f0000000000, 0x7f0000001000, kHere[kTable], kHere[kVariable], kHere[kUnused]}), Save(kThere)};

  pair.check_movable(kAddresses);
}

TEST_CASE("the end of memory of another kind is not certain", "[saved][movable]") {
  Pair pair{Save({0x7f0000000000, 0x7f0000001000, kHere[kTable], kHere[kVariable], kHere[kUnused]}),
            Save({0x302000000, 0x302001000, kThere[kTable], kThere[kVariable], kThere[kUnused]})};
  for (Save* save : {&pair.first, &pair.second}) {
    save->kinds[kOutput] = save->graph.allocations[1].kind = ir::MemoryKind::kPinnedHost;
    save->graph.allocations[1].device = -1;
  }
  SECTION("in memory") {
    pair.check_not(
        "The word at byte 0 of memory 2 (device, 4096 bytes at 0x7f0000800000), 0x7f0000001000, is the start of memory "
        "1 (pinned host, 4096 bytes at 0x7f0000001000) or the end of memory 0 (device, 4096 bytes at 0x7f0000000000): "
        "which it is is not certain.");
  }
  SECTION("in an argument") {
    for (Save* save : {&pair.first, &pair.second}) save->kernel().pointers[1].pointer.offset = 0;

    pair.check_not(
        "node 0 \"scale\" has at byte 8 of its arguments the start of memory 1 (pinned host, 4096 bytes at "
        "0x7f0000001000) or the end of memory 0 (device, 4096 bytes at 0x7f0000000000): which it is is not certain.");
  }
}

TEST_CASE("bytes of an argument that differ otherwise than addresses are none", "[saved][movable]") {
  Pair pair;
  pair.second.kernel().arguments[16] = 9;

  pair.check_movable(kAddresses);
}

TEST_CASE("an argument that moved as memory did without being known as an address is open", "[saved][movable]") {
  Pair pair;
  const auto set = [&](std::size_t at, std::size_t bytes, auto value_of) {
    for (Save* save : {&pair.first, &pair.second}) {
      const std::uint64_t value = value_of(save->addresses[kTable]);
      std::memcpy(save->kernel().arguments.data() + at, &value, bytes);
    }
  };
  std::vector<std::uint32_t> at;  // where the addresses of the table differ
  SECTION("before its memory") {
    set(16, 8, [](std::uint64_t address) { return address - 4096; });
    at = {18, 19, 20, 21};
  }
  SECTION("shifted") {
    set(16, 8, [](std::uint64_t address) { return address >> 9; });
    at = {17, 19};
  }
  SECTION("its low half, from an odd byte on") {
    set(17, 4, [](std::uint64_t address) { return address + 12; });
    at = {19};
  }

  const absl::StatusOr<std::vector<Movability>> found = pair.compare();

  REQUIRE_OK(found);
  CHECK(found->at(0).why_not.empty());
  CHECK(found->at(0).addresses == kAddresses);
  REQUIRE(found->at(0).open.size() == 1);
  const OpenBytes& open = found->at(0).open[0];
  CHECK(open.node == 0);
  CHECK(open.at == at);
  CHECK_THAT(open.why_not, Catch::StartsWith("node 0 \"scale\" has in the argument at byte 16 a value that is no "
                                             "address in the bundle, and moved in the second save as far as memory "));
}

TEST_CASE("a word of arguments that is an address in one save alone is open", "[saved][movable]") {
  Pair pair;
  const bool is_first = GENERATE(true, false);
  // Its memory is in that save's graph alone, too, and has the number that other memory has in the other.
  ir::GraphIr& graph = (is_first ? pair.first : pair.second).graph;
  const std::uint32_t unused = 0, input = 1, output = 2;
  graph.allocations.insert(graph.allocations.begin(), {ir::MemoryKind::kDevice, 0, 64});
  auto& kernel = std::get<ir::KernelParams>(graph.nodes[0].params);
  kernel.pointers = {{0, {input, 0}}, {8, {output, 64}}, {16, {unused, 5}}};
  std::fill_n(kernel.arguments.begin() + 16, 8, std::uint8_t{0});
  (is_first ? pair.first : pair.second).allocated = {kVariable, kInput, kOutput};

  const absl::StatusOr<std::vector<Movability>> found = pair.compare();

  REQUIRE_OK(found);
  CHECK(found->at(0).why_not == "");
  CHECK(found->at(0).addresses == kAddresses);
  REQUIRE(found->at(0).open.size() == 1);
  const OpenBytes& open = found->at(0).open[0];
  CHECK(open.at == std::vector<std::uint32_t>{16, 17, 18, 19, 20, 21, 22, 23});
  CHECK(open.why_not ==
        (is_first ? "node 0 \"scale\" has at byte 16 of its arguments an address in memory 3 (counter, 64 bytes at "
                    "0x7f0000c00000), and none in the second save: whether it is one is not certain."
                  : "node 0 \"scale\" has at byte 16 of its arguments a value that is an address in the second save "
                    "alone: whether it is one is not certain."));
}

TEST_CASE("an argument that points to another place in the second save is open", "[saved][movable]") {
  Pair pair;
  pair.second.kernel().pointers[1].pointer.offset += 8;

  const absl::StatusOr<std::vector<Movability>> found = pair.compare();

  REQUIRE_OK(found);
  CHECK(found->at(0).why_not == "");
  REQUIRE(found->at(0).open.size() == 1);
  CHECK(found->at(0).open[0].at.front() == 8);
  CHECK(
      found->at(0).open[0].why_not ==
      "node 0 \"scale\" has at byte 8 of its arguments an address in memory 1 (device, 4096 bytes at 0x7f0000400000), "
      "and in the second save that of another place: its memory has another layout there.");
}

TEST_CASE("a graph of which something is open is not movable", "[saved][movable]") {
  Pair pair;
  pair.second.kernel().pointers[1].pointer.offset += 8;

  const Marked marked(pair);

  const Folder folder = marked.folder();
  CHECK_FALSE(folder.manifest().graphs[0].is_movable);
  CHECK(folder.manifest().graphs[0].addresses.blocks.empty());
  CHECK_THAT(folder.manifest().graphs[0].why_not_movable,
             Catch::StartsWith("node 0 \"scale\" has at byte 8 of its arguments an address in memory 1 "));
}

TEST_CASE("graphs that do something else are named", "[saved][movable]") {
  Pair pair;
  pair.second.kernel().grid.x = 9;

  pair.check_not("The graph is another in the second save; node 0 \"scale\": grid: (4,1,1) and (9,1,1).");
}

TEST_CASE("allocations may have other sizes in the second save", "[saved][movable]") {
  Pair pair;
  pair.second.graph.allocations[1].bytes = kPage / 2;

  pair.check_movable(kAddresses);
}

TEST_CASE("kernels with other code are named", "[saved][movable]") {
  Pair pair;
  pair.second.code = "other code";

  pair.check_not("Kernel \"scale\" has other code or attributes in the second save.");
}

TEST_CASE("what was found is written into the first bundle", "[saved][movable]") {
  const Pair pair;

  const Marked marked(pair);

  const Folder folder = marked.folder();
  CHECK(folder.verify().empty());
  const SavedGraph& graph = folder.manifest().graphs[0];
  CHECK(graph.is_movable);
  CHECK(graph.addresses.blocks == std::vector<AddressWords::InBlock>{{kInput, 1}, {kTable, 2}});
  const absl::StatusOr<std::vector<AddressWord>> addresses = folder.read_addresses(graph.addresses);
  REQUIRE_OK(addresses);
  CHECK(*addresses == kAddresses);
}

TEST_CASE("a bundle says why it is not movable", "[saved][movable]") {
  Pair pair;
  pair.second.code = "other code";

  const Marked marked(pair);

  const Folder folder = marked.folder();
  CHECK_FALSE(folder.manifest().graphs[0].is_movable);
  CHECK(folder.manifest().graphs[0].why_not_movable ==
        "Kernel \"scale\" has other code or attributes in the second save.");
}

TEST_CASE("damaged memory of either save is an error", "[saved][movable]") {
  const Pair pair;
  const ScratchPath path("movable_first"), other("movable_second");
  pair.first.write(path.string());
  pair.second.write(other.string());
  const absl::StatusOr<Folder> first = Folder::open(path.string()), second = Folder::open(other.string());
  REQUIRE_OK(first);
  REQUIRE_OK(second);
  const bool is_second = GENERATE(false, true);
  const Folder& damaged = is_second ? *second : *first;
  const SavedGraph& graph = damaged.manifest().graphs[0];
  const auto input = std::find_if(graph.memory.begin(), graph.memory.end(),
                                  [&](const Piece& piece) { return piece.range.block == graph.allocations[0].block; });
  const std::string file = "memory/" + to_string(*input->hash);
  cgrt::testing::set_content((is_second ? other : path) / file, std::string(kPage, 'x'));

  CHECK_THAT(compare_saves(*first, *second).status(), StatusIs(absl::StatusCode::kDataLoss, to_string(*input->hash)));
}

TEST_CASE("a file of addresses that are not in their block is refused", "[saved][movable]") {
  const Pair pair;
  const ScratchPath path("movable_first");
  pair.first.write(path.string());
  absl::StatusOr<FolderWriter> writer = FolderWriter::create(path.string());
  REQUIRE_OK(writer);
  const absl::StatusOr<Hash> beyond = writer->add_addresses(std::vector<std::uint64_t>{kPage - 7});
  const absl::StatusOr<Hash> overlapping = writer->add_addresses(std::vector<std::uint64_t>{16, 20});
  REQUIRE_OK(beyond);
  REQUIRE_OK(overlapping);
  const absl::StatusOr<Folder> folder = Folder::open(path.string());
  REQUIRE_OK(folder);

  CHECK_THAT(folder->read_addresses({{{0, 1}}, *beyond}).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "has an address at byte 4089 of block 0"));
  CHECK_THAT(folder->read_addresses({{{0, 2}}, *overlapping}).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "has an address at byte 20 of block 0"));
  CHECK_THAT(folder->read_addresses({{{0, 1}}, *overlapping}).status(), StatusIs(absl::StatusCode::kDataLoss, ""));
}

TEST_CASE("what a manifest says of addresses is read as it was written", "[saved][movable]") {
  Manifest manifest = cgrt::testing::small_manifest();
  manifest.graphs[0].is_movable = true;
  manifest.graphs[0].addresses = {{{0, 3}, {2, 1}}, {1, 2}};
  manifest.graphs[1].why_not_movable = "A word is not certain.";

  const absl::StatusOr<Manifest> again = manifest_from_json(to_json(manifest));

  REQUIRE_OK(again);
  CHECK(*again == manifest);
}

TEST_CASE("addresses that a manifest cannot have are refused", "[saved][movable]") {
  const auto check_refused = [](const std::string& message, const std::function<void(SavedGraph&)>& change) {
    Manifest manifest = cgrt::testing::small_manifest();
    manifest.graphs[0].is_movable = true;
    manifest.graphs[0].addresses = {{{0, 3}, {2, 1}}, {1, 2}};
    change(manifest.graphs[0]);
    CHECK_THAT(validate(manifest), StatusIs(absl::StatusCode::kInvalidArgument, "graph \"prefill\": " + message));
  };

  check_refused("is movable and says why it is not", [](SavedGraph& graph) { graph.why_not_movable = "It is."; });
  check_refused("is not movable and says which words are addresses",
                [](SavedGraph& graph) { graph.is_movable = false; });
  check_refused("says why it is not movable with characters no text has", [](SavedGraph& graph) {
    graph.is_movable = false;
    graph.why_not_movable = "\x1b[2J";
  });
  check_refused("has a file of addresses and none in it", [](SavedGraph& graph) { graph.addresses.blocks.clear(); });
  check_refused("has addresses in block 3; the bundle has 3 blocks",
                [](SavedGraph& graph) { graph.addresses.blocks[1].block = 3; });
  check_refused("has 0 addresses in block 2, which has 8192 bytes",
                [](SavedGraph& graph) { graph.addresses.blocks[1].count = 0; });
  check_refused("has 9 addresses in block 1, which has 64 bytes", [](SavedGraph& graph) {
    graph.addresses.blocks[1] = {1, 9};
  });
  check_refused("addresses in block 0 come after those in block 0", [](SavedGraph& graph) {
    graph.addresses.blocks[1] = {0, 1};
  });
}

}  // namespace
}  // namespace cgrt::saved
