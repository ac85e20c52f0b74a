// Stream capture: origin, forks and joins through events, and the errors 900 to 908.
#include <algorithm>
#include <utility>

#include "cgrt/simulator/log.h"
#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

void join(CUstream stream, Capture& capture) {
  stream->capture = &capture;
  capture.streams.insert(stream);
}

void add_unique(std::vector<Dependency>& frontier, const std::vector<Dependency>& more) {
  for (const Dependency& dependency : more) {
    const bool there = std::any_of(frontier.begin(), frontier.end(),
                                   [&](const Dependency& other) { return other.node == dependency.node; });
    if (!there) frontier.push_back(dependency);
  }
}

// True when every node is waited for by another or is what the origin would wait for next.
bool is_joined(const Capture& capture) {
  std::unordered_set<CUgraphNode> awaited;
  for (const Dependency& dependency : capture.origin->frontier) awaited.insert(dependency.node);
  for (const auto& node : capture.graph->nodes) {
    for (const Dependency& dependency : node->dependencies) awaited.insert(dependency.node);
  }
  return std::all_of(capture.graph->nodes.begin(), capture.graph->nodes.end(),
                     [&](const auto& node) { return awaited.contains(node.get()); });
}

}  // namespace

Capture* find_capture(std::uint64_t id) {
  for (Capture& capture : state->captures) {
    if (capture.id == id) return &capture;
  }
  return nullptr;
}

void leave(Capture& capture) {
  for (CUstream stream : capture.streams) {
    stream->capture = nullptr;
    stream->frontier.clear();
  }
  state->captures.remove_if([&](const Capture& other) { return &other == &capture; });
}

void invalidate(Capture& capture) { capture.invalid = true; }

CUresult check_unsafe_call() {
  const CUstreamCaptureMode mode = this_thread().mode;
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  bool prohibited = false, is_of_this_thread = false;
  for (Capture& capture : state->captures) {
    const bool mine = capture.thread == &this_thread() && capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool everybodys = capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mine && !everybodys) continue;
    invalidate(capture);
    prohibited = true;
    is_of_this_thread |= mine;
  }
  if (!prohibited) return CUDA_SUCCESS;
  say(std::string("API call conflicts with a stream capture sequence initiated from ") +
      (is_of_this_thread ? "the calling thread" : "another thread"));
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

namespace {

// The capture of a blocking stream, on which work in `stream` would depend; null: none.
Capture* find_implicit_capture(CUstream stream) {
  if (!is_legacy(stream)) return nullptr;
  for (Capture& capture : state->captures) {
    for (CUstream captured : capture.streams) {
      if (captured->blocking && captured->context == stream->context) return &capture;
    }
  }
  return nullptr;
}

}  // namespace

CUresult check_implicit_dependency(CUstream stream) {
  Capture* const capture = find_implicit_capture(stream);
  if (capture == nullptr) return CUDA_SUCCESS;
  invalidate(*capture);
  say("Call cannot be made against CU_STREAM_LEGACY while a blocking stream in the same context is capturing");
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

bool is_capturing(CUstream stream, CUresult* result) {
  *result = CUDA_SUCCESS;
  if (stream->capture == nullptr) {
    *result = check_implicit_dependency(stream);
    return false;
  }
  if (stream->capture->invalid) *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return true;
}

CUgraphNode capture_node(CUstream stream, NodeDataRef data, bool programmatic) {
  std::vector<Dependency> dependencies = stream->frontier;
  for (Dependency& dependency : dependencies) {
    if (!programmatic || dependency.node->data->type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    dependency.edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    dependency.edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  }
  CUgraphNode node = append_node(*stream->capture->graph, std::move(data), std::move(dependencies));
  stream->frontier = {Dependency{node, {}}};
  return node;
}

CUresult capture_record(CUstream stream, CUevent event) {
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->capture_id = stream->capture->id;
  event->frontier = stream->frontier;
  return CUDA_SUCCESS;
}

CUresult capture_wait(CUstream stream, CUevent event) {
  Capture* theirs = event->capture_id != 0 ? find_capture(event->capture_id) : nullptr;
  Capture* ours = stream->capture;
  if (event->capture_id != 0 && theirs == nullptr) {  // of a capture that has ended
    if (ours != nullptr) invalidate(*ours);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (ours != nullptr && ours->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (theirs != nullptr && theirs->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (theirs == nullptr) {  // an event from outside
    invalidate(*ours);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (ours == nullptr) {
    if (is_legacy(stream)) {
      invalidate(*theirs);
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    join(stream, *theirs);
    stream->frontier = event->frontier;
    return CUDA_SUCCESS;
  }
  if (ours != theirs) {
    invalidate(*ours);
    invalidate(*theirs);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  add_unique(stream->frontier, event->frontier);
  return CUDA_SUCCESS;
}

CUresult StreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  if (is_legacy(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  Capture& capture = state->captures.emplace_back();
  capture.id = state->next_capture++;
  capture.origin = stream;
  capture.mode = mode;
  capture.thread = &this_thread();
  capture.graph = std::make_unique<CUgraph_st>();
  join(stream, capture);
  return CUDA_SUCCESS;
}

CUresult StreamEndCapture(CUstream handle, CUgraph* graph) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  *graph = nullptr;
  if (stream->capture == nullptr) {
    say("Stream is not actively capturing");
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  Capture& capture = *stream->capture;
  if (capture.origin != stream) {
    invalidate(capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture.thread != &this_thread()) {
    result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;  // and the capture is over
  } else if (capture.invalid) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!is_joined(capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  if (result == CUDA_SUCCESS) {
    *graph = capture.graph.get();
    state->graphs.emplace(*graph, std::move(capture.graph));
  } else {
    forget_nodes(*capture.graph);
  }
  leave(capture);
  return result;
}

CUresult StreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  if (find_implicit_capture(stream) != nullptr) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;  // which goes on
  *status = stream->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult StreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                              const CUgraphNode** nodes, const CUgraphEdgeData** edges, std::size_t* count) {
  const Lock lock(state->mutex);
  const CUresult result = StreamIsCapturing(handle, status);
  if (result != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return result;
  CUresult found = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &found);
  stream->listed_nodes.clear();
  stream->listed_edges.clear();
  for (const Dependency& dependency : stream->frontier) {
    stream->listed_nodes.push_back(dependency.node);
    stream->listed_edges.push_back(dependency.edge);
  }
  if (id != nullptr) *id = stream->capture->id;
  if (graph != nullptr) *graph = stream->capture->graph.get();
  if (nodes != nullptr) *nodes = stream->listed_nodes.data();
  if (edges != nullptr) *edges = stream->listed_edges.data();
  if (count != nullptr) *count = stream->listed_nodes.size();
  return CUDA_SUCCESS;
}

CUresult StreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* nodes, const CUgraphEdgeData* edges,
                                         std::size_t count, unsigned flags) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (nodes == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Dependency> dependencies;
  for (std::size_t i = 0; i < count; ++i) {
    if (!state->nodes.contains(nodes[i]) || nodes[i]->graph != stream->capture->graph.get()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    dependencies.push_back({nodes[i], edges != nullptr ? edges[i] : CUgraphEdgeData{}});
  }
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->frontier.clear();
  add_unique(stream->frontier, dependencies);
  return CUDA_SUCCESS;
}

CUresult ThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  const Lock lock(state->mutex);
  std::swap(this_thread().mode, *mode);
  return CUDA_SUCCESS;
}

}  // namespace cgrt::simulator
