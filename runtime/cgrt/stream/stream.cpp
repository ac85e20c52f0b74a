#include "cgrt/stream/stream.h"

#include <cstdint>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"
#include "cgrt/stream/captured_streams.h"

namespace cgrt {
namespace {

[[gnu::cold]] absl::Status explain_wait(CUresult result) {
  const absl::Status failure = driver::to_status(result, "cuStreamWaitEvent");
  switch (result) {
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
      return driver::annotate(failure,
                              "A captured stream cannot wait for work outside of its capture: the event was last "
                              "recorded in a stream that has not joined it. A stream joins by waiting for an event "
                              "that the captured stream recorded; to wait at each launch, use wait_event");
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
      return driver::annotate(failure,
                              "The event was recorded in another capture, and two captures cannot become one: both "
                              "have ended now");
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
      return driver::annotate(failure,
                              "The legacy default stream cannot join a capture: fork into a stream of Stream::create");
    case CUDA_ERROR_INVALID_VALUE:
      return driver::annotate(failure,
                              "The event was last recorded in a capture that has ended: record it again before it is "
                              "waited for");
    default: return failure;
  }
}

[[gnu::cold]] absl::Status explain_synchronize(CUresult result, CUstream stream) {
  const absl::Status failure = driver::to_status(result, "cuStreamSynchronize");
  if (result != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) return failure;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const bool is_captured =
      driver::api().StreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
  return driver::annotate(
      failure, absl::StrCat("Stream 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(stream)),
                            is_captured ? " is part of a capture, and that capture has ended now. Synchronize after "
                                          "the graph's launch"
                                        : " cannot be synchronized during a capture, and that capture has ended now. "
                                          "Synchronize before it, or capture in CaptureMode::kRelaxed"));
}

[[gnu::cold]] absl::Status explain_question(CUresult result) {
  const absl::Status failure = driver::to_status(result, "cuStreamIsCapturing");
  if (result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return failure;
  return driver::annotate(failure,
                          "The legacy default stream has no answer while a blocking stream of its context is captured: "
                          "ask afterwards, or capture a stream of StreamKind::kNonBlocking");
}

}  // namespace

absl::StatusOr<Completion> StreamRef::completion() const {
  if (ABSL_PREDICT_FALSE(handle_ == nullptr)) return driver::empty_object("Stream");
  const driver::Api& api = driver::api();
  // cuStreamQuery on a capturing stream would invalidate the capture; this question does not.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = api.StreamIsCapturing(handle_, &status);
  if (ABSL_PREDICT_FALSE(asked != CUDA_SUCCESS)) return explain_question(asked);
  if (status != CU_STREAM_CAPTURE_STATUS_NONE) return Completion::kCaptured;
  RelaxedCaptureMode relaxed(api);
  const CUresult result = relaxed.result() == CUDA_SUCCESS ? api.StreamQuery(handle_) : CUDA_SUCCESS;
  if (ABSL_PREDICT_FALSE(relaxed.end() != CUDA_SUCCESS)) return relaxed.status();
  if (result == CUDA_SUCCESS) return Completion::kDone;
  if (result == CUDA_ERROR_NOT_READY) return Completion::kPending;
  return driver::to_status(result, "cuStreamQuery");
}

absl::StatusOr<bool> StreamRef::is_complete() const {
  CGRT_ASSIGN_OR_RETURN(Completion answer, completion());
  if (answer != Completion::kCaptured) return answer == Completion::kDone;
  return driver::annotate(
      driver::make_status(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuStreamQuery", "would return"),
      "The stream is being captured, so there is no work to wait for; ask after the graph's launch");
}

absl::StatusOr<bool> StreamRef::is_capturing() const {
  if (ABSL_PREDICT_FALSE(handle_ == nullptr)) return driver::empty_object("Stream");
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = driver::api().StreamIsCapturing(handle_, &status);
  if (ABSL_PREDICT_FALSE(asked != CUDA_SUCCESS)) return explain_question(asked);
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

absl::Status StreamRef::synchronize() const {
  if (ABSL_PREDICT_FALSE(handle_ == nullptr)) return driver::empty_object("Stream");
  const CUresult result = driver::api().StreamSynchronize(handle_);
  return ABSL_PREDICT_TRUE(result == CUDA_SUCCESS) ? absl::OkStatus() : explain_synchronize(result, handle_);
}

absl::Status StreamRef::record(EventRef event) const {
  if (ABSL_PREDICT_FALSE(handle_ == nullptr)) return driver::empty_object("Stream");
  if (ABSL_PREDICT_FALSE(event.get() == nullptr)) return driver::empty_object("Event");
  return driver::to_status(driver::api().EventRecord(event.get(), handle_), "cuEventRecord");
}

absl::Status StreamRef::wait(EventRef event) const {
  if (ABSL_PREDICT_FALSE(handle_ == nullptr)) return driver::empty_object("Stream");
  if (ABSL_PREDICT_FALSE(event.get() == nullptr)) return driver::empty_object("Event");
  const CUresult result = driver::api().StreamWaitEvent(handle_, event.get(), CU_EVENT_WAIT_DEFAULT);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) return explain_wait(result);
  if (ABSL_PREDICT_FALSE(internal::CapturedStreams::is_active())) {
    CGRT_ASSIGN_OR_RETURN(const bool capturing, is_capturing());
    if (capturing) internal::CapturedStreams::note_join(handle_);
  }
  return absl::OkStatus();
}

absl::StatusOr<CUcontext> StreamRef::context() const {
  if (context_ != nullptr) return context_;
  if (ABSL_PREDICT_FALSE(handle_ == nullptr)) return driver::empty_object("Stream");
  CUcontext context = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().StreamGetCtx(handle_, &context), "cuStreamGetCtx"));
  return context;
}

void internal::destroy_stream(CUstream stream) {
  if (CapturedStreams::is_active() && CapturedStreams::destroy_later(stream)) return;
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
