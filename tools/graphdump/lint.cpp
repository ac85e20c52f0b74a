// graphdump lint: what is wrong with graphs and with recorded runs, or may be.

#include "cgrt/inspect/lint.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/inspect/budget.h"
#include "cgrt/inspect/lint_run.h"
#include "cgrt/inspect/recorded_run.h"
#include "cgrt/ir/describe.h"
#include "cgrt/saved/folder.h"
#include "command.h"
#include "subcommands.h"

namespace graphdump {
namespace {

namespace fs = std::filesystem;
using cgrt::inspect::Finding;
using cgrt::inspect::LintedFile;
using cgrt::inspect::Severity;

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

class Linting {
 public:
  Linting(const LintOptions& options, const std::vector<cgrt::inspect::Budget>& budgets)
      : options_(options), budgets_(budgets) {}

  // A graph, a bundle with all its graphs, or a folder of `graphdump run`, which its run.json may stand for.
  absl::Status add(const std::string& name) {
    std::error_code ignored;
    const fs::path path = name;
    if (is_bundle(name)) return add_bundle(name);
    if (fs::is_directory(path, ignored)) return add_run(path);
    if (path.filename() == kRunFile) return add_run(path.parent_path());
    return add_graph(name);
  }

  const std::vector<LintedFile>& files() const { return files_; }
  bool is_found() const { return is_found_; }  // an error

 private:
  static constexpr char kRunFile[] = "run.json";

  absl::Status add_graph(const std::string& name) {
    CGRT_ASSIGN_OR_RETURN(const cgrt::ir::GraphIr graph, read_graph(name));
    add(name, graph);
    return absl::OkStatus();
  }

  absl::Status add_bundle(const std::string& name) {
    CGRT_ASSIGN_OR_RETURN(const cgrt::saved::Folder folder, cgrt::saved::Folder::open(name));
    for (const cgrt::saved::SavedGraph& saved : folder.manifest().graphs) {
      CGRT_ASSIGN_OR_RETURN(const cgrt::ir::GraphIr graph, folder.read_graph(saved));
      add(absl::StrCat(name, ":", saved.name), graph);
    }
    return absl::OkStatus();
  }

  // The graphs that run.json names, then the others of the folder: those of updates and of nodes that were set.
  absl::Status add_run(const fs::path& folder) {
    const std::string run_file = (folder / kRunFile).string();
    CGRT_ASSIGN_OR_RETURN(const cgrt::inspect::RecordedRun run, cgrt::inspect::read_run(run_file));
    std::vector<Finding> of_run;
    std::set<fs::path> named;
    for (const cgrt::inspect::RecordedProcess& process : run.processes) {
      cgrt::inspect::SharedMemory shared;
      for (const cgrt::inspect::RecordedExec& exec : process.execs) {
        if (exec.file.empty()) continue;
        const fs::path path = folder / exec.file;
        named.insert(path);
        CGRT_ASSIGN_OR_RETURN(const cgrt::ir::GraphIr graph, read_graph(path.string()));
        CGRT_ASSIGN_OR_RETURN(std::vector<Finding> findings, cgrt::inspect::lint(graph, exec));
        add(path.string(), std::move(findings), broken_budgets(graph, budgets_));
        shared.add(graph, exec);
      }
      for (Finding& finding : std::move(shared).findings()) of_run.push_back(std::move(finding));
    }
    for (const fs::path& path : graphs_in(folder)) {
      if (!named.contains(path)) CGRT_RETURN_IF_ERROR(add_graph(path.string()));
    }
    add(run_file, std::move(of_run), {});
    return absl::OkStatus();
  }

  static std::set<fs::path> graphs_in(const fs::path& folder) {
    std::set<fs::path> graphs;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
      if (entry.path().string().ends_with(".cgrt.json")) graphs.insert(folder / entry.path().filename());
    }
    return graphs;
  }

  void add(const std::string& name, const cgrt::ir::GraphIr& graph) {
    add(name, cgrt::inspect::lint(graph), broken_budgets(graph, budgets_));
  }
  void add(const std::string& name, std::vector<Finding> findings, std::vector<std::string> broken) {
    std::erase_if(findings, [&](const Finding& finding) {
      return std::find(options_.ignored.begin(), options_.ignored.end(), finding.rule->id) != options_.ignored.end();
    });
    for (Finding& finding : findings) {
      if (options_.is_strict && finding.severity == Severity::kWarning) finding.severity = Severity::kError;
      is_found_ = is_found_ || finding.severity == Severity::kError;
    }
    is_found_ = is_found_ || !broken.empty();
    files_.push_back({.name = name, .findings = std::move(findings), .broken_budgets = std::move(broken)});
  }

  const LintOptions& options_;
  const std::vector<cgrt::inspect::Budget>& budgets_;
  std::vector<LintedFile> files_;
  bool is_found_ = false;
};

}  // namespace

int lint(const LintOptions& options) {
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

  Linting linting(options, budgets);
  for (const std::string& name : options.files) {
    if (const absl::Status status = linting.add(name); !status.ok()) return fail(status);
  }
  std::string out;
  if (options.format == "json") {
    out = cgrt::inspect::to_lint_json(linting.files());
  } else {
    for (const LintedFile& file : linting.files()) absl::StrAppend(&out, text_of(file, options.limit));
  }
  return print(out, "", linting.is_found() ? kDifferent : kOk);
}

}  // namespace graphdump
