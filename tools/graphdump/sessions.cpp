#include "sessions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cgrt/base/counted.h"
#include "cgrt/ir/describe.h"
#include "inject/session_file.h"

namespace graphdump {
namespace {

namespace fs = std::filesystem;
using cgrt::counted;

constexpr std::size_t kMaxListed = 20;

// A session file in memory; null when it is none.
class MappedSession {
 public:
  explicit MappedSession(const fs::path& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat size {};
    if (fstat(file, &size) == 0 && size.st_size == static_cast<off_t>(sizeof(Session))) {
      void* const mapped = mmap(nullptr, sizeof(Session), PROT_READ, MAP_SHARED, file, 0);
      if (mapped != MAP_FAILED) session_ = static_cast<const Session*>(mapped);
    }
    close(file);
    if (session_ != nullptr && session_->header.magic != kSessionMagic) unmap();
  }
  ~MappedSession() { unmap(); }
  MappedSession(MappedSession&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
  MappedSession& operator=(MappedSession&&) = delete;

  const Session* get() const { return session_; }

 private:
  void unmap() {
    if (session_ != nullptr) munmap(const_cast<Session*>(session_), sizeof(Session));
    session_ = nullptr;
  }

  const Session* session_ = nullptr;
};

template <std::size_t kSize>
std::string text_of(const char (&field)[kSize]) {
  return std::string(field, strnlen(field, kSize));
}

// As JSON, of whatever bytes.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : cgrt::ir::printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::size_t recorded(const SessionHeader& header) { return std::min<std::size_t>(header.execs.load(), kMaxExecs); }

std::string to_json(const ExecRecord& exec) {
  std::string out = absl::StrCat("{\"file\": ", exec.file[0] != '\0' ? quoted(text_of(exec.file)) : "null");
  if (exec.file[0] == '\0') absl::StrAppend(&out, ", \"why_no_file\": ", quoted(text_of(exec.why_no_file)));
  absl::StrAppend(&out, ", \"nodes\": ", exec.nodes, ", \"launches\": ", exec.launches.load(),
                  ", \"uploads\": ", exec.uploads.load(), ", \"updates\": ", exec.updates.load(),
                  ", \"refused_updates\": ", exec.refused_updates.load(), ", \"set_params\": ", exec.set_params.load(),
                  ", \"thread\": ", exec.thread);
  if (exec.capture_thread != 0) {
    absl::StrAppend(&out, ", \"capture\": {\"thread\": ", exec.capture_thread, ", \"stream\": \"0x",
                    absl::Hex(exec.capture_stream), "\"}");
  }
  return out + "}";
}

std::string to_json(const Session& session) {
  const SessionHeader& header = session.header;
  std::string out =
      absl::StrCat("{\"program\": ", quoted(text_of(header.program)), ", \"process\": ", header.process,
                   ", \"kernel_launches\": ", header.kernel_launches.load(),
                   ", \"kernel_launch_ns\": ", header.kernel_launch_ns.load(),
                   ", \"device_span_ns\": ", header.device_span_ns, ", \"device_busy_ns\": ", header.device_busy_ns,
                   ",\n    \"notes\": ", quoted(text_of(header.notes)), ", \"graphs\": [");
  for (std::size_t i = 0; i < recorded(header); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ",", "\n      ", to_json(session.execs[i]));
  }
  return out + "]}";
}

std::string to_text(const ExecRecord& exec, const std::string& name) {
  std::string out = exec.file[0] != '\0' ? absl::StrCat("  ", name, "/", text_of(exec.file))
                                         : absl::StrCat("  (not written: ", text_of(exec.why_no_file), ")");
  absl::StrAppend(&out, "  ", counted(exec.nodes, "node"), ", launched ", counted(exec.launches.load(), "time"));
  if (exec.updates != 0) absl::StrAppend(&out, ", ", counted(exec.updates.load(), "update"));
  if (exec.refused_updates != 0)
    absl::StrAppend(&out, ", ", counted(exec.refused_updates.load(), "update"), " refused");
  if (exec.set_params != 0) absl::StrAppend(&out, ", ", counted(exec.set_params.load(), "node"), " set");
  return out + "\n";
}

std::string to_text(const Session& session, const std::string& name) {
  const SessionHeader& header = session.header;
  std::uint64_t launches = 0;
  for (std::size_t i = 0; i < recorded(header); ++i) launches += session.execs[i].launches.load();
  std::string out = absl::StrCat("graphdump: ", text_of(header.program), ", process ", header.process, ": ",
                                 counted(header.execs.load(), "graph"), ", launched ", counted(launches, "time"), "\n");
  for (std::size_t i = 0; i < std::min(recorded(header), kMaxListed); ++i) {
    out += to_text(session.execs[i], name);
  }
  if (header.execs.load() > kMaxListed) {
    absl::StrAppend(&out, "  and ", header.execs.load() - kMaxListed, " more: ", name, "/run.json\n");
  }
  if (const std::uint64_t kernels = header.kernel_launches.load(); kernels != 0) {
    const double ns = static_cast<double>(header.kernel_launch_ns.load());
    absl::StrAppendFormat(&out,
                          "  outside of graphs: %s launched, which took the host %.1f ms "
                          "in the driver, %.2f us each%s\n",
                          counted(kernels, "kernel"), ns / 1e6, ns / 1e3 / static_cast<double>(kernels),
                          launches == 0 ? ", where a graph takes one call for all of its nodes" : "");
  }
  if (header.device_span_ns != 0) {
    const auto span = static_cast<double>(header.device_span_ns), busy = static_cast<double>(header.device_busy_ns);
    absl::StrAppendFormat(&out, "  devices: %.1f ms from the first start to the last end, idle %.1f %% of them\n",
                          span / 1e6, 100 * (1 - busy / span));
  }
  return out;
}

std::string notes_of(const SessionHeader& header) {
  std::string out;
  const std::string notes = text_of(header.notes);
  for (std::size_t at = 0; at < notes.size();) {
    const std::size_t end = std::min(notes.find('\n', at), notes.size());
    absl::StrAppend(&out, "  ", cgrt::ir::printable(notes.substr(at, end - at)), "\n");
    at = end + 1;
  }
  return out;
}

}  // namespace

Sessions take_sessions(const fs::path& folder, const std::string& name) {
  std::vector<fs::path> paths, files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == kSessionSuffix) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::string text, all_notes, json = "{\"schema\": \"cgrt-run-1\", \"processes\": [";
  const char* separator = "";
  for (const fs::path& path : paths) {
    const MappedSession session(path);
    if (session.get() == nullptr) continue;
    const SessionHeader& header = session.get()->header;
    const std::string notes = notes_of(header);
    text += to_text(*session.get(), name) + notes;
    if (!notes.empty()) {
      absl::StrAppend(&all_notes, "graphdump: ", text_of(header.program), ", process ", header.process, "\n", notes);
    }
    for (std::size_t i = 0; i < recorded(header); ++i) {
      const ExecRecord& exec = session.get()->execs[i];
      if (exec.file[0] != '\0') files.push_back(folder / text_of(exec.file));
    }
    absl::StrAppend(&json, separator, "\n  ", to_json(*session.get()));
    separator = ",";
    fs::remove(path, error);
  }
  std::ofstream(folder / "run.json") << json << "\n]}\n";
  if (text.empty())
    text = "graphdump: no process of the command initialized CUDA, or none could write into the folder\n";
  return {std::move(text), std::move(all_notes), std::move(files)};
}

}  // namespace graphdump
