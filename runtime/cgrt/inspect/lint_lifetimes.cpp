// Memory of the graph's own: allocation nodes, free nodes, and what touches the memory between them.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/lint_rules.h"
#include "cgrt/inspect/regions.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

using Ids = std::vector<std::uint32_t>;

// The nodes of one address. The driver gives an address again where what frees it comes before, so that it may have
// several lifetimes, one after the other: the first free node ends that of the first allocation node, and so on.
struct Memory {
  std::uint64_t bytes = 0;  // of the largest that stands there
  Ids allocs, frees;        // each in an order in which the graph may run
};

class Lifetimes {
 public:
  Lifetimes(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report)
      : graph_(graph), reachability_(reachability), report_(report) {}

  void run() {
    collect();
    for (const auto& [where, memory] : memories_) check_frees(where, memory);
    if (!memories_.empty()) find_uses();
    check_uses();
    report_lists();
  }

 private:
  using Address = std::pair<std::uint32_t, std::uint64_t>;  // allocation, offset

  void collect() {
    for (const std::uint32_t n : reachability_.order()) {
      const ir::Node& node = graph_.nodes[n];
      if (const auto* alloc = std::get_if<ir::MemAllocParams>(&node.params)) {
        Memory& memory = memories_[{alloc->address.allocation, alloc->address.offset}];
        memory.bytes = std::max(memory.bytes, alloc->bytes);
        memory.allocs.push_back(n);
      } else if (const auto* free = std::get_if<ir::MemFreeParams>(&node.params)) {
        memories_[{free->address.allocation, free->address.offset}].frees.push_back(n);
      }
    }
  }

  void check_frees(const Address& where, const Memory& memory) {
    const std::size_t lifetimes = std::max<std::size_t>(memory.allocs.size(), 1);
    if (memory.allocs.empty()) frees_without_.push_back(memory.frees.front());
    for (std::size_t i = 0; i < memory.allocs.size(); ++i) {
      if (i >= memory.frees.size()) {
        unfreed_.push_back(memory.allocs[i]);
      } else {
        want(memory.allocs[i], memory.frees[i], memory.frees[i]);
      }
    }
    for (std::size_t i = lifetimes; i < memory.frees.size(); ++i) {
      const Ids both = {memory.frees[i - 1], memory.frees[i]};
      const ir::NodePair common = reachability_.in_common_body({both[0], both[1]});
      if (common.from == common.to) continue;  // in two bodies, of which one runs
      report_.add(
          "double-free", Severity::kError, both,
          absl::StrCat(report_.labels(both), " free ", ir::describe(graph_, ir::Pointer{where.first, where.second}),
                       ", and nothing allocates it in between."));
    }
  }

  // An error of `use` unless `first` comes before `second`; it is one of the two.
  void want(std::uint32_t first, std::uint32_t second, std::uint32_t use) {
    const ir::NodePair common = reachability_.in_common_body({first, second});
    if (common.from == common.to) return;
    wanted_.push_back(common);
    uses_.emplace_back(use, use == first ? second : first);
  }

  void find_uses() {
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      if (const auto* kernel = std::get_if<ir::KernelParams>(&node.params)) {
        for (const auto& [at, pointer] : kernel->pointers) find_use(n, pointer);
      }
      for (const Extent& extent : extents_of(node)) find_use(n, extent.start);
    }
  }

  void find_use(std::uint32_t node, const ir::Pointer& pointer) {
    const auto after = memories_.upper_bound({pointer.allocation, pointer.offset});
    if (after == memories_.begin()) return;
    const auto& [where, memory] = *std::prev(after);
    const bool is_inside = where.first == pointer.allocation && pointer.offset - where.second < memory.bytes;
    if (!is_inside) return;
    // Of several lifetimes the one that began last: a use that is in order is behind it and before the next.
    const auto next = std::upper_bound(
        memory.allocs.begin(), memory.allocs.end(), node,
        [&](std::uint32_t a, std::uint32_t b) { return reachability_.position(a) < reachability_.position(b); });
    const std::size_t i =
        next == memory.allocs.begin() ? 0 : static_cast<std::size_t>(next - memory.allocs.begin()) - 1;
    want(memory.allocs[i], node, node);
    if (i < memory.frees.size()) want(node, memory.frees[i], node);
  }

  void check_uses() {
    const std::vector<ir::Reach> answers = reachability_.ask(wanted_, ir::Paths::kWaiting);
    std::set<std::pair<std::uint32_t, std::uint32_t>> reported;  // a node may have several addresses of one memory
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i] == ir::Reach::kNotLookedAt) ++left_out;
      if (answers[i] != ir::Reach::kNone || !reported.insert(uses_[i]).second) continue;
      const auto& [use, other] = uses_[i];
      const bool is_free = graph_.nodes[other].kind == ir::NodeKind::kMemFree;
      const bool is_use_free = graph_.nodes[use].kind == ir::NodeKind::kMemFree;
      report_.add("use-outside-lifetime", Severity::kError, {use, other},
                  absl::StrCat(ir::node_label(graph_, use), is_use_free ? " frees" : " uses",
                               " memory of an allocation node, and is not ordered ", is_free ? "before " : "after ",
                               ir::node_label(graph_, other), ", which ", is_free ? "frees it." : "allocates it."));
    }
    if (left_out != 0) report_.add_not_checked("use-outside-lifetime", counted(left_out, "use"));
  }

  void report_lists() {
    if (!unfreed_.empty()) {
      report_.add("unfreed-allocation", Severity::kWarning, unfreed_,
                  absl::StrCat(report_.labels(unfreed_),
                               ": no node frees the memory, and the next launch is refused while it is there."));
    }
    if (!frees_without_.empty()) {
      report_.add("free-unallocated", Severity::kNote, frees_without_,
                  absl::StrCat(report_.labels(frees_without_), ": another graph or a stream allocates the memory."));
    }
  }

  const ir::GraphIr& graph_;
  ir::Reachability& reachability_;
  Report& report_;
  std::map<Address, Memory> memories_;
  Ids frees_without_, unfreed_;
  std::vector<ir::NodePair> wanted_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> uses_;  // beside wanted_: the use, and the other node
};

}  // namespace

void lint_lifetimes(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report) {
  Lifetimes(graph, reachability, report).run();
}

}  // namespace cgrt::inspect
