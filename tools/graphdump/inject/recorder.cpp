#include "inject/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/driver/api.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/inspect/json.h"
#include "inject/nvtx.h"
#include "inject/session.h"

namespace graphdump::recorder {
namespace {

namespace driver = cgrt::driver;
using cgrt::NodeNote;

struct Capture {
  std::int64_t thread = 0;
  CUstream stream = nullptr;
};

struct Exec {
  ExecRecord* record = nullptr;  // null: there were too many
  std::uint32_t number = 0;
  std::uint32_t written_updates = 0;
};
constexpr std::uint32_t kMaxWrittenUpdates = 3;  // of an executable: some programs update before each launch

struct State {
  std::mutex mutex;  // of all but `execs`
  absl::flat_hash_map<CUgraphNode, NodeNote> notes;
  absl::flat_hash_map<CUgraphConditionalHandle, std::optional<unsigned>> at_launch;
  absl::flat_hash_map<CUstream, Capture> live;
  absl::flat_hash_map<CUgraph, Capture> captured;
  std::uint64_t written_bytes = 0;

  std::shared_mutex execs_mutex;
  absl::flat_hash_map<CUgraphExec, Exec> execs;
};
// Never destroyed: the process may use CUDA after main has returned.
State& state() {
  static State& value = *new State();
  return value;
}

thread_local constinit std::uint64_t nodes_made = 0;
thread_local constinit bool instantiating = false;
thread_local Exec pending;  // that this thread instantiates

// While it lives, this thread's calls end no capture, of whatever thread.
class RelaxedCapture {
 public:
  RelaxedCapture() { driver::api().ThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { driver::api().ThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

template <std::size_t kSize>
void put(char (&to)[kSize], const std::string& text) {
  const std::size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// Why the graph was not written; empty: it was.
std::string write_text(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return std::strerror(errno);
  const absl::Cleanup close_file = [&] { close(file); };
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      unlink(path.c_str());
      return std::strerror(error);
    }
    done += static_cast<std::size_t>(written);
  }
  return "";
}

// Writes `graph` as `name`; fills in `record`, if there is one, and else drops what went wrong.
void write_graph(CUgraph graph, const std::string& name, ExecRecord* record) {
  std::string why, text;
  std::uint64_t nodes = 0;
  {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    const auto note_of = [&](CUgraphNode node) -> const NodeNote* {
      const auto found = all.notes.find(node);
      return found != all.notes.end() ? &found->second : nullptr;
    };
    const absl::StatusOr<cgrt::ir::GraphIr> ir = cgrt::snapshot(cgrt::GraphRef(graph), note_of);
    if (!ir.ok()) {
      why = std::string(ir.status().message());
    } else {
      nodes = ir->nodes.size();
      if (nodes < limits().min_nodes) {
        why = "fewer nodes than --min-nodes";
      } else {
        text = cgrt::inspect::to_json(*ir);
        if (limits().max_bytes != 0 && all.written_bytes + text.size() > limits().max_bytes) why = "--max-mb reached";
        if (why.empty()) all.written_bytes += text.size();
      }
    }
  }
  if (why.empty()) why = write_text(absl::StrCat(session_folder(), "/", name), text);
  if (record == nullptr) return;
  record->nodes = nodes;
  if (why.empty()) {
    put(record->file, name);
  } else {
    put(record->why_no_file, why);
  }
}

ExecRecord* record_of(CUgraphExec exec) {
  State& all = state();
  const std::shared_lock lock(all.execs_mutex);
  const auto found = all.execs.find(exec);
  return found != all.execs.end() ? found->second.record : nullptr;
}

}  // namespace

void on_node(CUgraphNode node) {
  ++nodes_made;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  // Handles come back: what was known of another node is forgotten.
  if (has_scope()) {
    all.notes[node] = {.scope = current_scope()};
  } else if (!all.notes.empty()) {
    all.notes.erase(node);
  }
}

void on_node_clone(CUgraphNode original, CUgraphNode clone) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.notes.find(original);
  if (found == all.notes.end()) {
    all.notes.erase(clone);
  } else {
    NodeNote copy = found->second;
    all.notes[clone] = std::move(copy);
  }
}

void on_graph_clone(CUgraph original, CUgraph clone) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.captured.find(original);
  if (found == all.captured.end()) {
    all.captured.erase(clone);
  } else {
    const Capture copy = found->second;
    all.captured[clone] = copy;
  }
}

void on_conditional(CUgraphNode node, const CUDA_CONDITIONAL_NODE_PARAMS& params) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  NodeNote::Conditional conditional{
      .kind = static_cast<cgrt::ir::ConditionalKind>(params.type), .handle = params.handle, .context = params.ctx};
  const auto known = all.at_launch.find(params.handle);
  if (known != all.at_launch.end()) conditional.at_launch = known->second;
  for (unsigned i = 0; i < params.size; ++i) conditional.bodies.push_back(params.phGraph_out[i]);
  all.notes[node].conditional = std::move(conditional);
}

void on_conditional_handle(CUgraphConditionalHandle handle, unsigned at_launch, unsigned flags) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const bool is_set = (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0;
  all.at_launch[handle] = is_set ? std::optional(at_launch) : std::nullopt;
}

void on_capture_begin(CUstream stream) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.live[stream] = {gettid(), stream};
}

void on_capture_end(CUstream stream, CUgraph graph) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.live.find(stream);
  if (found == all.live.end()) return;
  if (graph != nullptr) all.captured[graph] = found->second;
  all.live.erase(found);
}

void on_instantiate(CUgraph graph) {
  instantiating = true;
  pending = {};
  Session* const to = session();
  if (to == nullptr) return;
  pending.number = to->header.execs.fetch_add(1);
  if (pending.number < kMaxExecs) {
    pending.record = &to->execs[pending.number];
    pending.record->thread = gettid();
    State& all = state();
    const std::lock_guard lock(all.mutex);
    const auto captured = all.captured.find(graph);
    if (captured != all.captured.end()) {
      pending.record->capture_thread = captured->second.thread;
      pending.record->capture_stream = reinterpret_cast<std::uintptr_t>(captured->second.stream);
    }
  }
  const RelaxedCapture relaxed;
  write_graph(graph, absl::StrCat(file_prefix(), "-", pending.number, ".cgrt.json"), pending.record);
}

void on_instantiated(CUgraphExec exec) {
  instantiating = false;
  State& all = state();
  const std::unique_lock lock(all.execs_mutex);
  all.execs[exec] = pending;
}

bool is_instantiating() { return instantiating; }

void on_exec_destroy(CUgraphExec exec) {
  State& all = state();
  const std::unique_lock lock(all.execs_mutex);
  all.execs.erase(exec);
}

void on_exec_call(CUgraphExec exec, ExecCall call) {
  ExecRecord* const record = record_of(exec);
  if (record == nullptr) return;
  switch (call) {
    case ExecCall::kLaunch: record->launches.fetch_add(1, std::memory_order_relaxed); break;
    case ExecCall::kUpload: record->uploads.fetch_add(1, std::memory_order_relaxed); break;
    case ExecCall::kSetParams: record->set_params.fetch_add(1, std::memory_order_relaxed); break;
  }
}

void on_update(CUgraphExec exec, CUgraph graph, bool is_refused) {
  std::string name;
  {
    State& all = state();
    const std::unique_lock lock(all.execs_mutex);
    const auto found = all.execs.find(exec);
    if (found == all.execs.end() || found->second.record == nullptr) return;
    (is_refused ? found->second.record->refused_updates : found->second.record->updates).fetch_add(1);
    if (is_refused || found->second.written_updates == kMaxWrittenUpdates) return;
    name = absl::StrCat(file_prefix(), "-", found->second.number, "-update", ++found->second.written_updates,
                        ".cgrt.json");
  }
  const RelaxedCapture relaxed;
  write_graph(graph, name, nullptr);
}

void on_kernel_launch(std::int64_t nanoseconds) {
  Session* const to = session();
  if (to == nullptr) return;
  to->header.kernel_launches.fetch_add(1, std::memory_order_relaxed);
  to->header.kernel_launch_ns.fetch_add(static_cast<std::uint64_t>(nanoseconds), std::memory_order_relaxed);
}

void on_copy() {
  if (Session* const to = session(); to != nullptr) to->header.copies.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t node_count() { return nodes_made; }

}  // namespace graphdump::recorder
