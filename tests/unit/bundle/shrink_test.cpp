// Which memory shrinking drops, by programs of reads and writes whose memory is an array.
#include "cgrt/bundle/shrink.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/bundle/spans.h"
#include "cgrt/bundle/trials.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

constexpr std::uint64_t kBase = 0x7F0000000000;

// What a kernel does to memory: offsets and bytes.
struct Operation {
  enum class Kind {
    kWrite,    // of `to`, from all that is in `from`
    kUpdate,   // each byte of `to` from itself
    kGather,   // of `to`, from where the address at `from` points; a fault where nothing is
    kScatter,  // to where the address at `to` points, from all that is in `from`; a fault where nothing is
    kFlag,     // of `to`, from whether the byte at `from` is zero
    kNoise,    // of `to`, something else each time
    kWait,     // for ever, unless the byte at `from` has its value
  };
  Kind kind = Kind::kWrite;
  Span from = {}, to = {};
  std::uint8_t value = 0;
};
using Kind = Operation::Kind;
using Memory = std::vector<std::byte>;

// A saved graph in one block: its operations, and the state that it was saved in.
struct Program {
  explicit Program(std::uint64_t lines) : saved(lines * kLineBytes) {}

  // The state is that after another launch, so most writes write what is there.
  void settle() { REQUIRE(run(saved) == Trial::End::kReplayed); }
  void put_address(std::uint64_t at, std::uint64_t offset) {
    const std::uint64_t address = kBase + offset;
    std::memcpy(&saved[at], &address, sizeof(address));
  }

  Trial::End run(Memory& memory) const {
    const auto digest_of = [&](Span span) {
      std::uint64_t digest = 14695981039346656037u;
      for (std::uint64_t i = span.begin; i < span.end; ++i)
        digest = (digest ^ std::to_integer<unsigned>(memory[i])) * 1099511628211u;
      return digest ^ (digest >> 29);
    };
    const auto write = [&](Span span, std::uint64_t digest) {
      for (std::uint64_t i = span.begin; i < span.end; ++i) {
        digest = digest * 6364136223846793005u + 1442695040888963407u;
        memory[i] = static_cast<std::byte>(digest >> 56);
      }
    };
    const auto follow = [&](Span at, std::uint64_t bytes) -> std::optional<std::uint64_t> {
      std::uint64_t address = 0;
      std::memcpy(&address, &memory[at.begin], sizeof(address));
      if (address < kBase || address - kBase > memory.size() - bytes) return std::nullopt;
      return address - kBase;
    };
    for (const Operation& one : operations) {
      switch (one.kind) {
        case Kind::kWrite: write(one.to, digest_of(one.from) + one.value); break;
        case Kind::kUpdate:
          for (std::uint64_t i = one.to.begin; i < one.to.end; ++i) {
            memory[i] = static_cast<std::byte>(std::to_integer<unsigned>(memory[i]) * 3 + 1);
          }
          break;
        case Kind::kGather: {
          const std::optional<std::uint64_t> at = follow(one.from, one.to.bytes());
          if (!at.has_value()) return Trial::End::kFault;
          write(one.to, digest_of({*at, *at + one.to.bytes()}));
          break;
        }
        case Kind::kScatter: {
          const std::optional<std::uint64_t> at = follow(one.to, one.from.bytes());
          if (!at.has_value()) return Trial::End::kFault;
          write({*at, *at + one.from.bytes()}, digest_of(one.from));
          break;
        }
        case Kind::kFlag: write(one.to, memory[one.from.begin] != std::byte{} ? 1 : 2); break;
        case Kind::kNoise:
          for (std::uint64_t i = one.to.begin; i < one.to.end; i += 4) memory[i] = static_cast<std::byte>(noise() % 4);
          break;
        case Kind::kWait:
          if (memory[one.from.begin] != std::byte{one.value}) return Trial::End::kTimeLimit;
          break;
      }
    }
    return Trial::End::kReplayed;
  }

  std::vector<Operation> operations = {};
  Memory saved;
  mutable std::mt19937 noise{7};
};

class FakeTrials : public Trials {
 public:
  FakeTrials(const Program* program, std::uint64_t* faults) : program_(*program), faults_(*faults) {}

  absl::StatusOr<Trial> replay(const TrialRequest& request) override {
    Memory reference = state(request.varied), now = reference;
    for (const Span& span : request.poisoned) {
      apply(request.poison, span.begin, std::span(now).subspan(span.begin - kBase, span.bytes()));
    }
    const Memory poison = now;
    Trial trial = {.end = program_.run(now)};
    if (trial.end != Trial::End::kReplayed) return ++faults_, trial;
    if (program_.run(reference) != Trial::End::kReplayed) return Trial{.end = Trial::End::kFault};
    if (request.poisoned.empty()) {
      for (std::uint64_t i = 0; i < now.size(); ++i) {
        if (now[i] != reference[i]) varying_.insert(i);
      }
    } else {
      for (const std::uint64_t i : varying_) reference[i] = now[i];
    }
    for (std::uint64_t at = 0; at < now.size(); at += kLineBytes) {
      const Span line = {kBase + at, kBase + at + kLineBytes};
      const bool is_poisoned = !common({line}, request.poisoned).empty();
      const LineFate fate =
          fate_of(std::span(now).subspan(at, kLineBytes), std::span(reference).subspan(at, kLineBytes),
                  std::span(poison).subspan(at, is_poisoned ? kLineBytes : 0));
      if (fate.is_left) trial.left.push_back(line);
      if (fate.is_changed) trial.changed.push_back(line);
    }
    trial.left = united(std::move(trial.left));
    trial.changed = united(std::move(trial.changed));
    return trial;
  }
  absl::StatusOr<Spans> unexpected() override { return absl::UnimplementedError("not asked here"); }
  absl::StatusOr<std::vector<std::uint64_t>> hashes(const std::vector<saved::Range>&) override {
    return absl::UnimplementedError("not asked here");
  }

 private:
  Memory state(const Spans& varied) const {
    Memory memory = program_.saved;
    for (const Span& span : varied) {
      apply({Poison::Fill::kLowestBit}, span.begin, std::span(memory).subspan(span.begin - kBase, span.bytes()));
    }
    return memory;
  }

  const Program& program_;
  std::uint64_t& faults_;
  std::set<std::uint64_t> varying_;
};

struct Found {
  ShrinkFindings findings = {};
  std::uint64_t faults = 0;
  std::vector<std::uint64_t> dropped_lines = {};
  std::uint64_t kept(Kept reason) const { return findings.kept_bytes[static_cast<std::size_t>(reason)]; }
};

Span bytes_at(std::uint64_t offset, std::uint64_t bytes) { return {offset, offset + bytes}; }
Span line_at(std::uint64_t line, std::uint64_t lines = 1) { return bytes_at(line * kLineBytes, lines * kLineBytes); }
saved::Range range_of(Span span) { return {.block = 0, .offset = span.begin, .bytes = span.bytes()}; }

struct Marks {
  std::vector<Span> inputs = {}, dead = {};
};

Found find(const Program& program, const Marks& marks = {},
           ShrinkLimits limits = {.max_replays = 1'000'000, .min_hole_bytes = kLineBytes}) {
  saved::Manifest manifest;
  manifest.blocks.push_back({.address = kBase, .bytes = program.saved.size()});
  saved::SavedGraph graph = {.name = "fake"};
  graph.memory.push_back({.range = {.block = 0, .offset = 0, .bytes = program.saved.size()}, .hash = saved::Hash{}});
  for (const Span& input : marks.inputs) graph.inputs.push_back({.name = "x", .range = range_of(input)});
  for (const Span& dead : marks.dead) graph.dead.push_back(range_of(dead));
  Found found;
  absl::StatusOr<ShrinkFindings> findings = find_overwritten(
      manifest, graph,
      [&](const std::vector<std::string>&) { return std::make_unique<FakeTrials>(&program, &found.faults); }, limits);
  REQUIRE_OK(findings);
  found.findings = *std::move(findings);
  for (const Span& span : found.findings.dropped) {
    for (std::uint64_t at = span.begin; at < span.end; at += kLineBytes) {
      found.dropped_lines.push_back((at - kBase) / kLineBytes);
    }
  }
  return found;
}

// Whatever is in the memory that was dropped, a replay leaves the same elsewhere, and there unless it is dead.
void check_dropped(const Program& program, const ShrinkFindings& findings, std::mt19937& random) {
  Memory reference = program.saved, now = reference;
  for (const Span& span : findings.dropped) {
    for (std::uint64_t i = span.begin; i < span.end; ++i) now[i - kBase] = static_cast<std::byte>(random());
  }
  REQUIRE(program.run(reference) == Trial::End::kReplayed);
  REQUIRE(program.run(now) == Trial::End::kReplayed);
  for (const Memory* const memory : {&reference, &now}) {
    for (const Spans* spans : {&findings.dead, &findings.varying}) {
      for (const Span& span : *spans) {
        std::fill_n(const_cast<Memory*>(memory)->begin() + static_cast<std::ptrdiff_t>(span.begin - kBase),
                    span.bytes(), std::byte{});
      }
    }
  }
  CHECK(now == reference);
}

// The lines that need no content: each byte is overwritten, or dead and not written, and its content has no effect.
std::vector<std::uint64_t> lines_without_need(const Program& program, const Marks& marks) {
  std::vector<bool> is_needed(program.saved.size(), true);
  const auto set = [&](Span span, bool value) {
    for (std::uint64_t i = span.begin; i < span.end; ++i) is_needed[i] = value;
  };
  for (const Span& dead : marks.dead) set(dead, false);
  for (const Operation& one : program.operations) set(one.to, true);  // is compared after a replay, dead or not
  for (auto one = program.operations.rbegin(); one != program.operations.rend(); ++one) {
    const bool is_used = std::find(is_needed.begin() + static_cast<std::ptrdiff_t>(one->to.begin),
                                   is_needed.begin() + static_cast<std::ptrdiff_t>(one->to.end),
                                   true) != is_needed.begin() + static_cast<std::ptrdiff_t>(one->to.end);
    if (one->kind == Kind::kUpdate) continue;
    set(one->to, false);
    if (one->kind == Kind::kGather) {
      std::uint64_t address = 0;
      std::memcpy(&address, &program.saved[one->from.begin], sizeof(address));
      if (is_used) set(bytes_at(address - kBase, one->to.bytes()), true);
      set(one->from, true);
    } else if (is_used) {
      set(one->from, true);
    }
  }
  for (const Span& input : marks.inputs) set(input, true);
  std::vector<std::uint64_t> lines;
  for (std::uint64_t at = 0; at < is_needed.size(); at += kLineBytes) {
    if (std::find(is_needed.begin() + static_cast<std::ptrdiff_t>(at),
                  is_needed.begin() + static_cast<std::ptrdiff_t>(at + kLineBytes),
                  true) == is_needed.begin() + static_cast<std::ptrdiff_t>(at + kLineBytes)) {
      lines.push_back(at / kLineBytes);
    }
  }
  return lines;
}

TEST_CASE("memory that a replay overwrites before it reads it is dropped", "[bundle][shrink]") {
  Program program(8);
  program.operations = {{Kind::kWrite, line_at(0, 2), line_at(2, 3)}, {Kind::kWrite, line_at(2, 3), line_at(6)}};
  program.settle();

  const Found found = find(program);

  CHECK(found.dropped_lines == std::vector<std::uint64_t>{2, 3, 4, 6});
  CHECK(found.kept(Kept::kNotOverwritten) == 4 * kLineBytes);
  CHECK(found.findings.replays <= 14);
}

TEST_CASE("memory that is updated in place is kept, also where the update writes what is there", "[bundle][shrink]") {
  Program program(8);
  program.operations = {{Kind::kUpdate, {}, line_at(1, 3)},
                        {Kind::kWrite, line_at(6), line_at(6)},
                        {Kind::kWrite, line_at(0), line_at(4, 2)}};

  const Found found = find(program);

  CHECK(found.dropped_lines == std::vector<std::uint64_t>{4, 5});
  CHECK(found.kept(Kept::kRead) == 4 * kLineBytes);
}

TEST_CASE("a byte that is read before it is written keeps its line, and not the next one", "[bundle][shrink]") {
  Program program(8);
  const std::uint64_t byte = GENERATE(1024u, 1300u, 1535u);
  program.operations = {{Kind::kWrite, bytes_at(byte, 1), line_at(6)}, {Kind::kWrite, line_at(0), line_at(1, 3)}};

  const Found found = find(program);

  CHECK(found.dropped_lines == std::vector<std::uint64_t>{1, 3, 6});
}

TEST_CASE("a line that is overwritten but for a byte is kept", "[bundle][shrink]") {
  Program program(6);
  program.operations = {{Kind::kWrite, line_at(0), bytes_at(kLineBytes + 1, 3 * kLineBytes)}};

  CHECK(find(program).dropped_lines == std::vector<std::uint64_t>{2, 3});
}

TEST_CASE("a flag that only zero changes is kept", "[bundle][shrink]") {
  Program program(6);
  program.saved[kLineBytes] = std::byte{1};
  program.operations = {{Kind::kFlag, bytes_at(kLineBytes, 1), line_at(3)},
                        {Kind::kWrite, line_at(0), line_at(1, 2), /*value=*/3}};
  Program always_set = program;

  CHECK(find(program).dropped_lines == std::vector<std::uint64_t>{2, 3});
}

TEST_CASE("what makes a replay fault or hang is kept", "[bundle][shrink]") {
  Program program(32);
  program.put_address(7 * kLineBytes + 8, kLineBytes);
  program.saved[20 * kLineBytes] = std::byte{5};
  program.operations = {{Kind::kGather, bytes_at(7 * kLineBytes + 8, 8), line_at(12)},
                        {Kind::kWait, bytes_at(20 * kLineBytes, 1), {}, 5},
                        {Kind::kWrite, line_at(0), line_at(6, 3)},
                        {Kind::kWrite, line_at(0), line_at(18, 4)}};

  const Found found = find(program);

  CHECK(found.dropped_lines == std::vector<std::uint64_t>{6, 8, 12, 18, 19, 21});
  CHECK(found.kept(Kept::kFault) == 2 * kLineBytes);
  CHECK(found.faults > 0);
}

TEST_CASE("what differs from replay to replay is kept and told, and the rest is dropped", "[bundle][shrink]") {
  Program program(16);
  program.operations = {{Kind::kWrite, line_at(0), line_at(3, 4)},
                        {Kind::kNoise, {}, line_at(5)},
                        {Kind::kUpdate, {}, line_at(9)},
                        {Kind::kWrite, line_at(1), line_at(8)}};

  const Found found = find(program);

  CHECK(found.dropped_lines == std::vector<std::uint64_t>{3, 4, 6, 8});
  CHECK(found.findings.varying == Spans{{kBase + 5 * kLineBytes, kBase + 6 * kLineBytes}});
  CHECK(found.kept(Kept::kVarying) == kLineBytes);
  CHECK(found.kept(Kept::kRead) == kLineBytes);
}

TEST_CASE("inputs are kept, though they are overwritten", "[bundle][shrink]") {
  Program program(8);
  program.operations = {{Kind::kWrite, line_at(0), line_at(2, 4)}};

  const Found found = find(program, {.inputs = {bytes_at(3 * kLineBytes + 100, 8)}});

  CHECK(found.dropped_lines == std::vector<std::uint64_t>{2, 4, 5});
  CHECK(found.kept(Kept::kInput) == 8);
  CHECK(found.kept(Kept::kSmall) == kLineBytes - 8);
}

TEST_CASE("memory that is overwritten with this input only is kept", "[bundle][shrink]") {
  Program program(16);
  program.put_address(0, 4 * kLineBytes);  // another input writes the last byte of line 4 and not its first
  program.operations = {{Kind::kScatter, line_at(1), bytes_at(0, 8)}, {Kind::kWrite, line_at(1), line_at(8)}};

  CHECK(find(program).dropped_lines == std::vector<std::uint64_t>{4, 8});
  CHECK(find(program, {.inputs = {bytes_at(0, 8)}}).dropped_lines == std::vector<std::uint64_t>{8});
}

TEST_CASE("dead memory is dropped unless it is read", "[bundle][shrink]") {
  Program program(16);
  program.operations = {{Kind::kWrite, line_at(6), line_at(1)}, {Kind::kWrite, line_at(0), line_at(4)}};

  const Found found = find(program, {.dead = {line_at(4, 4), line_at(12, 2)}});

  CHECK(found.dropped_lines == std::vector<std::uint64_t>{1, 4, 5, 7, 12, 13});
  CHECK(bytes_of(found.findings.dead) == 4 * kLineBytes);  // line 4 has content after a replay
}

TEST_CASE("memory that was dropped before stays dropped and is no reason to drop more", "[bundle][shrink]") {
  Program program(4);
  program.operations = {{Kind::kWrite, line_at(0), line_at(1)}};
  saved::Manifest manifest;
  manifest.blocks.push_back({.address = kBase, .bytes = program.saved.size()});
  saved::SavedGraph graph = {.name = "fake"};
  for (const std::uint64_t line : {0u, 2u, 3u}) graph.memory.push_back({.range = range_of(line_at(line))});
  std::uint64_t faults = 0;

  const absl::StatusOr<ShrinkFindings> found = find_overwritten(manifest, graph, [&](const std::vector<std::string>&) {
    return std::make_unique<FakeTrials>(&program, &faults);
  });

  REQUIRE_OK(found);
  CHECK(found->dropped.empty());
}

TEST_CASE("holes that are smaller than the limit are kept", "[bundle][shrink]") {
  Program program(32);
  program.operations = {{Kind::kWrite, line_at(0), line_at(2, 7)}, {Kind::kWrite, line_at(0), line_at(10, 8)}};

  const Found found = find(program, {}, {});

  CHECK(found.dropped_lines == std::vector<std::uint64_t>{10, 11, 12, 13, 14, 15, 16, 17});
  CHECK(found.kept(Kept::kSmall) == 7 * kLineBytes);
}

TEST_CASE("a limit of replays keeps what is not decided", "[bundle][shrink]") {
  Program program(256);
  for (std::uint64_t line = 1; line < 250; line += 2) {
    program.operations.push_back({Kind::kUpdate, {}, line_at(line)});
    program.operations.push_back({Kind::kWrite, line_at(0), line_at(line + 1)});
  }
  std::mt19937 random(1);

  const Found all = find(program);
  const Found some = find(program, {}, {.max_replays = 100, .min_hole_bytes = kLineBytes});

  CHECK(all.dropped_lines.size() == 125);
  CHECK(some.findings.replays <= 120);
  CHECK(some.dropped_lines.size() < 125);
  CHECK(some.kept(Kept::kUndecided) > 0);
  check_dropped(program, some.findings, random);
}

TEST_CASE("state that is updated in place takes few replays, however large it is", "[bundle][shrink]") {
  Program program(4096);
  program.operations = {{Kind::kUpdate, {}, line_at(100, 2000)},
                        {Kind::kWrite, line_at(100, 2000), line_at(2300, 500)},
                        {Kind::kUpdate, {}, line_at(3000, 900)}};

  const Found found = find(program, {}, {.min_hole_bytes = kLineBytes});

  CHECK(found.findings.replays < 500);
  CHECK(found.kept(Kept::kUndecided) == 0);
  CHECK(found.dropped_lines.size() > 480);
  CHECK(found.dropped_lines.size() <= 500);
}

TEST_CASE("a graph that faults without poison is refused", "[bundle][shrink]") {
  Program program(4);
  program.operations = {{Kind::kGather, bytes_at(0, 8), line_at(2)}};
  saved::Manifest manifest;
  manifest.blocks.push_back({.address = kBase, .bytes = program.saved.size()});
  const saved::SavedGraph graph = {.name = "fake"};
  std::uint64_t faults = 0;

  const absl::StatusOr<ShrinkFindings> found = find_overwritten(manifest, graph, [&](const std::vector<std::string>&) {
    return std::make_unique<FakeTrials>(&program, &faults);
  });

  CHECK_THAT(found.status(), StatusIs(absl::StatusCode::kFailedPrecondition, "from the saved state faults"));
}

Program random_program(std::mt19937& random, Marks& marks, bool has_scatter) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  const std::uint64_t lines = 4 + below(60);
  Program program(lines);
  for (std::byte& byte : program.saved) byte = static_cast<std::byte>(random());
  const auto any = [&](std::uint64_t max_bytes) {
    const std::uint64_t at = below(program.saved.size());
    return bytes_at(at, std::min(1 + below(max_bytes), program.saved.size() - at));
  };
  // Addresses have the last line for them, and nothing else writes there.
  const std::uint64_t addresses = (lines - 1) * kLineBytes;
  const auto writable = [&](Span span) { return Span{span.begin, std::min(span.end, addresses)}; };
  const std::uint64_t count = 1 + below(12);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Span to = writable(below(2) == 0 ? any(200) : any(16 * kLineBytes));
    if (to.begin >= to.end) continue;
    const std::uint64_t at = addresses + i * 8;
    switch (below(has_scatter ? 6 : 5)) {
      case 0: program.operations.push_back({Kind::kUpdate, {}, to}); break;
      case 1:
        program.put_address(at, below(addresses - to.bytes() + 1));
        program.operations.push_back({Kind::kGather, bytes_at(at, 8), to});
        break;
      case 5:
        program.put_address(at, below(addresses - to.bytes() + 1));
        program.operations.push_back({Kind::kScatter, to, bytes_at(at, 8)});
        break;
      default:
        program.operations.push_back(
            {Kind::kWrite, below(4) == 0 ? Span{} : any(3 * kLineBytes), to, static_cast<std::uint8_t>(i)});
    }
  }
  if (below(2) == 0) {
    program.settle();
  } else if (below(2) == 0) {  // addresses that are read first, and then overwritten
    program.operations.push_back({Kind::kWrite, {}, line_at(lines - 1)});
  }
  if (below(3) == 0) marks.inputs.push_back(writable(any(100)));
  if (below(3) == 0) marks.dead.push_back(line_at(below(lines - 1), 1));
  std::erase_if(marks.inputs, [](const Span& span) { return span.begin >= span.end; });
  return program;
}

TEST_CASE("of random programs just the lines are dropped that need no content", "[bundle][shrink]") {
  std::mt19937 random(17);
  std::uint64_t dropped = 0, faults = 0;
  for (int i = 0; i < 3000; ++i) {
    Marks marks;
    const Program program = random_program(random, marks, /*has_scatter=*/false);
    INFO("program " << i);

    const Found found = find(program, marks);

    REQUIRE(found.dropped_lines == lines_without_need(program, marks));
    check_dropped(program, found.findings, random);
    dropped += found.dropped_lines.size();
    faults += found.faults;
  }
  CHECK(dropped > 10'000);
  CHECK(faults > 20);
}

TEST_CASE("of random programs that write where memory says, no line is dropped that is needed", "[bundle][shrink]") {
  std::mt19937 random(18);
  std::uint64_t dropped = 0;
  for (int i = 0; i < 2000; ++i) {
    Marks marks;
    const Program program = random_program(random, marks, /*has_scatter=*/true);
    INFO("program " << i);

    const Found found = find(program, marks);

    check_dropped(program, found.findings, random);
    dropped += found.dropped_lines.size();
  }
  CHECK(dropped > 1'000);
}

}  // namespace
}  // namespace cgrt::testing
