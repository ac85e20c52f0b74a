#include "cgrt/stream/event.h"

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"
#include "cgrt/stream/capture_watch.h"

namespace cgrt {

bool EventRef::is_captured() const {
  if (memory_ == nullptr) return false;
  const std::uint64_t capture = memory_->capture.load(std::memory_order_acquire);
  return capture != 0 && internal::CaptureWatch::is_live(capture);
}

absl::StatusOr<Completion> EventRef::completion() const {
  if (is_captured()) return Completion::kCaptured;  // the driver would end the capture
  RelaxedCaptureMode relaxed;
  CGRT_RETURN_IF_ERROR(driver::to_status(relaxed.result(), "cuThreadExchangeStreamCaptureMode"));
  const CUresult result = driver::api().EventQuery(handle_);
  CGRT_RETURN_IF_ERROR(driver::to_status(relaxed.end(), "cuThreadExchangeStreamCaptureMode"));
  if (result == CUDA_SUCCESS) return Completion::kDone;
  if (result == CUDA_ERROR_NOT_READY) return Completion::kPending;
  if (result == CUDA_ERROR_CAPTURED_EVENT) return Completion::kCaptured;
  return driver::to_status(result, "cuEventQuery");
}

absl::StatusOr<bool> EventRef::is_complete() const {
  CGRT_ASSIGN_OR_RETURN(Completion answer, completion());
  if (answer != Completion::kCaptured) return answer == Completion::kDone;
  return driver::annotate(
      driver::make_status(CUDA_ERROR_CAPTURED_EVENT, "cuEventQuery"),
      "The event was last recorded inside a stream capture, so it never completes; record it outside");
}

absl::Status EventRef::synchronize() const {
  if (is_captured()) return is_complete().status();
  return driver::to_status(driver::api().EventSynchronize(handle_), "cuEventSynchronize");
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
