#include "cgrt/stream/capture_watch.h"

#include <mutex>

namespace cgrt::internal {
namespace {

struct Live {
  std::mutex mutex;
  std::uint64_t next = 1;
  std::vector<std::uint64_t> ids;
};

// Never destroyed: events may be asked after main has returned.
Live& live() {
  static Live& captures = *new Live();
  return captures;
}

}  // namespace

std::uint64_t CaptureWatch::current_id() {
  if (innermost->id_ == 0) {
    const std::lock_guard lock(live().mutex);
    innermost->id_ = live().next++;
    live().ids.push_back(innermost->id_);
  }
  return innermost->id_;
}

void CaptureWatch::forget_id() {
  const std::lock_guard lock(live().mutex);
  std::erase(live().ids, id_);
}

bool CaptureWatch::is_live(std::uint64_t id) {
  const std::lock_guard lock(live().mutex);
  return std::find(live().ids.begin(), live().ids.end(), id) != live().ids.end();
}

}  // namespace cgrt::internal
