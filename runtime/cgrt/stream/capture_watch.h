// Which streams joined a capture: those that waited for an event while this thread captured. For
// naming the ones that were never joined back.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <vector>

namespace cgrt::internal {

// While one lives, StreamRef::wait on this thread notes its stream here.
class CaptureWatch {
 public:
  CaptureWatch() : outer_(innermost) { innermost = this; }
  ~CaptureWatch() { innermost = outer_; }
  CaptureWatch(const CaptureWatch&) = delete;
  CaptureWatch& operator=(const CaptureWatch&) = delete;

  const std::vector<CUstream>& streams() const { return streams_; }

  static void note(CUstream stream) {
    if (innermost == nullptr) return;
    std::vector<CUstream>& streams = innermost->streams_;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  }
  // For a stream that is about to be destroyed.
  static void forget(CUstream stream) {
    for (CaptureWatch* watch = innermost; watch != nullptr; watch = watch->outer_) std::erase(watch->streams_, stream);
  }

 private:
  static inline thread_local constinit CaptureWatch* innermost = nullptr;
  std::vector<CUstream> streams_;
  CaptureWatch* outer_;
};

}  // namespace cgrt::internal
