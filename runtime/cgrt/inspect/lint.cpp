#include "cgrt/inspect/lint.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/json_writer.h"
#include "cgrt/inspect/lint_rules.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/validate.h"

namespace cgrt::inspect {

std::span<const Rule> rules() { return kRules; }

const Rule* find_rule(std::string_view id) {
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& rule) { return rule.id == id; });
  return found != kRules.end() ? &*found : nullptr;
}

const char* to_string(Severity severity) {
  switch (severity) {
    case Severity::kNote: return "note";
    case Severity::kWarning: return "warning";
    case Severity::kError: break;
  }
  return "error";
}

std::string to_text(const Finding& finding) {
  return absl::StrCat(to_string(finding.severity), " ", finding.rule->id.data(), ": ", finding.text, " ",
                      finding.rule->remedy.data());
}

std::array<std::size_t, 3> count_by_severity(std::span<const Finding> findings) {
  std::array<std::size_t, 3> counts{};
  for (const Finding& finding : findings) ++counts[static_cast<std::size_t>(finding.severity)];
  return counts;
}

std::string Report::labels(const std::vector<std::uint32_t>& nodes) const {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(nodes.size(), kShown); ++i) {
    const char* separator = i == 0 ? "" : i + 1 == nodes.size() ? " and " : ", ";
    absl::StrAppend(&text, separator, ir::node_label(graph_, nodes[i]));
  }
  if (nodes.size() > kShown) absl::StrAppend(&text, " and ", nodes.size() - kShown, " more");
  return text;
}

void Report::add_not_checked(RuleName rule, const std::string& what) {
  add("not-checked", Severity::kNote, {},
      absl::StrCat("The rule ", rule.get()->id.data(), " came to the limit of its work: ", what, " not looked at."));
}

void sort_findings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.severity != b.severity ? a.severity > b.severity : a.rule < b.rule;
  });
}

std::vector<Finding> lint(const ir::GraphIr& graph) {
  std::vector<Finding> findings;
  Report report(graph, findings);
  if (const absl::Status status = ir::validate(graph); !status.ok()) {
    report.add("not-valid", Severity::kError, {}, std::string(status.message()));
    return findings;
  }
  ir::Reachability reachability(graph);
  lint_shape(graph, report);
  lint_launches(graph, report);
  lint_copies(graph, report);
  lint_lifetimes(graph, reachability, report);
  lint_races(graph, reachability, report);
  lint_shared_addresses(graph, reachability, report);
  lint_edges(graph, reachability, report);
  sort_findings(findings);
  return findings;
}

std::string to_lint_json(std::span<const LintedFile> files) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", kGraphLintSchema);
  json.key("files");
  json.begin_array();
  for (const LintedFile& file : files) {
    const auto [notes, warnings, errors] = count_by_severity(file.findings);
    json.begin_object();
    json.member("file", file.name);
    json.member("errors", errors);
    json.member("warnings", warnings);
    json.member("notes", notes);
    json.key("findings");
    json.begin_array();
    for (const Finding& finding : file.findings) {
      json.begin_object(JsonLayout::kOneLine);
      json.member("rule", finding.rule->id);
      json.member("severity", to_string(finding.severity));
      json.key("nodes");
      json.begin_array();
      for (const std::uint32_t node : finding.nodes) json.value(node);
      json.end_array();
      json.member("text", finding.text);
      json.member("remedy", finding.rule->remedy);
      json.end_object();
    }
    json.end_array();
    json.key("broken_budgets");
    json.begin_array();
    for (const std::string& text : file.broken_budgets) json.value(text);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return std::move(json).finish();
}

}  // namespace cgrt::inspect
