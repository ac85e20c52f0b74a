// graphdump: looks at graphs saved as .cgrt.json or dumped by the driver, on machines with or without a GPU.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cgrt/inspect/json.h"
#include "cgrt/saved/manifest.h"
#include "cgrt/version.h"
#include "command.h"
#include "subcommands.h"

namespace graphdump {
namespace {

using Action = std::function<int()>;

// Parsing sets the action to `run` of the options where `command` was asked for.
template <class Options>
void add_action(CLI::App* command, int (*run)(const Options&), const Options& options, Action& action) {
  command->callback([run, &options, &action] { action = [run, &options] { return run(options); }; });
}

void add_show(CLI::App& app, ShowOptions& options, Action& action) {
  CLI::App* command = app.add_subcommand("show", "Print a graph, or what is in a bundle");
  command->add_option("FILE", options.file, "The graph, or a bundle")->required();
  command
      ->add_option("--format", options.format,
                   "text (for people), json (the file as this version writes it), html (a page for a browser), dot (a "
                   "picture, as Graphviz reads it) or svg (that picture, drawn by Graphviz)")
      ->check(CLI::IsMember({"text", "json", "html", "dot", "svg"}))
      ->capture_default_str();
  command->add_flag("--all", options.all, "Text: a line for every node, also where nodes repeat those before");
  command->add_flag("--full-names", options.full_names, "Text: kernels' names with their namespaces");
  add_action(command, show, options, action);
}

void add_stats(CLI::App& app, StatsOptions& options, Action& action) {
  CLI::App* command = app.add_subcommand("stats", "Print a graph in numbers: counts, critical path, bytes");
  command->add_option("FILE", options.file, "The graph")->required();
  command->add_option("--format", options.format, "text (for people) or json (the same numbers)")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_action(command, stats, options, action);
}

void add_diff(CLI::App& app, DiffOptions& options, Action& action) {
  CLI::App* command = app.add_subcommand(
      "diff",
      "Say what is different in two graphs, node by node, wherever the same "
      "nodes stand, and what it takes to make an executable of A do what B does: exits 0 when nothing is, 1 when "
      "something is, 2 on errors");
  command->add_option("A", options.a, "A graph")->required();
  command->add_option("B", options.b, "Another graph")->required();
  command->add_option("MORE", options.more, "With --varying: further graphs");
  command->add_flag("--varying", options.varying,
                    "Of captures of one program: which words of kernels' arguments differ between them, and which do "
                    "not but may have to: scalars that were baked in, seeds of random numbers");
  command->add_option("--limit", options.limit, "Print at most so many lines; 0: all")->capture_default_str();
  add_action(command, diff, options, action);
}

void add_options_of_run(CLI::App* command, RunOptions& options, Action& action) {
  command->add_option("--out,-o", options.folder, "The folder for the files; made if it is not there")
      ->capture_default_str();
  command->add_option("--max-mb", options.max_mb, "Write at most so many MB in each process; 0: all")
      ->check(CLI::Range(RunOptions::kMaxMb))
      ->capture_default_str();
  command->add_option("--min-nodes", options.min_nodes, "Leave out graphs of fewer nodes")->capture_default_str();
  command->add_option("COMMAND", options.command, "The command and its arguments, after --")->required();
  command->positionals_at_end();
  add_action(command, run, options, action);
}

void add_run(CLI::App& app, RunOptions& options, Action& action) {
  CLI::App* command = app.add_subcommand("run",
                                         "Run a command and write every graph that it and the processes it starts "
                                         "instantiate, as PROGRAM-PROCESS-NUMBER.cgrt.json; the command is not changed "
                                         "and its exit status is that of graphdump");
  add_options_of_run(command, options, action);
}

void add_time(CLI::App& app, RunOptions& options, Action& action) {
  CLI::App* command =
      app.add_subcommand("time",
                         "As run, and measure how long each node takes: the files have the times, which "
                         "show and stats print");
  options.is_timed = true;
  command->add_flag("--trace", options.is_traced,
                    "Write PROGRAM-PROCESS.trace.json as well, for ui.perfetto.dev: all that ran on the devices");
  add_options_of_run(command, options, action);
}

void add_explain(CLI::App& app, RunOptions& options, Action& action) {
  CLI::App* command =
      app.add_subcommand("explain",
                         "As run, and print only how each stream capture that failed was ended: by "
                         "which call, of which thread, and what to do. Exits with the command's status, "
                         "and with 1 when that is 0 and a capture has failed");
  options.is_explained = true;
  add_options_of_run(command, options, action);
}

void add_emit(CLI::App& app, std::string& file, Action& action) {
  CLI::App* command = app.add_subcommand("emit",
                                         "Print a graph as a CUDA program (.cu) that makes it node by node, "
                                         "instantiates and launches it, with kernels that do nothing");
  command->add_option("FILE", file, "The graph")->required();
  add_action(command, emit, file, action);
}

void add_lint(CLI::App& app, LintOptions& options, Action& action) {
  CLI::App* command = app.add_subcommand(
      "lint", "Say what is wrong with graphs, or may be: exits 0 without errors, 1 with, 2 when it cannot tell");
  command->add_option("FILE", options.files,
                      "Graphs, bundles, and folders of graphdump run, with what their processes did");
  command
      ->add_option("--expect", options.expected,
                   "Limits that are errors when a graph is not inside of them: 'nodes<=500, host=0'")
      ->check([](const std::string& limits) { return std::string(limits.empty() ? "there is no limit in it" : ""); });
  command->add_option("--ignore", options.ignored, "Rules to leave out: RULE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--format", options.format, "text (for people) or json (the same)")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_option("--limit", options.limit, "Text: at most so many lines of a graph; 0: all")
      ->capture_default_str();
  command->add_flag("--strict", options.is_strict, "Warnings are errors");
  command->add_flag("--rules", options.lists_rules, "List the rules, with the highest severity of each");
  add_action(command, lint, options, action);
}

#ifdef GRAPHDUMP_LOADS_BUNDLES
void add_save(CLI::App& app, SaveOptions& options, Action& action) {
  CLI::App* command = app.add_subcommand(
      "save",
      "Run a command and save graphs that it launches, with their code and memory, as a bundle: play replays it. The "
      "command is not changed and its exit status is that of graphdump");
  command
      ->add_option("--out,-o", options.folder,
                   "The folder for the bundle: empty, not there, or a bundle, which is "
                   "replaced")
      ->required();
  command
      ->add_option("--graph", options.graphs,
                   "Only the graph of that number, in the order in which the process "
                   "instantiates them, from 0; may be given again")
      ->allow_extra_args(false);
  command->add_option("--min-nodes", options.min_nodes, "Leave out graphs of fewer nodes")->capture_default_str();
  command->add_option("--range", options.range, "Only graphs with nodes that were made in this NVTX range");
  command->add_option("--launch", options.launch, "Save memory as it is at this launch of each graph")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--input", options.inputs,
                   "NAME=NODE:OPERAND[+OFFSET][:BYTES[:DTYPE:SHAPE]]: a name for what an operand of a node points "
                   "to, in graphs without marks; may be given again")
      ->allow_extra_args(false);
  command->add_option("--output", options.outputs, "The same for an output")->allow_extra_args(false);
  command->add_flag(
      "--movable", options.is_movable,
      "Run the command twice, the second time with its memory at other addresses, find out which words are "
      "addresses, and prove it by replays at others: the bundle can be loaded anywhere then");
  command->add_option("COMMAND", options.command, "The command and its arguments, after --")->required();
  command->positionals_at_end();
  add_action(command, save, options, action);
}

void add_play(CLI::App& app, PlayOptions& options, Action& action) {
  CLI::App* command = app.add_subcommand(
      "play",
      "Replay the graphs of a bundle on device 0 and compare with the recording: exits 0 when all is bit-equal, "
      "1 when it is not");
  command->add_option("DIR", options.path, "The bundle")->required();
  command->add_option("--graph", options.graph, "Only the graph of this name");
  command->add_option("--input", options.inputs, "NAME=FILE: the bytes of an input, in place of those that were saved")
      ->allow_extra_args(false);
  command->add_option("--output", options.outputs, "NAME=FILE: where the bytes of an output are to be written")
      ->allow_extra_args(false);
  command->add_option("--repeat", options.repeat,
                      "Replays in a row from the saved memory, of which the outputs are, and which are timed");
  command->add_flag("--anywhere", options.is_anywhere,
                    "Put memory at other addresses than it had, as where these are taken; for bundles of save "
                    "--movable");
  command->add_flag("--no-check", options.no_check, "Compare nothing with the recording");
  add_action(command, play, options, action);
}

void add_shrink(CLI::App& app, ShrinkOptions& options, Action& action) {
  CLI::App* command = app.add_subcommand(
      "shrink",
      "Leave out of a bundle the content of memory that every replay overwrites before it reads it, found out by "
      "replays with other content in child processes; what is kept, and why, is printed");
  command->add_option("DIR", options.path, "The bundle")->required();
  command->add_option("--replay-seconds", options.replay_seconds, "A replay that takes longer hangs")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--graph-seconds", options.graph_seconds,
                   "About how long to look for each graph; what is not decided then is kept")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  add_action(command, shrink, options, action);
}
#endif

void add_verify(CLI::App& app, std::string& path, Action& action) {
  CLI::App* command = app.add_subcommand(
      "verify", "Read all files of a bundle and compare their hashes: exits 0 when all are right, 1 when one is not");
  command->add_option("DIR", path, "The bundle")->required();
  add_action(command, verify, path, action);
}

void add_why(CLI::App& app, WhyOptions& options, Action& action) {
  CLI::App* command =
      app.add_subcommand("why", "Say what orders two nodes of a graph: the edges between them, or none");
  command->add_option("FILE", options.file, "The graph")->required();
  command->add_option("A", options.a, "A node: its number, or the name of its kernel")->required();
  command->add_option("B", options.b, "Another one")->required();
  add_action(command, why, options, action);
}

struct Options {
  ShowOptions show;
  StatsOptions stats;
  DiffOptions diff;
  RunOptions run, time, explain;
  std::string emit;
  LintOptions lint;
  SaveOptions save;
  PlayOptions play;
  ShrinkOptions shrink;
  std::string verify;
  WhyOptions why;
};

// The command as it was given: CLI11 takes "[a,b]" for two values and "[]" for none. False where it cannot be told from
// graphdump's own arguments.
bool keep_command(int argc, char** argv, Options& options) {
  char** const end = argv + argc;
  char** const separator = std::find_if(argv, end, [](const char* word) { return std::string_view(word) == "--"; });
  for (std::vector<std::string>* command :
       {&options.run.command, &options.time.command, &options.explain.command, &options.save.command}) {
    if (command->empty()) continue;
    if (end - separator > 1 && command->front() == separator[1]) {
      command->assign(separator + 1, end);
    } else if (std::any_of(argv, end,
                           [](std::string_view word) { return word.starts_with('[') && word.ends_with(']'); })) {
      return false;
    }
  }
  return true;
}

int parse_and_run(int argc, char** argv) {
  CLI::App app(
      "Looks at CUDA graphs that were saved as .cgrt.json files, or as DOT by CUDA itself "
      "(cudaGraphDebugDotPrint), or in bundles. FILE may be - for standard input, or BUNDLE:GRAPH.",
      "graphdump");
  app.set_version_flag("--version", "graphdump " CGRT_VERSION ", reads " + std::string(cgrt::inspect::kGraphSchema) +
                                        " version " + std::to_string(cgrt::inspect::kGraphVersion) + " and " +
                                        cgrt::saved::kBundleSchema + " version " +
                                        std::to_string(cgrt::saved::kBundleVersion));
  app.require_subcommand(1);

  Options options;
  Action action;
  add_show(app, options.show, action);
  add_stats(app, options.stats, action);
  add_diff(app, options.diff, action);
  add_run(app, options.run, action);
  add_time(app, options.time, action);
  add_explain(app, options.explain, action);
  add_emit(app, options.emit, action);
  add_lint(app, options.lint, action);
#ifdef GRAPHDUMP_LOADS_BUNDLES
  add_save(app, options.save, action);
  add_play(app, options.play, action);
  add_shrink(app, options.shrink, action);
#endif
  add_verify(app, options.verify, action);
  add_why(app, options.why, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);  // 0 for --help and --version
    return print(out.str(), err.str(), code == 0 ? kOk : kError);
  }
  if (!keep_command(argc, argv, options)) {
    return fail("an argument in [] cannot be told from a list of values here: write -- before the command.");
  }
  return action();
}

}  // namespace
}  // namespace graphdump

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `graphdump show big.cgrt.json | head` ends quietly
  try {
    return graphdump::parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    return graphdump::print("", std::string("graphdump: ") + error.what() + "\n", graphdump::kError);
  }
}
