#include "cgrt/driver/live_capture.h"

#include <cstring>
#include <utility>

#include "cgrt/driver/api.h"

namespace cgrt::driver {
namespace internal {
namespace {

CapturingThread* take_one() {
  CapturingThread* head = cgrt_capturing_threads.load(std::memory_order_acquire);
  for (CapturingThread* thread = head; thread != nullptr; thread = thread->next) {
    if (!thread->is_taken.exchange(true, std::memory_order_acquire)) return thread;
  }
  auto* const made = new CapturingThread();
  do {
    made->next = head;
  } while (!cgrt_capturing_threads.compare_exchange_weak(head, made, std::memory_order_acq_rel));
  return made;
}

struct GiveBack {
  ~GiveBack() { std::exchange(this_thread, nullptr)->is_taken.store(false, std::memory_order_release); }
};

}  // namespace

void take_this_thread() {
  this_thread = take_one();
  static thread_local GiveBack at_the_end_of_the_thread;
  static_cast<void>(at_the_end_of_the_thread);
}

}  // namespace internal

namespace {

// 901 says that an earlier call did it, which this library has not seen. Of calls that fail with a code that is none
// of captures', launches and waits end them, copies and memsets do not (driver 580).
bool may_end_capture(CUresult result, const char* call) {
  if (result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) return false;
  const bool is_of_captures = result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_CAPTURED_EVENT;
  return is_of_captures || std::strcmp(call, "cuLaunchKernelEx") == 0 || std::strcmp(call, "cuStreamWaitEvent") == 0;
}

}  // namespace

void LiveCapture::note_failure(CUresult result, const char* call, const absl::Status& status) {
  for (LiveCapture* capture = innermost; capture != nullptr; capture = capture->outer_) {
    if (capture->is_over_) continue;
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    if (api().StreamIsCapturing(capture->origin_, &now) != CUDA_SUCCESS) continue;
    if (now != CU_STREAM_CAPTURE_STATUS_INVALIDATED) continue;
    capture->is_over_ = true;
    if (may_end_capture(result, call)) capture->ended_by_ = status;
  }
}

absl::Status LiveCapture::what_ended() {
  const LiveCapture* ended = nullptr;
  for (const LiveCapture* capture = innermost; capture != nullptr; capture = capture->outer_) {
    if (!capture->is_over_) continue;
    if (ended != nullptr) return absl::OkStatus();
    ended = capture;
  }
  return ended != nullptr ? ended->ended_by_ : absl::OkStatus();
}

void LiveCapture::reword(const absl::Status& before, const absl::Status& after) {
  for (LiveCapture* capture = innermost; capture != nullptr; capture = capture->outer_) {
    if (!before.ok() && capture->ended_by_ == before) capture->ended_by_ = after;
  }
}

}  // namespace cgrt::driver
