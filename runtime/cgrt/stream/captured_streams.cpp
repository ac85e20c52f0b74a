#include "cgrt/stream/captured_streams.h"

#include <algorithm>

#include "cgrt/driver/destroy.h"

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

CapturedStreams::~CapturedStreams() {
  be_over();  // nobody asks the driver about its streams any more
  for (CUstream stream : destroyed_later_) driver::destroy_stream(stream);
}

bool CapturedStreams::destroy_later(CUstream stream) {
  CapturedStreams* outermost = nullptr;
  for (CapturedStreams* capture = current(); capture != nullptr; capture = capture->outer()) {
    if (capture->index_of(stream) != kNone) outermost = capture;
  }
  if (outermost == nullptr) return false;
  outermost->destroyed_later_.push_back(stream);
  return true;
}

std::size_t CapturedStreams::index_of(CUstream stream) const {
  if (origin() == stream) return 0;
  const auto found = std::find(joined_.begin(), joined_.end(), stream);
  return found == joined_.end() ? kNone : static_cast<std::size_t>(found - joined_.begin()) + 1;
}

}  // namespace cgrt::internal
