// graphdump why: what orders two nodes of a graph.

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/relation.h"
#include "command.h"
#include "subcommands.h"

namespace graphdump {
namespace {

using cgrt::ir::GraphIr;
using cgrt::ir::node_label;
using cgrt::ir::Order;

// Kernels with that name; when there are none, with a name that has the text in it.
std::vector<std::uint32_t> kernels_named(const GraphIr& graph, const std::string& text) {
  std::vector<std::uint32_t> same, containing;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* kernel = std::get_if<cgrt::ir::KernelParams>(&graph.nodes[n].params);
    if (kernel == nullptr) continue;
    const std::string& name = function_of(graph, *kernel).name;
    if (name == text) same.push_back(n);
    if (name.find(text) != std::string::npos) containing.push_back(n);
  }
  return same.empty() ? containing : same;
}

// A node by its id, or by the name of its kernel.
absl::StatusOr<std::uint32_t> find_node(const GraphIr& graph, const std::string& text) {
  const auto refuse = [](const auto&... parts) { return absl::InvalidArgumentError(absl::StrCat(parts...)); };
  std::uint32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (!text.empty() && end == text.data() + text.size()) {
    if (error == std::errc() && id < graph.nodes.size()) return id;
    return refuse("there is no node ", text, "; the graph has ", cgrt::counted(graph.nodes.size(), "node"),
                  ", numbered from 0.");
  }
  const std::vector<std::uint32_t> found = kernels_named(graph, text);
  if (text.empty() || found.empty())
    return refuse("no kernel is called \"", text, "\", and it is no number of a node.");
  if (found.size() == 1) return found.front();
  constexpr std::size_t kShown = 8;
  std::string candidates;
  for (std::size_t i = 0; i < std::min(found.size(), kShown); ++i) {
    absl::StrAppend(&candidates, i == 0 ? "" : ", ", node_label(graph, found[i]));
  }
  if (found.size() > kShown) absl::StrAppend(&candidates, " and ", found.size() - kShown, " more");
  return refuse("\"", text, "\" is the name of several kernels: ", candidates, ". Take the number of one.");
}

// "  node 2 "scores" -> node 3 "softmax"", and what the edge waits for where that is not the end.
std::string describe_step(const GraphIr& graph, const cgrt::ir::Edge& edge) {
  std::string text = absl::StrCat("  ", node_label(graph, edge.from), " -> ", node_label(graph, edge.to));
  const bool is_programmatic = edge.type == cgrt::ir::EdgeType::kProgrammatic;
  if (is_programmatic) text += ", programmatic";
  if (edge.from_port > 1) {
    absl::StrAppend(&text, ", port ", static_cast<int>(edge.from_port), ": starts when all blocks have started");
  } else if (is_programmatic || edge.from_port == 1) {
    absl::StrAppend(&text, is_programmatic ? "" : ", port 1", ": starts when all blocks have triggered it or ended");
  }
  return text + "\n";
}

// What the last node does only then. Behind programmatic edges a node may start early: that the first one has ended is
// known where it has waited, and of what follows by a full edge from it.
std::string until(const GraphIr& graph, const std::vector<cgrt::ir::Edge>& path) {
  std::vector<std::string> waiting;
  std::size_t i = 0;
  for (; i < path.size() && path[i].type == cgrt::ir::EdgeType::kProgrammatic; ++i) {
    if (i + 1 < path.size()) waiting.push_back(node_label(graph, path[i].to));
  }
  const char* const then = i == path.size() ? " has waited in its code" : " starts";
  if (waiting.empty()) return then;
  return absl::StrCat(then, ", if ", absl::StrJoin(waiting, " and "), waiting.size() == 1 ? " waits" : " wait",
                      waiting.size() == 1 ? " in its code" : " in their code");
}

std::string explain(const GraphIr& graph, std::uint32_t asked_a, std::uint32_t asked_b) {
  const cgrt::ir::Relation relation = relation_between(graph, asked_a, asked_b);
  std::string out;
  const auto say_owner = [&](std::uint32_t asked, std::uint32_t node) {
    if (asked != node) absl::StrAppend(&out, node_label(graph, asked), " is inside of ", node_label(graph, node), "\n");
  };
  say_owner(asked_a, relation.a);
  say_owner(asked_b, relation.b);
  const std::string a = node_label(graph, relation.a), b = node_label(graph, relation.b);
  const std::string edges = absl::StrCat(cgrt::counted(relation.path.size(), "edge"), "\n");
  const auto say_common = [&](const char* what, std::optional<std::uint32_t> node) {
    absl::StrAppend(&out, what, node.has_value() ? node_label(graph, *node) : "none", "\n");
  };
  switch (relation.order) {
    case Order::kSame: out += asked_a == asked_b ? "the same node\n" : "one is inside of the other\n"; break;
    case Order::kBefore: absl::StrAppend(&out, a, " ends before ", b, until(graph, relation.path), ": ", edges); break;
    case Order::kAfter: absl::StrAppend(&out, b, " ends before ", a, until(graph, relation.path), ": ", edges); break;
    case Order::kStartsAfter:
      absl::StrAppend(&out, a, " starts before ", b, ", and both may run at the same time: ", edges);
      break;
    case Order::kStartsBefore:
      absl::StrAppend(&out, b, " starts before ", a, ", and both may run at the same time: ", edges);
      break;
    case Order::kExclusive: absl::StrAppend(&out, "in different bodies of ", a, ": never at the same time\n"); break;
    case Order::kUnordered:
      absl::StrAppend(&out, a, " and ", b, " are not ordered: they may run at the same time\n");
      say_common("last common ancestor: ", relation.last_common_ancestor);
      say_common("first common descendant: ", relation.first_common_descendant);
      break;
  }
  for (const cgrt::ir::Edge& edge : relation.path) out += describe_step(graph, edge);
  return out;
}

}  // namespace

int why(const WhyOptions& options) {
  const absl::StatusOr<GraphIr> graph = read_graph(options.file);
  if (!graph.ok()) return fail(graph.status());
  const absl::StatusOr<std::uint32_t> a = find_node(*graph, options.a);
  if (!a.ok()) return fail(a.status());
  const absl::StatusOr<std::uint32_t> b = find_node(*graph, options.b);
  if (!b.ok()) return fail(b.status());
  return print(explain(*graph, *a, *b), "", kOk);
}

}  // namespace graphdump
