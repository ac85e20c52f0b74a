// graphdump diff: what is different in two graphs, and what varies between captures of one program.

#include "cgrt/ir/diff.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/varying.h"
#include "cgrt/ir/verdict.h"
#include "command.h"
#include "subcommands.h"

namespace graphdump {
namespace {

using cgrt::ir::Differences;
using cgrt::ir::GraphIr;
using cgrt::ir::Rung;
using cgrt::ir::Update;
using cgrt::ir::Verdict;
using cgrt::ir::Verdicts;

// " [set-params: a function ...]"
std::string in_brackets(const Verdict& verdict) {
  return absl::StrCat("  [", to_string(verdict.rung), verdict.rule.empty() ? "" : ": ", verdict.rule, "]");
}

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
    lines.add(absl::StrCat(line, "  [", to_string(Rung::kInstantiate), "]"));
  }
}

void add_edges(Lines& lines, const std::string& file, const std::vector<cgrt::ir::Edge>& edges) {
  for (const cgrt::ir::Edge& edge : edges) {
    lines.add(absl::StrCat("only in ", file, ": edge ", describe(edge), "  [", to_string(Rung::kInstantiate), "]"));
  }
}

std::size_t count_of(const Differences& differences) {
  return differences.changes.size() + differences.only_in_a.size() + differences.only_in_b.size() +
         differences.edges_only_in_a.size() + differences.edges_only_in_b.size();
}

// Two lines: what a whole-graph update makes of it, and the rung.
std::string summary(const Differences& differences, const Verdicts& verdicts) {
  std::map<Rung, std::size_t> counts;
  for (const Verdict& one : verdicts.changes) ++counts[one.rung];
  const std::size_t all = count_of(differences), topology = all - verdicts.changes.size();
  if (topology != 0) counts[Rung::kInstantiate] += topology;
  std::string text = absl::StrCat("cuGraphExecUpdate: ", to_string(verdicts.update));
  if (verdicts.update != Update::kTaken) absl::StrAppend(&text, ": ", verdicts.update_rule);
  absl::StrAppend(&text, "\nverdict: ", to_string(verdicts.rung));
  const auto highest = counts.rbegin();
  if (!verdicts.rule.empty()) {
    absl::StrAppend(&text, " (", verdicts.rule, ")");
  } else if (counts.size() > 1) {
    absl::StrAppend(&text, " (", highest->second, " of ", all, " changes ", highest->second == 1 ? "needs" : "need",
                    " it), the others:");
    const char* separator = " ";
    for (auto one = std::next(highest); one != counts.rend(); ++one) {
      absl::StrAppend(&text, std::exchange(separator, " or "), to_string(one->first));
    }
  }
  return text + "\n";
}

std::string joined(const std::vector<std::string>& values) { return absl::StrJoin(values, ", "); }

void add_words(Lines& lines, const GraphIr& graph, const std::vector<cgrt::ir::VaryingWord>& words, bool are_equal) {
  const std::uint32_t* node = nullptr;
  for (const cgrt::ir::VaryingWord& word : words) {
    if (node == nullptr || *node != word.node) lines.add(absl::StrCat("  ", node_label(graph, word.node)));
    node = &word.node;
    lines.add(absl::StrCat("    ", describe(word.place), ": ", are_equal ? word.values[0] : joined(word.values)));
  }
}

// In a line of its own where the function begins.
void add_constants(Lines& lines, const GraphIr& graph, const std::vector<cgrt::ir::ConstantWord>& words) {
  constexpr std::size_t kShown = 4;
  const cgrt::ir::ConstantWord* last = nullptr;
  for (const cgrt::ir::ConstantWord& word : words) {
    if (last == nullptr || last->function != word.function) {
      lines.add(absl::StrCat("  \"", cgrt::ir::printable(graph.functions[word.function].name), "\", ",
                             cgrt::counted(word.nodes, "node")));
    }
    last = &word;
    const std::size_t shown = std::min(word.values.size(), kShown);
    std::string text = joined({word.values.begin(), word.values.begin() + static_cast<std::ptrdiff_t>(shown)});
    if (shown != word.values.size()) absl::StrAppend(&text, " and ", word.values.size() - shown, " more");
    lines.add(absl::StrCat("    ", describe(word.place), ": ", text));
  }
}

int varying(const DiffOptions& options) {
  std::vector<std::string> files = {options.a, options.b};
  files.insert(files.end(), options.more.begin(), options.more.end());
  if (std::count(files.begin(), files.end(), "-") > 1) return fail("only one of the graphs can be standard input.");
  std::vector<GraphIr> graphs;
  for (const std::string& file : files) {
    absl::StatusOr<GraphIr> graph = read_graph(file);
    if (!graph.ok()) return fail(graph.status());
    graphs.push_back(*std::move(graph));
  }
  const cgrt::ir::Varying found = cgrt::ir::find_varying(graphs);
  Lines lines(options.limit);
  lines.add(absl::StrCat(cgrt::counted(found.nodes, "kernel"), " in all ", graphs.size(), " graphs"));
  if (found.left_out != 0) {
    lines.add(absl::StrCat(cgrt::counted(found.left_out, "kernel"),
                           " of the first not in all of them, or with another function: not looked at"));
  }
  lines.add(found.varying.empty() ? "no argument varies" : "arguments that vary:");
  add_words(lines, graphs[0], found.varying, false);
  if (!found.constant.empty()) {
    lines.add(
        "numbers that are the same in all graphs, of kernels with arguments that vary (if one should vary, it was "
        "baked in):");
    add_constants(lines, graphs[0], found.constant);
  }
  if (!found.seeds.empty()) {
    lines.add("the same in all graphs, and perhaps a seed or offset of random numbers:");
    add_words(lines, graphs[0], found.seeds, true);
  }
  const bool is_empty = found.varying.empty() && found.seeds.empty();
  return print(std::move(lines).finish(), "", is_empty ? kOk : kDifferent);
}

}  // namespace

int diff(const DiffOptions& options) {
  if (options.varying) return varying(options);
  if (!options.more.empty()) return fail("only --varying takes more than two graphs.");
  if (options.a == "-" && options.b == "-") return fail("only one of the two graphs can be standard input.");
  const absl::StatusOr<GraphIr> a = read_graph(options.a);
  if (!a.ok()) return fail(a.status());
  const absl::StatusOr<GraphIr> b = read_graph(options.b);
  if (!b.ok()) return fail(b.status());

  Differences differences = cgrt::ir::differences(*a, *b);
  if (differences.empty()) {
    return print(absl::StrCat("same graph: ", cgrt::counted(a->nodes.size(), "node"), ", ",
                              cgrt::counted(a->edges.size(), "edge"), "\n"),
                 "", kOk);
  }
  Verdicts verdicts = judge(*a, *b, differences);
  if (verdicts.is_by_position) {  // as where another kernel stands in the place of one
    Differences by_position = cgrt::ir::differences(*a, *b, match_by_position(*a, *b));
    if (by_position.changes.size() <= count_of(differences)) {
      differences = std::move(by_position);
      verdicts = judge(*a, *b, differences);
    }
  }
  Lines lines(options.limit);
  const std::string* place = nullptr;
  for (std::size_t i = 0; i < differences.changes.size(); ++i) {
    const cgrt::ir::Change& change = differences.changes[i];
    if (place == nullptr || *place != change.place) lines.add(change.place);
    place = &change.place;
    lines.add(absl::StrCat("  ", change.field, ": ", change.a, " -> ", change.b, in_brackets(verdicts.changes[i])));
  }
  const std::string name_a = cgrt::ir::printable(options.a), name_b = cgrt::ir::printable(options.b);
  add_nodes(lines, name_a, *a, differences.only_in_a);
  add_nodes(lines, name_b, *b, differences.only_in_b);
  add_edges(lines, name_a, differences.edges_only_in_a);
  add_edges(lines, name_b, differences.edges_only_in_b);
  return print(absl::StrCat(std::move(lines).finish(), summary(differences, verdicts)), "", kDifferent);
}

}  // namespace graphdump
