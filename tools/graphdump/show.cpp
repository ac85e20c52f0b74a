// graphdump show: a graph as text, JSON or a picture.

#include <memory>

#include "cgrt/inspect/dot.h"
#include "cgrt/inspect/json.h"
#include "cgrt/inspect/text.h"
#include "command.h"

namespace graphdump {
namespace {

struct Options {
  std::string file;
  std::string format = "text";
  bool all = false, full_names = false;  // of text
};

int show(const Options& options) {
  const absl::StatusOr<cgrt::ir::GraphIr> graph = read_graph(options.file);
  if (!graph.ok()) return fail(graph.status());
  if (options.format == "json") return print(cgrt::inspect::to_json(*graph), "", kOk);
  if (options.format == "dot") return print(cgrt::inspect::to_dot(*graph), "", kOk);
  return print(cgrt::inspect::to_text(*graph, {.fold = !options.all, .short_names = !options.full_names}), "", kOk);
}

}  // namespace

void add_show(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("show", "Print a graph");
  command->add_option("FILE", options->file, "The graph")->required();
  command
      ->add_option("--format", options->format,
                   "text (for people), json (the file as this version writes it) or dot (a picture, by Graphviz)")
      ->check(CLI::IsMember({"text", "json", "dot"}))
      ->capture_default_str();
  command->add_flag("--all", options->all, "Text: a line for every node, also where nodes repeat those before");
  command->add_flag("--full-names", options->full_names, "Text: kernels' names with their namespaces");
  command->callback([options, &action] { action = [options] { return show(*options); }; });
}

}  // namespace graphdump
