#include "cgrt/stream/launch_target.h"

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt {

// The external flags are refused outside of a capture (401), so the stream is asked first.
absl::Status record_event(LaunchTarget target, EventRef event) {
  if (target.sink() != nullptr) return target.sink()->add_event_record(event);
  const StreamRef stream = target.stream();
  CGRT_ASSIGN_OR_RETURN(bool capturing, stream.is_capturing());
  if (!capturing) return stream.record(event);
  return driver::to_status(driver::api().EventRecordWithFlags(event.get(), stream.get(), CU_EVENT_RECORD_EXTERNAL),
                           "cuEventRecordWithFlags");
}

absl::Status wait_event(LaunchTarget target, EventRef event) {
  if (target.sink() != nullptr) return target.sink()->add_event_wait(event);
  const StreamRef stream = target.stream();
  CGRT_ASSIGN_OR_RETURN(bool capturing, stream.is_capturing());
  if (!capturing) return stream.wait(event);
  return driver::to_status(driver::api().StreamWaitEvent(stream.get(), event.get(), CU_EVENT_WAIT_EXTERNAL),
                           "cuStreamWaitEvent");
}

}  // namespace cgrt
