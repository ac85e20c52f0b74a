#include "cgrt/stream/stream.h"

#include "absl/base/optimization.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"
#include "cgrt/stream/capture_watch.h"

namespace cgrt {

absl::StatusOr<Completion> StreamRef::completion() const {
  // cuStreamQuery on a capturing stream would invalidate the capture; this question does not.
  CGRT_ASSIGN_OR_RETURN(bool capturing, is_capturing());
  if (capturing) return Completion::kCaptured;
  RelaxedCaptureMode relaxed;
  CGRT_RETURN_IF_ERROR(driver::to_status(relaxed.result(), "cuThreadExchangeStreamCaptureMode"));
  const CUresult result = driver::api().StreamQuery(handle_);
  CGRT_RETURN_IF_ERROR(driver::to_status(relaxed.end(), "cuThreadExchangeStreamCaptureMode"));
  if (result == CUDA_SUCCESS) return Completion::kDone;
  if (result == CUDA_ERROR_NOT_READY) return Completion::kPending;
  return driver::to_status(result, "cuStreamQuery");
}

absl::StatusOr<bool> StreamRef::is_complete() const {
  CGRT_ASSIGN_OR_RETURN(Completion answer, completion());
  if (answer != Completion::kCaptured) return answer == Completion::kDone;
  return driver::annotate(
      driver::make_status(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuStreamIsCapturing"),
      "The stream is being captured, so there is no work to wait for; ask after the graph's launch");
}

absl::StatusOr<bool> StreamRef::is_capturing() const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().StreamIsCapturing(handle_, &status), "cuStreamIsCapturing"));
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

absl::Status StreamRef::synchronize() const {
  return driver::to_status(driver::api().StreamSynchronize(handle_), "cuStreamSynchronize");
}

absl::Status StreamRef::record(EventRef event) const {
  // Only a thread that captures asks whether this stream is part of it.
  std::uint64_t capture = 0;
  if (ABSL_PREDICT_FALSE(internal::CaptureWatch::is_capturing()) && event.memory() != nullptr) {
    CGRT_ASSIGN_OR_RETURN(bool capturing, is_capturing());
    if (capturing) capture = internal::CaptureWatch::current_id();
  }
  const CUresult result = driver::api().EventRecord(event.get(), handle_);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) return driver::to_status(result, "cuEventRecord");
  if (event.memory() != nullptr) event.memory()->capture.store(capture, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status StreamRef::wait(EventRef event) const {
  internal::CaptureWatch::note(handle_);
  return driver::to_status(driver::api().StreamWaitEvent(handle_, event.get(), CU_EVENT_WAIT_DEFAULT),
                           "cuStreamWaitEvent");
}

absl::StatusOr<CUcontext> StreamRef::context() const {
  if (context_ != nullptr) return context_;
  CUcontext context = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().StreamGetCtx(handle_, &context), "cuStreamGetCtx"));
  return context;
}

void internal::destroy_stream(CUstream stream) {
  CaptureWatch::forget(stream);
  driver::destroy_stream(stream);
}

absl::StatusOr<Stream> Stream::adopt(CUstream stream) {
  if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
    return absl::InvalidArgumentError(
        "A default stream cannot be owned: it belongs to its context. Use StreamRef for it.");
  }
  return Stream(stream, nullptr);
}

absl::StatusOr<Stream> Stream::create(ContextRef context, StreamOptions options) {
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(handle));
  CUstream stream = nullptr;
  const unsigned flags = options.kind == StreamKind::kNonBlocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().StreamCreateWithPriority(&stream, flags, options.priority),
                                         "cuStreamCreateWithPriority"));
  return Stream(stream, handle);
}

}  // namespace cgrt
