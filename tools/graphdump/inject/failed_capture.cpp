#include "inject/failed_capture.h"

#include <unistd.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cgrt/driver/api.h"
#include "inject/callers.h"

namespace graphdump {
namespace {

namespace driver = cgrt::driver;

// For the thread that began the capture.
std::string tell_own_thread(const driver::LoggedCapture* logged, CUstream stream, CUstreamCaptureMode mode,
                            CUresult result) {
  if (logged != nullptr) {
    const std::optional<driver::RefusedCall> call = logged->first_refused();
    if (call.has_value()) {
      const std::string caller = callers::of(call->thread, call->function);
      return absl::StrCat(driver::tell(*call, stream, mode), caller.empty() ? "" : ". The call came from ", caller);
    }
  }
  const char *name = nullptr, *text = nullptr;
  driver::api().GetErrorName(result, &name);
  driver::api().GetErrorString(result, &text);
  return absl::StrCat(driver::name_capture(stream, mode), " failed when it was ended, with ", static_cast<int>(result),
                      " (", name != nullptr ? name : "?", "): ", text != nullptr ? text : "?",
                      result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                          ? ". Record an event in each stream that joined the capture, and have the captured stream "
                            "wait for it before the end"
                          : ".");
}

}  // namespace

std::string tell_failed_capture(const driver::LoggedCapture* logged, CUstream stream, CUstreamCaptureMode mode,
                                std::int64_t thread, CUresult result) {
  const auto begun_by = [](std::int64_t number) { return absl::StrCat("begun by thread ", number); };
  return absl::StrReplaceAll(tell_own_thread(logged, stream, mode, result), {{begun_by(gettid()), begun_by(thread)}});
}

}  // namespace graphdump
