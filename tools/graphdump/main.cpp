// graphdump: looks at graphs saved as .cgrt.json, on machines with or without a GPU.

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <sstream>
#include <string>

#include "cgrt/inspect/json.h"
#include "cgrt/version.h"
#include "commands.h"

namespace {

int parse_and_run(int argc, char** argv) {
  CLI::App app("Looks at CUDA graphs that were saved as .cgrt.json files. FILE may be - for standard input.",
               "graphdump");
  app.set_version_flag("--version", "graphdump " CGRT_VERSION ", reads " + std::string(cgrt::inspect::kGraphSchema) +
                                        " version " + std::to_string(cgrt::inspect::kGraphVersion));
  app.require_subcommand(1);

  graphdump::ShowOptions show;
  CLI::App* show_command = app.add_subcommand("show", "Print a graph");
  show_command->add_option("FILE", show.file, "The graph")->required();
  show_command
      ->add_option("--format", show.format,
                   "text (for people), json (the file as this version writes it) or dot (a picture, by Graphviz)")
      ->check(CLI::IsMember({"text", "json", "dot"}))
      ->capture_default_str();

  show_command->add_flag("--all", show.all, "Text: a line for every node, also where nodes repeat those before");
  show_command->add_flag("--full-names", show.full_names, "Text: kernels' names with their namespaces");

  graphdump::StatsOptions stats;
  CLI::App* stats_command = app.add_subcommand("stats", "Print a graph in numbers: counts, critical path, bytes");
  stats_command->add_option("FILE", stats.file, "The graph")->required();
  stats_command->add_option("--format", stats.format, "text (for people) or json (the same numbers)")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();

  graphdump::DiffOptions diff;
  CLI::App* diff_command = app.add_subcommand("diff",
                                              "Say what is different in two graphs, node by node, wherever the same "
                                              "nodes stand: exits 0 when nothing is, 1 when "
                                              "something is, 2 on errors");
  diff_command->add_option("A", diff.a, "A graph")->required();
  diff_command->add_option("B", diff.b, "Another graph")->required();
  diff_command->add_option("--limit", diff.limit, "Print at most so many lines; 0: all")->capture_default_str();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);  // 0 for --help and --version
    return graphdump::print(out.str(), err.str(), code == 0 ? graphdump::kOk : graphdump::kError);
  }
  if (show_command->parsed()) return graphdump::run_show(show);
  if (stats_command->parsed()) return graphdump::run_stats(stats);
  return graphdump::run_diff(diff);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `graphdump show big.cgrt.json | head` ends quietly
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    return graphdump::print("", std::string("graphdump: ") + error.what() + "\n", graphdump::kError);
  }
}
