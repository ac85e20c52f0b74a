// What the launches of an executable use beside its graph's own: what the calls of a rebound step hand over. Internal
// to exec/.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "cgrt/device/context.h"
#include "cgrt/stream/event.h"
#include "cgrt/stream/stream.h"

namespace cgrt::internal {

using Resources = std::vector<std::shared_ptr<const void>>;

// Records `event` in `stream`. CUDA takes an event of the stream's own context alone, so one of another is made anew.
absl::Status record_last(Event& event, StreamRef stream);

// Launches of one executable run one after the other, so that an event behind the last one is behind all.
class LaunchResources {
 public:
  LaunchResources() = default;
  LaunchResources(LaunchResources&&) = default;
  LaunchResources& operator=(LaunchResources&&) = delete;
  // Waits for the launches that use any.
  ~LaunchResources();

  // Makes what replace() needs for `next`, and moves what no launch uses any more into `over`. Waits for nothing.
  absl::Status prepare(CUcontext context, const Resources& next, Resources& over);
  // Launches from now on use `next`. What they used before goes with a prepare() after they have ended.
  void replace(Resources next);

  // After a launch into `stream`.
  absl::Status launched(StreamRef stream) {
    return ABSL_PREDICT_TRUE(current_.resources.empty()) ? absl::OkStatus() : record(stream);
  }

 private:
  struct Used {
    Resources resources;
    Event last_launch;  // behind it; empty where nothing is used
  };
  absl::Status record(StreamRef stream);

  Used current_;
  std::deque<Used> earlier_;
  Event spare_;
};

}  // namespace cgrt::internal
