#include "cgrt/driver/live_capture.h"

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

void LiveCapture::note_failure(CUresult result, const absl::Status& status) {
  for (LiveCapture* capture = innermost; capture != nullptr; capture = capture->outer_) {
    if (capture->is_over_) continue;
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    if (api().StreamIsCapturing(capture->origin_, &now) != CUDA_SUCCESS) continue;
    if (now != CU_STREAM_CAPTURE_STATUS_INVALIDATED) continue;
    capture->is_over_ = true;
    // 901 says that an earlier call did it, which this library has not seen.
    if (result != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) capture->ended_by_ = status;
  }
}

void LiveCapture::reword(const absl::Status& before, const absl::Status& after) {
  for (LiveCapture* capture = innermost; capture != nullptr; capture = capture->outer_) {
    if (!before.ok() && capture->ended_by_ == before) capture->ended_by_ = after;
  }
}

}  // namespace cgrt::driver
