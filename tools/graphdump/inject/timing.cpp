#include "inject/timing.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/json_writer.h"
#include "cgrt/base/text_file.h"
#include "cgrt/inspect/json.h"
#include "cgrt/ir/describe.h"
#include "cgrt/launch/function_name.h"
#include "inject/environment.h"
#include "inject/session.h"
#include "inject/writer.h"

namespace graphdump::timing {
namespace {

namespace ir = cgrt::ir;
using Interval = std::pair<std::uint64_t, std::uint64_t>;  // ns

constexpr std::size_t kBufferBytes = 4 << 20;
constexpr std::size_t kMaxSamples = 2048;         // kept of a node, or of the launches of an executable
constexpr std::size_t kMaxOpenLaunches = 256;     // records of a launch may stand in several buffers
constexpr std::size_t kMaxIntervals = 1 << 20;    // before they are merged
constexpr std::size_t kMaxTraceEvents = 500'000;  // 100 bytes each in the file

// All are counted, and a random part is kept once there are many.
class Samples {
 public:
  void add(std::uint64_t value) {
    min_ = count_ == 0 ? value : std::min(min_, value);
    max_ = std::max(max_, value);
    ++count_;
    if (kept_.size() < kMaxSamples) return kept_.push_back(value);
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
    const std::uint64_t at = (random_ >> 33) % count_;
    if (at < kMaxSamples) kept_[at] = value;
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t median() {
    if (kept_.empty()) return 0;
    const auto middle = kept_.begin() + static_cast<std::ptrdiff_t>(kept_.size() / 2);
    std::nth_element(kept_.begin(), middle, kept_.end());
    return *middle;
  }
  ir::NodeTime time() { return {.count = count_, .median_ns = median(), .min_ns = min_, .max_ns = max_}; }

 private:
  std::vector<std::uint64_t> kept_;
  std::uint64_t count_ = 0, min_ = 0, max_ = 0, random_ = 1;
};

// What a node ran as, the first time.
struct Ran {
  const char* kernel = nullptr;  // mangled; null: no kernel
  ir::Dim3 grid, block;
  std::uint32_t shared_bytes = 0;
};

struct Exec {
  std::string path;
  std::vector<Samples> nodes;
  std::vector<std::optional<Ran>> ran;
  Samples durations, busy;
};

struct NodeOfExec {
  std::uint32_t exec, node;
};

struct Launch {
  std::uint32_t exec = 0;
  std::vector<Interval> nodes;
};

struct TraceEvent {
  std::uint64_t start, end;
  const char* kernel;  // null: a copy or memset
  std::uint32_t stream;
  std::uint32_t exec, node;  // of a graph; node is UINT32_MAX: of none
};

struct State {
  std::mutex mutex;
  const Cupti* cupti = nullptr;  // null: not asked for
  pid_t process = 0;
  std::vector<Exec> execs;
  absl::flat_hash_map<std::uint64_t, NodeOfExec> nodes;  // by CUPTI's id of the executable's node
  std::map<std::uint32_t, Launch> launches;              // by correlation id: the oldest first
  std::vector<Interval> intervals;                       // of all that ran on the device, merged or not
  std::vector<TraceEvent> trace;
  bool is_traced = false;
  std::set<std::string> names;  // of kernels in the trace, whose modules may be gone by the end
};
State& state() {
  static State& value = *new State();
  return value;
}

// Sorted, and those that overlap or touch joined.
void merge(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::size_t kept = 0;
  for (const Interval& one : intervals) {
    if (kept != 0 && one.first <= intervals[kept - 1].second) {
      intervals[kept - 1].second = std::max(intervals[kept - 1].second, one.second);
    } else {
      intervals[kept++] = one;
    }
  }
  intervals.resize(kept);
}

std::uint64_t sum_of(const std::vector<Interval>& intervals) {
  std::uint64_t sum = 0;
  for (const auto& [start, end] : intervals) sum += end - start;
  return sum;
}

void close_oldest(State& all) {
  const auto oldest = all.launches.begin();
  std::vector<Interval>& nodes = oldest->second.nodes;
  merge(nodes);
  Exec& exec = all.execs[oldest->second.exec];
  exec.durations.add(nodes.back().second - nodes.front().first);
  exec.busy.add(sum_of(nodes));
  all.launches.erase(oldest);
}

void add(State& all, std::uint64_t node_id, std::uint32_t correlation, std::uint32_t stream, std::uint64_t start,
         std::uint64_t end, const Ran& ran) {
  if (end < start || start == 0) return;  // not measured
  all.intervals.emplace_back(start, end);
  if (all.intervals.size() >= kMaxIntervals) merge(all.intervals);
  NodeOfExec which{0, UINT32_MAX};
  const auto found = node_id != 0 ? all.nodes.find(node_id) : all.nodes.end();
  if (found != all.nodes.end()) {
    which = found->second;
    Exec& exec = all.execs[which.exec];
    exec.nodes[which.node].add(end - start);
    if (!exec.ran[which.node].has_value()) {
      exec.ran[which.node] = ran;
      if (ran.kernel != nullptr) exec.ran[which.node]->kernel = all.names.insert(ran.kernel).first->c_str();
    }
    Launch& launch = all.launches[correlation];
    launch.exec = which.exec;
    launch.nodes.emplace_back(start, end);
    while (all.launches.size() > kMaxOpenLaunches) close_oldest(all);
  }
  if (!all.is_traced || all.trace.size() >= kMaxTraceEvents) return;
  const char* const name = ran.kernel != nullptr ? all.names.insert(ran.kernel).first->c_str() : nullptr;
  all.trace.push_back({start, end, name, stream, which.exec, which.node});
}

void CUPTIAPI on_buffer_wanted(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer != nullptr ? kBufferBytes : 0;
  *max_records = 0;
}

void CUPTIAPI on_buffer_full(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  CUpti_Activity* record = nullptr;
  while (valid != 0 && all.cupti->ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        // Of CUDA 12.1 and newer: what newer records have besides stands behind.
        const auto& one = *reinterpret_cast<const CUpti_ActivityKernel9*>(record);
        const auto to_dim = [](std::int32_t x, std::int32_t y, std::int32_t z) {
          return ir::Dim3{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(z)};
        };
        add(all, one.graphNodeId, one.correlationId, one.streamId, one.start, one.end,
            {one.name, to_dim(one.gridX, one.gridY, one.gridZ), to_dim(one.blockX, one.blockY, one.blockZ),
             static_cast<std::uint32_t>(one.dynamicSharedMemory)});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& one = *reinterpret_cast<const CUpti_ActivityMemcpy5*>(record);
        add(all, one.graphNodeId, one.correlationId, one.streamId, one.start, one.end, {});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& one = *reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record);
        add(all, one.graphNodeId, one.correlationId, one.streamId, one.start, one.end, {});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& one = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        add(all, one.graphNodeId, one.correlationId, one.streamId, one.start, one.end, {});
        break;
      }
      default: break;
    }
  }
  std::free(buffer);
}

// How many kernels ran as something else than the file says; `first` names one.
std::size_t count_others(const ir::GraphIr& graph, const Exec& exec, std::string* first) {
  std::size_t others = 0;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* kernel = std::get_if<ir::KernelParams>(&graph.nodes[n].params);
    const std::optional<Ran>& ran = exec.ran[n];
    if (kernel == nullptr || !ran.has_value() || ran->kernel == nullptr) continue;
    const std::string name = cgrt::internal::function_name(ran->kernel);
    if (name == function_of(graph, *kernel).name && ran->grid == kernel->grid && ran->block == kernel->block &&
        ran->shared_bytes == kernel->shared_bytes) {
      continue;
    }
    if (others++ == 0) {
      *first = absl::StrCat(node_label(graph, n), " as ", name, " grid ", describe(ran->grid), " block ",
                            describe(ran->block), " shared ", ran->shared_bytes);
    }
  }
  return others;
}

// Puts the times into the graph's file.
void write(Exec& exec) {
  absl::StatusOr<ir::GraphIr> graph = cgrt::inspect::read_file(exec.path);
  if (!graph.ok() || graph->nodes.size() != exec.nodes.size()) return;  // limits, or somebody moved it
  ir::Timing timing{
      .launches = exec.durations.count(), .median_ns = exec.durations.median(), .busy_ns = exec.busy.median()};
  if (timing.launches == 0) return;
  for (Samples& one : exec.nodes) timing.nodes.push_back(one.time());
  graph->timing = std::move(timing);
  std::string first;
  if (const std::size_t others = count_others(*graph, exec, &first); others != 0) {
    note(absl::StrCat(
        exec.path, ": ", cgrt::counted(others, "kernel"),
        " ran with another function, grid or block than the file has, so parameters were set since: ", first));
  }
  const std::string path = exec.path + ".new";
  const absl::Status written = cgrt::inspect::write_file(path, *graph);
  if (written.ok()) {
    std::rename(path.c_str(), exec.path.c_str());
  } else {
    note(std::string(written.message()));
  }
}

// As Chrome's trace event format has it, which Perfetto reads: times in microseconds.
void write_trace(const State& all) {
  absl::flat_hash_map<const char*, std::string> names;
  cgrt::JsonWriter json;
  json.begin_object();
  json.member("displayTimeUnit", "ns");
  json.key("traceEvents");
  json.begin_array();
  for (const TraceEvent& event : all.trace) {
    std::string& name = names[event.kernel];
    if (name.empty()) name = event.kernel != nullptr ? cgrt::internal::function_name(event.kernel) : "copy or memset";
    json.begin_object(cgrt::JsonLayout::kOneLine);
    json.member("ph", "X");
    json.member("name", name);
    json.member("pid", 0);
    json.member("tid", event.stream);
    json.member("ts", static_cast<double>(event.start) / 1e3);
    json.member("dur", static_cast<double>(event.end - event.start) / 1e3);
    if (event.node != UINT32_MAX) {
      json.key("args");
      json.begin_object();
      json.member("graph", std::filesystem::path(all.execs[event.exec].path).filename().string());
      json.member("node", event.node);
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  const std::string path = absl::StrCat(session_folder(), "/", file_prefix(), ".trace.json");
  const absl::Status written = cgrt::write_text_file(path, std::move(json).finish());
  if (!written.ok()) note(std::string(written.message()));
}

// At the end of the process, but not of one that fork() has made of it.
void finish() {
  State& all = state();
  if (getpid() != all.process) return;
  all.cupti->ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard lock(all.mutex);
  while (!all.launches.empty()) close_oldest(all);
  writer::flush();
  for (Exec& exec : all.execs) write(exec);
  merge(all.intervals);
  if (Session* const to = session(); to != nullptr && !all.intervals.empty()) {
    to->header.device_busy_ns = sum_of(all.intervals);
    to->header.device_span_ns = all.intervals.back().second - all.intervals.front().first;
  }
  if (all.is_traced) write_trace(all);
}

}  // namespace

bool start(const Cupti& cupti, std::string* error) {
  State& all = state();
  const auto is_ok = [&](CUptiResult result) {
    if (result == CUPTI_SUCCESS) return true;
    const char* text = nullptr;
    cupti.GetResultString(result, &text);
    *error = absl::StrCat("CUPTI refused to measure times: ", text != nullptr ? text : "unknown error", ".");
    return false;
  };
  if (cupti.ActivityEnable == nullptr || cupti.ActivityGetNextRecord == nullptr || cupti.ActivityFlushAll == nullptr ||
      cupti.ActivityRegisterCallbacks == nullptr || cupti.GetGraphNodeId == nullptr) {
    *error = "This CUPTI cannot measure nodes of graphs: it is older than CUDA 12.";
    return false;
  }
  if (!is_ok(cupti.ActivityRegisterCallbacks(&on_buffer_wanted, &on_buffer_full))) return false;
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET}) {
    if (!is_ok(cupti.ActivityEnable(kind))) return false;
  }
  all.is_traced = std::getenv(kTraceVariable) != nullptr;
  all.cupti = &cupti;
  all.process = getpid();
  std::atexit(&finish);
  return true;
}

void on_instantiated(const std::string& path, const std::vector<CUgraphNode>& nodes, const std::vector<Clone>& clones) {
  State& all = state();
  if (all.cupti == nullptr) return;
  absl::flat_hash_map<CUgraphNode, std::uint32_t> ids;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) ids.emplace(nodes[i], i);
  const std::lock_guard lock(all.mutex);
  const auto exec = static_cast<std::uint32_t>(all.execs.size());
  all.execs.push_back({.path = path,
                       .nodes = std::vector<Samples>(nodes.size()),
                       .ran = std::vector<std::optional<Ran>>(nodes.size()),
                       .durations = {},
                       .busy = {}});
  for (const Clone& one : clones) {
    const auto found = ids.find(one.original);
    if (found == ids.end()) continue;
    // Nodes of child graphs get the ids that their records have when the executable is done.
    std::uint64_t id = one.id;
    if (one.is_inside && all.cupti->GetGraphNodeId(one.clone, &id) != CUPTI_SUCCESS) continue;
    all.nodes[id] = {exec, found->second};
  }
}

}  // namespace graphdump::timing
