#include "recording.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "command.h"
#include "inject/environment.h"

namespace graphdump {
namespace {

namespace fs = std::filesystem;

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

pid_t recorded_process = -1;
void pass_on(int signal) {
  if (recorded_process > 0) kill(recorded_process, signal);
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
  recorded_process = fork();
  if (recorded_process == 0) {
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
  if (recorded_process < 0) {
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
  while (waitpid(recorded_process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!has_failed) return status;
  *error = absl::StrCat("cannot run ", command[0], ": ", std::strerror(code));
  return -1;
}

}  // namespace

RecordedCommand run_recorded(const Recording& recording) {
  const fs::path library = find_library(kLibrary), preload = find_library(kPreloadLibrary);
  if (library.empty() || preload.empty()) {
    return {.exit_status = fail(absl::StrCat("cannot find ", library.empty() ? kLibrary : kPreloadLibrary,
                                             " beside graphdump: it is built and installed with it where there is a "
                                             "CUDA toolkit."))};
  }
  const auto value_of = [](const char* variable) {
    const char* const value = std::getenv(variable);
    return std::string(value != nullptr ? value : "");
  };
  for (const char* variable : {kInjectionVariable, kNvtxInjectionVariable}) {
    const bool is_taken = recording.needs_cupti || variable == kNvtxInjectionVariable;
    if (const std::string other = value_of(variable); is_taken && !other.empty() && other != library) {
      std::fprintf(stderr, "graphdump: %s names %s, which is not loaded in this run: one tool at a time.\n", variable,
                   other.c_str());
    }
  }
  const std::string preloaded = value_of(kPreloadVariable);
  if (!preloaded.starts_with(preload.string())) {  // as after a run before this one
    setenv(kPreloadVariable, (preload.string() + (preloaded.empty() ? "" : ":") + preloaded).c_str(), 1);
  }
  setenv(kLibraryVariable, library.c_str(), 1);
  if (recording.needs_cupti) setenv(kInjectionVariable, library.c_str(), 1);
  setenv(kNvtxInjectionVariable, library.c_str(), 1);
  setenv(kFolderVariable, recording.folder.c_str(), 1);
  for (const auto& [variable, value] : recording.variables) setenv(variable, value.c_str(), 1);

  std::string failure;
  const int status = run_command(recording.command, &failure);
  if (status < 0) return fail(failure), RecordedCommand{.exit_status = 127};
  return {.has_run = true, .wait_status = status};
}

int end_as(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return WEXITSTATUS(wait_status);
  std::signal(WTERMSIG(wait_status), SIG_DFL);
  raise(WTERMSIG(wait_status));
  return 128 + WTERMSIG(wait_status);
}

}  // namespace graphdump
