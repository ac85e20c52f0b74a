#include "inject/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/capture_log.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/stream/capture_mode.h"
#include "inject/callers.h"
#include "inject/exec_lists.h"
#include "inject/failed_capture.h"
#include "inject/followed.h"
#include "inject/graph_nodes.h"
#include "inject/nvtx.h"
#include "inject/saving.h"
#include "inject/session.h"
#include "inject/timing.h"
#include "inject/writer.h"

namespace graphdump::recorder {
namespace {

namespace driver = cgrt::driver;
using cgrt::NodeNote;
using RelaxedCapture = cgrt::RelaxedCaptureMode;  // this thread's calls end no capture, of whatever thread

// From the node at `position` on, the nodes of a capture are in `scope`.
struct ScopeRun {
  std::size_t position;
  std::string scope;
};

struct Capture {
  std::int64_t thread = 0;
  CUstream stream = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  driver::LoggedCapture* logged = nullptr;  // null: nested too deep
  std::size_t first_node = 0;               // more than 0: it was begun into a graph that had nodes
  std::vector<ScopeRun> scopes = {};
};

struct Exec {
  ExecRecord* record = nullptr;  // null: there were too many
  std::uint32_t number = 0;
  std::uint32_t written_updates = 0;
  std::shared_ptr<Followed> followed = {};  // under State::mutex; null as `record` is
};
constexpr std::uint32_t kMaxWrittenUpdates = 3;  // of an executable: some programs update before each launch

struct State {
  std::mutex mutex;  // of all but `execs`
  absl::flat_hash_map<CUgraphNode, NodeNote> notes;
  absl::flat_hash_map<CUgraphConditionalHandle, std::optional<unsigned>> at_launch;
  absl::flat_hash_map<std::uint64_t, Capture> live;  // by number_of() the stream
  std::atomic<std::size_t> live_count{0};            // read without the lock
  absl::flat_hash_map<CUgraph, Capture> captured;
  absl::flat_hash_map<CUgraph, std::shared_ptr<const void>> instantiated;  // a lifetime each: handles come back
  absl::flat_hash_set<CUgraph> with_user_objects;

  std::shared_mutex execs_mutex;
  absl::flat_hash_map<CUgraphExec, Exec> execs;

  const NodeNote* note_of(CUgraphNode node) const {
    const auto found = notes.find(node);
    return found != notes.end() ? &found->second : nullptr;
  }
};
// Never destroyed: the process may use CUDA after main has returned.
State& state() {
  static State& value = *new State();
  return value;
}

// What is known of that which this thread is destroying.
struct Destroyed {
  decltype(State::execs)::node_type exec = {};
  decltype(State::captured)::node_type captured = {};
  decltype(State::with_user_objects)::node_type with_user_objects = {};
};
thread_local Destroyed* destroyed = nullptr;

struct Clone {
  timing::Clone nodes;
  const void* into;
};
thread_local std::vector<Clone> clones;  // made by this thread since it last instantiated

// While it is there this thread makes clones that are ours: CUPTI tells of their nodes, too.
class OwnClones {
 public:
  OwnClones() : of_process_(std::exchange(clones, {})) {}
  ~OwnClones() { clones = std::move(of_process_); }
  OwnClones(const OwnClones&) = delete;
  OwnClones& operator=(const OwnClones&) = delete;

 private:
  std::vector<Clone> of_process_;
};

// This thread in the driver's log of refused calls (driver/capture_log.h).
driver::LoggedThread& logged_thread() {
  struct Taken {
    Taken() { driver::internal::this_logged_thread = driver::CaptureLog::take_thread(); }
    ~Taken() {
      std::exchange(driver::internal::this_logged_thread, nullptr)->is_taken.store(false, std::memory_order_release);
    }
  };
  static thread_local const Taken taken;
  static_cast<void>(taken);
  return *driver::internal::this_logged_thread;
}

// A place in the log that no live capture has; null: the thread has too many.
driver::LoggedCapture* free_place(driver::LoggedThread& thread, const State& all) {
  for (driver::LoggedCapture& one : thread.captures) {
    const auto has_it = [&](const auto& live) { return live.second.logged == &one; };
    if (std::none_of(all.live.begin(), all.live.end(), has_it)) return &one;
  }
  return nullptr;
}

// Whether a user object was given to the graph, or to a child of it; `nodes` are those of its snapshot.
bool has_user_objects(const State& all, CUgraph graph, const cgrt::ir::GraphIr& ir,
                      const std::vector<CUgraphNode>& nodes) {
  if (all.with_user_objects.empty()) return false;
  bool is_found = all.with_user_objects.contains(graph);
  for (std::size_t n = 0; n < nodes.size() && !is_found; ++n) {
    CUgraph child = nullptr;
    is_found = ir.nodes[n].kind == cgrt::ir::NodeKind::kChildGraph &&
               driver::api().GraphChildGraphNodeGetGraph(nodes[n], &child) == CUDA_SUCCESS &&
               all.with_user_objects.contains(child);
  }
  return is_found;
}

// Has `graph` written as `name`; `record`, if there is one, gets what comes of it. Returns the nodes in the order of
// their ids; none: it is not written.
std::vector<CUgraphNode> write_graph(CUgraph graph, const std::string& name, ExecRecord* record) {
  std::vector<CUgraphNode> nodes;
  std::vector<cgrt::AllocationId> memory;
  absl::StatusOr<cgrt::ir::GraphIr> ir;
  {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    const auto note_of = [&](CUgraphNode node) {
      nodes.push_back(node);
      return all.note_of(node);
    };
    ir = cgrt::snapshot(cgrt::GraphRef(graph), note_of, memory);
    if (record != nullptr && ir.ok()) record->has_user_objects = has_user_objects(all, graph, *ir, nodes) ? 1 : 0;
  }
  if (record != nullptr) record->nodes = nodes.size();
  const bool is_wanted = nodes.size() >= limits().min_nodes;
  if (ir.ok() && is_wanted) {
    if (record != nullptr) list_memory(*session(), *record, *ir, nodes, memory);
    writer::write(*std::move(ir), name, record);
    return nodes;
  }
  if (record != nullptr) {
    const std::string why = is_wanted ? std::string(ir.status().message()) : "fewer nodes than --min-nodes";
    std::strncpy(record->why_no_file, why.c_str(), sizeof(record->why_no_file) - 1);
  }
  return {};
}

// What is known of the nodes of `original` is known of those of its copy: their order is the same.
void copy_notes(State& all, CUgraph original, CUgraph copy) {
  if (all.notes.empty()) return;
  const std::vector<CUgraphNode> from = nodes_of(original), to = nodes_of(copy);
  for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
    const auto found = all.notes.find(from[i]);
    if (found == all.notes.end()) {
      all.notes.erase(to[i]);
    } else {
      NodeNote note{.scope = found->second.scope};  // conditional nodes are not copied
      all.notes[to[i]] = std::move(note);
    }
  }
}

// A copy holds what its original holds.
void copy_user_objects(State& all, CUgraph original, CUgraph copy) {
  if (all.with_user_objects.contains(original)) {
    all.with_user_objects.insert(copy);
  } else {
    all.with_user_objects.erase(copy);
  }
}

// How many nodes the capture of `stream` has by now, those of the graph that it was begun into with it; 0 where it has
// failed.
std::size_t captured_nodes(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  std::size_t count = 0;
  const driver::Api& api = driver::api();
  if (api.StreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr) != CUDA_SUCCESS ||
      status != CU_STREAM_CAPTURE_STATUS_ACTIVE || api.GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
    return 0;
  }
  return count;
}

ExecRecord* record_of(CUgraphExec exec) {
  State& all = state();
  const std::shared_lock lock(all.execs_mutex);
  const auto found = all.execs.find(exec);
  return found != all.execs.end() ? found->second.record : nullptr;
}

// Gives the nodes of a capture, which are those of the graph from its first on, their scopes; forgets what was known of
// earlier nodes with their handles.
void note_scopes(State& all, const Capture& capture, const std::vector<CUgraphNode>& nodes) {
  auto run = capture.scopes.begin();
  const std::string none;
  const std::string* scope = &none;
  for (std::size_t i = capture.first_node; i < nodes.size(); ++i) {
    for (; run != capture.scopes.end() && run->position <= i; ++run) scope = &run->scope;
    const auto known = all.notes.find(nodes[i]);
    if (!scope->empty()) {
      all.notes[nodes[i]].scope = *scope;
    } else if (known != all.notes.end()) {
      known->second.scope.clear();  // a conditional node that was added meanwhile keeps its bodies
    }
  }
}

}  // namespace

void on_node(CUgraphNode node) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  // Handles come back: what was known of another node is forgotten.
  if (has_scope()) {
    all.notes[node] = {.scope = current_scope()};
  } else if (!all.notes.empty()) {
    all.notes.erase(node);
  }
}

void on_child(CUgraphNode node, CUgraph child) {
  CUgraph inside = nullptr;
  if (driver::api().GraphChildGraphNodeGetGraph(node, &inside) != CUDA_SUCCESS) return;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  copy_notes(all, child, inside);
  copy_user_objects(all, child, inside);
}

void on_clone(CUgraph original, CUgraph clone) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  copy_notes(all, original, clone);
  copy_user_objects(all, original, clone);
  const auto found = all.captured.find(original);
  if (found == all.captured.end()) {
    all.captured.erase(clone);
  } else {
    Capture copy = found->second;
    all.captured[clone] = std::move(copy);
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

void on_capture_begin(CUstream stream, CUstreamCaptureMode mode) {
  driver::CaptureLog::listen();
  callers::listen();
  driver::LoggedThread& thread = logged_thread();
  State& all = state();
  const std::lock_guard lock(all.mutex);
  driver::LoggedCapture* const logged = free_place(thread, all);
  if (logged != nullptr) logged->begin(mode);
  Capture& capture = all.live[number_of(stream)];
  capture = {.thread = gettid(), .stream = stream, .mode = mode, .logged = logged};
  all.live_count = all.live.size();
  capture.first_node = captured_nodes(stream);
  if (has_scope()) capture.scopes.push_back({capture.first_node, current_scope()});
}

void on_capture_end(CUstream stream, CUgraph graph, CUresult result) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.live.find(number_of(stream));
  if (found == all.live.end()) return;  // its beginning was not seen
  Capture capture = std::move(found->second);
  all.live.erase(found);
  all.live_count = all.live.size();
  if (result != CUDA_SUCCESS) {
    note(tell_failed_capture(capture.logged, capture.stream, capture.mode, capture.thread, result));
  }
  if (capture.logged != nullptr) capture.logged->end();
  if (result != CUDA_SUCCESS) return;
  if (!capture.scopes.empty() || !all.notes.empty()) note_scopes(all, capture, nodes_of(graph));
  capture.scopes.clear();
  all.captured[graph] = std::move(capture);
}

bool is_capturing() { return state().live_count.load(std::memory_order_relaxed) != 0; }

void on_scope_change() {
  if (!is_capturing()) return;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  for (auto& [number, capture] : all.live) {
    if (capture.thread != gettid()) continue;
    capture.scopes.push_back({captured_nodes(capture.stream), current_scope()});
  }
}

void on_instantiate(CUgraph graph, CUgraphExec exec) {
  Session* const to = session();
  std::vector<Clone> copied = std::exchange(clones, {});
  if (to == nullptr) return;
  Exec made{.number = to->header.execs.fetch_add(1)};
  const std::string stem = absl::StrCat(file_prefix(), "-", made.number), name = stem + ".cgrt.json";
  State& all = state();
  if (made.number < kMaxExecs) {
    made.record = &to->execs[made.number];
    made.record->thread = gettid();
    const std::lock_guard lock(all.mutex);
    const auto captured = all.captured.find(graph);
    if (captured != all.captured.end()) {
      made.record->capture_thread = captured->second.thread;
      made.record->capture_stream = reinterpret_cast<std::uintptr_t>(captured->second.stream);
    }
    std::shared_ptr<const void>& lifetime = all.instantiated[graph];
    if (lifetime == nullptr) lifetime = std::make_shared<char>();
    made.followed = std::make_shared<Followed>(stem, graph, lifetime, made.record);
  }
  std::vector<CUgraphNode> nodes;
  {
    const RelaxedCapture relaxed;
    if (saving::is_on()) {
      const std::lock_guard lock(all.mutex);
      const OwnClones own;
      saving::on_instantiate(graph, exec, made.number, made.record,
                             [&](CUgraphNode node) { return all.note_of(node); });
    } else {
      nodes = write_graph(graph, name, made.record);
    }
  }
  if (exec == nullptr) return;
  if (!nodes.empty()) {
    // Those copied before the executable's own are of others, and may be gone.
    const auto first = std::find_if(copied.begin(), copied.end(), [&](const Clone& one) { return one.into == exec; });
    std::vector<timing::Clone> own;
    for (auto one = first; one != copied.end(); ++one) {
      own.push_back(one->nodes);
      own.back().is_inside = one->into != exec;
    }
    timing::on_instantiated(absl::StrCat(session_folder(), "/", name), nodes, own);
  }
  const std::unique_lock lock(all.execs_mutex);
  all.execs[exec] = made;
}

void on_node_clone(CUgraphNode original, CUgraphNode clone, const void* into, std::uint64_t id) {
  clones.push_back({{original, clone, id, false}, into});
}

void on_node_destroy(CUgraphNode node) {
  std::erase_if(clones, [&](const Clone& one) { return one.nodes.clone == node; });
}

void before_graph_destroy(CUgraph graph) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.instantiated.erase(graph);  // for good: from here on no thread clones it for a Followed
  destroyed =
      new Destroyed{.captured = all.captured.extract(graph), .with_user_objects = all.with_user_objects.extract(graph)};
}

void after_graph_destroy(CUresult result) {
  const std::unique_ptr<Destroyed> graph(std::exchange(destroyed, nullptr));
  if (graph == nullptr || result == CUDA_SUCCESS) return;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.captured.insert(std::move(graph->captured));
  all.with_user_objects.insert(std::move(graph->with_user_objects));
}

void on_user_object(CUgraph graph) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.with_user_objects.insert(graph);
}

void before_exec_destroy(CUgraphExec exec) {
  if (saving::is_on()) saving::before_exec_destroy(exec);
  State& all = state();
  const std::unique_lock lock(all.execs_mutex);
  destroyed = new Destroyed{.exec = all.execs.extract(exec)};
}

void after_exec_destroy(CUresult result) {
  const RelaxedCapture relaxed;
  if (saving::is_on()) saving::after_exec_destroy(result);
  State& all = state();
  const std::unique_ptr<Destroyed> gone(std::exchange(destroyed, nullptr));  // ends without the lock
  if (gone == nullptr || gone->exec.empty()) return;
  const std::unique_lock lock(all.execs_mutex);
  ExecRecord* const record = gone->exec.mapped().record;
  if (result != CUDA_SUCCESS) {
    all.execs.insert(std::move(gone->exec));
  } else if (record != nullptr) {
    record->destroyed_before = session()->header.execs.load();
  }
}

void on_launch(CUgraphExec exec, CUstream stream) {
  State& all = state();
  std::shared_ptr<Followed> changed;
  {
    const std::shared_lock lock(all.execs_mutex);
    const auto found = all.execs.find(exec);
    if (found == all.execs.end() || found->second.record == nullptr) return;
    found->second.record->launches.fetch_add(1, std::memory_order_relaxed);
    note_stream(*found->second.record, stream);
    if (found->second.followed->is_changed()) changed = found->second.followed;
  }
  if (changed == nullptr) return;
  const RelaxedCapture relaxed;
  const std::lock_guard lock(all.mutex);
  changed->write();
}

void on_exec_call(CUgraphExec exec, ExecCall call) {
  ExecRecord* const record = record_of(exec);
  if (record == nullptr) return;
  if (saving::is_on() && call == ExecCall::kSetEnabled) saving::on_change(exec, "a node was enabled or disabled");
  switch (call) {
    case ExecCall::kUpload: record->uploads.fetch_add(1, std::memory_order_relaxed); break;
    case ExecCall::kSetEnabled: record->set_enabled.fetch_add(1, std::memory_order_relaxed); break;
  }
}

void on_set_params(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params) {
  State& all = state();
  std::shared_ptr<Followed> followed;
  {
    const std::shared_lock lock(all.execs_mutex);
    const auto found = all.execs.find(exec);
    if (found == all.execs.end() || found->second.record == nullptr) return;
    found->second.record->set_params.fetch_add(1, std::memory_order_relaxed);
    if (found->second.followed->is_over()) return;
    followed = found->second.followed;
  }
  const RelaxedCapture relaxed;
  if (saving::is_on()) return saving::on_set_params(exec, node, params);
  const std::lock_guard lock(all.mutex);
  const OwnClones own;
  followed->set(node, params, [&](CUgraphNode one) { return all.note_of(one); });
}

void on_update(CUgraphExec exec, CUgraph graph, bool is_refused) {
  State& all = state();
  std::shared_ptr<Followed> followed;
  std::string name;
  {
    const std::unique_lock lock(all.execs_mutex);
    const auto found = all.execs.find(exec);
    if (found == all.execs.end() || found->second.record == nullptr) return;
    (is_refused ? found->second.record->refused_updates : found->second.record->updates).fetch_add(1);
    if (is_refused) return;
    followed = found->second.followed;
    if (found->second.written_updates < kMaxWrittenUpdates) {
      name = absl::StrCat(file_prefix(), "-", found->second.number, "-update", ++found->second.written_updates,
                          ".cgrt.json");
    }
  }
  const RelaxedCapture relaxed;
  if (saving::is_on()) {
    const std::lock_guard lock(all.mutex);
    const OwnClones own;
    return saving::on_update(exec, graph, [&](CUgraphNode node) { return all.note_of(node); });
  }
  {
    const std::lock_guard lock(all.mutex);
    followed->on_update();
  }
  if (!name.empty()) write_graph(graph, name, nullptr);
}

void on_kernel_launch(std::int64_t nanoseconds) {
  Session* const to = session();
  if (to == nullptr) return;
  to->header.kernel_launches.fetch_add(1, std::memory_order_relaxed);
  to->header.kernel_launch_ns.fetch_add(static_cast<std::uint64_t>(nanoseconds), std::memory_order_relaxed);
}

}  // namespace graphdump::recorder
