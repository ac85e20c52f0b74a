// What the kinds of the nodes and the bodies alone say.
#include <cstdint>
#include <map>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/lint_rules.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

using Ids = std::vector<std::uint32_t>;

// Only kernels set handles.
void find_endless(const ir::GraphIr& graph, Report& report) {
  std::vector<bool> has_kernel(graph.bodies.size() + 1);  // the body, or one inside of it
  for (const ir::Node& node : graph.nodes) {
    if (node.kind == ir::NodeKind::kKernel) has_kernel[node.body] = true;
    // A conditional node that is not decoded may have bodies that are not in the graph.
    if (node.kind == ir::NodeKind::kConditional && std::holds_alternative<ir::NoParams>(node.params)) {
      has_kernel[node.body] = true;
    }
  }
  for (std::size_t body = graph.bodies.size(); body > 0; --body) {
    if (has_kernel[body]) has_kernel[graph.nodes[graph.bodies[body - 1].owner].body] = true;
  }
  for (std::size_t body = 1; body <= graph.bodies.size(); ++body) {
    const std::uint32_t owner = graph.bodies[body - 1].owner;
    const auto* loop = std::get_if<ir::ConditionalParams>(&graph.nodes[owner].params);
    if (loop == nullptr || loop->kind != ir::ConditionalKind::kWhile || has_kernel[body]) continue;
    const std::string text =
        absl::StrCat("The body of ", ir::node_label(graph, owner), " has no kernel, and only kernels set handles: ");
    // A kernel elsewhere may set it to 0 before the loop begins.
    if (loop->at_launch.value_or(0) != 0 && !has_kernel[0]) {
      report.add("endless-while", Severity::kError, {owner},
                 absl::StrCat(text, "its handle is ", *loop->at_launch, " when a launch begins, and stays it."));
    } else if (loop->at_launch != 0u || has_kernel[0]) {
      report.add("endless-while", Severity::kWarning, {owner}, absl::StrCat(text, "once begun, it never ends."));
    }
  }
}

void find_empty(const ir::GraphIr& graph, Report& report) {
  if (graph.nodes.empty()) {
    report.add("empty-graph", Severity::kNote, {}, "The graph has no nodes: a launch does nothing.");
  }
  std::vector<bool> has_nodes(graph.bodies.size() + 1);
  for (const ir::Node& node : graph.nodes) has_nodes[node.body] = true;
  Ids owners;
  std::string first;
  for (std::uint32_t body = 1; body <= graph.bodies.size(); ++body) {
    if (has_nodes[body]) continue;
    const std::uint32_t owner = graph.bodies[body - 1].owner;
    if (owners.empty()) first = ir::body_label(graph, body);
    if (owners.empty() || owners.back() != owner) owners.push_back(owner);
  }
  if (owners.empty()) return;
  report.add("empty-body", Severity::kNote, owners,
             owners.size() == 1 ? absl::StrCat("There are no nodes in the ", first, ".")
                                : absl::StrCat("There are no nodes in the ", first, " nor in one of each of ",
                                               counted(owners.size() - 1, "other node"), "."));
}

void find_hosts(const ir::GraphIr& graph, Report& report) {
  Ids hosts;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].kind == ir::NodeKind::kHost) hosts.push_back(n);
  }
  if (hosts.empty()) return;
  const std::string what = counted(hosts.size(), "host function");
  report.add("host-node", Severity::kNote, hosts,
             absl::StrCat(what, " (", report.labels(hosts),
                          "): what they use must live, and must not be needed by a thread that waits for the launch."));
}

void find_events(const ir::GraphIr& graph, Report& report) {
  std::map<std::uint32_t, Ids> records, waits;  // by event
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* params = std::get_if<ir::EventParams>(&graph.nodes[n].params);
    if (params == nullptr) continue;
    (graph.nodes[n].kind == ir::NodeKind::kEventRecord ? records : waits)[params->event].push_back(n);
  }
  const auto report_missing = [&](const std::map<std::uint32_t, Ids>& here, const std::map<std::uint32_t, Ids>& there,
                                  const char* what) {
    Ids nodes;
    for (const auto& [event, of_event] : here) {
      if (!there.contains(event)) nodes.insert(nodes.end(), of_event.begin(), of_event.end());
    }
    if (!nodes.empty()) {
      report.add("event-external", Severity::kNote, nodes, absl::StrCat(report.labels(nodes), ": ", what));
    }
  };
  report_missing(waits, records, "no node of the graph records what they wait for.");
  report_missing(records, waits, "no node of the graph waits for what they record.");
}

}  // namespace

void lint_shape(const ir::GraphIr& graph, Report& report) {
  find_endless(graph, report);
  find_empty(graph, report);
  find_hosts(graph, report);
  find_events(graph, report);
}

}  // namespace cgrt::inspect
