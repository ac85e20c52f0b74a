#include "cgrt/target/launch_target.h"

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/target/capture_context.h"

namespace cgrt {

namespace {

template <class Call>
absl::Status make_event_node(StreamRef stream, const char* name, Call call) {
  CGRT_RETURN_IF_ERROR(driver::to_status(call(), name));
  internal::CaptureContext::note_node(stream.get());
  return absl::OkStatus();
}

}  // namespace

absl::Status LaunchSink::fork_join(absl::Span<const Branch> branches) {
  for (const Branch& branch : branches) CGRT_RETURN_IF_ERROR(branch(LaunchTarget::into(*this)));
  return absl::OkStatus();
}

absl::Status record_event(LaunchTarget target, EventRef event) {
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "an event record"));
  if (target.sink() != nullptr) return target.sink()->add_event_record(event);
  const StreamRef stream = target.stream();
  // Outside of a capture the external flags are refused (401).
  CGRT_ASSIGN_OR_RETURN(bool capturing, stream.is_capturing());
  if (!capturing) return stream.record(event);
  if (event.get() == nullptr) return driver::empty_object("Event");
  return make_event_node(stream, "cuEventRecordWithFlags", [&] {
    return driver::api().EventRecordWithFlags(event.get(), stream.get(), CU_EVENT_RECORD_EXTERNAL);
  });
}

absl::Status wait_event(LaunchTarget target, EventRef event) {
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "an event wait"));
  if (target.sink() != nullptr) return target.sink()->add_event_wait(event);
  const StreamRef stream = target.stream();
  CGRT_ASSIGN_OR_RETURN(bool capturing, stream.is_capturing());
  if (!capturing) return stream.wait(event);
  if (event.get() == nullptr) return driver::empty_object("Event");
  return make_event_node(stream, "cuStreamWaitEvent", [&] {
    return driver::api().StreamWaitEvent(stream.get(), event.get(), CU_EVENT_WAIT_EXTERNAL);
  });
}

absl::Status internal::refuse_event(const char* call) {
  return absl::InvalidArgumentError(absl::StrCat(
      "The target is to record an event in its launch, and this is ", call,
      ": only launches of kernels record one. Pass the target without recording(), and record_event behind it."));
}

}  // namespace cgrt
