// Rules about one executable of a run.
#include "cgrt/inspect/lint_run.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/inspect/lint_rules.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

absl::Status check(const ir::GraphIr& graph, const RecordedExec& exec) {
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("run.json and ", exec.file, " are not of one run: ", what));
  };
  if (!exec.memory.empty() && exec.memory.size() != graph.allocations.size()) {
    return error(absl::StrCat("\"memory\" has ", counted(exec.memory.size(), "number"), ", and the graph ",
                              counted(graph.allocations.size(), "allocation"), "."));
  }
  for (const auto* nodes : {&exec.host_data, &exec.stack_nodes}) {
    for (const std::uint32_t node : *nodes) {
      if (node >= graph.nodes.size()) {
        return error(absl::StrCat("one speaks of node ", node, ", and the other has ",
                                  counted(graph.nodes.size(), "node"), "."));
      }
    }
  }
  return absl::OkStatus();
}

void find_first_launch(const ir::GraphIr& graph, const RecordedExec& exec, Report& report) {
  constexpr std::size_t kMinNodes = 100;  // 70 us: a launch of so many takes some 100
  constexpr double kUploadUs = 0.7;       // a node, on an H200
  const std::size_t nodes = graph.nodes.size();
  if (exec.launches == 0 || exec.uploads != 0 || nodes < kMinNodes) return;
  report.add("first-launch", Severity::kNote, {},
             absl::StrFormat("%s, of %s, was launched %s and never uploaded: its first launch took it to the device, "
                             "about %.2g ms more (%.1f us a node on an H200).",
                             ir::printable(exec.file), counted(nodes, "node"), counted(exec.launches, "time"),
                             kUploadUs * static_cast<double>(nodes) / 1e3, kUploadUs));
}

void find_several_streams(const RecordedExec& exec, Report& report) {
  const std::size_t streams = exec.streams.size();
  if (streams < 2) return;
  report.add("several-streams", Severity::kNote, {},
             absl::StrCat(ir::printable(exec.file), " was launched ", counted(exec.launches, "time"), ", into ",
                          exec.has_more_streams ? "more than " : "", counted(streams, "stream"),
                          ": CUDA orders launches of one executable after each other, also those of other streams."));
}

void find_host_data(const RecordedExec& exec, Report& report) {
  if (!exec.host_data.empty() && !exec.has_user_objects) {
    report.add(
        "host-owner", Severity::kNote, exec.host_data,
        absl::StrCat(report.labels(exec.host_data),
                     ": the data of the functions has no owner in the graph, to which no user object was given."));
  }
  if (!exec.stack_nodes.empty()) {
    report.add("stack-memory", Severity::kWarning, exec.stack_nodes,
               absl::StrCat(report.labels(exec.stack_nodes),
                            ": what they use was on the stack of the thread that instantiated the graph."));
  }
}

}  // namespace

absl::StatusOr<std::vector<Finding>> lint(const ir::GraphIr& graph, const RecordedExec& exec) {
  CGRT_RETURN_IF_ERROR(check(graph, exec));
  std::vector<Finding> findings = lint(graph);
  Report report(graph, findings);
  find_host_data(exec, report);
  find_first_launch(graph, exec, report);
  find_several_streams(exec, report);
  sort_findings(findings);
  return findings;
}

}  // namespace cgrt::inspect
