#include "cgrt/graph/capture.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/utility/utility.h"
#include "cgrt/base/log.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/capture_info.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/scope.h"
#include "cgrt/stream/keep.h"
#include "cgrt/target/capture_context.h"

namespace cgrt {
namespace {

CUstreamCaptureMode driver_mode(CaptureMode mode) {
  switch (mode) {
    case CaptureMode::kThreadLocal: return CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    case CaptureMode::kGlobal: return CU_STREAM_CAPTURE_MODE_GLOBAL;
    case CaptureMode::kRelaxed: return CU_STREAM_CAPTURE_MODE_RELAXED;
  }
  return CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
}

// Asked before the context is: this stream has none where no context is current.
[[gnu::cold]] absl::Status refuse_legacy() {
  return driver::annotate(
      driver::make_status(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuStreamBeginCapture", "would return"),
      "The legacy default stream, which a handle of 0 means, cannot be captured. Capture a stream "
      "of Stream::create, or the per-thread default stream");
}

[[gnu::cold]] absl::Status explain_begin(CUresult begun) {
  const absl::Status failure = driver::to_status(begun, "cuStreamBeginCapture");
  if (begun != CUDA_ERROR_ILLEGAL_STATE) return failure;
  return driver::annotate(failure, "The stream is being captured already; that capture goes on");
}

[[gnu::cold]] absl::Status explain_end(CUresult ended, const driver::LiveCapture& capture,
                                       const std::string& unjoined) {
  const absl::Status failure = driver::make_status(ended, "cuStreamEndCapture", "returned");
  switch (ended) {
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
      return driver::annotate(
          failure,
          absl::StrCat("Work in a side stream was not joined back into the captured stream",
                       unjoined.empty() ? "" : absl::StrCat("; the last of it is ", unjoined),
                       ". Record an event after it and let the captured stream wait for that event, or capture with "
                       "UnjoinedWork::kJoined"));
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: {
      const std::string story = capture.story();
      if (!capture.ended_by().ok()) return driver::with_message(capture.ended_by(), story);
      if (!story.empty()) return driver::annotate(failure, story);
      return driver::annotate(
          failure,
          "The capture was ended by a call inside it that was not made through cgrt in this thread: by another "
          "library, a raw CUDA call or another thread. Calls that allocate or synchronize do so");
    }
    case CUDA_ERROR_ILLEGAL_STATE: {
      const std::string story = capture.story();
      return driver::annotate(failure, !story.empty() ? story
                                                      : "The capture was over before its callback returned: somebody "
                                                        "else ended it with cuStreamEndCapture, and has the graph");
    }
    default: return failure;
  }
}

// For a capture inside of which work went into a stream that is no part of it: the fork may have been forgotten.
[[gnu::cold]] void warn_if_empty(CUgraph graph, CUstream origin, CUstream outside) {
  const absl::StatusOr<std::size_t> count = internal::count_nodes(graph);
  if (!count.ok() || *count != 0) return;
  log_warning(absl::StrCat("The capture of stream 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(origin)),
                           " recorded nothing. Work inside of it went into stream 0x",
                           absl::Hex(reinterpret_cast<std::uintptr_t>(outside)),
                           ", which is no part of it, and runs now. Launch into the stream that the callback is given, "
                           "or let the other one join: it waits for an event that the captured stream recorded."));
}

// Captures into a new driver graph, which `state` gets. `last`, unless null: what the stream would wait for next.
absl::Status capture_graph(StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record, CaptureOptions options,
                           internal::GraphState& state, internal::CapturedNodes& captured,
                           internal::CaptureInfo* last) {
  driver::CaptureLog::listen();
  const CUstreamCaptureMode mode = driver_mode(options.mode);
  const CUresult begun = driver::api().StreamBeginCapture(stream.get(), mode);
  if (ABSL_PREDICT_FALSE(begun != CUDA_SUCCESS)) return explain_begin(begun);
  // The graph is the driver's until the capture has ended, and is destroyed by it when that fails.
  internal::CaptureContext capture(stream.get(), mode, captured, state.scope_runs, state.scope_id);
  const auto end = [&] { return driver::api().StreamEndCapture(stream.get(), &state.handle); };
  absl::Cleanup abandon = [&] { end(); };
  if (ABSL_PREDICT_FALSE(!state.is_scope_noted())) {  // begun inside a scope
    capture.scope_runs.push_back({0, current_scope_path()});
    capture.scope_id = internal::current_scope_id();
  }
  absl::Status recorded = record(StreamRef(stream.get(), state.context));
  if (ABSL_PREDICT_FALSE(!recorded.ok())) return recorded;
  std::string unjoined;
  if (ABSL_PREDICT_FALSE(options.unjoined == UnjoinedWork::kJoined)) {
    CGRT_RETURN_IF_ERROR(internal::join_all(stream.get()));
  } else if (ABSL_PREDICT_FALSE(!capture.joined().empty())) {
    unjoined = internal::name_unjoined(stream.get(), capture.joined());
  }
  absl::Status last_known;
  if (last != nullptr) {
    absl::StatusOr<internal::CaptureInfo> info = internal::capture_info(stream.get());
    last_known = info.status();
    if (info.ok()) *last = *std::move(info);
  }
  std::move(abandon).Cancel();
  const CUresult ended = end();
  if (ABSL_PREDICT_FALSE(ended != CUDA_SUCCESS)) return explain_end(ended, capture, unjoined);
  CGRT_RETURN_IF_ERROR(last_known);
  for (const std::shared_ptr<const void>& library : capture.kept()) {
    CGRT_RETURN_IF_ERROR(internal::keep_library(state, library));
  }
  if (ABSL_PREDICT_FALSE(capture.outside() != nullptr)) warn_if_empty(state.handle, stream.get(), capture.outside());
  return absl::OkStatus();
}

// What a node behind a captured stream's work would wait for, as dependencies.
absl::StatusOr<std::vector<Dependency>> to_dependencies(const internal::CaptureInfo& info) {
  std::vector<Dependency> dependencies;
  for (std::size_t i = 0; i < info.frontier.size(); ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphNodeGetType(info.frontier[i], &type), "cuGraphNodeGetType"));
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) {
      dependencies.emplace_back(NodeRef(info.frontier[i]));
      continue;
    }
    dependencies.emplace_back(KernelNode(info.frontier[i]), internal::edge_kind(info.edges[i]));
  }
  return dependencies;
}

// What is captured from `stream` goes into; checks what can be checked before.
absl::StatusOr<std::shared_ptr<internal::GraphState>> new_state(StreamRef stream) {
  if (ABSL_PREDICT_FALSE(stream.get() == CU_STREAM_LEGACY)) return refuse_legacy();
  CUcontext context = stream.known_context();
  if (ABSL_PREDICT_FALSE(context == nullptr)) {
    CGRT_ASSIGN_OR_RETURN(context, stream.context());
  }
  return std::make_shared<internal::GraphState>(nullptr, context);
}

absl::StatusOr<std::shared_ptr<internal::GraphState>> capture_state(StreamRef stream,
                                                                    absl::FunctionRef<absl::Status(StreamRef)> record,
                                                                    CaptureOptions options) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<internal::GraphState> state, new_state(stream));
  CGRT_RETURN_IF_ERROR(capture_graph(stream, record, options, *state, state->knowledge.know_captured(), nullptr));
  return state;
}

}  // namespace

absl::StatusOr<Graph> capture(StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record,
                              CaptureOptions options) {
  collect_released();
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<internal::GraphState> state, capture_state(stream, record, options));
  return absl::StatusOr<Graph>(absl::in_place, std::move(state));
}

absl::Status capture_into(Cursor& place, StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record,
                          CaptureOptions options) {
  internal::GraphState* const state = place.state_;
  if (state == nullptr) return driver::empty_object("Graph");
  collect_released();
  CGRT_ASSIGN_OR_RETURN(const std::shared_ptr<internal::GraphState> captured, new_state(stream));
  internal::CapturedNodes noted;
  internal::CaptureInfo last;
  const std::uint64_t kept_before = internal::kept_count.load(std::memory_order_relaxed);
  CGRT_RETURN_IF_ERROR(capture_graph(stream, record, options, *captured, noted, &last));
  CGRT_ASSIGN_OR_RETURN(std::vector<Dependency> frontier, to_dependencies(last));
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> originals, internal::nodes_of(captured->handle));
  if (originals.empty()) return absl::OkStatus();

  CGRT_RETURN_IF_ERROR(state->prepare());
  CGRT_ASSIGN_OR_RETURN(const std::size_t first, internal::count_nodes(state->handle));
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, internal::copy_nodes(*captured, *state, place.frontier_));
  absl::Cleanup take_out = [&] {
    for (CUgraphNode node : nodes) driver::api().GraphDestroyNode(node);
  };
  // What the captured graph keeps no call lists; who else made nodes in it, may have had it keep something.
  const bool may_keep = noted.is_ambiguous || noted.count != originals.size() ||
                        internal::kept_count.load(std::memory_order_relaxed) != kept_before;
  if (may_keep) CGRT_RETURN_IF_ERROR(internal::keep_in_graph(state->handle, captured));
  for (const std::shared_ptr<const void>& library : captured->kept) {
    CGRT_RETURN_IF_ERROR(internal::keep_library(*state, library));
  }
  CGRT_RETURN_IF_ERROR(state->knowledge.add_captured(state->handle, std::move(noted), first));
  std::move(take_out).Cancel();

  for (internal::ScopeRun& run : captured->scope_runs) {
    state->scope_runs.push_back({run.first_node + first, std::move(run.scope)});
  }
  state->scope_id = captured->scope_id;
  place.frontier_.clear();
  for (Dependency& dependency : frontier) {
    const auto at = std::find(originals.begin(), originals.end(), dependency.node.get()) - originals.begin();
    dependency.node = NodeRef(nodes[static_cast<std::size_t>(at)]);
    place.frontier_.push_back(dependency);
  }
  return absl::OkStatus();
}

namespace {

// Whether a capture failed for being one: the same work may run.
bool is_of_capturing(const absl::Status& status) {
  const CUresult result = cuda_result(status).value_or(CUDA_SUCCESS);
  return (result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) ||
         result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED;
}

}  // namespace

absl::StatusOr<CapturedOrRun> capture_or_run(StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record,
                                             CaptureOptions options) {
  absl::StatusOr<Graph> graph = capture(stream, record, options);
  if (ABSL_PREDICT_TRUE(graph.ok())) return CapturedOrRun{*std::move(graph), absl::OkStatus()};
  if (!is_of_capturing(graph.status())) return graph.status();
  CGRT_RETURN_IF_ERROR(record(stream));
  return CapturedOrRun{Graph(), graph.status()};
}

absl::StatusOr<Graph> internal::capture_call(CUcontext context, StreamRef stream,
                                             absl::FunctionRef<absl::Status(CUstream)> call) {
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<GraphState> state,
                        capture_state(stream, [&](StreamRef own) { return call(own.get()); }, {}));
  return absl::StatusOr<Graph>(absl::in_place, std::move(state));
}

}  // namespace cgrt
