// CapturedStreams: a live capture of this library's, and the streams that joined it. Internal:
// internal::CaptureContext (target/capture_context.h) makes it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cgrt/driver/live_capture.h"

namespace cgrt::internal {

class CapturedStreams : public driver::LiveCapture {
 public:
  // Whether this thread is inside of a capture.
  static bool is_active() { return innermost != nullptr; }

  // `stream` is part of a capture now, after it has waited for an event.
  [[gnu::cold]] static void note_join(CUstream stream);
  // Whether `stream`, which is about to be destroyed, is part of a capture of this thread. That capture destroys it
  // when it has ended: destroying the stream in which it began would end it before.
  [[gnu::cold]] static bool destroy_later(CUstream stream);

  // The streams that joined.
  const std::vector<CUstream>& joined() const { return joined_; }

 protected:
  CapturedStreams(CUstream origin, CUstreamCaptureMode mode) : LiveCapture(origin, mode) {}
  ~CapturedStreams();

  static constexpr std::size_t kNone = SIZE_MAX;
  std::size_t index_of(CUstream stream) const;  // 0: the origin; then those that joined; kNone

 private:
  static CapturedStreams* current() { return static_cast<CapturedStreams*>(innermost); }
  CapturedStreams* outer() const { return static_cast<CapturedStreams*>(LiveCapture::outer()); }

  std::vector<CUstream> joined_, destroyed_later_;
};

}  // namespace cgrt::internal
