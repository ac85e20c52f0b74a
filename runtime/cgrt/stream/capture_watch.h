// What this library saw during a capture: on this thread the streams that joined it by waiting for an
// event, for naming those that were never joined back; on any thread whether a launch had attributes.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace cgrt::internal {

// While one lives, StreamRef::wait on this thread notes its stream here.
class CaptureWatch {
 public:
  CaptureWatch() : outer_(innermost) { innermost = this; }
  ~CaptureWatch() {
    innermost = outer_;
    if (id_ != 0) forget_id();
  }
  CaptureWatch(const CaptureWatch&) = delete;
  CaptureWatch& operator=(const CaptureWatch&) = delete;

  const std::vector<CUstream>& streams() const { return streams_; }

  static void note(CUstream stream) {
    if (innermost == nullptr) return;
    std::vector<CUstream>& streams = innermost->streams_;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  }
  static bool is_capturing() { return innermost != nullptr; }
  // Names the innermost capture of this thread, which must be one.
  static std::uint64_t current_id();
  // Whether that capture, of whatever thread, goes on.
  static bool is_live(std::uint64_t id);

  bool saw_attributes() const { return attributes_.load(std::memory_order_relaxed) != attributes_before_; }
  static void note_attributes() { attributes_.fetch_add(1, std::memory_order_relaxed); }
  // For a stream that is about to be destroyed.
  static void forget(CUstream stream) {
    for (CaptureWatch* watch = innermost; watch != nullptr; watch = watch->outer_) std::erase(watch->streams_, stream);
  }

 private:
  static inline thread_local constinit CaptureWatch* innermost = nullptr;
  static inline constinit std::atomic<std::uint64_t> attributes_{0};  // launches that had some
  void forget_id();

  std::uint64_t id_ = 0;  // 0 until somebody asks: most captures record no event
  std::vector<CUstream> streams_;
  std::uint64_t attributes_before_ = attributes_.load(std::memory_order_relaxed);
  CaptureWatch* outer_;
};

}  // namespace cgrt::internal
