#include "cgrt/dump/dump.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/log.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/inspect/json.h"

// The linker is told to look for this name (runtime/CMakeLists.txt), so that the archive's member
// is taken into every program although nothing calls it.
extern "C" const int cgrt_dump_linked = 1;

namespace cgrt {
namespace {

struct Destination {
  std::mutex mutex;
  std::string directory;
};

Destination& destination() {
  static Destination& value = *new Destination();
  return value;
}

// A new file, since other copies of this library in the process number theirs too, and process ids come back. If it
// cannot be made, write_file reports why.
std::string make_file(const std::string& directory) {
  static std::atomic<int> next{0};
  for (;;) {
    std::string path = absl::StrCat(directory, "/", program_invocation_short_name, "-", getpid(), "-",
                                    next.fetch_add(1), ".cgrt.json");
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST) continue;
    if (file >= 0) close(file);
    return path;
  }
}

void write(const Graph& graph) {
  std::string directory;
  {
    const std::lock_guard lock(destination().mutex);
    directory = destination().directory;
  }
  if (directory.empty()) return;  // switched off meanwhile
  const absl::StatusOr<ir::GraphIr> ir = snapshot(graph);
  if (!ir.ok()) {
    return log_warning(absl::StrCat("A graph was not written to ", directory, ": ", ir.status().message()));
  }
  const std::string path = make_file(directory);
  const absl::Status written = inspect::write_file(path, *ir);
  if (written.ok()) return;
  log_warning(absl::StrCat("A graph was not written to ", path, ": ", written.message()));
  unlink(path.c_str());  // what write_file made of it, or nothing
}

const bool started = [] {
  const char* directory = std::getenv("CGRT_DUMP_DIR");
  if (directory != nullptr && *directory != '\0') dump_graphs_to(directory);
  return true;
}();

}  // namespace

void dump_graphs_to(std::string directory) {
  const bool writing = !directory.empty();
  {
    const std::lock_guard lock(destination().mutex);
    destination().directory = std::move(directory);
  }
  set_instantiate_observer(writing ? &write : nullptr);
}

}  // namespace cgrt
