// Executables of a process that may run at the same time and touch the same memory.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/lint_rules.h"
#include "cgrt/inspect/lint_run.h"
#include "cgrt/inspect/regions.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

constexpr std::size_t kMaxPlaces = 1 << 21;
constexpr std::uint64_t kMaxSteps = 1 << 22;
constexpr std::size_t kMaxPairs = 1 << 16;
constexpr std::size_t kMaxFindings = 10;  // of a severity
constexpr std::size_t kMaxStreams = 16;   // of an executable: more than recorders tell

struct Exec {
  std::string file;
  std::uint64_t number = 0, destroyed_before = 0;
  std::vector<std::string> streams;
  bool is_changed = false;  // by updates, or nodes set one by one: its graph tells what it was
  std::vector<ir::Allocation> allocations;
};

enum class PlaceAccess : std::uint8_t { kGets, kReads, kWrites };

// Bytes that a node touches for certain, or an address that a kernel gets.
struct Place {
  std::uint64_t memory = 0;
  Region region;  // of an allocation of its graph
  std::uint32_t exec = 0, node = 0;
  PlaceAccess access = PlaceAccess::kGets;
  ir::NodeKind kind = ir::NodeKind::kEmpty;
  // Of a kernel: the function, where in its arguments the address stands, and a number for all addresses that it gets.
  std::uint32_t function = 0, at = 0, addresses = 0;

  // The same for nodes of one graph that do the same here.
  auto key() const {
    return std::tuple(memory, region.begin, region.width, region.pitch, region.rows, access, function, at, addresses);
  }
  std::uint64_t end() const { return saturating_sum(region.begin + (region.rows - 1) * region.pitch, region.width); }
};

enum class Overlap { kNone, kIfNotBlocking, kFree };

// The legacy stream and those that were not created as non-blocking wait for each other; the per-thread ones are such.
Overlap overlap_of(std::string_view a, std::string_view b) {
  constexpr std::string_view kLegacy = "legacy", kPerThread = "per-thread";
  if (a == b) return Overlap::kNone;
  if (a != kLegacy && b != kLegacy) return Overlap::kFree;
  return a.starts_with(kPerThread) || b.starts_with(kPerThread) ? Overlap::kNone : Overlap::kIfNotBlocking;
}

Overlap overlap_of(const Exec& a, const Exec& b) {
  const auto is_over = [](const Exec& one, const Exec& other) {
    return one.destroyed_before != 0 && one.destroyed_before <= other.number;
  };
  if (is_over(a, b) || is_over(b, a)) return Overlap::kNone;
  Overlap most = Overlap::kNone;
  for (const std::string& one : a.streams) {
    for (const std::string& other : b.streams) most = std::max(most, overlap_of(one, other));
  }
  return most;
}

}  // namespace

struct SharedMemory::State {
  std::vector<Exec> execs;
  std::vector<Place> places;
  std::map<ir::Function, std::uint32_t> functions;
  std::map<std::vector<std::uint64_t>, std::uint32_t> addresses;
  std::size_t left_out = 0;  // places
};

namespace {

// Two places of the same memory, the first of an executable that comes before the second's.
struct Pair {
  const Place *first = nullptr, *second = nullptr;
  std::uint64_t byte = 0;
  Overlap overlap = Overlap::kNone;
};

class Pairs {
 public:
  Pairs(const std::vector<Exec>& execs, const std::vector<Place>& places) : execs_(execs) {
    for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
      while (end < places.size() && places[end].memory == places[begin].memory) ++end;
      const std::span memory(places.data() + begin, end - begin);
      if (!have_several_streams(memory)) continue;
      find_written(memory);
      memories_.push_back(memory);
    }
    written_ = pairs_.size();
    for (const std::span<const Place>& memory : memories_) find_shared_addresses(memory);
  }

  // Those with a certain write come first.
  const std::vector<Pair>& pairs() const { return pairs_; }
  std::size_t written() const { return written_; }
  std::size_t left_out() const { return left_out_.size(); }

 private:
  // Most programs launch all into one stream.
  bool have_several_streams(std::span<const Place> places) const {
    const std::vector<std::string>& first = execs_[places.front().exec].streams;
    return first.size() > 1 || std::any_of(places.begin(), places.end(),
                                           [&](const Place& one) { return execs_[one.exec].streams != first; });
  }

  // `places` ascend by their beginnings: with each are compared those before it that go on to it.
  void find_written(std::span<const Place> places) {
    std::vector<const Place*> writes, others;
    for (const Place& place : places) {
      const auto ended = [&](const Place* before) { return before->end() <= place.region.begin; };
      const bool is_write = place.access == PlaceAccess::kWrites;
      steps_ += writes.size() + (is_write ? others.size() : 0);
      if ((is_write || !writes.empty()) && is_at_limit(place.memory)) return;
      std::erase_if(writes, ended);
      for (const Place* write : writes) compare(*write, place);
      if (is_write) {
        std::erase_if(others, ended);
        for (const Place* other : others) compare(*other, place);
      }
      (is_write ? writes : others).push_back(&place);
    }
  }

  void compare(const Place& a, const Place& b) {
    if (a.exec == b.exec || is_known(a, b) || is_at_limit(a.memory)) return;
    const Overlap overlap = overlap_of(execs_[a.exec], execs_[b.exec]);
    if (overlap == Overlap::kNone) return;
    Region region_a = a.region, region_b = b.region;
    region_a.allocation = region_b.allocation = 0;
    if (a.region.pitch != b.region.pitch) steps_ += std::min(a.region.rows, b.region.rows);
    const Common common = common_byte(region_a, region_b);
    if (!common.is_known) left_out_.insert(a.memory);
    if (common.byte.has_value()) add(a, b, *common.byte, overlap);
  }

  // Kernels that get one address, and copies from there.
  void find_shared_addresses(std::span<const Place> places) {
    std::vector<const Place*> readers;  // ascending by address, then by executable
    for (const Place& place : places) {
      if (place.access != PlaceAccess::kWrites) readers.push_back(&place);
    }
    for (std::size_t begin = 0, end = 0; begin < readers.size(); begin = end) {
      const auto is_here = [&](const Place* one) { return one->region.begin == readers[begin]->region.begin; };
      while (end < readers.size() && is_here(readers[end])) ++end;
      if (!find_shared_address(std::span(readers).subspan(begin, end - begin))) return;
    }
  }

  bool find_shared_address(std::span<const Place* const> readers) {
    std::vector<std::span<const Place* const>> by_exec;
    for (std::size_t begin = 0, end = 0; begin < readers.size(); begin = end) {
      while (end < readers.size() && readers[end]->exec == readers[begin]->exec) ++end;
      by_exec.push_back(readers.subspan(begin, end - begin));
    }
    for (std::size_t a = 0; a < by_exec.size(); ++a) {
      const std::uint64_t destroyed_before = execs_[by_exec[a].front()->exec].destroyed_before;
      for (std::size_t b = a + 1; b < by_exec.size(); ++b) {
        if (destroyed_before != 0 && destroyed_before <= execs_[by_exec[b].front()->exec].number) break;
        compare(by_exec[a], by_exec[b]);
        if (is_at_limit(readers.front()->memory)) return false;
      }
    }
    return true;
  }

  // Of two executables.
  void compare(std::span<const Place* const> a, std::span<const Place* const> b) {
    ++steps_;
    if (is_known(*a.front(), *b.front())) return;
    const Overlap overlap = overlap_of(execs_[a.front()->exec], execs_[b.front()->exec]);
    if (overlap == Overlap::kNone) return;
    for (const Place* one : a) {
      for (const Place* other : b) {
        if (++steps_ >= kMaxSteps) return;
        if (!both_read(*one, *other)) return add(*one, *other, one->region.begin, overlap);
      }
    }
  }

  // As may-race takes it within a graph: two copies, or two launches of one function that get the address at one place
  // and elsewhere other addresses.
  static bool both_read(const Place& a, const Place& b) {
    if (a.access != b.access) return false;
    if (a.access == PlaceAccess::kReads) return true;
    return a.function == b.function && a.at == b.at && a.addresses != b.addresses;
  }

  void add(const Place& a, const Place& b, std::uint64_t byte, Overlap overlap) {
    const auto [first, second] = a.exec < b.exec ? std::pair(&a, &b) : std::pair(&b, &a);
    known_.insert({first->exec, second->exec});
    pairs_.push_back({first, second, byte, overlap});
  }

  bool is_known(const Place& a, const Place& b) const { return known_.contains(std::minmax(a.exec, b.exec)); }

  bool is_at_limit(std::uint64_t memory) {
    if (steps_ < kMaxSteps && pairs_.size() < kMaxPairs) return false;
    left_out_.insert(memory);
    return true;
  }

  const std::vector<Exec>& execs_;
  std::vector<std::span<const Place>> memories_;
  std::vector<Pair> pairs_;
  std::size_t written_ = 0;
  std::set<std::pair<std::uint32_t, std::uint32_t>> known_;
  std::set<std::uint64_t> left_out_;  // memories
  std::uint64_t steps_ = 0;
};

class Sentences {
 public:
  Sentences(const std::vector<Exec>& execs, const std::map<ir::Function, std::uint32_t>& functions) : execs_(execs) {
    names_.resize(functions.size());
    for (const auto& [function, number] : functions) names_[number] = &function.name;
  }

  std::string operator()(const Pair& pair) const {
    const Exec &first = execs_[pair.first->exec], &second = execs_[pair.second->exec];
    std::string text =
        absl::StrCat(ir::printable(first.file), " (launched into ", streams_of(first), ") and ",
                     ir::printable(second.file), " (", streams_of(second), "): ", part(*pair.first, pair),
                     " of the first, and ", part(*pair.second, pair), " of the second, the same memory.");
    if (pair.overlap == Overlap::kIfNotBlocking) {
      absl::StrAppend(&text, " The legacy stream waits for the others, but for those created as non-blocking.");
    }
    if (first.is_changed || second.is_changed) {
      absl::StrAppend(&text, " An update may have changed it meanwhile.");
    }
    return text;
  }

 private:
  static std::string streams_of(const Exec& exec) {
    return (exec.streams.size() == 1 ? "stream " : "streams ") +
           absl::StrJoin(exec.streams, ", ",
                         [](std::string* out, const std::string& one) { out->append(ir::printable(one)); });
  }

  std::string part(const Place& place, const Pair& pair) const {
    ir::GraphIr memory;
    memory.allocations = execs_[place.exec].allocations;
    const char* verb = place.access == PlaceAccess::kWrites  ? "writes"
                       : place.access == PlaceAccess::kReads ? "reads"
                                                             : "gets the address";
    const std::string what = place.kind == ir::NodeKind::kKernel
                                 ? absl::StrCat("\"", ir::printable(*names_[place.function]), "\"")
                                 : absl::StrCat("(", to_string(place.kind), ")");
    return absl::StrCat("node ", place.node, " ", what, " ", verb, " ",
                        ir::describe(memory, ir::Pointer{place.region.allocation, pair.byte}));
  }

  const std::vector<Exec>& execs_;
  std::vector<const std::string*> names_;
};

}  // namespace

SharedMemory::SharedMemory() : state_(std::make_unique<State>()) {}
SharedMemory::SharedMemory(SharedMemory&&) noexcept = default;
SharedMemory& SharedMemory::operator=(SharedMemory&&) noexcept = default;
SharedMemory::~SharedMemory() = default;

void SharedMemory::add(const ir::GraphIr& graph, const RecordedExec& exec) {
  if (exec.launches == 0 || exec.streams.empty() || exec.memory.empty()) return;
  State& all = *state_;
  const auto number = static_cast<std::uint32_t>(all.execs.size());
  all.execs.push_back({exec.file, exec.number, exec.destroyed_before, exec.streams, exec.updates + exec.set_params != 0,
                       graph.allocations});
  std::vector<std::string>& streams = all.execs.back().streams;
  streams.resize(std::min(streams.size(), kMaxStreams));
  std::vector<std::uint64_t> memory = exec.memory;
  for (const ir::Node& node : graph.nodes) {  // memory of the graph's own: the driver looks after it
    if (const auto* alloc = std::get_if<ir::MemAllocParams>(&node.params)) memory[alloc->address.allocation] = 0;
  }
  const std::size_t begin = all.places.size();
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    const auto add_place = [&](Place place) {
      place.memory = memory[place.region.allocation];
      place.exec = number;
      place.node = n;
      place.kind = node.kind;
      if (place.memory == 0 || place.region.width == 0) return;
      if (all.places.size() == kMaxPlaces) {
        ++all.left_out;
      } else {
        all.places.push_back(place);
      }
    };
    for (const Region& region : regions_of(node)) {
      if (region.rows == 0) continue;
      add_place({.region = region, .access = region.is_write ? PlaceAccess::kWrites : PlaceAccess::kReads});
    }
    const auto* kernel = std::get_if<ir::KernelParams>(&node.params);
    if (kernel == nullptr || kernel->pointers.empty()) continue;
    std::vector<std::uint64_t> addresses;
    for (const auto& [at, pointer] : kernel->pointers) {
      addresses.insert(addresses.end(), {at, memory[pointer.allocation], pointer.offset});
    }
    const auto next_function = static_cast<std::uint32_t>(all.functions.size());
    const auto function = all.functions.try_emplace(function_of(graph, *kernel), next_function).first->second;
    const auto next_addresses = static_cast<std::uint32_t>(all.addresses.size());
    const auto all_addresses = all.addresses.try_emplace(std::move(addresses), next_addresses).first->second;
    for (const auto& [at, pointer] : kernel->pointers) {
      const std::uint64_t width = pointer.offset == UINT64_MAX ? 0 : 1;
      add_place({.region = {pointer.allocation, pointer.offset, width},
                 .function = function,
                 .at = at,
                 .addresses = all_addresses});
    }
  }
  const auto first = all.places.begin() + static_cast<std::ptrdiff_t>(begin);
  std::stable_sort(first, all.places.end(), [](const Place& a, const Place& b) { return a.key() < b.key(); });
  all.places.erase(
      std::unique(first, all.places.end(), [](const Place& a, const Place& b) { return a.key() == b.key(); }),
      all.places.end());
}

std::vector<Finding> SharedMemory::findings() && {
  State& all = *state_;
  std::stable_sort(all.places.begin(), all.places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.memory, a.region.begin, a.exec) < std::tie(b.memory, b.region.begin, b.exec);
  });
  const Pairs found(all.execs, all.places);
  const Sentences sentence(all.execs, all.functions);
  std::vector<Pair> warned, noted;
  for (std::size_t i = 0; i < found.pairs().size(); ++i) {
    const Pair& pair = found.pairs()[i];
    const bool is_changed = all.execs[pair.first->exec].is_changed || all.execs[pair.second->exec].is_changed;
    const bool is_warned = i < found.written() && pair.overlap == Overlap::kFree && !is_changed;
    (is_warned ? warned : noted).push_back(pair);
  }
  std::vector<Finding> findings;
  const ir::GraphIr none;
  Report report(none, findings);
  const auto add = [&](Severity severity, const std::vector<Pair>& pairs) {
    for (std::size_t i = 0; i < std::min(pairs.size(), kMaxFindings); ++i) {
      std::string text = sentence(pairs[i]);
      if (i + 1 == kMaxFindings && pairs.size() > kMaxFindings) {
        absl::StrAppend(&text, " And ", counted(pairs.size() - kMaxFindings, "more pair"), ".");
      }
      report.add("shared-memory", severity, {}, std::move(text));
    }
  };
  add(Severity::kWarning, warned);
  add(Severity::kNote, noted);
  if (all.left_out != 0) report.add_not_checked("shared-memory", counted(all.left_out, "address") + "es");
  if (found.left_out() != 0) {
    report.add_not_checked("shared-memory", counted(found.left_out(), "allocation") + ", or some uses of them,");
  }
  sort_findings(findings);
  return findings;
}

}  // namespace cgrt::inspect
