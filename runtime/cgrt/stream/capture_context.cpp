#include "cgrt/stream/capture_context.h"

#include <algorithm>
#include <utility>

namespace cgrt::internal {

void CaptureContext::note_join(CUstream stream) {
  // Which of several captures it joined is the driver's to say, where it matters (name_unjoined).
  for (CaptureContext* capture = current(); capture != nullptr; capture = capture->outer()) {
    const std::vector<CUstream>& joined = capture->joined_;
    if (stream != capture->origin() && std::find(joined.begin(), joined.end(), stream) == joined.end()) {
      capture->joined_.push_back(stream);
    }
  }
}

void CaptureContext::forget(CUstream stream) {
  for (CaptureContext* capture = current(); capture != nullptr; capture = capture->outer()) {
    if (capture->origin() == stream) capture->lose_origin();
    // Left in its place: another stream may get the address, and join.
    std::replace(capture->joined_.begin(), capture->joined_.end(), stream, CUstream{nullptr});
  }
}

std::size_t CaptureContext::index_of(CUstream stream) const {
  if (origin() == stream) return 0;
  const auto found = std::find(joined_.begin(), joined_.end(), stream);
  return found == joined_.end() ? CapturedNodes::kNone : static_cast<std::size_t>(found - joined_.begin()) + 1;
}

// The innermost capture that the stream is part of; null: of none that is known.
CaptureContext* CaptureContext::note(CUstream stream, std::size_t* stream_index) {
  CaptureContext* found = nullptr;
  for (CaptureContext* capture = current(); capture != nullptr; capture = capture->outer()) {
    const std::size_t index = capture->index_of(stream);
    if (index == CapturedNodes::kNone) continue;
    ++capture->nodes_.count;
    if (found != nullptr) {
      found->nodes_.is_ambiguous = capture->nodes_.is_ambiguous = true;
      continue;
    }
    found = capture;
    *stream_index = index;
    if (index == 0) break;  // an origin is part of its own capture only
  }
  return found;
}

bool CaptureContext::is_first_kernel(std::size_t stream_index) {
  if (stream_index == 0) return !std::exchange(origin_has_kernel_, true);
  if (joined_has_kernel_.size() < stream_index) joined_has_kernel_.resize(stream_index);
  const bool is_first = !joined_has_kernel_[stream_index - 1];
  joined_has_kernel_[stream_index - 1] = true;
  return is_first;
}

void CaptureContext::note_captured_kernel(CUstream stream, const LaunchAttributes* attributes,
                                          const Dim3& compiled_cluster) {
  std::size_t stream_index = 0;
  CaptureContext* const capture = note(stream, &stream_index);
  if (capture == nullptr) return;
  const std::size_t position = capture->nodes_.count - 1;
  const bool is_first = capture->is_first_kernel(stream_index);
  const LaunchAttributes normal =
      normal_form(attributes != nullptr ? *attributes : LaunchAttributes{}, compiled_cluster);
  if (is_first || !normal.is_default()) capture->nodes_.kernels.push_back({position, is_first, normal});
}

}  // namespace cgrt::internal
