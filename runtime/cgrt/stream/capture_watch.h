// What this library saw of a capture on this thread: the streams that joined it by waiting for an
// event, for naming those that were never joined back, and whether a launch had attributes.
#pragma once

#include <cuda.h>

#include <algorithm>
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

  bool saw_attributes() const { return saw_attributes_; }
  static void note_attributes() {
    for (CaptureWatch* watch = innermost; watch != nullptr; watch = watch->outer_) watch->saw_attributes_ = true;
  }
  // For a stream that is about to be destroyed.
  static void forget(CUstream stream) {
    for (CaptureWatch* watch = innermost; watch != nullptr; watch = watch->outer_) std::erase(watch->streams_, stream);
  }

 private:
  static inline thread_local constinit CaptureWatch* innermost = nullptr;
  void forget_id();

  std::uint64_t id_ = 0;  // 0 until somebody asks: most captures record no event
  std::vector<CUstream> streams_;
  bool saw_attributes_ = false;
  CaptureWatch* outer_;
};

}  // namespace cgrt::internal
