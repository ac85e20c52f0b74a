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
  using LiveCapture::is_origin_lost;

  // `stream` is part of a capture now, after it has waited for an event.
  [[gnu::cold]] static void note_join(CUstream stream);
  // `stream` is about to be destroyed.
  [[gnu::cold]] static void forget(CUstream stream);

  // The streams that joined; null: destroyed since.
  const std::vector<CUstream>& joined() const { return joined_; }

 protected:
  explicit CapturedStreams(CUstream origin) : LiveCapture(origin) {}
  ~CapturedStreams() = default;

  static constexpr std::size_t kNone = SIZE_MAX;
  std::size_t index_of(CUstream stream) const;  // 0: the origin; then those that joined; kNone

 private:
  static CapturedStreams* current() { return static_cast<CapturedStreams*>(innermost); }
  CapturedStreams* outer() const { return static_cast<CapturedStreams*>(LiveCapture::outer()); }

  std::vector<CUstream> joined_;
};

}  // namespace cgrt::internal
