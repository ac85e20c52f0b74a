// Devices, contexts and the names of errors.
#include <algorithm>
#include <cstring>
#include <utility>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

// Read from an H200 (driver 580, CUDA 13.0): attribute and value. The rest is 0.
constexpr std::pair<int, int> kAttributes[] = {
    {1, 1024},       {2, 1024},        {3, 1024},   {4, 64},          {5, 2147483647}, {6, 65535},    {7, 65535},
    {8, 49152},      {9, 65536},       {10, 32},    {11, 2147483647}, {12, 65536},     {13, 1980000}, {14, 512},
    {15, 1},         {16, 132},        {19, 1},     {31, 1},          {32, 1},         {34, 6},       {36, 3201000},
    {37, 6016},      {38, 62914560},   {39, 2048},  {40, 3},          {41, 1},         {75, 9},       {76, 0},
    {78, 1},         {79, 1},          {80, 1},     {81, 233472},     {82, 65536},     {83, 1},       {87, 2},
    {89, 1},         {90, 1},          {91, 1},     {95, 1},          {96, 1},         {97, 232448},  {106, 32},
    {108, 39321600}, {109, 134217728}, {111, 1024}, {115, 1},         {120, 1},        {121, 1},
};

struct ErrorName {
  CUresult result;
  const char* name;
  const char* text;
};
#define CGRT_ERROR(name, text) \
  { name, #name, text }
constexpr ErrorName kErrors[] = {
    CGRT_ERROR(CUDA_SUCCESS, "no error"),
    CGRT_ERROR(CUDA_ERROR_INVALID_VALUE, "a parameter is outside what the call takes"),
    CGRT_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "the simulated device has too little memory left"),
    CGRT_ERROR(CUDA_ERROR_NOT_INITIALIZED, "the driver was not initialized"),
    CGRT_ERROR(CUDA_ERROR_NO_DEVICE, "there is no device"),
    CGRT_ERROR(CUDA_ERROR_INVALID_DEVICE, "the ordinal names no device"),
    CGRT_ERROR(CUDA_ERROR_INVALID_CONTEXT, "no valid context is current or given"),
    CGRT_ERROR(CUDA_ERROR_INVALID_HANDLE, "the handle names nothing of its kind"),
    CGRT_ERROR(CUDA_ERROR_ILLEGAL_STATE, "the object is in a state in which the call is not allowed"),
    CGRT_ERROR(CUDA_ERROR_INVALID_PTX, "the PTX cannot be compiled"),
    CGRT_ERROR(CUDA_ERROR_STUB_LIBRARY, "there is no driver, only a stub of one"),
    CGRT_ERROR(CUDA_ERROR_NOT_FOUND, "there is nothing of that name"),
    CGRT_ERROR(CUDA_ERROR_NOT_READY, "work is still pending"),
    CGRT_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the stream is held by the test, so waiting for it never ends"),
    CGRT_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
               "the blocks of a cooperative launch do not fit the device at once"),
    CGRT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, "the cluster is too large, or the grid is not a multiple of it"),
    CGRT_ERROR(CUDA_ERROR_NOT_SUPPORTED, "the simulator does not have this"),
    CGRT_ERROR(CUDA_ERROR_LOSSY_QUERY, "the query would lose the edges' data"),
    CGRT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the call is not allowed while a stream captures"),
    CGRT_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error has invalidated the capture"),
    CGRT_ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would be merged"),
    CGRT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture did not begin in this stream"),
    CGRT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "the capture has work that was not joined to its origin"),
    CGRT_ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "the capture would depend on work outside it"),
    CGRT_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the legacy stream would depend on a capture"),
    CGRT_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the memory is pinned already"),
    CGRT_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "nobody has pinned the memory"),
    CGRT_ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "the device does not have that limit"),
    CGRT_ERROR(CUDA_ERROR_CAPTURED_EVENT, "the event was last recorded in a capture"),
    CGRT_ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture was begun by another thread"),
    CGRT_ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the executable cannot take over that graph"),
};
#undef CGRT_ERROR

const ErrorName* find_error(CUresult result) {
  for (const ErrorName& error : kErrors) {
    if (error.result == result) return &error;
  }
  return nullptr;
}

// What this thread's last CUDA_ERROR_NOT_SUPPORTED was about.
thread_local std::string unsupported_text;

bool is_device(CUdevice device) { return device >= 0 && device < state->options.device_count; }

}  // namespace

CUresult unsupported(std::string why) {
  unsupported_text = std::move(why);
  return CUDA_ERROR_NOT_SUPPORTED;
}

PerThread& this_thread() {
  thread_local std::uint64_t simulator = 0;
  thread_local PerThread* mine = nullptr;
  if (simulator != state->id) {
    simulator = state->id;
    mine = &state->threads.emplace_back();
  }
  return *mine;
}

CUcontext current_context() {
  const std::vector<CUcontext>& contexts = this_thread().contexts;
  return contexts.empty() ? nullptr : contexts.back();
}

bool is_context(CUcontext context) {
  for (const auto& known : state->contexts) {
    if (known.get() == context) return true;
  }
  return false;
}

CUresult DriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult GetErrorName(CUresult result, const char** text) {
  const ErrorName* error = find_error(result);
  *text = error != nullptr ? error->name : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult GetErrorString(CUresult result, const char** text) {
  if (result == CUDA_ERROR_NOT_SUPPORTED && !unsupported_text.empty()) {
    thread_local std::string told;  // once: a later error of this kind is about something else
    told = std::exchange(unsupported_text, {});
    *text = told.c_str();
    return CUDA_SUCCESS;
  }
  const ErrorName* error = find_error(result);
  *text = error != nullptr ? error->text : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult DeviceGetCount(int* count) {
  *count = state->options.device_count;
  return CUDA_SUCCESS;
}

CUresult DeviceGet(CUdevice* device, int ordinal) {
  if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult DeviceGetName(char* name, int length, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::strncpy(name, "simulated NVIDIA H200", static_cast<std::size_t>(length));
  if (length > 0) name[length - 1] = '\0';
  return CUDA_SUCCESS;
}

CUresult DeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;
  for (const auto& [id, recorded] : kAttributes) {
    if (id == static_cast<int>(attribute)) *value = recorded;
  }
  return CUDA_SUCCESS;
}

CUresult DevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Lock lock(state->mutex);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = state->contexts[static_cast<std::size_t>(device)].get();
  ++(*context)->retained;
  return CUDA_SUCCESS;
}

// The context itself lives as long as the simulator.
CUresult DevicePrimaryCtxRelease(CUdevice device) {
  const Lock lock(state->mutex);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  CUctx_st& context = *state->contexts[static_cast<std::size_t>(device)];
  if (context.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --context.retained;
  return CUDA_SUCCESS;
}

CUresult DevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  const Lock lock(state->mutex);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = state->contexts[static_cast<std::size_t>(device)]->retained > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult DeviceGraphMemTrim(CUdevice device) { return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }

CUresult CtxPushCurrent(CUcontext context) {
  const Lock lock(state->mutex);
  if (!is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  this_thread().contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult CtxPopCurrent(CUcontext* context) {
  const Lock lock(state->mutex);
  std::vector<CUcontext>& stack = this_thread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult CtxGetCurrent(CUcontext* context) {
  const Lock lock(state->mutex);
  *context = current_context();
  return CUDA_SUCCESS;
}

CUresult CtxGetDevice(CUdevice* device) {
  const Lock lock(state->mutex);
  const CUcontext context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

namespace {

// As an H200 begins with. 0: none of these.
std::size_t first_limit(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE: return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE: return std::size_t{1} << 20;
    case CU_LIMIT_MALLOC_HEAP_SIZE: return std::size_t{8} << 20;
    default: return 0;
  }
}

}  // namespace

CUresult CtxGetLimit(std::size_t* value, CUlimit limit) {
  const Lock lock(state->mutex);
  const CUcontext context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (first_limit(limit) == 0) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const auto found = context->limits.find(limit);
  *value = found != context->limits.end() ? found->second : first_limit(limit);
  return CUDA_SUCCESS;
}

CUresult CtxSetLimit(CUlimit limit, std::size_t value) {
  const Lock lock(state->mutex);
  const CUcontext context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (first_limit(limit) == 0) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  context->limits.insert_or_assign(limit, value);
  return CUDA_SUCCESS;
}

// Ends captures in the context, whatever their mode and that of the thread (driver 580).
CUresult CtxSynchronize() {
  const Lock lock(state->mutex);
  const CUcontext context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  bool has_capture = false;
  for (Capture& capture : state->captures) {
    if (capture.origin->context != context) continue;
    invalidate(capture);
    has_capture = true;
  }
  if (has_capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return run_until([context] {
    return std::all_of(state->streams.begin(), state->streams.end(), [context](const CUstream_st& stream) {
      return stream.context != context || stream.queue.empty();
    });
  });
}

}  // namespace cgrt::simulator
