#include "cgrt/simulator/log.h"

#include <utility>
#include <vector>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

thread_local std::string sentence;

// What a result is always logged with.
const char* sentence_of(CUresult result) {
  switch (result) {
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: return "Capture was invalidated by a prior API call";
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: return "Capture was not initiated on hStream";
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
      return "Capture sequence contains a fork that was not joined to the primary stream";
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
      return "CU_STREAM_CAPTURE_MODE_RELAXED is required to begin and end the capture on different threads";
    case CUDA_ERROR_CAPTURED_EVENT: return "Recorded event not allowed on stream";
    default: return "";
  }
}

}  // namespace

void say(std::string text) { sentence = std::move(text); }

void forget_sentence() { sentence.clear(); }

CUresult logged(CUresult result, const char* function) {
  if (result == CUDA_ERROR_NOT_READY) return result;  // an answer
  std::vector<State::LogCallback> callbacks;
  {
    const Lock lock(state->mutex);
    callbacks = state->log_callbacks;
  }
  if (callbacks.empty()) return result;
  if (sentence.empty()) sentence = sentence_of(result);
  const char* name = nullptr;
  if (GetErrorName(result, &name) != CUDA_SUCCESS) name = "unknown";  // of a fault that was put in
  std::string line = "Returning " + std::to_string(static_cast<int>(result)) + " (" + name + ") from " + function;
  for (const State::LogCallback& one : callbacks) {
    if (!sentence.empty()) one.function(one.data, CU_LOG_LEVEL_ERROR, sentence.data(), sentence.size());
    one.function(one.data, CU_LOG_LEVEL_ERROR, line.data(), line.size());
  }
  return result;
}

CUresult LogsRegisterCallback(CUlogsCallback function, void* data, CUlogsCallbackHandle* handle) {
  const Lock lock(state->mutex);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::uintptr_t number = ++state->last_log_callback;
  state->log_callbacks.push_back({function, data, number});
  if (handle != nullptr) *handle = reinterpret_cast<CUlogsCallbackHandle>(number);
  return CUDA_SUCCESS;
}

CUresult LogsUnregisterCallback(CUlogsCallbackHandle handle) {
  const Lock lock(state->mutex);
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  const auto is_it = [&](const State::LogCallback& one) { return one.number == number; };
  return std::erase_if(state->log_callbacks, is_it) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cgrt::simulator
