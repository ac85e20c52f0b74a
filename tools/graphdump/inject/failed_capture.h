// What a stream capture that failed was ended by, and what to do about it, as sentences for the user.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

#include "cgrt/driver/capture_log.h"

namespace graphdump {

// `logged`: the capture in the driver's log; null: it is not there. `thread`: that began it. `result`: of its end.
std::string tell_failed_capture(const cgrt::driver::LoggedCapture* logged, CUstream stream, CUstreamCaptureMode mode,
                                std::int64_t thread, CUresult result);

}  // namespace graphdump
