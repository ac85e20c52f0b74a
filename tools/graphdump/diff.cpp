// graphdump diff: what is different in two graphs.

#include "cgrt/ir/diff.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/ir/describe.h"
#include "command.h"

namespace graphdump {
namespace {

using cgrt::ir::GraphIr;

struct Options {
  std::string a, b;
  std::size_t limit = 100;  // lines; 0: all
};

void add_nodes(Lines& lines, const std::string& file, const GraphIr& graph, const std::vector<std::uint32_t>& nodes) {
  std::vector<std::vector<std::uint32_t>> waits_for(nodes.empty() ? 0 : graph.nodes.size());
  if (!nodes.empty()) {
    for (const cgrt::ir::Edge& edge : graph.edges) waits_for[edge.to].push_back(edge.from);
  }
  for (const std::uint32_t node : nodes) {
    std::string line = absl::StrCat("only in ", file, ": ", node_label(graph, node));
    const char* separator = ", after ";
    for (const std::uint32_t before : waits_for[node]) {
      absl::StrAppend(&line, std::exchange(separator, ", "), node_label(graph, before));
    }
    lines.add(line);
  }
}

void add_edges(Lines& lines, const std::string& file, const std::vector<cgrt::ir::Edge>& edges) {
  for (const cgrt::ir::Edge& edge : edges) lines.add(absl::StrCat("only in ", file, ": edge ", describe(edge)));
}

int diff(const Options& options) {
  if (options.a == "-" && options.b == "-") return fail("only one of the two graphs can be standard input.");
  const absl::StatusOr<GraphIr> a = read_graph(options.a);
  if (!a.ok()) return fail(a.status());
  const absl::StatusOr<GraphIr> b = read_graph(options.b);
  if (!b.ok()) return fail(b.status());

  const cgrt::ir::Differences differences = cgrt::ir::differences(*a, *b);
  if (differences.empty()) {
    return print(absl::StrCat("same graph: ", cgrt::counted(a->nodes.size(), "node"), ", ",
                              cgrt::counted(a->edges.size(), "edge"), "\n"),
                 "", kOk);
  }
  Lines lines(options.limit);
  const std::string* place = nullptr;
  for (const cgrt::ir::Change& change : differences.changes) {
    if (place == nullptr || *place != change.place) lines.add(change.place);
    place = &change.place;
    lines.add(absl::StrCat("  ", change.field, ": ", change.a, " -> ", change.b));
  }
  const std::string name_a = cgrt::ir::printable(options.a), name_b = cgrt::ir::printable(options.b);
  add_nodes(lines, name_a, *a, differences.only_in_a);
  add_nodes(lines, name_b, *b, differences.only_in_b);
  add_edges(lines, name_a, differences.edges_only_in_a);
  add_edges(lines, name_b, differences.edges_only_in_b);
  return print(std::move(lines).finish(), "", kDifferent);
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("diff",
                                         "Say what is different in two graphs, node by node, wherever the same "
                                         "nodes stand: exits 0 when nothing is, 1 when "
                                         "something is, 2 on errors");
  command->add_option("A", options->a, "A graph")->required();
  command->add_option("B", options->b, "Another graph")->required();
  command->add_option("--limit", options->limit, "Print at most so many lines; 0: all")->capture_default_str();
  command->callback([options, &action] { action = [options] { return diff(*options); }; });
}

}  // namespace graphdump
