// graphdump stats: a graph in numbers.

#include "cgrt/inspect/stats.h"

#include <memory>

#include "command.h"

namespace graphdump {
namespace {

struct Options {
  std::string file;
  std::string format = "text";
};

int stats(const Options& options) {
  const absl::StatusOr<cgrt::ir::GraphIr> graph = read_graph(options.file);
  if (!graph.ok()) return fail(graph.status());
  if (options.format == "json") return print(cgrt::inspect::to_stats_json(*graph), "", kOk);
  return print(cgrt::inspect::to_stats_text(*graph), "", kOk);
}

}  // namespace

void add_stats(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("stats", "Print a graph in numbers: counts, critical path, bytes");
  command->add_option("FILE", options->file, "The graph")->required();
  command->add_option("--format", options->format, "text (for people) or json (the same numbers)")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->callback([options, &action] { action = [options] { return stats(*options); }; });
}

}  // namespace graphdump
