// graphdump emit: a graph as a program that makes it.

#include "cgrt/inspect/emit.h"

#include <string>

#include "command.h"
#include "subcommands.h"

namespace graphdump {

int emit(const std::string& file) {
  const absl::StatusOr<cgrt::ir::GraphIr> graph = read_graph(file);
  return graph.ok() ? print(cgrt::inspect::to_program(*graph), "", kOk) : fail(graph.status());
}

}  // namespace graphdump
