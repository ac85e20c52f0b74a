// fork_join: several pieces of work beside each other, in any launch target.
//
//   CGRT_ASSIGN_OR_RETURN(SideStreams sides, SideStreams::create(DeviceRef(0), 1));   // once
//   const auto step = [&](LaunchTarget target) -> absl::Status {
//     CGRT_RETURN_IF_ERROR(fork_join(target, sides, {
//         [&](LaunchTarget branch) { return launch(branch, config, kernel, y, x, 2.0f, n); },
//         [&](LaunchTarget branch) { return launch(branch, config, kernel, z, x, 3.0f, n); }}));
//     return launch(target, config, sum, out, y, z, n);                               // waits for both
//   };
//
// In a stream, eager or captured, the first branch goes into the stream itself and each other one into a side stream
// that waits for what was there before. In a graph that is built, branches are copies of the cursor. In an executable
// that is rebound they are calls one after the other, as they were when its nodes were made.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cgrt/device/context.h"
#include "cgrt/stream/event.h"
#include "cgrt/stream/stream.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

// Owns the streams in which branches run, and the events that order them. One fork_join uses it at a time, so no
// two threads, and no branch for a fork_join inside of it. In a capture its streams are part of that capture until it
// ends: what runs meanwhile needs another one. Empty by default and when moved from, which is enough where there is one
// branch, and for graphs.
class SideStreams {
 public:
  SideStreams() = default;
  // `context`: that of the streams from which will be forked. Blocks as Stream::create does.
  static absl::StatusOr<SideStreams> create(ContextRef context, std::size_t count);
  std::size_t count() const { return sides_.size(); }

 private:
  friend absl::Status fork_join(LaunchTarget target, SideStreams& sides, absl::Span<const Branch> branches);
  struct Side {
    Stream stream;
    Event done;
  };
  Event fork_;
  std::vector<Side> sides_;
};

// Calls each branch, in order, on this thread, with a target of its own; what comes next in `target` waits for all of
// them. Asynchronous in streams. kInvalidArgument, before any call, when a stream has more branches than `sides` has
// streams, and one. When a branch fails the ones after it are not called, and its status is returned; what was forked
// is joined all the same. The launch kind of `target` (programmatic) is not that of its branches.
absl::Status fork_join(LaunchTarget target, SideStreams& sides, absl::Span<const Branch> branches);

}  // namespace cgrt
