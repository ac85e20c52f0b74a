// graphdump emit: a graph as a program that makes it.

#include "cgrt/inspect/emit.h"

#include <memory>
#include <string>

#include "command.h"

namespace graphdump {

void add_emit(CLI::App& app, Action& action) {
  const auto file = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("emit",
                                         "Print a graph as a CUDA program (.cu) that makes it node by node, "
                                         "instantiates and launches it, with kernels that do nothing");
  command->add_option("FILE", *file, "The graph")->required();
  command->callback([file, &action] {
    action = [file] {
      const absl::StatusOr<cgrt::ir::GraphIr> graph = read_graph(*file);
      return graph.ok() ? print(cgrt::inspect::to_program(*graph), "", kOk) : fail(graph.status());
    };
  });
}

}  // namespace graphdump
