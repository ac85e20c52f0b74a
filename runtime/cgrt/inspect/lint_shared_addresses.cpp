// Kernels that are not ordered and get one address, where nothing says whether one of them writes.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/lint_rules.h"
#include "cgrt/inspect/meetings.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

constexpr std::size_t kMaxAddressPairs = 1 << 22;

// A kernel gets the address, or a copy reads it.
struct Touch {
  std::uint32_t node = 0, at = 0;  // of a kernel: byte of its arguments
};

class SharedAddresses {
 public:
  explicit SharedAddresses(const ir::GraphIr& graph) : graph_(graph), addresses_(graph.nodes.size()) {
    std::map<std::vector<std::uint64_t>, std::uint32_t> numbers;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const auto* kernel = std::get_if<ir::KernelParams>(&graph.nodes[n].params);
      if (kernel == nullptr) continue;
      std::vector<std::uint64_t> all;
      for (const auto& [at, pointer] : kernel->pointers) {
        all.insert(all.end(), {at, pointer.allocation, pointer.offset});
      }
      const auto number = static_cast<std::uint32_t>(numbers.size());
      addresses_[n] = numbers.try_emplace(std::move(all), number).first->second;
    }
  }

  // Nodes that touch the address, in the order of the walk. Those that follow each other and only read are a group:
  // each node of it must be ordered with those of the group before, and not with the others of its own.
  void add_pairs(const ir::Pointer& address, const std::vector<Touch>& touches) {
    std::vector<Touch> before, group;
    for (const Touch& touch : touches) {
      if (!group.empty() && group.back().node == touch.node) continue;
      if (!group.empty() && !both_read(touch, group.back())) before = std::exchange(group, {});
      group.push_back(touch);
      if (pairs_.size() + before.size() > kMaxAddressPairs) {
        ++left_out_;
        return;
      }
      for (const Touch& other : before) {
        const ir::NodePair nodes{other.node, touch.node};
        if (!known_.insert(nodes).second) continue;  // two that share several addresses are said once
        pairs_.push_back({nodes, address.allocation, address.offset, address.offset + 1});
      }
    }
  }

  const std::vector<Meeting>& pairs() const { return pairs_; }
  std::size_t left_out() const { return left_out_; }

 private:
  // Two copies, or two launches of one function that get the address at one place and elsewhere other addresses: an
  // input that several use.
  bool both_read(const Touch& a, const Touch& b) const {
    const auto* kernel_a = std::get_if<ir::KernelParams>(&graph_.nodes[a.node].params);
    const auto* kernel_b = std::get_if<ir::KernelParams>(&graph_.nodes[b.node].params);
    if (kernel_a == nullptr || kernel_b == nullptr) return kernel_a == kernel_b;
    return kernel_a->function == kernel_b->function && a.at == b.at && addresses_[a.node] != addresses_[b.node];
  }

  const ir::GraphIr& graph_;
  std::vector<std::uint32_t> addresses_;  // by node: a number for all addresses of a kernel; equal for equal ones
  std::vector<Meeting> pairs_;
  std::set<ir::NodePair> known_;
  std::size_t left_out_ = 0;
};

}  // namespace

void lint_shared_addresses(const ir::GraphIr& graph, ir::Reachability& reachability, Report& report) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<Touch>> touches;  // by address
  for (const std::uint32_t n : reachability.order()) {
    if (const auto* kernel = std::get_if<ir::KernelParams>(&graph.nodes[n].params)) {
      for (const auto& [at, pointer] : kernel->pointers) {
        touches[{pointer.allocation, pointer.offset}].push_back({n, at});
      }
    } else if (const auto* copy = std::get_if<ir::MemcpyParams>(&graph.nodes[n].params);
               copy != nullptr && copy->source.has_value()) {
      touches[{copy->source->allocation, copy->source->offset}].push_back({n, 0});
    }
  }
  SharedAddresses shared(graph);
  for (const auto& [address, nodes] : touches) shared.add_pairs({address.first, address.second}, nodes);

  std::size_t left_out = 0;
  const std::vector<Meeting> unordered = unordered_of(shared.pairs(), reachability, left_out);
  report_by_allocation(report, "may-race", Severity::kWarning, 2, unordered, [&](const Meeting& meeting) {
    const auto [a, b] = std::minmax(meeting.nodes.from, meeting.nodes.to);
    return absl::StrCat(ir::node_label(graph, a), " and ", ir::node_label(graph, b),
                        " are not ordered, and both get the address ",
                        ir::describe(graph, ir::Pointer{meeting.allocation, meeting.begin}), ".");
  });
  if (shared.left_out() != 0) {
    report.add_not_checked("may-race", counted(shared.left_out(), "address") + "es, or some nodes of them,");
  }
  if (left_out != 0) report.add_not_checked("may-race", counted(left_out, "pair") + " of nodes");
}

}  // namespace cgrt::inspect
