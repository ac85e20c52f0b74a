// Event: a point in a stream's order of work.
//
//   CGRT_ASSIGN_OR_RETURN(Event done, Event::create(DeviceRef(0)));
//   CGRT_RETURN_IF_ERROR(stream.record(done));
//   CGRT_ASSIGN_OR_RETURN(bool finished, EventRef(done).is_complete());
//
// EventRef is thread-safe; an Event must not be moved or destroyed beside other calls on it.
// Errors: driver/status.h; kFailedPrecondition for an empty Event.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/stream/completion.h"

namespace cgrt {

enum class EventTiming { kDisabled, kEnabled };

class Event;

// Does not own. Must not outlive the event; a literal null cannot be passed.
class EventRef {
 public:
  EventRef(CUevent event) : handle_(event) {}  // implicit: callers hold cudaEvent_t
  EventRef(const Event& event);                // implicit: an owned event is taken where a raw one is
  EventRef(Event&&) = delete;
  EventRef(std::nullptr_t) = delete;
  EventRef(int) = delete;

  // kDone also if never recorded. Never blocks. A sticky fault of the context is an error. kCaptured while the capture
  // in which it was last recorded goes on; kInvalidArgument once that has ended, until the event is recorded again.
  // Disturbs no capture, but for the races in docs/threads.md.
  absl::StatusOr<Completion> completion() const;

  // completion() == kDone; kFailedPrecondition when captured.
  absl::StatusOr<bool> is_complete() const;

  // Blocks until the work before the last record is done. kFailedPrecondition when captured. Ends captures as
  // StreamRef::synchronize does.
  absl::Status synchronize() const;

  CUevent get() const { return handle_; }

 private:
  CUevent handle_;
};

// Owns. Destroying it while work is pending is allowed; CUDA frees it later. Empty by default and when moved from.
class Event {
 public:
  Event() = default;
  // Thread-safe.
  static absl::StatusOr<Event> create(ContextRef context, EventTiming timing = EventTiming::kDisabled);
  // Takes over an event of cuEventCreate or cudaEventCreate; null gives an empty Event.
  static Event adopt(CUevent event) { return Event(event); }
  // To be destroyed with cuEventDestroy.
  CUevent release() && { return handle_.release(); }
  EventRef ref() const { return EventRef(handle_.get()); }

 private:
  explicit Event(CUevent event) : handle_(event) {}
  UniqueHandle<CUevent, driver::destroy_event> handle_;
};

inline EventRef::EventRef(const Event& event) : EventRef(event.ref()) {}

// Device time between two recorded events, both with EventTiming::kEnabled. Never blocks:
// kFailedPrecondition while either is pending, kInvalidArgument when one was never recorded or has no
// timing, kUnimplemented on the simulator, which has no GPU time to tell.
absl::StatusOr<absl::Duration> elapsed_time(EventRef start, EventRef end);

}  // namespace cgrt
