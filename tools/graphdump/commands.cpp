#include "commands.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cgrt/inspect/dot.h"
#include "cgrt/inspect/json.h"
#include "cgrt/inspect/stats.h"
#include "cgrt/inspect/text.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/diff.h"

namespace graphdump {
namespace {

using cgrt::ir::GraphIr;

absl::StatusOr<GraphIr> read(const std::string& file) {
  return file == "-" ? cgrt::inspect::read_stream(stdin, "standard input") : cgrt::inspect::read_file(file);
}

int fail(const std::string& sentence) {
  return print("", absl::StrCat("graphdump: ", cgrt::ir::printable(sentence), "\n"), kError);
}

int fail(const absl::Status& status) { return fail(std::string(status.message())); }

}  // namespace

int run_show(const ShowOptions& options) {
  const absl::StatusOr<GraphIr> graph = read(options.file);
  if (!graph.ok()) return fail(graph.status());
  if (options.format == "json") return print(cgrt::inspect::to_json(*graph), "", kOk);
  if (options.format == "dot") return print(cgrt::inspect::to_dot(*graph), "", kOk);
  return print(cgrt::inspect::to_text(*graph), "", kOk);
}

int run_stats(const StatsOptions& options) {
  const absl::StatusOr<GraphIr> graph = read(options.file);
  if (!graph.ok()) return fail(graph.status());
  if (options.format == "json") return print(cgrt::inspect::to_stats_json(*graph), "", kOk);
  return print(cgrt::inspect::to_stats_text(*graph), "", kOk);
}

int run_diff(const DiffOptions& options) {
  if (options.a == "-" && options.b == "-") return fail("only one of the two graphs can be standard input.");
  const absl::StatusOr<GraphIr> a = read(options.a);
  if (!a.ok()) return fail(a.status());
  const absl::StatusOr<GraphIr> b = read(options.b);
  if (!b.ok()) return fail(b.status());

  const auto difference = cgrt::ir::first_difference(*a, *b);
  if (!difference.has_value()) {
    return print(absl::StrCat("same graph: ", a->nodes.size(), a->nodes.size() == 1 ? " node, " : " nodes, ",
                              a->edges.size(), a->edges.size() == 1 ? " edge\n" : " edges\n"),
                 "", kOk);
  }
  const std::string name_a = cgrt::ir::printable(options.a), name_b = cgrt::ir::printable(options.b);
  std::string out =
      absl::StrCat(difference->where, "\n  ", name_a, ": ", difference->a, "\n  ", name_b, ": ", difference->b, "\n");
  if (!difference->only_in_a.empty()) absl::StrAppend(&out, "only in ", name_a, ": ", difference->only_in_a, "\n");
  if (!difference->only_in_b.empty()) absl::StrAppend(&out, "only in ", name_b, ": ", difference->only_in_b, "\n");
  return print(out, "", kDifferent);
}

int print(const std::string& out, const std::string& err, ExitStatus status) {
  std::fwrite(err.data(), 1, err.size(), stderr);
  const bool is_written = std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0;
  if (is_written || errno == EPIPE) return status;
  std::fprintf(stderr, "graphdump: standard output cannot be written: %s\n", std::strerror(errno));
  return kError;
}

}  // namespace graphdump
