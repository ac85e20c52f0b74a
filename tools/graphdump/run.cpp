// graphdump run and time: run a command and have every graph that it instantiates written as a file.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
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
#include "subcommands.h"

namespace graphdump {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

int run(const RunOptions& options) {
  std::error_code error;
  fs::create_directories(options.folder, error);
  const fs::path folder = error ? fs::path() : fs::canonical(options.folder, error);
  if (error) return fail(absl::StrCat("cannot make the folder ", options.folder, ": ", error.message()));
  if (access(folder.c_str(), W_OK) != 0) {
    return fail(absl::StrCat("cannot write into the folder ", options.folder, ": ", std::strerror(errno)));
  }
  Recording recording{.command = options.command, .folder = folder, .needs_cupti = options.is_timed};
  recording.variables = {{kMaxBytesVariable, absl::StrCat(options.max_mb * kBytesPerMb)},
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

}  // namespace graphdump
