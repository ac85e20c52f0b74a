// graphdump run and time: run a command and have every graph that it instantiates written as a file.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/timing.h"
#include "command.h"
#include "inject/environment.h"
#include "recording.h"
#include "sessions.h"

namespace graphdump {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string folder = "graphs";
  std::uint64_t max_mb = 1024;
  std::uint64_t min_nodes = 0;
  bool is_timed = false, is_traced = false, is_explained = false;
  std::vector<std::string> command;
};

// What the times of the graphs say, of those that took the longest in all.
std::string timing_of(const std::vector<fs::path>& files) {
  constexpr std::size_t kMaxGraphs = 3;
  std::vector<std::pair<double, std::string>> told;
  for (const fs::path& file : files) {
    const absl::StatusOr<cgrt::ir::GraphIr> graph = read_graph(file.string());
    if (!graph.ok() || graph->timing.launches == 0) continue;
    const double time = static_cast<double>(graph->timing.launches) * static_cast<double>(graph->timing.median_ns);
    told.emplace_back(time, absl::StrCat("\n", file.string(), "\n", cgrt::inspect::to_timing_text(*graph)));
  }
  std::stable_sort(told.begin(), told.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min(told.size(), kMaxGraphs); ++i) text += told[i].second;
  if (told.size() > kMaxGraphs) {
    absl::StrAppend(&text, "\nand ", cgrt::counted(told.size() - kMaxGraphs, "graph"),
                    " that took less time: graphdump stats FILE\n");
  }
  return text;
}

// The status of the command, and where that is 0 and a capture has failed, kDifferent.
int explain(const Sessions& sessions, int status) {
  print("", sessions.notes.empty() ? "graphdump: no capture has failed\n" : sessions.notes, kOk);
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  return WEXITSTATUS(status) != 0 || sessions.notes.empty() ? WEXITSTATUS(status) : static_cast<int>(kDifferent);
}

int run(const Options& options) {
  std::error_code error;
  fs::create_directories(options.folder, error);
  const fs::path folder = error ? fs::path() : fs::canonical(options.folder, error);
  if (error) return fail(absl::StrCat("cannot make the folder ", options.folder, ": ", error.message()));
  if (access(folder.c_str(), W_OK) != 0) {
    return fail(absl::StrCat("cannot write into the folder ", options.folder, ": ", std::strerror(errno)));
  }
  Recording recording{.command = options.command, .folder = folder, .needs_cupti = options.is_timed};
  recording.variables = {{kMaxBytesVariable, absl::StrCat(options.max_mb * 1'000'000)},
                         {kMinNodesVariable, absl::StrCat(options.min_nodes)}};
  if (options.is_traced) recording.variables.emplace_back(kTraceVariable, "1");
  const RecordedCommand ended = run_recorded(recording);
  if (!ended.has_run) return ended.exit_status;
  const Sessions sessions = take_sessions(folder, options.folder);
  if (options.is_explained) return explain(sessions, ended.wait_status);
  print("", sessions.text, kOk);
  if (options.is_timed) print("", timing_of(sessions.files), kOk);
  return end_as(ended.wait_status);
}

void add_options(CLI::App* command, const std::shared_ptr<Options>& options, Action& action) {
  command->add_option("--out,-o", options->folder, "The folder for the files; made if it is not there")
      ->capture_default_str();
  command->add_option("--max-mb", options->max_mb, "Write at most so many MB in each process; 0: all")
      ->capture_default_str();
  command->add_option("--min-nodes", options->min_nodes, "Leave out graphs of fewer nodes")->capture_default_str();
  command->add_option("COMMAND", options->command, "The command and its arguments, after --")->required();
  command->positionals_at_end();
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run",
                                         "Run a command and write every graph that it and the processes it starts "
                                         "instantiate, as PROGRAM-PROCESS-NUMBER.cgrt.json; the command is not changed "
                                         "and its exit status is that of graphdump");
  add_options(command, std::make_shared<Options>(), action);
}

void add_explain(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("explain",
                         "As run, and print only how each stream capture that failed was ended: by "
                         "which call, of which thread, and what to do. Exits with the command's status, "
                         "and with 1 when that is 0 and a capture has failed");
  const auto options = std::make_shared<Options>();
  options->is_explained = true;
  add_options(command, options, action);
}

void add_time(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("time",
                         "As run, and measure how long each node takes: the files have the times, which "
                         "show and stats print");
  const auto options = std::make_shared<Options>();
  options->is_timed = true;
  command->add_flag("--trace", options->is_traced,
                    "Write PROGRAM-PROCESS.trace.json as well, for ui.perfetto.dev: all that ran on the devices");
  add_options(command, options, action);
}

}  // namespace graphdump
