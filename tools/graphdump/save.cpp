// graphdump save: run a command and save graphs that it launches as a bundle.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/loaded_trials.h"
#include "cgrt/bundle/prove_movable.h"
#include "cgrt/bundle/trial_process.h"
#include "cgrt/saved/folder.h"
#include "cgrt/saved/movable.h"
#include "cgrt/saved/text.h"
#include "command.h"
#include "inject/environment.h"
#include "inject/marks.h"
#include "recording.h"
#include "sessions.h"
#include "subcommands.h"

namespace graphdump {
namespace {

namespace fs = std::filesystem;
namespace saved = cgrt::saved;

// Of a replay and the comparison of all memory.
absl::Duration replay_limit(const saved::Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const saved::Block& block : manifest.blocks) bytes += block.bytes;
  return absl::Seconds(20) + absl::Nanoseconds(bytes);  // at 1 GB/s
}

// What a bundle has in its folder.
constexpr const char* kParts[] = {saved::kManifestFile, "graphs", "code", "memory"};

// Why nothing can be saved there; empty: it can.
std::string check_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return "";
  if (!fs::is_directory(folder, error)) return "it is no folder";
  if (fs::is_empty(folder, error) || saved::Folder::open(folder.string()).ok()) return "";
  return "it has files that are none of a bundle's; name another folder, or delete it";
}

void remove_bundle(const fs::path& folder) {
  std::error_code error;
  for (const char* part : kParts) fs::remove_all(folder / part, error);
}

// The one bundle of a run is that of the folder.
std::string move_up(const fs::path& from, const fs::path& folder) {
  std::error_code error;
  remove_bundle(folder);
  for (const char* part : kParts) {
    if (fs::exists(from / part, error)) fs::rename(from / part, folder / part, error);
    if (error) return absl::StrCat("cannot move ", (from / part).string(), ": ", error.message());
  }
  fs::remove(from, error);
  return "";
}

// Folders with a bundle of a process each, in `staging`. Others are what processes left that saved nothing.
std::vector<fs::path> bundles_in(const fs::path& staging) {
  std::vector<fs::path> bundles;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(staging, error)) {
    if (saved::Folder::open(entry.path().string()).ok()) bundles.push_back(entry.path());
  }
  std::sort(bundles.begin(), bundles.end());
  return bundles;
}

std::string describe(const std::string& name) {
  const absl::StatusOr<saved::Folder> folder = saved::Folder::open(name);
  const absl::StatusOr<std::string> text = folder.ok() ? saved::to_text(*folder) : folder.status();
  return text.ok() ? absl::StrCat("graphdump: saved ", name, ": ", *text)
                   : absl::StrCat("graphdump: ", std::string(text.status().message()), "\n");
}

// Puts what was saved in its place, and says what that is.
std::string publish(const fs::path& staging, const SaveOptions& options) {
  const std::vector<fs::path> bundles = bundles_in(staging);
  if (bundles.empty()) return "graphdump: no graph was saved\n";
  const fs::path folder = options.folder;
  if (bundles.size() == 1) {
    const std::string failure = move_up(bundles.front(), folder);
    return failure.empty() ? describe(options.folder) : absl::StrCat("graphdump: ", failure, "\n");
  }
  std::string text =
      absl::StrCat("graphdump: ", bundles.size(), " processes saved graphs, each in a bundle of its own\n");
  remove_bundle(folder);
  for (const fs::path& bundle : bundles) {
    std::error_code error;
    const fs::path to = folder / bundle.filename();
    fs::rename(bundle, to, error);
    absl::StrAppend(&text, error ? absl::StrCat("graphdump: cannot move ", bundle.string(), ": ", error.message(), "\n")
                                 : describe(to.string()));
  }
  return text;
}

// A new folder for what is not there for long, in `parent`, which is gone with this.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& name) : path_(name.string() + "-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) failure_ = std::strerror(errno);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code error;
    if (failure_.empty()) fs::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }
  const std::string& failure() const { return failure_; }

 private:
  std::string path_, failure_;
};

// Runs the command, which leaves its bundles in `staging`.
RecordedCommand run_saving(const SaveOptions& options, const std::string& sessions, const std::string& staging,
                           bool is_displaced) {
  Recording recording{.command = options.command, .folder = sessions, .needs_cupti = true};
  recording.variables = {{kMinNodesVariable, absl::StrCat(options.min_nodes)},
                         {kSaveVariable, staging},
                         {kSaveGraphsVariable, absl::StrJoin(options.graphs, ",")},
                         {kSaveRangeVariable, options.range},
                         {kSaveLaunchVariable, absl::StrCat(options.launch)},
                         {kSaveInputsVariable, absl::StrJoin(options.inputs, "\n")},
                         {kSaveOutputsVariable, absl::StrJoin(options.outputs, "\n")}};
  if (is_displaced) recording.variables.emplace_back(kSaveDisplacedVariable, "1");
  return run_recorded(recording);
}

// Has `first` say which words are addresses, as far as `second` and replays at other addresses in child processes show
// it. What there is to say of that.
absl::StatusOr<std::string> compare(const saved::Folder& first, const saved::Folder& second) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<saved::Movability> compared, saved::compare_saves(first, second));
  const auto moved = [&](const std::vector<std::string>& graphs) {
    const auto load = [&, graphs] {
      return cgrt::LoadedTrials::create(first.path(), graphs, cgrt::DeviceRef(0), cgrt::BundlePlacement::kAnywhere);
    };
    return cgrt::TrialProcess::create(load, replay_limit(first.manifest()));
  };
  CGRT_ASSIGN_OR_RETURN(const std::vector<saved::Movability> proven,
                        cgrt::prove_movable(first.path(), compared, moved));
  std::string text;
  for (std::size_t i = 0; i < proven.size(); ++i) {
    if (compared[i].open.empty() || !proven[i].why_not.empty()) continue;
    absl::StrAppend(
        &text, "graphdump: ", first.manifest().graphs[i].name, ": ", cgrt::counted(compared[i].open.size(), "word"),
        " of kernel arguments may be part of an address, and no kernel uses them: replays with other values there "
        "give the same\n");
  }
  return text;
}

// Runs the command once more, with its memory at other addresses, and has the bundles in `staging` say which words are
// addresses. What there is to say of it.
std::string make_movable(const SaveOptions& options, const fs::path& folder, const std::string& staging) {
  const std::vector<fs::path> bundles = bundles_in(staging);
  if (bundles.empty()) return "";
  const ScratchFolder sessions(fs::temp_directory_path() / "graphdump"), again(folder / ".saving");
  for (const ScratchFolder* scratch : {&sessions, &again}) {
    if (!scratch->failure().empty()) {
      return absl::StrCat("graphdump: not movable: cannot make ", scratch->path(), ": ", scratch->failure(), "\n");
    }
  }
  const RecordedCommand ended = run_saving(options, sessions.path(), again.path(), true);
  std::string text = take_sessions(sessions.path(), options.folder).notes;
  const std::vector<fs::path> seconds = bundles_in(again.path());
  if (!ended.has_run || ended.wait_status != 0 || seconds.size() != bundles.size()) {
    return absl::StrCat(text, "graphdump: not movable: the second run saved ", cgrt::counted(seconds.size(), "bundle"),
                        ", the first ", bundles.size(), ended.wait_status != 0 ? ", and failed\n" : "\n");
  }
  for (std::size_t i = 0; i < bundles.size(); ++i) {
    const absl::StatusOr<saved::Folder> first = saved::Folder::open(bundles[i].string());
    const absl::StatusOr<saved::Folder> second = saved::Folder::open(seconds[i].string());
    const absl::Status status = first.ok() ? second.status() : first.status();
    const absl::StatusOr<std::string> said = status.ok() ? compare(*first, *second) : status;
    absl::StrAppend(&text, said.ok() ? *said : absl::StrCat("graphdump: not movable: ", said.status().message(), "\n"));
  }
  return text;
}

}  // namespace

int save(const SaveOptions& options) {
  for (const std::vector<std::string>* operands : {&options.inputs, &options.outputs}) {
    for (const std::string& text : *operands) {
      if (const auto operand = parse_operand(text); !operand.ok()) return fail(operand.status());
    }
  }
  if (const std::string why = check_folder(options.folder); !why.empty()) {
    return fail(absl::StrCat("cannot save into ", options.folder, ": ", why, "."));
  }
  std::error_code error;
  const bool is_new = fs::create_directories(options.folder, error);
  if (is_new) fs::permissions(options.folder, fs::perms::owner_all, error);  // memory may be private
  const fs::path folder = error ? fs::path() : fs::canonical(options.folder, error);
  if (error) return fail(absl::StrCat("cannot make the folder ", options.folder, ": ", error.message()));
  const ScratchFolder sessions(fs::temp_directory_path(error) / "graphdump"), staging(folder / ".saving");
  for (const ScratchFolder* scratch : {&sessions, &staging}) {
    if (!scratch->failure().empty()) {
      return fail(absl::StrCat("cannot make the folder ", scratch->path(), ": ", scratch->failure()));
    }
  }
  const RecordedCommand ended = run_saving(options, sessions.path(), staging.path(), false);
  if (!ended.has_run) return ended.exit_status;
  std::string text = take_sessions(sessions.path(), options.folder).notes;
  if (options.is_movable) text += make_movable(options, folder, staging.path());
  print("", text + publish(staging.path(), options), kOk);
  return end_as(ended.wait_status);
}

}  // namespace graphdump
