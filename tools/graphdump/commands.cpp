#include "commands.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
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

// Of which only the first `limit` are kept; 0: all.
class Lines {
 public:
  explicit Lines(std::size_t limit) : limit_(limit) {}
  void add(const std::string& line) {
    ++count_;
    if (limit_ == 0 || count_ <= limit_) absl::StrAppend(&text_, line, "\n");
  }
  std::string finish() && {
    if (limit_ != 0 && count_ > limit_) {
      absl::StrAppend(&text_, "and ", cgrt::counted(count_ - limit_, "line"), " more: --limit 0 prints all\n");
    }
    return std::move(text_);
  }

 private:
  std::size_t limit_, count_ = 0;
  std::string text_;
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

}  // namespace

int run_show(const ShowOptions& options) {
  const absl::StatusOr<GraphIr> graph = read(options.file);
  if (!graph.ok()) return fail(graph.status());
  if (options.format == "json") return print(cgrt::inspect::to_json(*graph), "", kOk);
  if (options.format == "dot") return print(cgrt::inspect::to_dot(*graph), "", kOk);
  return print(cgrt::inspect::to_text(*graph, {.fold = !options.all, .short_names = !options.full_names}), "", kOk);
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

int print(const std::string& out, const std::string& err, ExitStatus status) {
  std::fwrite(err.data(), 1, err.size(), stderr);
  const bool is_written = std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0;
  if (is_written || errno == EPIPE) return status;
  std::fprintf(stderr, "graphdump: standard output cannot be written: %s\n", std::strerror(errno));
  return kError;
}

}  // namespace graphdump
