// Event: a point in a stream's order of work.
//
//   CGRT_ASSIGN_OR_RETURN(Event done, Event::create(DeviceRef(0)));
//   CGRT_RETURN_IF_ERROR(stream.record(done.ref()));
//   CGRT_ASSIGN_OR_RETURN(bool finished, done.ref().is_complete());
//
// EventRef is thread-safe; an Event must not be moved or destroyed beside other calls on it.
// Errors: driver/status.h.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/stream/completion.h"

namespace cgrt {

enum class EventTiming { kDisabled, kEnabled };

namespace internal {

// The capture in which an event of this library was last recorded; 0: outside of any.
struct EventMemory {
  std::atomic<std::uint64_t> capture{0};
};

}  // namespace internal

// Does not own. Must not outlive the event; a literal null cannot be passed.
class EventRef {
 public:
  EventRef(CUevent event) : handle_(event) {}  // implicit: callers hold cudaEvent_t
  EventRef(CUevent event, internal::EventMemory* memory) : handle_(event), memory_(memory) {}
  EventRef(std::nullptr_t) = delete;
  EventRef(int) = delete;

  // kDone also if never recorded. Never blocks. A sticky fault of the context is an error.
  // Asking does not disturb captures, of whatever thread. An event that was last recorded inside a
  // capture still under way answers kCaptured, and kInvalidArgument once that capture has ended and
  // until it is recorded again. Only for a handle that this library did not make, or a capture that
  // capture() did not begin, does asking a captured event invalidate that capture (CUDA's rule).
  absl::StatusOr<Completion> completion() const;

  // completion() == kDone; kFailedPrecondition when captured.
  absl::StatusOr<bool> is_complete() const;

  // Blocks until the work before the last record is done. kFailedPrecondition when captured.
  absl::Status synchronize() const;

  CUevent get() const { return handle_; }
  internal::EventMemory* memory() const { return memory_; }  // null: not an event of this library

 private:
  bool is_captured() const;

  CUevent handle_;
  internal::EventMemory* memory_ = nullptr;
};

// Owns. Destroying it while work is pending is allowed; CUDA frees it later.
class Event {
 public:
  static absl::StatusOr<Event> create(ContextRef context, EventTiming timing = EventTiming::kDisabled);
  static Event adopt(CUevent event) { return Event(event); }
  CUevent release() && { return handle_.release(); }
  EventRef ref() const { return EventRef(handle_.get(), memory_.get()); }

 private:
  explicit Event(CUevent event) : handle_(event), memory_(std::make_unique<internal::EventMemory>()) {}
  UniqueHandle<CUevent, driver::destroy_event> handle_;
  std::unique_ptr<internal::EventMemory> memory_;
};

// Device time between two recorded events, both with EventTiming::kEnabled. Never blocks:
// kFailedPrecondition while either is pending, kInvalidArgument when one was never recorded or has no
// timing, kUnimplemented on the simulator, which has no GPU time to tell.
absl::StatusOr<absl::Duration> elapsed_time(EventRef start, EventRef end);

}  // namespace cgrt
