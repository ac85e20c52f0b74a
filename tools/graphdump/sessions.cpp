#include "sessions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/json_writer.h"
#include "cgrt/base/text_file.h"
#include "cgrt/inspect/recorded_run.h"
#include "cgrt/ir/describe.h"
#include "inject/session_file.h"

namespace graphdump {
namespace {

namespace fs = std::filesystem;
using cgrt::counted;

constexpr std::size_t kMaxPrinted = 20;

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

std::string why_no_file(const ExecRecord& exec) {
  return exec.why_no_file[0] != '\0' ? text_of(exec.why_no_file) : "the process ended before it was";
}

std::size_t recorded(const SessionHeader& header) { return std::min<std::size_t>(header.execs.load(), kMaxExecs); }

const char* to_string(NotFollowed reason) {
  switch (reason) {
    case NotFollowed::kNone: return "followed";
    case NotFollowed::kNoFile: return "the graph itself was not written";
    case NotFollowed::kGraphDestroyed: return "the graph that it was made of had been destroyed";
    case NotFollowed::kGraphChanged: return "the graph that it was made of had been changed since";
    case NotFollowed::kChildGraph: return "a child graph was set as a whole";
    case NotFollowed::kNoClone: return "cuGraphClone refused the graph, as it does with conditional and memory nodes";
    case NotFollowed::kRefused: return "cuGraphNodeSetParams refused the parameters for the clone";
    case NotFollowed::kUpdated: return "a whole-graph update came before";
    case NotFollowed::kNotRead: return "the driver refused to tell the parameters";
  }
  return "?";
}

std::string stream_name(std::uint64_t stream) {
  if (stream == kLegacyStream) return "legacy";
  if ((stream & kPerThreadStream) != 0) return absl::StrCat("per-thread ", stream >> kThreadShift);
  return absl::StrCat("0x", absl::Hex(stream));
}

void write_list(cgrt::JsonWriter& json, const char* name, const std::uint64_t* begin, std::size_t count) {
  json.key(name);
  json.begin_array();
  for (std::size_t i = 0; i < count; ++i) json.value(begin[i]);
  json.end_array();
}

// What is known of the graph beside its file.
void write_lists(cgrt::JsonWriter& json, const Session& session, const ExecRecord& exec) {
  const std::uint64_t counts = std::uint64_t{exec.memory_count} + exec.host_data_count + exec.stack_node_count;
  if (exec.first_listed + counts > kMaxListed) return;
  const std::uint64_t* const memory = session.listed + exec.first_listed;
  const std::uint64_t* const host_data = memory + exec.memory_count;
  write_list(json, "memory", memory, exec.memory_count);
  json.member("has_user_objects", exec.has_user_objects != 0);
  write_list(json, "host_data", host_data, exec.host_data_count);
  write_list(json, "stack_nodes", host_data + exec.host_data_count, exec.stack_node_count);
}

void write(cgrt::JsonWriter& json, const Session& session, const ExecRecord& exec) {
  json.begin_object(cgrt::JsonLayout::kOneLine);
  json.key("file");
  if (exec.file[0] != '\0') {
    json.value(text_of(exec.file));
  } else {
    json.null();
    json.member("why_no_file", why_no_file(exec));
  }
  json.member("nodes", exec.nodes);
  json.member("launches", exec.launches.load());
  json.member("uploads", exec.uploads.load());
  json.member("updates", exec.updates.load());
  json.member("refused_updates", exec.refused_updates.load());
  json.member("set_params", exec.set_params.load());
  json.member("set_enabled", exec.set_enabled.load());
  if (const NotFollowed reason = exec.not_followed.load(); reason != NotFollowed::kNone) {
    json.member("why_not_followed", to_string(reason));
  }
  json.member("thread", exec.thread);
  if (exec.capture_thread != 0) {
    json.key("capture");
    json.begin_object();
    json.member("thread", exec.capture_thread);
    json.member("stream", absl::StrCat("0x", absl::Hex(exec.capture_stream)));
    json.end_object();
  }
  json.key("streams");
  json.begin_array();
  for (const std::atomic<std::uint64_t>& stream : exec.streams) {
    if (stream != 0) json.value(stream_name(stream));
  }
  json.end_array();
  json.member("has_more_streams", exec.has_more_streams != 0);
  if (exec.destroyed_before != 0) json.member("destroyed_before", exec.destroyed_before.load());
  if (exec.file[0] != '\0') write_lists(json, session, exec);
  json.end_object();
}

void write(cgrt::JsonWriter& json, const Session& session) {
  const SessionHeader& header = session.header;
  json.begin_object();
  json.member("program", text_of(header.program));
  json.member("process", header.process);
  json.member("kernel_launches", header.kernel_launches.load());
  json.member("kernel_launch_ns", header.kernel_launch_ns.load());
  json.member("device_span_ns", header.device_span_ns);
  json.member("device_busy_ns", header.device_busy_ns);
  json.member("notes", text_of(header.notes));
  json.key("graphs");
  json.begin_array();
  for (std::size_t i = 0; i < recorded(header); ++i) write(json, session, session.execs[i]);
  json.end_array();
  json.end_object();
}

std::string to_text(const ExecRecord& exec, const std::string& name) {
  std::string out = exec.file[0] != '\0' ? absl::StrCat("  ", name, "/", text_of(exec.file))
                                         : absl::StrCat("  (not written: ", why_no_file(exec), ")");
  absl::StrAppend(&out, "  ", counted(exec.nodes, "node"), ", launched ", counted(exec.launches.load(), "time"));
  if (exec.updates != 0) absl::StrAppend(&out, ", ", counted(exec.updates.load(), "update"));
  if (exec.refused_updates != 0)
    absl::StrAppend(&out, ", ", counted(exec.refused_updates.load(), "update"), " refused");
  if (exec.set_params != 0) absl::StrAppend(&out, ", ", counted(exec.set_params.load(), "node"), " set");
  if (const NotFollowed reason = exec.not_followed.load(); reason != NotFollowed::kNone) {
    absl::StrAppend(&out, " (not followed: ", to_string(reason), ")");
  }
  if (exec.set_enabled != 0) {
    absl::StrAppend(&out, ", ", counted(exec.set_enabled.load(), "node"), " enabled or disabled");
  }
  return out + "\n";
}

std::string to_text(const Session& session, const std::string& name) {
  const SessionHeader& header = session.header;
  std::uint64_t launches = 0;
  for (std::size_t i = 0; i < recorded(header); ++i) launches += session.execs[i].launches.load();
  std::string out = absl::StrCat("graphdump: ", text_of(header.program), ", process ", header.process, ": ",
                                 counted(header.execs.load(), "graph"), ", launched ", counted(launches, "time"), "\n");
  for (std::size_t i = 0; i < std::min(recorded(header), kMaxPrinted); ++i) {
    out += to_text(session.execs[i], name);
  }
  if (header.execs.load() > kMaxPrinted) {
    absl::StrAppend(&out, "  and ", header.execs.load() - kMaxPrinted, " more: ", name, "/run.json\n");
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
  std::vector<fs::path> paths, parts, files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == kSessionSuffix) paths.push_back(entry.path());
    if (entry.path().extension() == kPartSuffix) parts.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::string text, all_notes;
  cgrt::JsonWriter json;
  json.begin_object();
  json.member("schema", cgrt::inspect::kRunSchema);
  json.key("processes");
  json.begin_array();
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
    write(json, *session.get());
    fs::remove(path, error);
    for (const fs::path& part : parts) {  // what the process was writing when it ended
      if (part.filename().string().starts_with(path.stem().string() + "-")) fs::remove(part, error);
    }
  }
  json.end_array();
  json.end_object();
  const absl::Status written = cgrt::write_text_file(folder / "run.json", std::move(json).finish());
  if (!written.ok()) absl::StrAppend(&text, "graphdump: ", std::string(written.message()), "\n");
  if (text.empty())
    text = "graphdump: no process of the command initialized CUDA, or none could write into the folder\n";
  return {std::move(text), std::move(all_notes), std::move(files)};
}

}  // namespace graphdump
