// graphdump lint: what is wrong with graphs, or may be.

#include "cgrt/inspect/lint.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/budget.h"
#include "cgrt/ir/describe.h"
#include "command.h"

namespace graphdump {
namespace {

using cgrt::inspect::Finding;
using cgrt::inspect::LintedFile;
using cgrt::inspect::Severity;

struct Options {
  std::vector<std::string> files, ignored;
  std::string expected;
  std::string format = "text";
  std::size_t limit = 100;  // lines of a file; 0: all
  bool lists_rules = false, is_strict = false;
};

int list_rules() {
  std::string out;
  for (const cgrt::inspect::Rule& rule : cgrt::inspect::rules()) {
    std::string line(rule.id);
    line.resize(22, ' ');
    line += to_string(rule.highest);
    line.resize(31, ' ');
    out.append(line).append(rule.what).append("\n");
  }
  return print(out, "", kOk);
}

std::string unknown_rule(const std::string& name) {
  std::vector<std::string> ids;
  for (const cgrt::inspect::Rule& rule : cgrt::inspect::rules()) ids.emplace_back(rule.id);
  return absl::StrCat("--ignore: there is no rule \"", name, "\"; there are ", absl::StrJoin(ids, ", "), ".");
}

std::string text_of(const LintedFile& file, std::size_t limit) {
  const auto [notes, warnings, errors] = cgrt::inspect::count_by_severity(file.findings);
  Lines lines(limit);
  for (const std::string& broken : file.broken_budgets) lines.add(absl::StrCat("error expect: ", broken));
  for (const Finding& finding : file.findings) lines.add(to_text(finding));
  return absl::StrCat(cgrt::ir::printable(file.name), ": ", cgrt::counted(errors + file.broken_budgets.size(), "error"),
                      ", ", cgrt::counted(warnings, "warning"), ", ", cgrt::counted(notes, "note"), "\n",
                      std::move(lines).finish());
}

int lint(const Options& options) {
  if (options.lists_rules) return list_rules();
  if (options.files.empty()) return fail("lint: FILE is required.");
  if (std::count(options.files.begin(), options.files.end(), "-") > 1) {
    return fail("only one of the graphs can be standard input.");
  }
  for (const std::string& rule : options.ignored) {
    if (cgrt::inspect::find_rule(rule) == nullptr) return fail(unknown_rule(rule));
  }
  std::vector<cgrt::inspect::Budget> budgets;
  if (!options.expected.empty()) {
    auto parsed = cgrt::inspect::parse_budgets(options.expected);
    if (!parsed.ok()) return fail("--expect: " + std::string(parsed.status().message()));
    budgets = *std::move(parsed);
  }

  std::vector<LintedFile> files;
  bool is_found = false;
  for (const std::string& name : options.files) {
    const absl::StatusOr<cgrt::ir::GraphIr> graph = read_graph(name);
    if (!graph.ok()) return fail(graph.status());
    LintedFile& file = files.emplace_back(LintedFile{.name = name});
    for (Finding& finding : cgrt::inspect::lint(*graph)) {
      const auto& ignored = options.ignored;
      if (std::find(ignored.begin(), ignored.end(), finding.rule->id) != ignored.end()) continue;
      if (options.is_strict && finding.severity == Severity::kWarning) finding.severity = Severity::kError;
      is_found = is_found || finding.severity == Severity::kError;
      file.findings.push_back(std::move(finding));
    }
    file.broken_budgets = broken_budgets(*graph, budgets);
    is_found = is_found || !file.broken_budgets.empty();
  }
  std::string out;
  if (options.format == "json") {
    out = cgrt::inspect::to_lint_json(files);
  } else {
    for (const LintedFile& file : files) absl::StrAppend(&out, text_of(file, options.limit));
  }
  return print(out, "", is_found ? kDifferent : kOk);
}

}  // namespace

void add_lint(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "lint", "Say what is wrong with graphs, or may be: exits 0 without errors, 1 with, 2 when it cannot tell");
  command->add_option("FILE", options->files, "Graphs");
  command->add_option("--expect", options->expected,
                      "Limits that are errors when a graph is not inside of them: 'nodes<=500, host=0'");
  command->add_option("--ignore", options->ignored, "Rules to leave out: RULE,...")->delimiter(',');
  command->add_option("--format", options->format, "text (for people) or json (the same)")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_option("--limit", options->limit, "Text: at most so many lines of a graph; 0: all")
      ->capture_default_str();
  command->add_flag("--strict", options->is_strict, "Warnings are errors");
  command->add_flag("--rules", options->lists_rules, "List the rules, with the highest severity of each");
  command->callback([options, &action] { action = [options] { return lint(*options); }; });
}

}  // namespace graphdump
