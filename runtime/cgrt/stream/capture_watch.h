// Which streams joined a capture: those that waited for an event while this thread captured. For
// naming the ones that were never joined back.
#pragma once

#include <cuda.h>

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
    if (innermost != nullptr) innermost->streams_.push_back(stream);
  }

 private:
  static inline thread_local constinit CaptureWatch* innermost = nullptr;
  std::vector<CUstream> streams_;
  CaptureWatch* outer_;
};

}  // namespace cgrt::internal
