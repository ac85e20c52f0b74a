#include "cgrt/target/capture_context.h"

#include <algorithm>
#include <utility>

namespace cgrt::internal {

// The innermost capture that the stream is part of; null: of none that is known.
CaptureContext* CaptureContext::note(CUstream stream, std::size_t* stream_index) {
  CaptureContext* found = nullptr;
  for (CaptureContext* capture = current(); capture != nullptr; capture = capture->outer()) {
    const std::size_t index = capture->index_of(stream);
    if (index == kNone) continue;
    ++capture->nodes_.count;
    if (found != nullptr) {
      found->nodes_.is_ambiguous = capture->nodes_.is_ambiguous = true;
      continue;
    }
    found = capture;
    *stream_index = index;
    if (index == 0) break;  // an origin is part of its own capture only
  }
  if (found == nullptr && current()->outside_ == nullptr) current()->outside_ = stream;
  return found;
}

bool CaptureContext::is_first_kernel(std::size_t stream_index) {
  if (stream_index == 0) return !std::exchange(origin_has_kernel_, true);
  if (joined_has_kernel_.size() < stream_index) joined_has_kernel_.resize(stream_index);
  const bool is_first = !joined_has_kernel_[stream_index - 1];
  joined_has_kernel_[stream_index - 1] = true;
  return is_first;
}

void CaptureContext::keep(const std::shared_ptr<const void>& resource) {
  for (CaptureContext* capture = current(); capture != nullptr; capture = capture->outer()) {
    std::vector<std::shared_ptr<const void>>& kept = capture->kept_;
    if (std::find(kept.begin(), kept.end(), resource) == kept.end()) kept.push_back(resource);
  }
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
