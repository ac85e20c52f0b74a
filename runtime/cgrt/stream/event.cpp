#include "cgrt/stream/event.h"

#include "absl/base/optimization.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/live_capture.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt {
namespace {

// A query would end the capture. This question, which is refused, does not (driver 580, all capture modes, all kinds
// of events); at 0.5 us it is asked during captures only.
[[gnu::cold]] bool is_captured(CUevent event) {
  float milliseconds = 0;
  return driver::api().EventElapsedTime(&milliseconds, event, event) == CUDA_ERROR_CAPTURED_EVENT;
}

[[gnu::cold]] absl::Status captured() {
  return driver::annotate(
      driver::make_status(CUDA_ERROR_CAPTURED_EVENT, "cuEventQuery", "would return"),
      "The event was last recorded inside a stream capture, so it never completes; record it outside");
}

[[gnu::cold]] absl::Status explain_synchronize(CUresult result) {
  const absl::Status failure = driver::to_status(result, "cuEventSynchronize");
  if (result != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) return failure;
  return driver::annotate(failure,
                          "An event cannot be synchronized during a capture, and that capture has ended now. "
                          "Synchronize before it, or capture in CaptureMode::kRelaxed");
}

}  // namespace

absl::StatusOr<Completion> EventRef::completion() const {
  if (ABSL_PREDICT_FALSE(handle_ == nullptr)) return driver::empty_object("Event");
  if (ABSL_PREDICT_FALSE(driver::LiveCapture::any()) && is_captured(handle_)) return Completion::kCaptured;
  const driver::Api& api = driver::api();
  RelaxedCaptureMode relaxed(api);
  const CUresult result = relaxed.result() == CUDA_SUCCESS ? api.EventQuery(handle_) : CUDA_SUCCESS;
  if (ABSL_PREDICT_FALSE(relaxed.end() != CUDA_SUCCESS)) return relaxed.status();
  if (result == CUDA_SUCCESS) return Completion::kDone;
  if (result == CUDA_ERROR_NOT_READY) return Completion::kPending;
  if (result == CUDA_ERROR_CAPTURED_EVENT) return Completion::kCaptured;
  return driver::to_status(result, "cuEventQuery");
}

absl::StatusOr<bool> EventRef::is_complete() const {
  CGRT_ASSIGN_OR_RETURN(Completion answer, completion());
  if (ABSL_PREDICT_FALSE(answer == Completion::kCaptured)) return captured();
  return answer == Completion::kDone;
}

absl::Status EventRef::synchronize() const {
  if (ABSL_PREDICT_FALSE(handle_ == nullptr)) return driver::empty_object("Event");
  if (ABSL_PREDICT_FALSE(driver::LiveCapture::any()) && is_captured(handle_)) return captured();
  const CUresult result = driver::api().EventSynchronize(handle_);
  return ABSL_PREDICT_TRUE(result == CUDA_SUCCESS) ? absl::OkStatus() : explain_synchronize(result);
}

absl::StatusOr<Event> Event::create(ContextRef context, EventTiming timing) {
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(handle));
  CUevent event = nullptr;
  const unsigned flags = timing == EventTiming::kEnabled ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().EventCreate(&event, flags), "cuEventCreate"));
  return Event(event);
}

absl::StatusOr<absl::Duration> elapsed_time(EventRef start, EventRef end) {
  if (ABSL_PREDICT_FALSE(start.get() == nullptr || end.get() == nullptr)) return driver::empty_object("Event");
  float milliseconds = 0;
  const CUresult result = driver::api().EventElapsedTime(&milliseconds, start.get(), end.get());
  if (result == CUDA_ERROR_INVALID_HANDLE) {
    return driver::annotate(driver::to_status(result, "cuEventElapsedTime"),
                            "Both events must be made with EventTiming::kEnabled and recorded before the question");
  }
  CGRT_RETURN_IF_ERROR(driver::to_status(result, "cuEventElapsedTime"));
  return absl::Milliseconds(milliseconds);
}

}  // namespace cgrt
