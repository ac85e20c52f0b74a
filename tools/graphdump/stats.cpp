// graphdump stats: a graph in numbers.

#include "cgrt/inspect/stats.h"

#include "command.h"
#include "subcommands.h"

namespace graphdump {

int stats(const StatsOptions& options) {
  const absl::StatusOr<cgrt::ir::GraphIr> graph = read_graph(options.file);
  if (!graph.ok()) return fail(graph.status());
  if (options.format == "json") return print(cgrt::inspect::to_stats_json(*graph), "", kOk);
  return print(cgrt::inspect::to_stats_text(*graph), "", kOk);
}

}  // namespace graphdump
