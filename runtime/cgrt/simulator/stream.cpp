// Streams and events: queues of work, and the scheduler that picks at random what may run next.
#include <algorithm>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

bool is_pending(const MarkerRef& marker) { return marker != nullptr && !marker->done; }

bool is_runnable(const CUstream_st& stream) {
  if (stream.held || stream.queue.empty()) return false;
  const Work& work = stream.queue.front();
  if (std::any_of(work.gates.begin(), work.gates.end(), is_pending)) return false;
  return work.can_run == nullptr || work.can_run();
}

// The work of blocking streams that the legacy stream waits for.
std::vector<MarkerRef> pending_for_legacy(CUstream legacy) {
  std::vector<MarkerRef> pending;
  for (CUstream_st& other : state->streams) {
    if (other.blocking && other.context == legacy->context && &other != legacy && is_pending(other.last)) {
      pending.push_back(other.last);
    }
  }
  return pending;
}

// A question to the legacy stream is one to the blocking streams as well.
bool is_drained(CUstream stream) {
  return stream->queue.empty() && (!is_legacy(stream) || pending_for_legacy(stream).empty());
}

CUevent find_event(CUevent handle) { return handle != nullptr && state->events.contains(handle) ? handle : nullptr; }

// An external record or wait: a node, and refused outside of a capture.
CUresult capture_event(CUevent event, CUstream handle, CUgraphNodeType type) {
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  if (find_event(event) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const bool capturing = is_capturing(stream, &result);
  if (result != CUDA_SUCCESS) return result;
  if (!capturing) return CUDA_ERROR_ILLEGAL_STATE;
  auto node = std::make_shared<NodeData>();
  node->type = type;
  node->event = event;
  capture_node(stream, std::move(node), false);
  return CUDA_SUCCESS;
}

// What a query or a wait of an event must look at before its work.
CUresult check_event(CUevent event) {
  if (find_event(event) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture_id == 0) return CUDA_SUCCESS;
  Capture* capture = find_capture(event->capture_id);
  if (capture == nullptr) return CUDA_ERROR_INVALID_VALUE;  // of a capture that is over
  invalidate(*capture);
  return CUDA_ERROR_CAPTURED_EVENT;
}

}  // namespace

CUstream find_stream(CUstream handle, CUresult* result) {
  *result = CUDA_SUCCESS;
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    const CUcontext context = current_context();
    if (context == nullptr) {
      *result = CUDA_ERROR_INVALID_CONTEXT;
      return nullptr;
    }
    if (handle != CU_STREAM_PER_THREAD) return context->legacy;
    CUstream& stream = this_thread().streams[context];
    if (stream == nullptr) {
      stream = &state->streams.emplace_back();
      stream->context = context;
      stream->blocking = true;
    }
    return stream;
  }
  if (state->live_streams.contains(handle)) return handle;
  *result = CUDA_ERROR_INVALID_HANDLE;
  return nullptr;
}

void enqueue(CUstream stream, std::function<void()> run, std::vector<MarkerRef> gates, MarkerRef done) {
  const auto once = [run = std::move(run)] {
    if (run) run();
    return true;
  };
  enqueue_steps(stream, once, nullptr, std::move(gates), std::move(done));
}

void enqueue_steps(CUstream stream, std::function<bool()> run, std::function<bool()> can_run,
                   std::vector<MarkerRef> gates, MarkerRef done) {
  CUstream legacy = stream->context->legacy;
  if (stream == legacy) {
    for (MarkerRef& other : pending_for_legacy(legacy)) gates.push_back(std::move(other));
  } else if (stream->blocking && is_pending(legacy->last)) {
    gates.push_back(legacy->last);
  }
  Work& work = stream->queue.emplace_back();
  work.run = std::move(run);
  work.can_run = std::move(can_run);
  work.gates = std::move(gates);
  if (done != nullptr) work.done = std::move(done);
  stream->last = work.done;
}

bool run_one() {
  std::vector<CUstream> runnable;
  for (CUstream_st& stream : state->streams) {
    if (is_runnable(stream)) runnable.push_back(&stream);
  }
  if (runnable.empty()) return false;
  CUstream stream = runnable[state->random() % runnable.size()];
  if (const std::function<bool()> run = stream->queue.front().run; !run()) return true;  // it stays where it is
  const MarkerRef done = stream->queue.front().done;
  stream->queue.pop_front();
  done->done = true;
  if (stream->destroyed && stream->queue.empty()) {
    state->streams.remove_if([&](const CUstream_st& other) { return &other == stream; });
  }
  return true;
}

CUresult run_until(const std::function<bool()>& done) {
  while (!done()) {
    if (!run_one()) return CUDA_ERROR_LAUNCH_TIMEOUT;  // held: see Simulator::hold
  }
  return CUDA_SUCCESS;
}

void run_all() {
  while (run_one()) {
  }
}

bool is_idle() {
  return std::all_of(state->streams.begin(), state->streams.end(),
                     [](const CUstream_st& stream) { return stream.queue.empty(); });
}

CUresult StreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  const Lock lock(state->mutex);
  if (out == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const CUcontext context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CUstream_st& stream = state->streams.emplace_back();
  stream.context = context;
  stream.blocking = flags == CU_STREAM_DEFAULT;
  stream.priority = clamped_priority(priority);
  state->live_streams.insert(&stream);
  *out = &stream;
  return CUDA_SUCCESS;
}

CUresult StreamDestroy(CUstream stream) {
  const Lock lock(state->mutex);
  if (!state->live_streams.contains(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr && stream->capture->origin == stream) {
    forget_nodes(*stream->capture->graph);
    leave(*stream->capture);
  } else if (stream->capture != nullptr) {
    stream->capture->streams.erase(stream);
    stream->capture = nullptr;
  }
  state->live_streams.erase(stream);
  stream->destroyed = true;
  if (stream->queue.empty()) state->streams.remove_if([&](const CUstream_st& other) { return &other == stream; });
  return CUDA_SUCCESS;
}

CUresult StreamQuery(CUstream handle) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture != nullptr) {
    invalidate(*stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  if (is_drained(stream)) return CUDA_SUCCESS;
  run_one();  // whoever polls must get there in the end
  return CUDA_ERROR_NOT_READY;
}

CUresult StreamSynchronize(CUstream handle) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture != nullptr) {
    invalidate(*stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  return run_until([&] { return is_drained(stream); });
}

CUresult StreamGetId(CUstream handle, unsigned long long* id) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  const CUstream stream = find_stream(handle, &result);
  if (stream != nullptr) *id = stream->id;
  return result;
}

CUresult StreamGetCtx(CUstream handle, CUcontext* context) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  if (const CUresult implicit = check_implicit_dependency(stream); implicit != CUDA_SUCCESS) return implicit;
  *context = stream->context;
  return CUDA_SUCCESS;
}

CUresult StreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
  const Lock lock(state->mutex);
  if (flags == CU_EVENT_WAIT_EXTERNAL) return capture_event(event, handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  if (find_event(event) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr || event->capture_id != 0) return capture_wait(stream, event);
  if (const CUresult implicit = check_implicit_dependency(stream); implicit != CUDA_SUCCESS) return implicit;
  if (is_pending(event->record)) enqueue(stream, nullptr, {event->record});
  return CUDA_SUCCESS;
}

CUresult EventCreate(CUevent* out, unsigned flags) {
  const Lock lock(state->mutex);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  auto event = std::make_unique<CUevent_st>();
  event->context = current_context();
  event->timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  *out = event.get();
  state->events.emplace(*out, std::move(event));
  return CUDA_SUCCESS;
}

CUresult EventDestroy(CUevent event) {
  const Lock lock(state->mutex);
  return state->events.erase(event) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult EventRecordWithFlags(CUevent event, CUstream handle, unsigned flags) {
  if (flags == CU_EVENT_RECORD_DEFAULT) return EventRecord(event, handle);
  const Lock lock(state->mutex);
  return capture_event(event, handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
}

CUresult LaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool capturing = is_capturing(stream, &result);
  if (result != CUDA_SUCCESS) return result;
  if (!capturing) {
    enqueue(stream, [function, data] { function(data); });
    return CUDA_SUCCESS;
  }
  auto node = std::make_shared<NodeData>();
  node->type = CU_GRAPH_NODE_TYPE_HOST;
  node->function = function;
  node->user_data = data;
  capture_node(stream, std::move(node), false);
  return CUDA_SUCCESS;
}

CUresult EventRecord(CUevent event, CUstream handle) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  if (find_event(event) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) return capture_record(stream, event);
  if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult implicit = check_implicit_dependency(stream); implicit != CUDA_SUCCESS) return implicit;
  event->capture_id = 0;
  event->record = std::make_shared<Marker>();
  enqueue(stream, nullptr, {}, event->record);
  return CUDA_SUCCESS;
}

CUresult EventQuery(CUevent event) {
  const Lock lock(state->mutex);
  if (const CUresult captured = check_event(event); captured != CUDA_SUCCESS) return captured;
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  if (!is_pending(event->record)) return CUDA_SUCCESS;
  run_one();
  return CUDA_ERROR_NOT_READY;
}

CUresult EventSynchronize(CUevent event) {
  const Lock lock(state->mutex);
  if (const CUresult captured = check_event(event); captured != CUDA_SUCCESS) return captured;
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  return run_until([&] { return !is_pending(event->record); });
}

CUresult EventElapsedTime(float*, CUevent start, CUevent end) {
  const Lock lock(state->mutex);
  for (CUevent event : {start, end}) {
    if (find_event(event) == nullptr || event->capture_id == 0) continue;
    // Refused, and unlike a query it leaves the capture as it is.
    return find_capture(event->capture_id) != nullptr ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_INVALID_VALUE;
  }
  for (CUevent event : {start, end}) {
    if (find_event(event) == nullptr || !event->timing || event->record == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  }
  if (is_pending(start->record) || is_pending(end->record)) return CUDA_ERROR_NOT_READY;
  return unsupported("the simulator has no GPU time to tell");
}

}  // namespace cgrt::simulator
