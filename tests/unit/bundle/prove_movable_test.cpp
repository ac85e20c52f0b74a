// Bundles of which two saves leave open what some arguments are, decided by replays at other addresses on the
// simulator.
#include "cgrt/bundle/prove_movable.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/bundle/bundle.h"
#include "cgrt/bundle/loaded_trials.h"
#include "cgrt/bundle/save.h"
#include "cgrt/bundle/trial_process.h"
#include "cgrt/cgrt.h"
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

// Kernels that run as "scale" does. They add 1 to a number, and have an argument or two more.
void count_up(HostGrid, int* out, std::uint64_t, float, int) { ++*out; }
// As 32 MB of addresses say.
void count_up_by(HostGrid, int* out, std::uint64_t, float, int low) { *out += (low >> 25) % 2 == 0 ? 1 : 2; }
void count_up_inverted(HostGrid, int*, std::uint64_t inverted, float, int) { ++*reinterpret_cast<int*>(~inverted); }
void count_calls(HostGrid, int* out, std::uint64_t, float, int) {
  static int calls = 0;
  out[16] = ++calls;
  ++*out;
}

using Count = Kernel<int*, std::uint64_t, float, int>;
using Add = std::function<void(Graph&, const Count&, int* number)>;

// A program of one kernel, whose number is at the start of its memory.
struct Program {
  explicit Program(const Count& kernel_) : kernel(kernel_) {
    REQUIRE_OK(fill8(stream, data.as<char>(), 0, MappedMemory::kPieceBytes));
    REQUIRE_OK(stream.ref().synchronize());
  }

  void save(const std::string& path, const Add& add) {
    Graph graph = *Graph::create(kDevice);
    add(graph, kernel, data.as<int>());
    GraphExec exec = *instantiate(graph);
    Saver saver = *Saver::create(
        path, [](CUfunction, const std::string&) -> absl::StatusOr<std::string_view> { return loaded_cubin(); });
    const auto prepared = saver.prepare(graph.ref(), "step", {});
    REQUIRE_OK(prepared);
    REQUIRE_OK(saver.begin(*prepared));
    REQUIRE_OK(exec.launch(stream));
    REQUIRE_OK(saver.finish(*prepared));
  }

  const Count& kernel;
  MappedMemory data;
  Stream stream = *Stream::create(kDevice);
};

// A bundle that was saved by two programs, which have ended.
template <auto body>
class SavedTwice {
 public:
  explicit SavedTwice(const Add& add) {
    simulator.provide("scale", *kernel.identity());
    Program first(kernel), second(kernel);
    first.save(path.string(), add);
    second.save(other.string(), add);
  }

  std::vector<saved::Movability> compared() const {
    auto graphs = saved::compare_saves(*saved::Folder::open(path.string()), *saved::Folder::open(other.string()));
    REQUIRE_OK(graphs);
    return *std::move(graphs);
  }

  // What is left to say against it, also by the manifest.
  std::string why_not() const {
    const auto proven = prove_movable(path.string(), compared(), [&](const std::vector<std::string>& graphs) {
      return TrialProcess::create(
          [this, graphs] { return LoadedTrials::create(path.string(), graphs, kDevice, BundlePlacement::kAnywhere); },
          absl::InfiniteDuration());
    });
    REQUIRE_OK(proven);
    REQUIRE(proven->size() == 1);
    CHECK(proven->front().open.empty());
    const saved::Folder folder = *saved::Folder::open(path.string());
    CHECK(folder.verify().empty());
    REQUIRE(folder.manifest().graphs.size() == 1);
    CHECK(folder.manifest().graphs[0].why_not_movable == proven->front().why_not);
    CHECK(folder.manifest().graphs[0].is_movable == proven->front().why_not.empty());
    return proven->front().why_not;
  }

  ScratchPath path{"prove_first"}, other{"prove_second"};
  Simulator simulator;
  Library library = *Library::load(kDevice, loaded_cubin());
  Count kernel = *library.kernel<body>("scale");
};

int low_half(const int* number) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(number)); }

void add_with_low_half(Graph& graph, const Count& kernel, int* number) {
  for (int i = 0; i < 5; ++i) {
    REQUIRE_OK(
        graph.add_kernel({}, {.grid = 1, .block = 32}, kernel, number, std::uint64_t{0}, 2.0f, low_half(number)));
  }
}

TEST_CASE("what looks like a part of an address and is not used does not keep a bundle where it is", "[bundle][move]") {
  const SavedTwice<count_up> saved(add_with_low_half);
  CHECK(saved.compared()[0].open.size() == 5);

  CHECK(saved.why_not() == "");

  const absl::StatusOr<LoadedBundle> loaded =
      Bundle::open(saved.path.string())->load(kDevice, {.placement = BundlePlacement::kAnywhere});
  CHECK_OK(loaded);
}

TEST_CASE("what looks like a part of an address and is used keeps a bundle where it is, by name", "[bundle][move]") {
  const SavedTwice<count_up_by> saved([](Graph& graph, const Count& kernel, int* number) {
    for (int i = 0; i < 5; ++i) {
      REQUIRE_OK(graph.add_kernel({}, {.grid = 1, .block = 32}, kernel, number + i, std::uint64_t{0}, 2.0f,
                                  i == 3 ? low_half(number) : 0));
    }
  });
  CHECK(saved.compared()[0].open.size() == 1);

  const std::string why = saved.why_not();

  CHECK_THAT(why, Catch::StartsWith("node 3 \"scale\" has in the argument at byte 20 a value that is no address in the "
                                    "bundle, and moved in the second save as far as memory 0 "));
  CHECK_THAT(why, Catch::EndsWith(" A replay with something else there leaves other memory."));
}

TEST_CASE("of several open words the one that is used is found", "[bundle][move]") {
  const SavedTwice<count_up_by> saved([](Graph& graph, const Count& kernel, int* number) {
    for (int i = 0; i < 6; ++i) {
      // The first bytes of these are padding: an address in one of the saves alone.
      REQUIRE_OK(graph.add_kernel({}, {.grid = 1, .block = 32}, kernel, number + i,
                                  reinterpret_cast<std::uint64_t>(number) >> 9, 2.0f, i == 4 ? low_half(number) : 0));
    }
  });
  CHECK(saved.compared()[0].open.size() == 7);

  CHECK_THAT(saved.why_not(), Catch::StartsWith("node 4 \"scale\" has in the argument at byte 20 a value"));
}

TEST_CASE("an address that two saves do not show is missed by a replay at others", "[bundle][move]") {
  const SavedTwice<count_up_inverted> saved([](Graph& graph, const Count& kernel, int* number) {
    REQUIRE_OK(graph.add_kernel({}, {.grid = 1, .block = 32}, kernel, number,
                                ~reinterpret_cast<std::uint64_t>(number + 8), 2.0f, 0));
  });
  CHECK(saved.compared()[0].why_not == "");
  CHECK(saved.compared()[0].open.empty());

  CHECK(saved.why_not() == "A replay at other addresses faults: an address of it is not known.");
}

TEST_CASE("what differs from replay to replay does not keep a bundle where it is", "[bundle][move]") {
  const SavedTwice<count_calls> saved(add_with_low_half);

  CHECK(saved.why_not() == "");
}

TEST_CASE("a graph that cannot be loaded elsewhere is not movable", "[bundle][move]") {
  const SavedTwice<count_up> saved(add_with_low_half);

  const auto proven = prove_movable(saved.path.string(), saved.compared(), [](const std::vector<std::string>&) {
    return absl::ResourceExhaustedError("There is no memory.");
  });

  REQUIRE_OK(proven);
  CHECK(proven->front().why_not == "It could not be replayed at other addresses: There is no memory.");
  CHECK_FALSE(saved::Folder::open(saved.path.string())->manifest().graphs[0].is_movable);
}

}  // namespace
}  // namespace cgrt::testing
