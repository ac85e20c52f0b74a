#include "cgrt/driver/live_capture.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
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
  ~GiveBack() {
    std::exchange(this_thread, nullptr)->is_taken.store(false, std::memory_order_release);
    std::exchange(this_logged_thread, nullptr)->is_taken.store(false, std::memory_order_release);
  }
};

}  // namespace

void take_this_thread() {
  this_thread = take_one();
  this_logged_thread = CaptureLog::take_thread();
  static thread_local GiveBack at_the_end_of_the_thread;
  static_cast<void>(at_the_end_of_the_thread);
}

}  // namespace internal

void LiveCapture::note_failure(CUresult result, const char* call, const absl::Status& status) {
  for (LiveCapture* capture = innermost; capture != nullptr; capture = capture->outer_) {
    if (capture->is_over_) continue;
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    if (api().StreamIsCapturing(capture->origin_, &now) != CUDA_SUCCESS) continue;
    LoggedCapture* const logged = capture->in_log();
    if (now != CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
      if (logged != nullptr && now == CU_STREAM_CAPTURE_STATUS_ACTIVE) logged->clear();
      continue;
    }
    capture->is_over_ = true;
    if (!may_end_capture(result, call)) continue;
    // The log may know of one before it.
    bool is_latest = true;
    if (logged != nullptr) static_cast<void>(logged->first_refused(&is_latest));
    if (is_latest) capture->ended_by_ = status;
  }
}

std::string LiveCapture::story() const {
  if (!ended_by_.ok()) {
    return absl::StrCat(name_capture(origin_, mode_), " was ended by a call of the same thread: ", ended_by_.message());
  }
  const LoggedCapture* const logged = in_log();
  const std::optional<RefusedCall> call = logged != nullptr ? logged->first_refused() : std::nullopt;
  return call.has_value() ? tell(*call, origin_, mode_) : "";
}

std::string LiveCapture::how_it_ended() {
  const LiveCapture* ended = nullptr;
  for (const LiveCapture* capture = innermost; capture != nullptr; capture = capture->outer_) {
    if (!capture->is_over_) continue;
    if (ended != nullptr) return "";
    ended = capture;
  }
  return ended != nullptr ? ended->story() : "";
}

void LiveCapture::reword(const absl::Status& before, const absl::Status& after) {
  for (LiveCapture* capture = innermost; capture != nullptr; capture = capture->outer_) {
    if (!before.ok() && capture->ended_by_ == before) capture->ended_by_ = after;
  }
}

}  // namespace cgrt::driver
