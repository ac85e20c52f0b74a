// graphdump run and time: run a command and have every graph that it instantiates written as a file.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

// Beside this program, or where it is installed; empty: neither.
fs::path find_library(const char* name) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"", "../lib", "../lib64", "../lib/x86_64-linux-gnu", "../lib/aarch64-linux-gnu"}) {
    const fs::path path = folder / place / name;
    if (fs::exists(path, error)) return fs::canonical(path, error);
  }
  return {};
}

pid_t child = -1;
void pass_on(int signal) {
  if (child > 0) kill(child, signal);
}

// Runs the command to its end; its status as wait() gives it, or -1 with a sentence in `error`.
int run_command(const std::vector<std::string>& command, std::string* error) {
  int report[2];  // what exec says, when it returns
  if (pipe2(report, O_CLOEXEC) != 0) {
    *error = absl::StrCat("no pipe: ", std::strerror(errno));
    return -1;
  }
  // Those that a terminal sends go to the command as well, and it decides.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  child = fork();
  if (child == 0) {
    for (const int one : {SIGINT, SIGQUIT, SIGPIPE}) std::signal(one, SIG_DFL);
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    const int code = errno;
    [[maybe_unused]] const ssize_t written = write(report[1], &code, sizeof(code));
    _exit(127);
  }
  close(report[1]);
  if (child < 0) {
    close(report[0]);
    *error = absl::StrCat("no process: ", std::strerror(errno));
    return -1;
  }
  std::signal(SIGTERM, &pass_on);
  std::signal(SIGHUP, &pass_on);
  int code = 0;
  const bool has_failed = read(report[0], &code, sizeof(code)) == sizeof(code);
  close(report[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!has_failed) return status;
  *error = absl::StrCat("cannot run ", command[0], ": ", std::strerror(code));
  return -1;
}

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
  const fs::path library = find_library(kLibrary), preload = find_library(kPreloadLibrary);
  if (library.empty() || preload.empty()) {
    return fail(absl::StrCat("cannot find ", library.empty() ? kLibrary : kPreloadLibrary,
                             " beside graphdump: it is built and installed with it where there is a CUDA toolkit."));
  }
  const auto value_of = [](const char* variable) {
    const char* const value = std::getenv(variable);
    return std::string(value != nullptr ? value : "");
  };
  for (const char* variable : {kInjectionVariable, kNvtxInjectionVariable}) {
    const bool is_taken = options.is_timed || variable == kNvtxInjectionVariable;
    if (const std::string other = value_of(variable); is_taken && !other.empty()) {
      std::fprintf(stderr, "graphdump: %s names %s, which is not loaded in this run: one tool at a time.\n", variable,
                   other.c_str());
    }
  }
  std::error_code error;
  fs::create_directories(options.folder, error);
  const fs::path folder = error ? fs::path() : fs::canonical(options.folder, error);
  if (error) return fail(absl::StrCat("cannot make the folder ", options.folder, ": ", error.message()));
  if (access(folder.c_str(), W_OK) != 0) {
    return fail(absl::StrCat("cannot write into the folder ", options.folder, ": ", std::strerror(errno)));
  }
  const std::string preloaded = value_of(kPreloadVariable);
  setenv(kPreloadVariable, (preload.string() + (preloaded.empty() ? "" : ":") + preloaded).c_str(), 1);
  setenv(kLibraryVariable, library.c_str(), 1);
  if (options.is_timed) setenv(kInjectionVariable, library.c_str(), 1);
  setenv(kNvtxInjectionVariable, library.c_str(), 1);
  setenv(kFolderVariable, folder.c_str(), 1);
  setenv(kMaxBytesVariable, absl::StrCat(options.max_mb * 1'000'000).c_str(), 1);
  setenv(kMinNodesVariable, absl::StrCat(options.min_nodes).c_str(), 1);
  if (options.is_traced) setenv(kTraceVariable, "1", 1);

  std::string failure;
  const int status = run_command(options.command, &failure);
  if (status < 0) return fail(failure), 127;
  const Sessions sessions = take_sessions(folder, options.folder);
  if (options.is_explained) return explain(sessions, status);
  print("", sessions.text, kOk);
  if (options.is_timed) print("", timing_of(sessions.files), kOk);
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  // Ends as the command did, so that who called sees the same.
  std::signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
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
