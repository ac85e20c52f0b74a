#include "cgrt/exec/launch_resources.h"

#include <iterator>
#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt::internal {

absl::Status record_last(Event& event, StreamRef stream) {
  const absl::Status recorded = stream.record(event.ref());
  if (ABSL_PREDICT_TRUE(recorded.ok()) || driver::cuda_result(recorded) != CUDA_ERROR_INVALID_HANDLE) return recorded;
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, stream.context());
  CGRT_ASSIGN_OR_RETURN(event, Event::create(context));
  return stream.record(event.ref());
}

LaunchResources::~LaunchResources() {
  earlier_.push_back(std::move(current_));
  for (const Used& used : earlier_) {
    if (used.last_launch.ref().get() == nullptr) continue;
    const RelaxedCaptureMode relaxed;
    used.last_launch.ref().synchronize().IgnoreError();  // a lost context runs nothing any more
  }
}

absl::Status LaunchResources::prepare(CUcontext context, const Resources& next, Resources& over) {
  while (!earlier_.empty() && earlier_.front().last_launch.ref().is_complete().value_or(false)) {
    Resources& ended = earlier_.front().resources;
    over.insert(over.end(), std::make_move_iterator(ended.begin()), std::make_move_iterator(ended.end()));
    spare_ = std::move(earlier_.front().last_launch);
    earlier_.pop_front();
  }
  if (next.empty() || spare_.ref().get() != nullptr) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(spare_, Event::create(context));
  return absl::OkStatus();
}

void LaunchResources::replace(Resources next) {
  if (!current_.resources.empty()) earlier_.push_back(std::exchange(current_, {}));
  if (!next.empty()) current_ = {std::move(next), std::move(spare_)};
}

absl::Status LaunchResources::record(StreamRef stream) { return record_last(current_.last_launch, stream); }

}  // namespace cgrt::internal
