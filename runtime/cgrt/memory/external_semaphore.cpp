#include "cgrt/memory/external_semaphore.h"

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"
#include "cgrt/target/capture_context.h"

namespace cgrt {
namespace internal {

void destroy_external_semaphore(CUexternalSemaphore semaphore) {
  const RelaxedCaptureMode relaxed;
  driver::destroy_external_semaphore(semaphore);
}

absl::Status check(absl::Span<const SemaphoreValue> values) {
  if (values.empty()) return absl::InvalidArgumentError("There is no semaphore to signal or to wait for.");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (ABSL_PREDICT_TRUE(values[i].semaphore != nullptr)) continue;
    const absl::Status empty = driver::empty_object("ExternalSemaphore");
    if (values.size() == 1) return empty;
    return driver::prefix(empty, absl::StrCat("Semaphore ", i, " of ", values.size(), ", counted from 0"));
  }
  return absl::OkStatus();
}

SemaphoreArrays to_driver(SemaphoreAction action, absl::Span<const SemaphoreValue> values) {
  SemaphoreArrays arrays;
  arrays.handles.reserve(values.size());
  for (const SemaphoreValue& one : values) arrays.handles.push_back(one.semaphore);
  if (action == SemaphoreAction::kSignal) {
    arrays.signals.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) arrays.signals[i].params.fence.value = values[i].value;
  } else {
    arrays.waits.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) arrays.waits[i].params.fence.value = values[i].value;
  }
  return arrays;
}

absl::Status explain(const absl::Status& failure, SemaphoreAction action, absl::Span<const SemaphoreValue> values) {
  const char* const what = action == SemaphoreAction::kSignal ? "Signal of " : "Wait for ";
  return driver::annotate(failure, absl::StrCat(what, counted(values.size(), "external semaphore"),
                                                ", the first with the value ", values.front().value));
}

}  // namespace internal

absl::StatusOr<ExternalSemaphore> ExternalSemaphore::import_fd(ContextRef context, SemaphoreKind kind, int fd) {
  const bool is_timeline = kind == SemaphoreKind::kTimeline;
  if (fd < 0) {
    return absl::InvalidArgumentError(absl::StrCat("ExternalSemaphore::import_fd: ", fd,
                                                   " is no file descriptor. Export one from the API that made the "
                                                   "semaphore, as with vkGetSemaphoreFdKHR."));
  }
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(handle));
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC description{};
  description.type = is_timeline ? CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
                                 : CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
  description.handle.fd = fd;
  CUexternalSemaphore semaphore = nullptr;
  RelaxedCaptureMode relaxed;
  if (ABSL_PREDICT_FALSE(relaxed.result() != CUDA_SUCCESS)) return relaxed.status();
  const CUresult result = driver::api().ImportExternalSemaphore(&semaphore, &description);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return driver::annotate(
        driver::to_status(result, "cuImportExternalSemaphore"),
        absl::StrCat("Importing a ", is_timeline ? "timeline" : "binary", " semaphore from file descriptor ", fd,
                     ", which stays the caller's. It must be one of that kind, exported as opaque by the same GPU"));
  }
  return ExternalSemaphore(semaphore);  // the descriptor is the driver's: no failure from here on
}

absl::Status signal_semaphores(LaunchTarget target, absl::Span<const SemaphoreValue> values) {
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "a signal of semaphores"));
  CGRT_RETURN_IF_ERROR(internal::check(values));
  if (target.sink() != nullptr) return target.sink()->add_semaphores(SemaphoreAction::kSignal, values);
  const CUstream stream = target.stream().get();
  if (ABSL_PREDICT_FALSE(stream == nullptr)) return driver::empty_object("Stream");
  const internal::SemaphoreArrays arrays = internal::to_driver(SemaphoreAction::kSignal, values);
  const CUresult result =
      driver::api().SignalExternalSemaphoresAsync(arrays.handles.data(), arrays.signals.data(), arrays.count(), stream);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return internal::explain(driver::to_status(result, "cuSignalExternalSemaphoresAsync"), SemaphoreAction::kSignal,
                             values);
  }
  internal::CaptureContext::note_node(stream);
  return absl::OkStatus();
}

absl::Status wait_semaphores(LaunchTarget target, absl::Span<const SemaphoreValue> values) {
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "a wait for semaphores"));
  CGRT_RETURN_IF_ERROR(internal::check(values));
  if (target.sink() != nullptr) return target.sink()->add_semaphores(SemaphoreAction::kWait, values);
  const CUstream stream = target.stream().get();
  if (ABSL_PREDICT_FALSE(stream == nullptr)) return driver::empty_object("Stream");
  const internal::SemaphoreArrays arrays = internal::to_driver(SemaphoreAction::kWait, values);
  const CUresult result =
      driver::api().WaitExternalSemaphoresAsync(arrays.handles.data(), arrays.waits.data(), arrays.count(), stream);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return internal::explain(driver::to_status(result, "cuWaitExternalSemaphoresAsync"), SemaphoreAction::kWait,
                             values);
  }
  internal::CaptureContext::note_node(stream);
  return absl::OkStatus();
}

absl::Status signal_semaphore(LaunchTarget target, ExternalSemaphoreRef semaphore, std::uint64_t value) {
  const SemaphoreValue one{semaphore.get(), value};
  return signal_semaphores(target, {&one, 1});
}

absl::Status wait_semaphore(LaunchTarget target, ExternalSemaphoreRef semaphore, std::uint64_t value) {
  const SemaphoreValue one{semaphore.get(), value};
  return wait_semaphores(target, {&one, 1});
}

}  // namespace cgrt
