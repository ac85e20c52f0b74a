#include "cgrt/ir/validate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/ir/analysis.h"
#include "cgrt/ir/describe.h"

namespace cgrt::ir {
namespace {

// Checks one node; its label is built only when there is something to say.
class NodeChecker {
 public:
  NodeChecker(const GraphIr& graph, std::uint32_t id) : graph_(graph), id_(id) {}

  absl::Status check() const {
    const Node& node = graph_.nodes[id_];
    if (node.kind > NodeKind::kConditional) {
      return offence(absl::StrCat("has the unknown kind ", static_cast<unsigned>(node.kind)));
    }
    if (node.device < -1) return offence(absl::StrCat("names device ", node.device));
    return std::visit([&](const auto& params) { return check(params, node.kind); }, node.params);
  }

 private:
  absl::Status check(const NoParams&, NodeKind kind) const {
    return kind == NodeKind::kKernel ? offence("has no parameters") : absl::OkStatus();
  }

  absl::Status check(const KernelParams& params, NodeKind kind) const {
    if (kind != NodeKind::kKernel) return wrong_params(kind, "a kernel");
    CGRT_RETURN_IF_ERROR(check(params.attributes.access_policy));
    if (params.attributes.cluster_scheduling > ClusterScheduling::kLoadBalancing) {
      return offence(absl::StrCat("has the unknown cluster scheduling ",
                                  static_cast<unsigned>(params.attributes.cluster_scheduling)));
    }
    if (params.function >= graph_.functions.size()) {
      return offence(absl::StrCat("runs function ", params.function, "; the graph has ", graph_.functions.size()));
    }
    const std::vector<Parameter>& parameters = graph_.functions[params.function].parameters;
    const std::size_t bytes = parameters.empty() ? 0 : std::size_t{parameters.back().offset} + parameters.back().size;
    if (params.arguments.size() != bytes) {
      return offence(
          absl::StrCat("has ", counted(params.arguments.size(), "byte"), " of arguments; its function takes ", bytes));
    }
    std::size_t pointers = 0, used = 0;
    const std::vector<Argument> arguments = arguments_of(graph_, params);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      CGRT_RETURN_IF_ERROR(check_pointers(absl::StrCat("argument ", i), arguments[i]));
      pointers += arguments[i].pointers.size();
      used += non_zero(arguments[i].bytes);
    }
    if (pointers != params.pointers.size() || used != non_zero(params.arguments)) {
      return offence("has addresses or bytes that are not 0 outside of its arguments");
    }
    return absl::OkStatus();
  }

  static std::size_t non_zero(std::span<const std::uint8_t> bytes) {
    return bytes.size() - static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), 0));
  }

  absl::Status check_pointers(const std::string& name, const Argument& argument) const {
    std::size_t end = 0;  // of the one before
    for (const auto& [in_buffer, pointer] : argument.pointers) {
      const std::size_t at = in_buffer - argument.parameter.offset;
      if (at < end || at + 8 > argument.bytes.size()) {
        return offence(absl::StrCat(name, " of ", counted(argument.bytes.size(), "byte"), " has an address at byte ",
                                    at, "; they are ascending, 8 bytes each and inside of it"));
      }
      if (non_zero(argument.bytes.subspan(at, 8)) != 0) {
        return offence(absl::StrCat(name, " has an address at byte ", at, " and bytes that are not 0 there"));
      }
      const bool is_all = argument.pointer() != nullptr;
      CGRT_RETURN_IF_ERROR(check_pointer(is_all ? name : absl::StrCat(name, " at byte ", at), pointer));
      end = at + 8;
    }
    return absl::OkStatus();
  }

  absl::Status check(const AccessPolicyWindow& window) const {
    if (window == AccessPolicyWindow{}) return absl::OkStatus();
    if (window.bytes == 0) return offence("has an access policy window of 0 bytes that says more than that");
    if (!std::isfinite(window.hit_ratio)) {
      return offence(absl::StrCat("access policy window has the hit ratio ", window.hit_ratio));
    }
    for (const AccessProperty property : {window.hit, window.miss}) {
      if (property <= AccessProperty::kPersisting) continue;
      return offence(absl::StrCat("access policy window has the unknown property ", static_cast<unsigned>(property)));
    }
    return check_pointer("access policy window", window.base);
  }

  absl::Status check(const MemcpyParams& params, NodeKind kind) const {
    if (kind != NodeKind::kMemcpy) return wrong_params(kind, "a memcpy");
    if (params.width_bytes == 0 || params.height == 0 || params.depth == 0) return offence("copies 0 bytes");
    if (params.destination.has_value()) CGRT_RETURN_IF_ERROR(check_pointer("destination", *params.destination));
    if (params.source.has_value()) CGRT_RETURN_IF_ERROR(check_pointer("source", *params.source));
    return absl::OkStatus();
  }

  absl::Status check(const MemsetParams& params, NodeKind kind) const {
    if (kind != NodeKind::kMemset) return wrong_params(kind, "a memset");
    if (params.element_bytes != 1 && params.element_bytes != 2 && params.element_bytes != 4) {
      return offence(absl::StrCat("has elements of ", counted(params.element_bytes, "byte"), "; there are 1, 2 and 4"));
    }
    if (params.width == 0 || params.height == 0) return offence("sets 0 elements");
    return check_pointer("destination", params.destination);
  }

  absl::Status check(const EventParams&, NodeKind kind) const {
    const bool has_event = kind == NodeKind::kEventRecord || kind == NodeKind::kEventWait;
    return has_event ? absl::OkStatus() : wrong_params(kind, "an event");
  }

  absl::Status check(const ConditionalParams& params, NodeKind kind) const {
    if (kind != NodeKind::kConditional) return wrong_params(kind, "a conditional node");
    if (params.kind <= ConditionalKind::kSwitch) return absl::OkStatus();
    return offence(absl::StrCat("is of the unknown conditional kind ", static_cast<unsigned>(params.kind)));
  }

  absl::Status check(const MemAllocParams& params, NodeKind kind) const {
    if (kind != NodeKind::kMemAlloc) return wrong_params(kind, "an allocation");
    if (params.bytes == 0) return offence("allocates 0 bytes");
    return check_pointer("address", params.address);
  }

  absl::Status check(const MemFreeParams& params, NodeKind kind) const {
    if (kind != NodeKind::kMemFree) return wrong_params(kind, "a free");
    return check_pointer("address", params.address);
  }

  absl::Status check(const BatchMemOpParams& params, NodeKind kind) const {
    if (kind != NodeKind::kBatchMemOp) return wrong_params(kind, "memory operations");
    for (std::size_t i = 0; i < params.operations.size(); ++i) {
      const MemOp& op = params.operations[i];
      const std::string name = absl::StrCat("operation ", i);
      if (op.kind > MemOpKind::kWaitNor || (op.bytes != 4 && op.bytes != 8)) {
        return offence(absl::StrCat(name, " has the kind ", static_cast<unsigned>(op.kind), " and ",
                                    counted(op.bytes, "byte"), "; there are 4 and 8"));
      }
      CGRT_RETURN_IF_ERROR(check_pointer(name, op.address));
    }
    return absl::OkStatus();
  }

  absl::Status check(const SemaphoreParams& params, NodeKind kind) const {
    if (kind != NodeKind::kSemaphoreSignal && kind != NodeKind::kSemaphoreWait) {
      return wrong_params(kind, "external semaphores");
    }
    return params.semaphores.empty() ? offence("has no semaphores") : absl::OkStatus();
  }

  absl::Status check_pointer(const std::string& name, const Pointer& pointer) const {
    if (pointer.allocation >= graph_.allocations.size()) {
      return offence(absl::StrCat(name, " points into allocation ", pointer.allocation, "; the graph has ",
                                  graph_.allocations.size()));
    }
    const std::uint64_t bytes = graph_.allocations[pointer.allocation].bytes;
    if (bytes != 0 && pointer.offset >= bytes) {
      return offence(absl::StrCat(name, " points ", counted(pointer.offset, "byte"), " into allocation ",
                                  pointer.allocation, ", which has ", bytes));
    }
    return absl::OkStatus();
  }

  absl::Status wrong_params(NodeKind kind, const char* whose) const {
    return offence(absl::StrCat("is of the kind \"", to_string(kind), "\" and has the parameters of ", whose));
  }

  absl::Status offence(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(node_label(graph_, id_), ": ", what, "."));
  }

  const GraphIr& graph_;
  std::uint32_t id_;
};

// How many graphs can be inside of the node; a conditional one that is not decoded may have any number.
std::size_t max_bodies(const Node& node) {
  if (node.kind == NodeKind::kChildGraph) return 1;
  const auto* conditional = std::get_if<ConditionalParams>(&node.params);
  if (conditional == nullptr || conditional->kind == ConditionalKind::kSwitch) return SIZE_MAX;
  return conditional->kind == ConditionalKind::kIf ? 2 : 1;
}

absl::Status check_bodies(const GraphIr& graph) {
  const auto refuse = [](const auto&... parts) { return absl::InvalidArgumentError(absl::StrCat(parts..., ".")); };
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const std::uint32_t body = graph.nodes[n].body;
    if (body > graph.bodies.size()) {
      return refuse(node_label(graph, n), ": is in body ", body, "; the graph has ", graph.bodies.size());
    }
    if (n > 0 && body < graph.nodes[n - 1].body) {
      return refuse(node_label(graph, n), ": is in body ", body, " and comes after a node of body ",
                    graph.nodes[n - 1].body, "; nodes are ascending by body");
    }
  }
  std::vector<std::size_t> bodies(graph.nodes.size());
  for (std::size_t i = 0; i < graph.bodies.size(); ++i) {
    const std::uint32_t owner = graph.bodies[i].owner;
    if (owner >= graph.nodes.size()) {
      return refuse("body ", i + 1, ": is owned by node ", owner, "; the graph has ",
                    counted(graph.nodes.size(), "node"));
    }
    const NodeKind kind = graph.nodes[owner].kind;
    if (kind != NodeKind::kChildGraph && kind != NodeKind::kConditional) {
      return refuse("body ", i + 1, ": is owned by ", node_label(graph, owner), ", which cannot have one");
    }
    if (graph.nodes[owner].body > i) {
      return refuse("body ", i + 1, ": is owned by ", node_label(graph, owner), " of body ", graph.nodes[owner].body,
                    "; a body comes after the one that its owner is in");
    }
    if (++bodies[owner] > max_bodies(graph.nodes[owner])) {
      return refuse("body ", i + 1, ": ", node_label(graph, owner), " has ", bodies[owner], " bodies");
    }
  }
  return absl::OkStatus();
}

absl::Status check_functions(const GraphIr& graph) {
  std::set<Function> before;
  for (std::size_t i = 0; i < graph.functions.size(); ++i) {
    const Function& function = graph.functions[i];
    const auto offence = [&](const auto&... what) {
      return absl::InvalidArgumentError(
          absl::StrCat("function ", i, " \"", printable(function.name), "\": ", what..., "."));
    };
    if (!before.insert(function).second) return offence("is there twice");
    if (!function.has_parameters && !function.parameters.empty()) {
      return offence("has ", counted(function.parameters.size(), "parameter"), ", and they are not known");
    }
    std::uint64_t end = 0;  // of the parameter before
    for (std::size_t p = 0; p < function.parameters.size(); ++p) {
      const auto& [offset, size] = function.parameters[p];
      if (offset < end)
        return offence("parameter ", p, " begins at byte ", offset, ", and the one before ends at ", end);
      end = std::uint64_t{offset} + size;
      if (end > kMaxParameterBytes) {
        return offence("parameter ", p, " ends at byte ", end, "; no kernel has more than ", kMaxParameterBytes);
      }
    }
  }
  return absl::OkStatus();
}

// That kernels mention all functions, each for the first time where it has the next number.
absl::Status check_numbers_of_functions(const GraphIr& graph) {
  std::uint32_t next = 0;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* kernel = std::get_if<KernelParams>(&graph.nodes[n].params);
    if (kernel == nullptr || kernel->function < next) continue;
    if (kernel->function > next) {
      return absl::InvalidArgumentError(absl::StrCat(node_label(graph, n), ": runs function ", kernel->function,
                                                     ", and no node before it function ", next, "."));
    }
    ++next;
  }
  if (next == graph.functions.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("function ", next, " \"", printable(graph.functions[next].name), "\": no node runs it."));
}

absl::Status check_edges(const GraphIr& graph) {
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    const Edge& edge = graph.edges[i];
    const auto offence = [&](const std::string& what) {
      return absl::InvalidArgumentError(absl::StrCat("edge ", i, " (", edge.from, " -> ", edge.to, "): ", what, "."));
    };
    const std::uint32_t highest = std::max(edge.from, edge.to);
    if (highest >= graph.nodes.size()) {
      return offence(absl::StrCat("names node ", highest, "; the graph has ", counted(graph.nodes.size(), "node")));
    }
    if (edge.from == edge.to) return offence("a node cannot wait for itself");
    if (graph.nodes[edge.from].body != graph.nodes[edge.to].body) return offence("leaves its body");
    if (edge.type > EdgeType::kProgrammatic) {
      return offence(absl::StrCat("has the unknown type ", static_cast<unsigned>(edge.type)));
    }
    if (i == 0) continue;
    if (edge == graph.edges[i - 1]) return offence("is there twice");
    if (edge < graph.edges[i - 1]) {
      const Edge& before = graph.edges[i - 1];
      return offence(absl::StrCat("comes after (", before.from, " -> ", before.to, "); edges are ascending"));
    }
  }
  return absl::OkStatus();
}

std::string describe_cycle(std::uint32_t first, const std::vector<std::uint32_t>& next) {
  constexpr int kShown = 16;
  std::string text = absl::StrCat(first);
  int shown = 0;
  for (std::uint32_t n = next[first]; n != first; n = next[n]) {
    if (++shown == kShown) return text + " -> ...";
    absl::StrAppend(&text, " -> ", n);
  }
  return absl::StrCat(text, " -> ", first);
}

// "1 -> 2 -> 1", for a graph that has no topological order.
std::string find_cycle(const GraphIr& graph) {
  // Take away, until nothing changes, each node that none waits for. Every node left has a successor
  // that is left, so a walk along those runs into a cycle.
  std::vector<std::size_t> waiting(graph.nodes.size());
  std::vector<std::vector<std::uint32_t>> predecessors(graph.nodes.size());
  for (const Edge& edge : graph.edges) {
    ++waiting[edge.from];
    predecessors[edge.to].push_back(edge.from);
  }
  std::vector<std::uint32_t> free;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (waiting[n] == 0) free.push_back(n);
  }
  while (!free.empty()) {
    const std::uint32_t node = free.back();
    free.pop_back();
    for (const std::uint32_t before : predecessors[node]) {
      if (--waiting[before] == 0) free.push_back(before);
    }
  }

  std::vector<std::uint32_t> next(graph.nodes.size());
  for (const Edge& edge : graph.edges) {
    if (waiting[edge.to] != 0) next[edge.from] = edge.to;
  }
  const auto left = std::find_if(waiting.begin(), waiting.end(), [](std::size_t count) { return count != 0; });
  auto node = static_cast<std::uint32_t>(left - waiting.begin());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) node = next[node];  // now on the cycle
  std::uint32_t lowest = node;
  for (std::uint32_t n = next[node]; n != node; n = next[n]) lowest = std::min(lowest, n);
  return describe_cycle(lowest, next);
}

}  // namespace

absl::Status validate(const GraphIr& graph) {
  CGRT_RETURN_IF_ERROR(check_bodies(graph));
  CGRT_RETURN_IF_ERROR(check_functions(graph));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    CGRT_RETURN_IF_ERROR(NodeChecker(graph, static_cast<std::uint32_t>(n)).check());
  }
  CGRT_RETURN_IF_ERROR(check_numbers_of_functions(graph));
  for (std::size_t i = 0; i < graph.allocations.size(); ++i) {
    const Allocation& allocation = graph.allocations[i];
    if (allocation.kind > MemoryKind::kHost || allocation.device < -1) {
      return absl::InvalidArgumentError(absl::StrCat("allocation ", i, ": has the kind ",
                                                     static_cast<unsigned>(allocation.kind), " and device ",
                                                     allocation.device, "."));
    }
  }
  if (!graph.timing.nodes.empty() && graph.timing.nodes.size() != graph.nodes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("timing: has times of ", counted(graph.timing.nodes.size(), "node"),
                                                   ", the graph has ", graph.nodes.size(), "."));
  }
  CGRT_RETURN_IF_ERROR(check_edges(graph));
  if (!topological_order(graph).has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("nodes wait for each other in a cycle: ", find_cycle(graph), "."));
  }
  return absl::OkStatus();
}

}  // namespace cgrt::ir
