// graphdump run: runs a command and has every graph that it instantiates written as a file.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
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
  std::vector<std::string> command;
};

// Beside this program, or where it is installed.
fs::path find_library() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& path :
       {folder / kInjectionLibrary, folder / "../lib" / kInjectionLibrary, folder / "../lib64" / kInjectionLibrary,
        folder / "../lib/x86_64-linux-gnu" / kInjectionLibrary}) {
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

int run(const Options& options) {
  const fs::path library = find_library();
  if (library.empty()) {
    return fail(absl::StrCat("cannot find ", kInjectionLibrary,
                             " beside graphdump: it is built and installed with it where there is a CUDA toolkit."));
  }
  for (const char* variable : {kInjectionVariable, kNvtxInjectionVariable}) {
    const char* const other = std::getenv(variable);
    if (other != nullptr && *other != '\0') {
      std::fprintf(stderr, "graphdump: %s names %s, which is not loaded in this run: one tool at a time.\n", variable,
                   other);
    }
  }
  std::error_code error;
  fs::create_directories(options.folder, error);
  const fs::path folder = error ? fs::path() : fs::canonical(options.folder, error);
  if (error) return fail(absl::StrCat("cannot make the folder ", options.folder, ": ", error.message()));
  if (access(folder.c_str(), W_OK) != 0) {
    return fail(absl::StrCat("cannot write into the folder ", options.folder, ": ", std::strerror(errno)));
  }
  setenv(kInjectionVariable, library.c_str(), 1);
  setenv(kNvtxInjectionVariable, library.c_str(), 1);
  setenv(kFolderVariable, folder.c_str(), 1);
  setenv(kMaxBytesVariable, absl::StrCat(options.max_mb * 1'000'000).c_str(), 1);
  setenv(kMinNodesVariable, absl::StrCat(options.min_nodes).c_str(), 1);

  std::string failure;
  const int status = run_command(options.command, &failure);
  if (status < 0) return fail(failure), 127;
  print("", take_sessions(folder, options.folder), kOk);
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  // Ends as the command did, so that who called sees the same.
  std::signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run",
                                         "Run a command and write every graph that it and the processes it starts "
                                         "instantiate, as PROGRAM-PROCESS-NUMBER.cgrt.json; the command is not changed "
                                         "and its exit status is that of graphdump");
  command->add_option("--out,-o", options->folder, "The folder for the files; made if it is not there")
      ->capture_default_str();
  command->add_option("--max-mb", options->max_mb, "Write at most so many MB in each process; 0: all")
      ->capture_default_str();
  command->add_option("--min-nodes", options->min_nodes, "Leave out graphs of fewer nodes")->capture_default_str();
  command->add_option("COMMAND", options->command, "The command and its arguments, after --")->required();
  command->positionals_at_end();
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace graphdump
