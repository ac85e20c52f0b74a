// Bundles of our own kernels, shrunk on the simulator.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/bundle.h"
#include "cgrt/bundle/loaded_trials.h"
#include "cgrt/bundle/shrink.h"
#include "cgrt/bundle/trial_process.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/saved/movable.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt/stream/keep.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/bundle/small_bundle.h"

namespace cgrt::testing {
namespace {

constexpr DeviceRef kDevice(0);
constexpr std::uint64_t kPage = SmallBundle::kPage;

// Adds 1 to the number that the slot has the address of, but for its low bits: a nudge does no harm.
void count_up(HostGrid, int* slot) {
  std::uintptr_t address = 0;
  std::memcpy(&address, slot, sizeof(address));
  ++*reinterpret_cast<int*>(address & ~std::uintptr_t{127});
}

// The graph of SmallBundle, and then: its state (page 2) is doubled in place; a number in it is counted up through the
// address in the slot (page 3), which is zeroed then; scratch memory (pages 4 and 5) is set. Page 6 is not used.
class StatefulBundle : public SmallBundle {
 public:
  explicit StatefulBundle(std::vector<saved::Range> dead = {}) {
    constexpr std::uint64_t kPages = 7;
    manifest.blocks[0].bytes = kPages * kPage;
    for (std::uint64_t page = 2; page < kPages; ++page) {
      saved.allocations.push_back({0, page * kPage, kPage});
      graph.allocations.push_back({ir::MemoryKind::kDevice, 0, kPage});
    }
    saved.kernels.push_back({.symbol = "cluster"});
    saved.node_kernels = {0, 0, 1};
    saved.dead = std::move(dead);
    graph.functions.push_back({.name = "cluster", .parameters = {{0, 8}}});
    add_node(ir::NodeKind::kKernel, scale({3, 0}, {3, 0}, 2));
    ir::KernelParams follow{.grid = {1, 1, 1}, .block = {1, 1, 1}};
    follow.function = 1;
    follow.arguments.resize(8);
    follow.pointers = {{0, {4, 0}}};
    add_node(ir::NodeKind::kKernel, follow);
    for (const std::uint32_t allocation : {4u, 5u, 6u}) {
      add_node(ir::NodeKind::kMemset,
               ir::MemsetParams{.destination = {allocation, 0}, .element_bytes = 4, .width = kPage / 4});
    }

    std::vector<std::uint32_t> memory(kPages * kPage / 4, 0xABABABAB);
    const std::uint64_t counted = address() + 2 * kPage + 2048;
    std::memcpy(memory.data(), x.data(), kPage);
    std::fill_n(memory.begin() + 2 * kPage / 4, kPage / 4, 0x3F800000u);  // 1.0f
    std::memcpy(&memory[3 * kPage / 4], &counted, sizeof(counted));
    add_module(kPtxImage);
    add_piece(saved, {0, 0, kPages * kPage}, bytes_of(memory));
    saved.memory.push_back({{1, 0, kPage}, std::nullopt});
    std::memcpy(&memory[kPage / 4], y_after.data(), kPage);
    std::fill_n(memory.begin() + 2 * kPage / 4, kCount, 0x40000000u);
    ++memory[(2 * kPage + 2048) / 4];
    std::fill_n(memory.begin() + 3 * kPage / 4, 3 * kPage / 4, 0);
    set_expected(saved, {{{0, 0, kPages * kPage}, bytes_of(memory)}, {{1, 0, kPage}, bytes_of(y_after)}});
    add_graph(saved, graph);
    add_second_graph(memory);
    finish();
  }

  // As two saves would have it, but for the second graph.
  void call_movable() const {
    const saved::Folder folder = *saved::Folder::open(path());
    REQUIRE_OK(saved::mark_movable(folder, {{.addresses = {{0, 3 * kPage}}}, {.why_not = "It was not looked at."}}));
  }

  // Scales what is in the scratch memory after the first graph into y.
  void add_second_graph(std::vector<std::uint32_t> memory) {
    saved::SavedGraph second = {.name = "second", .kernels = {{.symbol = "scale"}}, .node_kernels = {0}};
    second.allocations = saved.allocations;
    ir::GraphIr ir;
    ir.allocations = graph.allocations;
    ir.functions = {graph.functions[0]};
    ir.nodes = {{.kind = ir::NodeKind::kKernel, .device = 0, .params = scale({1, 0}, {5, 0}, 2)}};
    add_piece(second, {0, 0, 7 * kPage}, bytes_of(memory));
    std::fill_n(memory.begin() + kPage / 4, kCount, 0);
    set_expected(second, {{{0, 0, 7 * kPage}, bytes_of(memory)}});
    add_graph(second, ir);
  }

 private:
  template <class Params>
  void add_node(ir::NodeKind kind, Params params) {
    const auto last = static_cast<std::uint32_t>(graph.nodes.size() - 1);
    graph.nodes.push_back({.kind = kind, .device = 0, .params = std::move(params)});
    graph.edges.push_back({last, last + 1});
  }
};

struct ShrinkTest {
  ShrinkTest() : library(*Library::load(kDevice, kPtxImage)), kernel(*library.kernel<count_up>("cluster")) {
    SmallBundle::provide(simulator);
    simulator.provide("cluster", *kernel.identity());
  }
  void check_replays(const std::string& path) const {
    const absl::StatusOr<Bundle> bundle = Bundle::open(path);
    REQUIRE_OK(bundle);
    CHECK(bundle->folder().verify().empty());
    absl::StatusOr<LoadedBundle> loaded = bundle->load(kDevice);
    REQUIRE_OK(loaded);
    const Stream stream = *Stream::create(kDevice);
    for (const char* graph : {"step", "second"}) {
      REQUIRE_OK(loaded->restore(graph));
      REQUIRE_OK(loaded->launch(graph, stream));
      REQUIRE_OK(stream.ref().synchronize());
      const absl::StatusOr<std::vector<MemoryDifference>> differences = loaded->check(graph);
      REQUIRE_OK(differences);
      CHECK(differences->empty());
    }
  }

  Simulator simulator;
  Library library;
  Kernel<int*> kernel;
};

MakeTrials in_children(const std::string& path) {
  return [path](const std::vector<std::string>& graphs) {
    return TrialProcess::create([path, graphs] { return LoadedTrials::create(path, graphs, kDevice); },
                                absl::InfiniteDuration());
  };
}

std::vector<saved::Range> ranges_of_pieces(const std::string& path, std::size_t graph = 0) {
  std::vector<saved::Range> ranges;
  const absl::StatusOr<saved::Folder> folder = saved::Folder::open(path);
  REQUIRE_OK(folder);
  for (const saved::Piece& piece : folder->manifest().graphs[graph].memory) ranges.push_back(piece.range);
  return ranges;
}

TEST_CASE_METHOD(ShrinkTest, "a bundle is shrunk to inputs and state, and replays as before", "[bundle][shrink]") {
  const StatefulBundle bundle;
  check_replays(bundle.path());

  const absl::StatusOr<std::vector<ShrunkGraph>> shrunk = shrink(bundle.path(), in_children(bundle.path()));

  REQUIRE_OK(shrunk);
  REQUIRE(shrunk->size() == 2);
  const ShrunkGraph& graph = shrunk->front();
  CHECK(graph.bytes_before == 7 * kPage);
  CHECK(graph.bytes_after == 3 * kPage + kLineBytes);
  CHECK(graph.findings.kept_bytes[static_cast<std::size_t>(Kept::kFault)] == kLineBytes);
  CHECK(ranges_of_pieces(bundle.path()) ==
        std::vector<saved::Range>{
            {0, 0, kPage}, {0, 2 * kPage, kPage + kLineBytes}, {0, 6 * kPage, kPage}, {1, 0, kPage}});
  check_replays(bundle.path());
}

TEST_CASE_METHOD(ShrinkTest, "what one graph overwrites, another keeps that reads it", "[bundle][shrink]") {
  const StatefulBundle bundle;

  const absl::StatusOr<std::vector<ShrunkGraph>> shrunk = shrink(bundle.path(), in_children(bundle.path()));

  REQUIRE_OK(shrunk);
  CHECK(shrunk->back().name == "second");
  CHECK(ranges_of_pieces(bundle.path(), 1) == std::vector<saved::Range>{{0, 0, 7 * kPage}});  // it writes 256 bytes
  check_replays(bundle.path());
}

TEST_CASE_METHOD(ShrinkTest, "dead memory is dropped, and expected no more", "[bundle][shrink]") {
  const StatefulBundle bundle({{0, 6 * kPage, kPage}});

  const absl::StatusOr<std::vector<ShrunkGraph>> shrunk = shrink(bundle.path(), in_children(bundle.path()));

  REQUIRE_OK(shrunk);
  CHECK(shrunk->front().bytes_after == 2 * kPage + kLineBytes);
  const absl::StatusOr<saved::Folder> folder = saved::Folder::open(bundle.path());
  CHECK(folder->manifest().graphs[0].expected.ranges == std::vector<saved::Range>{{0, 0, 6 * kPage}, {1, 0, kPage}});
  check_replays(bundle.path());
}

TEST_CASE_METHOD(ShrinkTest, "a bundle that was shrunk stays as it is", "[bundle][shrink]") {
  const StatefulBundle bundle;
  REQUIRE_OK(shrink(bundle.path(), in_children(bundle.path())));
  const std::vector<saved::Range> before = ranges_of_pieces(bundle.path());

  const absl::StatusOr<std::vector<ShrunkGraph>> again = shrink(bundle.path(), in_children(bundle.path()));

  REQUIRE_OK(again);
  CHECK(again->front().bytes_after == again->front().bytes_before);
  CHECK(ranges_of_pieces(bundle.path()) == before);
}

TEST_CASE_METHOD(ShrinkTest, "trials put memory back, whatever a replay has done to it", "[bundle][shrink]") {
  const StatefulBundle bundle;
  const std::unique_ptr<Trials> trials = *LoadedTrials::create(bundle.path(), {"step"}, kDevice);
  const std::uint64_t state = bundle.address() + 2 * kPage;
  const Poison poison = {Poison::Fill::kRandom, 3};

  const Trial read = *trials->replay({.poison = poison, .poisoned = {{state, state + kLineBytes}}});
  const Trial written = *trials->replay({.poison = poison, .poisoned = {{state + 2 * kPage, state + 3 * kPage}}});
  const Trial unused = *trials->replay({.poison = poison, .poisoned = {{state + 4 * kPage, state + 5 * kPage}}});
  const Trial unpoisoned = *trials->replay({});

  CHECK(read.changed == Spans{{state, state + kLineBytes}});
  CHECK(written.changed.empty());
  CHECK(written.left.empty());
  CHECK(unused.changed.empty());
  CHECK(unused.left == Spans{{state + 4 * kPage, state + 5 * kPage}});
  CHECK(unpoisoned.changed.empty());
}

TEST_CASE_METHOD(ShrinkTest, "trials survive the failure of each of their driver calls", "[bundle][shrink]") {
  const StatefulBundle bundle;
  const std::uint64_t state = bundle.address() + 2 * kPage;
  const auto placement = GENERATE(BundlePlacement::kAsSaved, BundlePlacement::kAnywhere);
  if (placement == BundlePlacement::kAnywhere) bundle.call_movable();
  collect_released();
  const std::size_t before = simulator.live_handles();
  for (int nth = 0;; ++nth) {
    REQUIRE(nth < 2000);
    INFO("driver call " << nth);
    bool has_failed = false;
    {
      driver::Instrument instrument;
      instrument.fail_call(nth, CUDA_ERROR_OUT_OF_MEMORY);
      const auto run = [&]() -> absl::Status {
        CGRT_ASSIGN_OR_RETURN(const auto trials, LoadedTrials::create(bundle.path(), {"step"}, kDevice, placement));
        const TrialRequest poisoned = {.poison = {Poison::Fill::kRandom, 3}, .poisoned = {{state, state + kLineBytes}}};
        CGRT_ASSIGN_OR_RETURN(const Spans unexpected, trials->unexpected());
        CHECK(unexpected.empty());
        CGRT_ASSIGN_OR_RETURN(const Trial trial, trials->replay(poisoned));
        if (trial.end == Trial::End::kFault) return absl::ResourceExhaustedError("a launch has failed");
        CHECK(trial.changed == poisoned.poisoned);
        CGRT_ASSIGN_OR_RETURN(const Trial again, trials->replay({}));
        if (again.end == Trial::End::kFault) return absl::ResourceExhaustedError("a launch has failed");
        CHECK(again.changed.empty());
        return absl::OkStatus();
      };
      const absl::Status status = run();
      has_failed = instrument.failed();
      if (!has_failed) CHECK_OK(status);
      if (!status.ok()) CHECK(has_failed);
    }
    collect_released();
    CHECK(simulator.live_handles() == before);
    if (!has_failed) break;
  }
}

TEST_CASE_METHOD(ShrinkTest, "another input is one for the replay that is compared with, too", "[bundle][shrink]") {
  const StatefulBundle bundle;
  const std::unique_ptr<Trials> trials = *LoadedTrials::create(bundle.path(), {"step"}, kDevice);
  const saved::Range y = {0, kPage, kPage};
  const std::vector<std::uint64_t> hashes = *trials->hashes({y});

  const Trial other = *trials->replay({.varied = {{bundle.address(), bundle.address() + 256}}});

  CHECK(other.changed.empty());
  CHECK(*trials->hashes({y}) == hashes);
}

TEST_CASE_METHOD(ShrinkTest, "a bundle whose replay leaves other memory than it says is refused", "[bundle][shrink]") {
  const StatefulBundle bundle;
  simulator.provide("scale", *shift_kernel().identity());

  const absl::Status status = shrink(bundle.path(), in_children(bundle.path())).status();

  CHECK_THAT(status,
             StatusIs(absl::StatusCode::kFailedPrecondition,
                      "Graph \"step\": a replay leaves other memory than the launch that was saved, in block 0, "
                      "bytes 4096 to 8191"));
}

TEST_CASE("an error of loading is that of the trials", "[bundle][shrink]") {
  const MakeTrials make = in_children("/nowhere/step.bundle");

  CHECK_THAT(make({"step"}).status(), StatusIs(absl::StatusCode::kNotFound, "/nowhere/step.bundle"));
}

TEST_CASE_METHOD(ShrinkTest, "that addresses are taken is known outside of the child", "[bundle][shrink]") {
  const StatefulBundle bundle;
  const absl::StatusOr<LoadedBundle> loaded = Bundle::open(bundle.path())->load(kDevice);
  REQUIRE_OK(loaded);

  const absl::Status status = shrink(bundle.path(), in_children(bundle.path())).status();

  CHECK_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, "Graph \"step\": The addresses 0x"));
  CHECK(are_addresses_taken(status));
}

// What a replay does by its poison's seed.
class WildTrials : public Trials {
 public:
  absl::StatusOr<Trial> replay(const TrialRequest& request) override {
    if (request.poison.seed == 1) raise(SIGKILL);
    while (request.poison.seed == 2) pause();
    if (request.poison.seed == 3) return absl::InternalError("three");
    return Trial{.end = request.poison.seed == 4 ? Trial::End::kFault : Trial::End::kReplayed,
                 .left = request.poisoned,
                 .changed = request.varied};
  }
  absl::StatusOr<Spans> unexpected() override { return Spans{{1, 2}, {2, 3}}; }
  absl::StatusOr<std::vector<std::uint64_t>> hashes(const std::vector<saved::Range>& ranges) override {
    return std::vector<std::uint64_t>{ranges.back().bytes, static_cast<std::uint64_t>(getpid())};
  }
};

TEST_CASE("a child that dies, hangs or faults is followed by another", "[bundle][shrink]") {
  const std::unique_ptr<Trials> trials =
      *TrialProcess::create([] { return std::make_unique<WildTrials>(); }, absl::Milliseconds(500));
  const auto end_of = [&](std::uint64_t seed) { return trials->replay({.poison = {.seed = seed}})->end; };
  const auto process = [&] { return (*trials->hashes({{0, 1, 2}, {3, 4, 5}})).at(1); };
  std::uint64_t before = process();

  CHECK(end_of(0) == Trial::End::kReplayed);
  CHECK(process() == before);
  for (const auto& [seed, end] :
       {std::pair(1, Trial::End::kFault), std::pair(2, Trial::End::kTimeLimit), std::pair(4, Trial::End::kFault)}) {
    CHECK(end_of(static_cast<std::uint64_t>(seed)) == end);
    const std::uint64_t now = process();
    CHECK(now != before);
    before = now;
  }
  CHECK_THAT(trials->replay({.poison = {.seed = 3}}).status(), StatusIs(absl::StatusCode::kInternal, "three"));
  CHECK(before != static_cast<std::uint64_t>(getpid()));
}

TEST_CASE("questions and answers of any length go to a child and back", "[bundle][shrink]") {
  const std::unique_ptr<Trials> trials =
      *TrialProcess::create([] { return std::make_unique<WildTrials>(); }, absl::InfiniteDuration());
  Spans many;
  for (std::uint64_t i = 0; i < 100'000; ++i) many.push_back({3 * i, 3 * i + 1});

  const Trial trial = *trials->replay({.poisoned = many, .varied = {{7, 9}}});

  CHECK(trial.left == many);
  CHECK(trial.changed == Spans{{7, 9}});
}

}  // namespace
}  // namespace cgrt::testing
