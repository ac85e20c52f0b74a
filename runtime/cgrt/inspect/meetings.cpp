#include "cgrt/inspect/meetings.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "cgrt/inspect/regions.h"

namespace cgrt::inspect {
namespace {

constexpr std::uint64_t kMaxWalkSteps = 1 << 22;
constexpr std::uint32_t kNone = UINT32_MAX;

struct RegionAccess {
  std::uint32_t node = 0;
  Region region = {};
};

struct Stretch {
  std::uint64_t end = 0;
  std::uint32_t writer = kNone;
  std::vector<std::uint32_t> readers = {};  // since
};

// One allocation.
class Walk {
 public:
  explicit Walk(std::uint64_t& steps) : steps_(steps) {}

  void touch(const RegionAccess& access) {
    const Region& region = access.region;
    if (region.width == 0) return;  // it began at the end of all addresses
    for (std::uint64_t row = 0; row < region.rows; ++row) {
      const std::uint64_t begin = region.begin + row * region.pitch;
      touch(access, begin, begin + region.width);
    }
  }

  const auto& meetings() const { return meetings_; }

 private:
  using Stretches = std::map<std::uint64_t, Stretch>;  // by begin

  void touch(const RegionAccess& access, std::uint64_t begin, std::uint64_t end) {
    const auto first = split(begin), last = split(end);
    for (auto at = first; at != last; ++at) {
      auto& [start, stretch] = *at;
      meet(stretch.writer, access.node, start, stretch.end);
      if (access.region.is_write) {
        for (const std::uint32_t reader : stretch.readers) meet(reader, access.node, start, stretch.end);
      } else if (stretch.readers.empty() || stretch.readers.back() != access.node) {
        stretch.readers.push_back(access.node);
      }
    }
    if (!access.region.is_write) return fill_gaps(access.node, begin, end);
    stretches_.erase(first, last);  // one writer for all of it
    stretches_.insert_or_assign(begin, Stretch{end, access.node});
  }

  // Makes a stretch begin at `at` where one goes over it; returns the first that begins there or behind.
  Stretches::iterator split(std::uint64_t at) {
    ++steps_;
    const auto behind = stretches_.lower_bound(at);
    if (behind == stretches_.begin() || (behind != stretches_.end() && behind->first == at)) return behind;
    Stretch& before = std::prev(behind)->second;
    if (before.end <= at) return behind;
    Stretch rest = before;
    before.end = at;
    steps_ += rest.readers.size();
    return stretches_.emplace_hint(behind, at, std::move(rest));
  }

  // What nobody touched before is read: stretches of its own.
  void fill_gaps(std::uint32_t node, std::uint64_t begin, std::uint64_t end) {
    auto next = stretches_.lower_bound(begin);
    for (std::uint64_t at = begin; at < end;) {
      const bool is_last = next == stretches_.end() || next->first >= end;
      const std::uint64_t until = is_last ? end : next->first;
      if (at < until) stretches_.emplace_hint(next, at, Stretch{until, kNone, {node}});
      if (is_last) return;
      at = next->second.end;
      ++next;
    }
  }

  void meet(std::uint32_t first, std::uint32_t second, std::uint64_t begin, std::uint64_t end) {
    ++steps_;
    if (first == kNone || first == second) return;
    const auto [found, is_new] = meetings_.try_emplace({first, second}, begin, end);
    if (!is_new && found->second.second == begin) found->second.second = end;  // the stretch goes on
  }

  std::uint64_t& steps_;
  Stretches stretches_;
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> meetings_;
};

std::map<std::uint32_t, std::vector<RegionAccess>> accesses_of(const ir::GraphIr& graph,
                                                               const std::vector<std::uint32_t>& order) {
  std::map<std::uint32_t, std::vector<RegionAccess>> accesses;  // by allocation
  for (const std::uint32_t n : order) {
    const ir::Node& node = graph.nodes[n];
    for (const Region& region : regions_of(node)) accesses[region.allocation].push_back({n, region});
    const auto* kernel = std::get_if<ir::KernelParams>(&node.params);
    if (kernel == nullptr) continue;
    for (const auto& [at, pointer] : kernel->pointers) {
      const std::uint64_t width = pointer.offset == UINT64_MAX ? 0 : 1;
      accesses[pointer.allocation].push_back({n, {pointer.allocation, pointer.offset, width}});
    }
  }
  return accesses;
}

}  // namespace

Meetings find_meetings(const ir::GraphIr& graph, const std::vector<std::uint32_t>& order) {
  Meetings out;
  std::uint64_t steps = 0;
  for (const auto& [allocation, accesses] : accesses_of(graph, order)) {
    const bool is_written = std::any_of(accesses.begin(), accesses.end(),
                                        [](const RegionAccess& access) { return access.region.is_write; });
    if (!is_written || accesses.front().node == accesses.back().node) continue;
    Walk walk(steps);
    for (const RegionAccess& access : accesses) {
      if (access.region.rows <= kMaxWalkSteps - std::min(steps, kMaxWalkSteps)) {
        walk.touch(access);
      } else {
        ++out.left_out;
      }
    }
    const auto begin = static_cast<std::ptrdiff_t>(out.meetings.size());
    for (const auto& [nodes, where] : walk.meetings()) {
      out.meetings.push_back({{nodes.first, nodes.second}, allocation, where.first, where.second});
    }
    std::sort(out.meetings.begin() + begin, out.meetings.end(),
              [](const Meeting& a, const Meeting& b) { return a.nodes < b.nodes; });
  }
  return out;
}

}  // namespace cgrt::inspect
