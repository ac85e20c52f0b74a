#include "cgrt/ir/verdict.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <variant>

#include "cgrt/ir/matching.h"
#include "cgrt/ir/named.h"

namespace cgrt::ir {
namespace {

constexpr std::array kRungs = {"none", "rebind", "set-params", "whole-graph update", "instantiate anew"};
constexpr std::array kUpdates = {"taken over", "may be refused", "succeeds and loses it", "refused"};

// All rules.
struct Rule {
  Rung rung;
  Update update;
  const char* text;
};

// Of kernels.
constexpr Rule kWord = {Rung::kRebind, Update::kTaken, ""};
constexpr Rule kWordOfCluster = {Rung::kSetParams, Update::kTaken, "the host sets a kernel with clusters"};
constexpr Rule kWordInBody = {Rung::kSetParams, Update::kTaken,
                              "nothing inside of a conditional node is changed on the device"};
constexpr Rule kWordOfPlainGraph = {
    Rung::kSetParams, Update::kTaken,
    "a graph with programmatic edges between kernels, or with kernels of several devices, is not made rebindable"};
constexpr Rule kLaunch = {Rung::kSetParams, Update::kTaken, ""};
constexpr Rule kFunction = {
    Rung::kSetParams, Update::kTaken,
    "to a function that launches or updates from the device only where the one before it did, which a file does not "
    "say"};
constexpr Rule kContext = {Rung::kInstantiate, Update::kRefused, "a node keeps its context"};
constexpr Rule kCooperative = {Rung::kInstantiate, Update::kRefused, "a kernel stays cooperative, or not cooperative"};
constexpr Rule kAttribute = {Rung::kInstantiate, Update::kLost,
                             "an executable keeps the launch attributes that it was made with"};
constexpr Rule kAttributeInChild = {
    Rung::kSetParams, Update::kLost,
    "set-params of the child graph node takes over launch attributes, a whole-graph update does not"};
constexpr Rule kCluster = {Rung::kWholeUpdate, Update::kTaken, "set-params keeps the cluster size of an executable"};
constexpr Rule kPriority = {Rung::kNone, Update::kTaken,
                            "counts only in executables that use the priorities of nodes: those are instantiated anew"};

// Of copies and memsets.
constexpr Rule kPlace = {Rung::kInstantiate, Update::kRefused,
                         "what a copy or memset names stays in memory of the same kind, of the same device"};
constexpr Rule kOperand = {Rung::kSetParams, Update::kTaken, ""};
constexpr Rule kRowsOfCopy = {Rung::kInstantiate, Update::kRefused, "a copy of several rows stays as it is"};
constexpr Rule kFillSize = {Rung::kSetParams, Update::kMayBeRefused,
                            "where the driver has room for the other size: else instantiate anew"};
constexpr Rule kRowsOfFill = {Rung::kInstantiate, Update::kRefused,
                              "a memset of several rows changes its address and value only"};

// Of other kinds.
constexpr Rule kSet = {Rung::kSetParams, Update::kTaken, ""};
constexpr Rule kOperations = {Rung::kInstantiate, Update::kRefused,
                              "memory operations change their addresses, values and conditions, not their number, "
                              "types and sizes"};
constexpr Rule kSemaphores = {Rung::kInstantiate, Update::kRefused, "the number of semaphores stays"};
constexpr Rule kConditional = {Rung::kInstantiate, Update::kRefused, "parameters of conditional nodes do not change"};
constexpr Rule kAtLaunch = {Rung::kWholeUpdate, Update::kTaken,
                            "only a whole-graph update changes the value at launch of a conditional handle"};
constexpr Rule kGraphMemory = {Rung::kInstantiate, Update::kRefused,
                               "parameters of allocations and frees of graphs do not change"};
constexpr Rule kBuffer = {Rung::kRebind, Update::kTaken,
                          "another buffer, so its address is another argument wherever it stands"};
constexpr Rule kBufferOfOthers = {Rung::kSetParams, Update::kTaken, kBuffer.text};
constexpr Rule kNodes = {Rung::kInstantiate, Update::kRefused, "the nodes of an executable stay"};
constexpr Rule kEdges = {Rung::kInstantiate, Update::kRefused, "the edges of an executable and their types stay"};
constexpr Rule kUnknown = {Rung::kInstantiate, Update::kRefused, "not decoded, so not known to be alike"};

// Of the whole.
constexpr const char* kByPosition = "with the nodes taken by the order in which they were made, not by what they do";
constexpr const char* kOtherOrder =
    "cuGraphExecUpdate takes the nodes by the order in which they were made, which is another in these graphs";

Verdict to_verdict(const Rule& rule) { return {rule.rung, rule.update, rule.text}; }

bool is_in_conditional(const GraphIr& graph, const Node& node) {
  for (std::uint32_t body = node.body; body != 0;) {
    const Node& owner = graph.nodes[graph.bodies[body - 1].owner];
    if (owner.kind == NodeKind::kConditional) return true;
    body = owner.body;
  }
  return false;
}

bool is_in_child(const GraphIr& graph, const Node& node) {
  return node.body != 0 && graph.nodes[graph.bodies[node.body - 1].owner].kind == NodeKind::kChildGraph;
}

// As instantiate_rebindable: programmatic edges are allowed only to and from kernels that stay the host's, those with
// clusters, which must not be in a child graph.
bool is_rebindable(const GraphIr& graph) {
  const auto has_cluster = [](const Node& node) {
    const auto* kernel = std::get_if<KernelParams>(&node.params);
    return kernel != nullptr && kernel->attributes.cluster != Dim3();
  };
  for (const Edge& edge : graph.edges) {
    const Node &from = graph.nodes[edge.from], &to = graph.nodes[edge.to];
    const bool is_full = edge.type == EdgeType::kFull && edge.from_port == 0;
    if (is_full || to.kind != NodeKind::kKernel || is_in_conditional(graph, to)) continue;
    if (to.body != 0 || !(has_cluster(from) || has_cluster(to))) return false;
  }
  std::optional<std::int32_t> device;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::kKernel) continue;
    if (device.value_or(node.device) != node.device) return false;
    device = node.device;
  }
  return true;
}

class Judge {
 public:
  Judge(const GraphIr& a, const GraphIr& b) : a_(a), b_(b), is_rebindable_(is_rebindable(a)) {}

  Verdicts judge(const Differences& differences) const {
    Verdicts out;
    const auto add = [&](const Verdict& one) {
      out.rung = std::max(out.rung, one.rung);
      if (one.update <= out.update) return;
      out.update = one.update;
      out.update_rule = one.rule;
    };
    if (!differences.only_in_a.empty() || !differences.only_in_b.empty()) add(out.nodes = to_verdict(kNodes));
    if (!differences.edges_only_in_a.empty() || !differences.edges_only_in_b.empty()) {
      add(out.edges = to_verdict(kEdges));
    }
    for (const Change& change : differences.changes) {
      out.changes.push_back(to_verdict(rule_of(change)));
      add(out.changes.back());
    }
    return out;
  }

 private:
  const Rule& rule_of(const Change& change) const {
    switch (change.part) {
      case Part::kMemoryKind:
      case Part::kMemoryDevice: return is_operand(change.id) ? kPlace : buffer(change.id);
      case Part::kMemoryBytes: return buffer(change.id);
      default: return rule_of(change, a_.nodes[change.id], b_.nodes[change.other]);
    }
  }

  const Rule& rule_of(const Change& change, const Node& a, const Node& b) const {
    switch (change.part) {
      case Part::kDevice: return kContext;
      case Part::kGrid:
      case Part::kArgument: return word_of(a);
      case Part::kBlock:
      case Part::kSharedBytes: return kLaunch;
      case Part::kFunction:
      case Part::kArgumentCount:
      case Part::kArgumentPlace: return kFunction;
      case Part::kCooperative: return kCooperative;
      case Part::kCluster:
        // A cluster is taken over, none is not: the executable keeps the one that it has (driver 580).
        if (std::get<KernelParams>(b.params).attributes.cluster == Dim3()) {
          return is_in_child(a_, a) ? kAttributeInChild : kAttribute;
        }
        return kCluster;
      case Part::kPreferredCluster:
      case Part::kClusterScheduling:
      case Part::kSyncDomain:
      case Part::kCarveout:
      case Part::kAccessPolicy: return is_in_child(a_, a) ? kAttributeInChild : kAttribute;
      case Part::kPriority: return kPriority;
      case Part::kEvent:
      case Part::kSemaphore: return kSet;
      case Part::kConditionalKind:
      case Part::kConditionalHandle:
      case Part::kBodyCount: return kConditional;
      case Part::kAtLaunch: return kAtLaunch;
      case Part::kOperationCount: return kOperations;
      case Part::kOperation:
        return operation(std::get<BatchMemOpParams>(a.params), std::get<BatchMemOpParams>(b.params));
      case Part::kSemaphoreCount: return kSemaphores;
      case Part::kBytes:
      case Part::kAddress: return kGraphMemory;
      default: break;
    }
    const auto *copy = std::get_if<MemcpyParams>(&a.params), *other_copy = std::get_if<MemcpyParams>(&b.params);
    if (copy != nullptr && other_copy != nullptr) return copied(change.part, *copy, *other_copy);
    const auto *fill = std::get_if<MemsetParams>(&a.params), *other_fill = std::get_if<MemsetParams>(&b.params);
    if (fill != nullptr && other_fill != nullptr) return filled(change.part, *fill, *other_fill);
    return kUnknown;
  }

  const Rule& word_of(const Node& node) const {
    if (std::get<KernelParams>(node.params).attributes.cluster != Dim3()) return kWordOfCluster;
    if (is_in_conditional(a_, node)) return kWordInBody;
    return is_rebindable_ ? kWord : kWordOfPlainGraph;
  }

  const Rule& copied(Part part, const MemcpyParams& a, const MemcpyParams& b) const {
    const auto has_rows = [](const MemcpyParams& copy) { return copy.height > 1 || copy.depth > 1; };
    const bool is_of_rows = has_rows(a) || has_rows(b);
    switch (part) {
      case Part::kDestination:
        if (!is_same_place(a.destination, b.destination)) return kPlace;
        return is_of_rows ? kRowsOfCopy : kOperand;
      case Part::kSource:
        if (!is_same_place(a.source, b.source)) return kPlace;
        return is_of_rows ? kRowsOfCopy : kOperand;
      default: return is_of_rows ? kRowsOfCopy : kOperand;
    }
  }

  const Rule& filled(Part part, const MemsetParams& a, const MemsetParams& b) const {
    if (part == Part::kDestination) return is_same_place(a.destination, b.destination) ? kOperand : kPlace;
    if (part == Part::kValue) return kOperand;
    return a.height > 1 || b.height > 1 ? kRowsOfFill : kFillSize;
  }

  static const Rule& operation(const BatchMemOpParams& a, const BatchMemOpParams& b) {
    const auto is_alike = [](const MemOp& x, const MemOp& y) {
      return (x.kind == MemOpKind::kWrite) == (y.kind == MemOpKind::kWrite) && x.bytes == y.bytes;
    };
    return std::equal(a.operations.begin(), a.operations.end(), b.operations.begin(), is_alike) ? kSet : kOperations;
  }

  // Whether both lie in memory of one kind and device: for CUDA, of the host or of a device. Managed memory has the
  // device's type.
  bool is_same_place(const std::optional<Pointer>& a, const std::optional<Pointer>& b) const {
    if (!a.has_value() || !b.has_value()) return a.has_value() == b.has_value();
    return place_of(a_, *a) == place_of(b_, *b);
  }
  static std::pair<bool, std::int32_t> place_of(const GraphIr& graph, const Pointer& pointer) {
    if (pointer.allocation >= graph.allocations.size()) return {false, -1};
    const Allocation& one = graph.allocations[pointer.allocation];
    const bool is_of_device = one.kind == MemoryKind::kDevice || one.kind == MemoryKind::kManaged;
    return {is_of_device, is_of_device ? one.device : -1};
  }

  // Nodes of `a` that name it.
  template <class Condition>
  bool has_user(std::uint32_t allocation, Condition condition) const {
    return std::any_of(a_.nodes.begin(), a_.nodes.end(), [&](const Node& node) {
      if (!condition(node)) return false;
      bool is_named = false;
      visit_named(node, [&](Named named, std::uint32_t number) {
        is_named |= named == Named::kAllocation && number == allocation;
      });
      return is_named;
    });
  }
  bool is_operand(std::uint32_t allocation) const {
    return has_user(allocation,
                    [](const Node& node) { return node.kind == NodeKind::kMemcpy || node.kind == NodeKind::kMemset; });
  }
  const Rule& buffer(std::uint32_t allocation) const {
    const bool is_bound = has_user(allocation, [&](const Node& node) {
      return node.kind != NodeKind::kKernel || word_of(node).rung != Rung::kRebind;
    });
    return is_bound ? kBufferOfOthers : kBuffer;
  }

  const GraphIr& a_;
  const GraphIr& b_;
  bool is_rebindable_;
};

}  // namespace

const char* to_string(Rung rung) { return kRungs[static_cast<std::size_t>(rung)]; }
const char* to_string(Update update) { return kUpdates[static_cast<std::size_t>(update)]; }

std::vector<std::uint32_t> match_by_position(const GraphIr& a, const GraphIr& b) {
  std::vector<std::uint32_t> matches(a.nodes.size(), kNoNode);
  for (std::uint32_t n = 0; n < std::min(a.nodes.size(), b.nodes.size()); ++n) {
    const Node &ours = a.nodes[n], &theirs = b.nodes[n];
    if (ours.kind == theirs.kind && ours.body == theirs.body) matches[n] = n;
  }
  return matches;
}

Verdicts judge(const GraphIr& a, const GraphIr& b, const Differences& changes) {
  const Judge judge(a, b);
  Verdicts out = judge.judge(changes);
  // cuGraphExecUpdate knows no other pairs, and the caller who sets nodes one by one may choose.
  const Verdicts by_position = judge.judge(differences(a, b, match_by_position(a, b)));
  out.update = by_position.update;
  out.update_rule = by_position.update_rule;
  if (by_position.rung < out.rung) {
    out.rung = by_position.rung;
    out.is_by_position = true;
    out.rule = kByPosition;
  } else if (out.rung == Rung::kWholeUpdate && out.update > Update::kMayBeRefused) {
    out.rung = Rung::kInstantiate;
    out.rule = kOtherOrder;
  }
  return out;
}

}  // namespace cgrt::ir
