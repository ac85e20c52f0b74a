// Bundles at other addresses than their memory had, on the simulator.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/bundle/bundle.h"
#include "cgrt/bundle/relocation.h"
#include "cgrt/bundle/save.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/saved/movable.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt/stream/keep.h"
#include "support/catch.h"
#include "support/loaded_kernels.h"
#include "support/mapped_memory.h"
#include "support/status_matchers.h"
#include "unit/saved/bundles.h"

namespace cgrt::testing {
namespace {

constexpr DeviceRef kDevice(0);
constexpr int kCount = 8;

// Scales what the addresses in `table` point to, and writes these addresses to `out`: runs as "scale" does.
void follow(HostGrid, float** out, float* const* table, float factor, int count) {
  for (int i = 0; i < count; ++i) {
    *table[i] *= factor;
    out[i] = table[i];
  }
}

// A program whose kernel finds its data by a table of addresses, which are those of every second float of `data`. Its
// graph copies the floats to pinned memory at last.
struct Program {
  Program() {
    std::vector<float> values(64);
    std::vector<float*> addresses;
    for (int i = 0; i < 64; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i);
    for (int i = 0; i < kCount; ++i) addresses.push_back(floats() + 2 * i);
    for (const MappedMemory* memory : {&data, &table}) {
      REQUIRE_OK(fill8(stream, memory->as<char>(), 0, MappedMemory::kPieceBytes));
    }
    REQUIRE_OK(copy(stream, floats(), values.data(), 256));
    REQUIRE_OK(copy(stream, table.as<char>(), addresses.data(), kCount * 8));
    REQUIRE_OK(stream.ref().synchronize());
  }

  void save(const std::string& path) {
    Graph graph = *Graph::create(kDevice);
    const KernelNode kernel = *graph.add_kernel({}, {.grid = 1, .block = 32}, following, table.as<float*>() + 1024,
                                                table.as<float*>(), 2.0f, kCount);
    REQUIRE_OK(graph.add_copy({kernel}, pinned.data(), floats(), 256));
    GraphExec exec = *instantiate(graph);
    Saver saver = *Saver::create(
        path, [](CUfunction, const std::string&) -> absl::StatusOr<std::string_view> { return loaded_cubin(); });
    SavedMarks marks;
    marks.inputs = {{.name = "data", .address = reinterpret_cast<std::uintptr_t>(floats()), .bytes = 256}};
    marks.outputs = {{.name = "copy", .address = reinterpret_cast<std::uintptr_t>(pinned.data()), .bytes = 256}};
    const auto prepared = saver.prepare(graph.ref(), "step", marks);
    REQUIRE_OK(prepared);
    REQUIRE_OK(saver.begin(*prepared));
    REQUIRE_OK(exec.launch(stream));
    REQUIRE_OK(saver.finish(*prepared));
  }

  float* floats() const { return data.as<float>(); }

  Library library = *Library::load(kDevice, loaded_cubin());
  Kernel<float**, float* const*, float, int> following = *library.kernel<follow>("scale");
  MappedMemory data, table;
  PinnedBuffer pinned = *PinnedBuffer::create(kDevice, 256);
  Stream stream = *Stream::create(kDevice);
};

void mark(const ScratchPath& path, const ScratchPath& other) {
  const saved::Folder first = *saved::Folder::open(path.string());
  const auto found = saved::compare_saves(first, *saved::Folder::open(other.string()));
  REQUIRE_OK(found);
  REQUIRE_OK(saved::mark_movable(first, *found));
}

// The bundle of a program that was saved twice, and the driver.
class SavedTwice {
 public:
  SavedTwice() {
    first.emplace();
    second.emplace();
    first->save(path.string());
    second->save(other.string());
    mark(path, other);
    simulator.provide("scale", *first->following.identity());
  }
  absl::StatusOr<LoadedBundle> load(BundlePlacement placement) const {
    return (*Bundle::open(path.string())).load(kDevice, {.placement = placement});
  }

  ScratchPath path{"move_first"}, other{"move_second"};
  Simulator simulator;
  std::optional<Program> first, second;
};

std::vector<std::string> replay(LoadedBundle& loaded) {
  const Stream stream = *Stream::create(kDevice);
  REQUIRE_OK(loaded.restore("step"));
  REQUIRE_OK(loaded.launch("step", stream));
  REQUIRE_OK(stream.ref().synchronize());
  const absl::StatusOr<std::vector<MemoryDifference>> differences = loaded.check("step");
  REQUIRE_OK(differences);
  std::vector<std::string> texts;
  for (const MemoryDifference& one : *differences) texts.push_back(one.text);
  return texts;
}

float* floats_of(const LoadedBundle& loaded) { return static_cast<float*>((*loaded.input("step", "data")).data); }

TEST_CASE("a bundle that was saved twice is replayed at other addresses, bit by bit", "[bundle][move]") {
  const SavedTwice saved;  // whose programs still have their memory

  absl::StatusOr<LoadedBundle> loaded = saved.load(BundlePlacement::kAnywhere);

  REQUIRE_OK(loaded);
  CHECK(floats_of(*loaded) != saved.first->floats());
  CHECK(replay(*loaded).empty());
  CHECK(replay(*loaded).empty());
  CHECK(floats_of(*loaded)[2 * kCount - 2] == 2 * (2 * kCount - 2));
  CHECK(static_cast<float*>((*loaded->output("step", "copy")).data)[2] == 4);
  CHECK(saved.first->floats()[2] == 4);  // as its own launch left it
}

TEST_CASE("two copies in one process each have their memory", "[bundle][move]") {
  SavedTwice saved;
  float* const there = saved.first->floats();
  const Library library = std::move(saved.first->library);  // which is provided
  saved.first.reset();
  saved.second.reset();
  absl::StatusOr<LoadedBundle> one = saved.load(BundlePlacement::kAsSavedOrAnywhere);
  absl::StatusOr<LoadedBundle> two = saved.load(BundlePlacement::kAsSavedOrAnywhere);
  REQUIRE_OK(one);
  REQUIRE_OK(two);
  CHECK(floats_of(*one) == there);
  CHECK(floats_of(*two) != there);
  const Stream stream = *Stream::create(kDevice);

  for (int i = 0; i < 3; ++i) REQUIRE_OK(one->launch("step", stream));
  REQUIRE_OK(two->launch("step", stream));
  REQUIRE_OK(stream.ref().synchronize());

  CHECK(floats_of(*one)[2] == 16);
  CHECK(floats_of(*two)[2] == 4);
  CHECK(replay(*one).empty());
  CHECK(replay(*two).empty());
}

TEST_CASE("a difference is found at other addresses as well", "[bundle][move]") {
  const SavedTwice saved;
  absl::StatusOr<LoadedBundle> loaded = saved.load(BundlePlacement::kAnywhere);
  REQUIRE_OK(loaded);
  REQUIRE(replay(*loaded).empty());

  floats_of(*loaded)[1] = 7;
  const absl::StatusOr<std::vector<MemoryDifference>> differences = loaded->check("step");

  REQUIRE_OK(differences);
  REQUIRE(differences->size() == 1);
  CHECK(differences->front().text == "input \"data\", bytes 0 to 255 of 256");
}

TEST_CASE("a bundle that was saved once is loaded at its addresses alone", "[bundle][move]") {
  const ScratchPath path("move_once");
  Simulator simulator;
  Program program;
  program.save(path.string());
  const Bundle bundle = *Bundle::open(path.string());
  const std::string why =
      "Graph \"step\" cannot be loaded at other addresses: it was saved once. Save it with graphdump save --movable.";

  CHECK_THAT(bundle.load(kDevice, {.placement = BundlePlacement::kAnywhere}).status(),
             StatusIs(absl::StatusCode::kFailedPrecondition, why));
  CHECK_THAT(bundle.load(kDevice, {.placement = BundlePlacement::kAsSavedOrAnywhere}).status(),
             StatusIs(absl::StatusCode::kFailedPrecondition, why));
  CHECK(are_addresses_taken(bundle.load(kDevice).status()));
}

TEST_CASE("a bundle says which word keeps it where it is", "[bundle][move]") {
  const ScratchPath path("move_first"), other("move_second");
  Simulator simulator;
  Program first, second;
  float* const elsewhere = first.floats();
  REQUIRE_OK(copy(second.stream, second.table.as<char>() + 8, &elsewhere, 8));
  first.save(path.string());
  second.save(other.string());
  mark(path, other);

  const absl::Status status =
      (*Bundle::open(path.string())).load(kDevice, {.placement = BundlePlacement::kAnywhere}).status();

  CHECK_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                              "Graph \"step\" cannot be loaded at other addresses: The word at byte 8 of memory "));
}

TEST_CASE("a load at other addresses survives the failure of each of its driver calls", "[bundle][move]") {
  const SavedTwice saved;
  collect_released();
  const std::size_t before = saved.simulator.live_handles();
  for (int nth = 0;; ++nth) {
    REQUIRE(nth < 1000);
    INFO("driver call " << nth);
    bool has_failed = false;
    {
      driver::Instrument instrument;
      instrument.fail_call(nth, CUDA_ERROR_OUT_OF_MEMORY);
      const absl::Status status = saved.load(BundlePlacement::kAnywhere).status();
      has_failed = instrument.failed();
      if (!has_failed) CHECK_OK(status);
      if (!status.ok()) CHECK_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
    }
    collect_released();
    CHECK(saved.simulator.live_handles() == before);
    if (!has_failed) break;
  }
}

TEST_CASE("addresses are rewritten and turned back where they are words that are known", "[bundle][move]") {
  const std::vector<saved::Block> blocks = {
      {.address = 0x1000, .bytes = 256},
      {.address = 0x1100, .bytes = 256},
      {.address = 0x9000, .bytes = 16, .variable = "counter"},
  };
  const std::vector<CUdeviceptr> addresses = {0x21000, 0x21100, 0};
  const internal::Relocation relocation(blocks, addresses, {{0, 8}, {0, 16}, {0, 24}, {0, 32}, {1, 8}});
  std::vector<std::uint64_t> words = {0x1008, 0x1008, 0x1100, 0x1200, 77, 0x1008};
  const auto bytes = [&] { return std::as_writable_bytes(std::span(words)); };
  REQUIRE(relocation.has_moved());

  REQUIRE_OK(relocation.apply({0, 0, 48}, bytes()));
  CHECK(words == std::vector<std::uint64_t>{0x1008, 0x21008, 0x21100, 0x21200, 77, 0x1008});
  relocation.undo(bytes());
  CHECK(words == std::vector<std::uint64_t>{0x1008, 0x1008, 0x1100, 0x1200, 77, 0x1008});

  words[1] = 0x9008;
  CHECK_THAT(relocation.apply({0, 0, 48}, bytes()),
             StatusIs(absl::StatusCode::kFailedPrecondition, "has at byte 8 the address of memory 2, a variable"));
  words = {0x1008, 0x1008};
  REQUIRE_OK(relocation.apply({0, 4, 12}, bytes().subspan(4)));  // of a part that begins within a word
  CHECK(words == std::vector<std::uint64_t>{0x1008, 0x21008});
}

}  // namespace
}  // namespace cgrt::testing
