#include "cgrt/graph/capture.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/utility/utility.h"
#include "cgrt/base/log.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/scope.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/stream/keep.h"
#include "cgrt/target/capture_context.h"

namespace cgrt {
namespace {

CUstreamCaptureMode to_driver(CaptureMode mode) {
  switch (mode) {
    case CaptureMode::kThreadLocal: return CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    case CaptureMode::kGlobal: return CU_STREAM_CAPTURE_MODE_GLOBAL;
    case CaptureMode::kRelaxed: return CU_STREAM_CAPTURE_MODE_RELAXED;
  }
  return CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
}

struct CaptureInfo {
  CUgraph graph = nullptr;
  std::vector<CUgraphNode> frontier;  // what the stream's next node would wait for
  std::vector<CUgraphEdgeData> edges;
};

absl::StatusOr<CaptureInfo> capture_info(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CaptureInfo info;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().StreamGetCaptureInfo(stream, &status, &id, &info.graph, &nodes, &edges, &count),
                        "cuStreamGetCaptureInfo"));
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CaptureInfo{};
  info.frontier.assign(nodes, nodes + count);
  if (edges != nullptr) info.edges.assign(edges, edges + count);
  info.edges.resize(count);
  return info;
}

// The driver destroys the graph of a capture that it refuses to end, so what was left unjoined is
// looked for beforehand; only when streams joined, and then at two calls each.
[[gnu::cold]] std::string name_unjoined(StreamRef origin, const std::vector<CUstream>& joined) {
  const absl::StatusOr<CaptureInfo> main = capture_info(origin.get());
  if (!main.ok()) return "";
  std::string names;
  absl::flat_hash_set<CUgraphNode> named;
  for (CUstream stream : joined) {
    if (stream == nullptr) continue;
    const absl::StatusOr<CaptureInfo> side = capture_info(stream);
    if (!side.ok() || side->graph != main->graph) continue;
    for (CUgraphNode node : side->frontier) {
      std::size_t dependents = 0;
      if (driver::api().GraphNodeGetDependentNodes(node, nullptr, nullptr, &dependents) != CUDA_SUCCESS) continue;
      const bool awaited = std::find(main->frontier.begin(), main->frontier.end(), node) != main->frontier.end();
      if (dependents != 0 || awaited || !named.insert(node).second) continue;
      absl::StrAppend(&names, names.empty() ? "" : ", ", describe_node(node), " in stream 0x",
                      absl::Hex(reinterpret_cast<std::uintptr_t>(stream)));
    }
  }
  return names;
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

[[gnu::cold]] absl::Status explain_end(CUresult ended, const absl::Status& ended_by, const std::string& unjoined) {
  const absl::Status failure = driver::to_status(ended, "cuStreamEndCapture");
  if (ended == CUDA_ERROR_STREAM_CAPTURE_UNJOINED) {
    return driver::annotate(failure,
                            absl::StrCat("Work in a side stream was not joined back into the captured stream",
                                         unjoined.empty() ? "" : absl::StrCat("; the last of it is ", unjoined),
                                         ". Record an event after it and let the captured stream wait for that event"));
  }
  if (ended != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) return failure;
  if (!ended_by.ok()) return driver::prefix(ended_by, "The capture was ended by a call inside it");
  return driver::annotate(
      failure,
      "The capture was ended by a call inside it that was not made through cgrt in this thread: by "
      "another library, a raw CUDA call or another thread. Calls that allocate or synchronize do so");
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
absl::Status capture_graph(StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record, CaptureMode mode,
                           internal::GraphState& state, internal::CapturedNodes& captured, CaptureInfo* last) {
  const CUresult begun = driver::api().StreamBeginCapture(stream.get(), to_driver(mode));
  if (ABSL_PREDICT_FALSE(begun != CUDA_SUCCESS)) return explain_begin(begun);
  // The graph is the driver's until the capture has ended, and is destroyed by it when that fails.
  internal::CaptureContext capture(stream.get(), captured, state.scope_runs, state.scope_id);
  const auto end = [&]() -> CUresult {
    if (capture.is_origin_lost()) return CUDA_SUCCESS;
    return driver::api().StreamEndCapture(stream.get(), &state.handle);
  };
  absl::Cleanup abandon = [&] { end(); };
  if (ABSL_PREDICT_FALSE(!state.is_scope_noted())) {  // begun inside a scope
    capture.scope_runs.push_back({0, current_scope_path()});
    capture.scope_id = internal::current_scope_id();
  }
  absl::Status recorded = record(StreamRef(stream.get(), state.context));
  if (ABSL_PREDICT_FALSE(!recorded.ok())) return recorded;
  if (ABSL_PREDICT_FALSE(capture.is_origin_lost())) {
    return absl::FailedPreconditionError(
        "The captured stream was destroyed inside its capture, which ended with it: keep the stream until capture "
        "has returned.");
  }
  std::string unjoined;
  if (ABSL_PREDICT_FALSE(!capture.joined().empty())) unjoined = name_unjoined(stream, capture.joined());
  absl::Status last_known;
  if (last != nullptr) {
    absl::StatusOr<CaptureInfo> info = capture_info(stream.get());
    last_known = info.status();
    if (info.ok()) *last = *std::move(info);
  }
  std::move(abandon).Cancel();
  const CUresult ended = end();
  if (ABSL_PREDICT_FALSE(ended != CUDA_SUCCESS)) return explain_end(ended, capture.ended_by(), unjoined);
  CGRT_RETURN_IF_ERROR(last_known);
  for (const std::shared_ptr<const void>& library : capture.kept()) {
    CGRT_RETURN_IF_ERROR(internal::keep_library(state, library));
  }
  if (ABSL_PREDICT_FALSE(capture.outside() != nullptr)) warn_if_empty(state.handle, stream.get(), capture.outside());
  return absl::OkStatus();
}

// What a node behind a captured stream's work would wait for, as dependencies.
absl::StatusOr<std::vector<Dependency>> to_dependencies(const CaptureInfo& info) {
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

// Whether a captured graph may own resources, which no call lists: host nodes own what they call, and other libraries
// what they like.
absl::StatusOr<bool> may_keep_resources(const std::vector<CUgraphNode>& nodes, const internal::CapturedNodes& noted) {
  if (noted.is_ambiguous || noted.count != nodes.size()) return true;
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
    if (type == CU_GRAPH_NODE_TYPE_HOST) return true;
  }
  return false;
}

// What is captured from `stream` goes into; checks what can be checked before.
absl::StatusOr<std::shared_ptr<internal::GraphState>> new_state(StreamRef stream) {
  collect_released();
  if (ABSL_PREDICT_FALSE(stream.get() == CU_STREAM_LEGACY)) return refuse_legacy();
  CUcontext context = stream.known_context();
  if (ABSL_PREDICT_FALSE(context == nullptr)) {
    CGRT_ASSIGN_OR_RETURN(context, stream.context());
  }
  return std::make_shared<internal::GraphState>(nullptr, context);
}

}  // namespace

absl::StatusOr<Graph> capture(StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record, CaptureMode mode) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<internal::GraphState> state, new_state(stream));
  CGRT_RETURN_IF_ERROR(capture_graph(stream, record, mode, *state, state->knowledge.know_captured(), nullptr));
  return absl::StatusOr<Graph>(absl::in_place, std::move(state));
}

absl::Status capture_into(Cursor& place, StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record,
                          CaptureMode mode) {
  internal::GraphState* const state = place.state_;
  if (state == nullptr) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(const std::shared_ptr<internal::GraphState> captured, new_state(stream));
  internal::CapturedNodes noted;
  CaptureInfo last;
  CGRT_RETURN_IF_ERROR(capture_graph(stream, record, mode, *captured, noted, &last));
  CGRT_ASSIGN_OR_RETURN(std::vector<Dependency> frontier, to_dependencies(last));
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> originals, internal::nodes_of(captured->handle));
  if (originals.empty()) return absl::OkStatus();

  CGRT_RETURN_IF_ERROR(state->prepare());
  CGRT_ASSIGN_OR_RETURN(const std::size_t first, internal::count_nodes(state->handle));
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes,
                        internal::copy_nodes(captured->handle, *state, place.frontier_));
  absl::Cleanup take_out = [&] {
    for (CUgraphNode node : nodes) driver::api().GraphDestroyNode(node);
  };
  CGRT_ASSIGN_OR_RETURN(const bool may_keep, may_keep_resources(originals, noted));
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

absl::StatusOr<Graph> internal::capture_call(CUcontext context, StreamRef stream,
                                             absl::FunctionRef<absl::Status(CUstream)> call) {
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  return capture(stream, [&](StreamRef own) { return call(own.get()); });
}

}  // namespace cgrt
