#include "cgrt/stream/captured_streams.h"

#include <algorithm>

namespace cgrt::internal {

void CapturedStreams::note_join(CUstream stream) {
  // Which of several captures it joined is the driver's to say, where it matters (name_unjoined).
  for (CapturedStreams* capture = current(); capture != nullptr; capture = capture->outer()) {
    const std::vector<CUstream>& joined = capture->joined_;
    if (stream != capture->origin() && std::find(joined.begin(), joined.end(), stream) == joined.end()) {
      capture->joined_.push_back(stream);
    }
  }
}

void CapturedStreams::forget(CUstream stream) {
  for (CapturedStreams* capture = current(); capture != nullptr; capture = capture->outer()) {
    if (capture->origin() == stream) capture->lose_origin();
    // Left in its place: another stream may get the address, and join.
    std::replace(capture->joined_.begin(), capture->joined_.end(), stream, CUstream{nullptr});
  }
}

std::size_t CapturedStreams::index_of(CUstream stream) const {
  if (origin() == stream) return 0;
  const auto found = std::find(joined_.begin(), joined_.end(), stream);
  return found == joined_.end() ? kNone : static_cast<std::size_t>(found - joined_.begin()) + 1;
}

}  // namespace cgrt::internal
