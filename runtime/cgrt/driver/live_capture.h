// LiveCapture: a stream capture that this library began and that has not ended: as much of it as the modules that
// graph/ depends on must know. Internal: internal::CaptureContext (target/capture_context.h) makes it.
//
// A thread sees the captures that it is inside of; any thread sees whether the process has one.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "cgrt/driver/capture_log.h"

namespace cgrt::driver {

namespace internal {

// How many captures a thread has live. Only that thread writes it, since two atomic additions for each capture cost
// 12 ns on an H200 host. Never freed; another thread takes it when the thread has ended.
struct CapturingThread {
  std::atomic<int> live{0};
  std::atomic<bool> is_taken{true};
  CapturingThread* next = nullptr;
};

// The list of all capturing threads. It is the only symbol that is one in a process in which several shared objects
// have a copy of cgrt each (default visibility; g++ makes it unique). So each copy sees the captures of all, and
// queries events during them in the way that ends no capture.
__attribute__((visibility("default"))) inline std::atomic<CapturingThread*> cgrt_capturing_threads{nullptr};

inline thread_local constinit CapturingThread* this_thread = nullptr;  // null: it has not captured yet
[[gnu::cold]] void take_this_thread();

}  // namespace internal

class LiveCapture {
 public:
  LiveCapture(const LiveCapture&) = delete;
  LiveCapture& operator=(const LiveCapture&) = delete;

  // Whether a capture is live, of whatever thread.
  static bool any() {
    const internal::CapturingThread* thread = internal::cgrt_capturing_threads.load(std::memory_order_acquire);
    for (; thread != nullptr; thread = thread->next) {
      if (thread->live.load(std::memory_order_acquire) != 0) return true;
    }
    return false;
  }

  // The stream in which it began.
  CUstream origin() const { return origin_; }

  // The failure of the call that ended the capture before its time; ok when it goes on, or when the call
  // was not made through this library on this thread.
  const absl::Status& ended_by() const { return ended_by_; }
  // What ended it, of whatever thread and library: this capture, the call and its thread, as a sentence. Empty when
  // nothing is known.
  [[gnu::cold]] std::string story() const;

  // For a failed call on this thread: asks the driver which captures have ended by now.
  [[gnu::cold]] static void note_failure(CUresult result, const char* call, const absl::Status& status);
  // After a call was refused because its capture has ended: how that was, as a sentence; empty when it is not known.
  // Only where a single capture of this thread has ended, since the call does not say which one it means.
  [[gnu::cold]] static std::string how_it_ended();
  // The failure that was noted as `before` is told as `after`.
  [[gnu::cold]] static void reword(const absl::Status& before, const absl::Status& after);

 protected:
  LiveCapture(CUstream origin, CUstreamCaptureMode mode)
      : origin_(origin), mode_(mode), outer_(innermost), depth_(outer_ != nullptr ? outer_->depth_ + 1 : 0) {
    innermost = this;
    if (__builtin_expect(internal::this_thread == nullptr, false)) internal::take_this_thread();
    count(1);
    if (LoggedCapture* const logged = in_log()) logged->begin(mode);
  }
  ~LiveCapture() {
    innermost = outer_;
    count(-1);
    if (LoggedCapture* const logged = in_log()) logged->end();
  }

  // Those that this thread is inside of.
  static inline thread_local constinit LiveCapture* innermost = nullptr;
  LiveCapture* outer() const { return outer_; }

  void be_over() { is_over_ = true; }

 private:
  static void count(int more) {
    std::atomic<int>& live = internal::this_thread->live;
    live.store(live.load(std::memory_order_relaxed) + more, std::memory_order_release);
  }

  // Null: nested too deep.
  LoggedCapture* in_log() const {
    return depth_ < LoggedThread::kMaxNested ? &internal::this_logged_thread->captures[depth_] : nullptr;
  }

  CUstream origin_;
  CUstreamCaptureMode mode_;
  LiveCapture* outer_;
  std::size_t depth_;
  absl::Status ended_by_;
  bool is_over_ = false;  // known to be
};

}  // namespace cgrt::driver
